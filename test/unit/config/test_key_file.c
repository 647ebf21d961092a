#include "config/key_file.h"

#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define HEX_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define BASE64_KEY "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

static char folder[PROCESS_PATH_BYTES];
static char path[PROCESS_PATH_BYTES + 16];

static void make_folder(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/key", folder);
}

static void remove_folder(void)
{
    folder_remove(folder);
    leak_guard();
}

TestSuite(key_file, .init = make_folder, .fini = remove_folder);

static void write_file(const char *content, size_t len, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, content, len), (ssize_t)len);
    cr_assert_eq(fchmod(fd, mode), 0);
    close(fd);
}

static bool loads(const struct settings *settings, struct buf *why)
{
    struct keyring *keyring = key_file_load(settings, why);

    keyring_destroy(keyring);
    return keyring;
}

Test(key_file, others_may_not_read_it)
{
    enum { ROOT = 0, READER = 1000, STRANGER = 1001 };
    static const struct {
        const char *path;
        mode_t mode;
        uid_t owner, reader;
        bool is_fit;
    } CASES[] = {
        {"/etc/k", S_IFREG | 0400, READER, READER, true},
        {"/etc/k", S_IFREG | 0600, READER, READER, true},
        {"/etc/k", S_IFREG | 0400, ROOT, ROOT, true},
        {"/etc/k", S_IFREG | 0640, ROOT, READER, true},
        {"/etc/k", S_IFREG | 0440, ROOT, READER, true},
        {"/etc/k", S_IFREG | 0440, ROOT, ROOT, false},
        {"/etc/k", S_IFREG | 0440, READER, READER, false},
        {"/etc/k", S_IFREG | 0404, READER, READER, false},
        {"/etc/k", S_IFREG | 0644, ROOT, READER, false},
        {"/etc/k", S_IFREG | 0444, ROOT, READER, false},
        {"/etc/k", S_IFREG | 0620, ROOT, READER, false},
        {"/etc/k", S_IFREG | 0602, READER, READER, false},
        {"/etc/k", S_IFREG | 0600, STRANGER, READER, false},
        {"/etc/k", S_IFDIR | 0700, READER, READER, false},
        {"/etc/k", S_IFIFO | 0600, READER, READER, false},
        {"/run/secrets/k", S_IFREG | 0444, ROOT, READER, true},
        {"/run/secrets/k", S_IFREG | 0444, STRANGER, READER, true},
        {"/run/secrets/k", S_IFREG | 0446, ROOT, READER, false},
        {"/run/secretsk", S_IFREG | 0444, ROOT, READER, false},
    };

    for (size_t i = 0; i < COUNT(CASES); i++)
        cr_expect_eq(key_file_validate(CASES[i].path, CASES[i].mode, CASES[i].owner, CASES[i].reader) == NULL,
                     CASES[i].is_fit, "row %zu", i);
}

Test(key_file, loads_what_is_a_key_and_says_what_is_not)
{
    static const struct {
        const char *content;
        mode_t mode;
        const char *why; /* NULL: the file is accepted */
    } CASES[] = {
        {HEX_KEY "\n", 0600, NULL},
        {HEX_KEY, 0400, NULL},
        {BASE64_KEY "\n", 0600, NULL},
        {"", 0600, "holds no master key"},
        {"secret", 0600, "holds no master key"},
        {HEX_KEY "00\n", 0600, "holds no master key"},
        {HEX_KEY "\r\n", 0600, NULL},
        {"\"" HEX_KEY "\"\n", 0600, "must hold the value alone, without quotes"},
        {"'" BASE64_KEY "'", 0600, "must hold the value alone, without quotes"},
        {"CHATELAINE_MASTER_KEY=" HEX_KEY "\n", 0600, "must hold the value alone, without NAME= in front"},
        {"export K=" HEX_KEY "\n", 0600, "must hold the value alone, without NAME= in front"},
        {"\xef\xbb\xbf" HEX_KEY "\n", 0600, "begins with a byte-order mark: save it as UTF-8 without one"},
        {"\xff\xfe"
         "0",
         0600, "is UTF-16: save it as UTF-8"},
        {HEX_KEY "\n", 0644, "every user of this machine can read it; run chmod 0400"},
        {HEX_KEY "\n", 0660, "others can write to it"},
    };

    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct settings settings = {.master_key_file = path};
        char storage[512] = "";
        struct buf why;

        write_file(CASES[i].content, strlen(CASES[i].content), CASES[i].mode);
        buf_init_fixed(&why, storage, sizeof storage - 1);
        cr_expect_eq(loads(&settings, &why), CASES[i].why == NULL, "row %zu: %s", i, storage);
        cr_expect(!CASES[i].why || strstr(storage, CASES[i].why), "row %zu: %s", i, storage);
        cr_expect_null(strstr(storage, "000102"), "row %zu quotes the key", i);
    }
}

Test(key_file, is_refused_when_longer_than_any_key)
{
    const struct settings settings = {.master_key_file = path};
    char storage[512] = "", content[4096];
    struct buf why;

    memset(content, 'a', sizeof content);
    write_file(content, sizeof content, 0600);
    buf_init_fixed(&why, storage, sizeof storage - 1);
    cr_expect_not(loads(&settings, &why));
    cr_expect(strstr(storage, "too long"), "%s", storage);
}

Test(key_file, missing_ones_are_told)
{
    const struct settings nothing = {0}, absent = {.master_key_file = path};
    char storage[512] = "";
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage - 1);
    cr_expect_not(loads(&nothing, &why));
    cr_expect(strstr(storage, "chatelaine master-key"), "%s", storage);
    buf_clear(&why);
    cr_expect_not(loads(&absent, &why));
    cr_expect(strstr(storage, "No such file"), "%s", storage);
    cr_expect(strstr(storage, "copy it from another node"), "%s", storage);
}

Test(key_file, a_retired_key_is_a_second_generation)
{
    struct settings settings = {.master_key_file = path, .retired_master_key_file = path};
    char storage[512];
    struct buf why;

    write_file(HEX_KEY, strlen(HEX_KEY), 0600);
    buf_init_fixed(&why, storage, sizeof storage);
    struct keyring *keyring = key_file_load(&settings, &why);
    cr_assert(keyring);
    cr_expect_eq(keyring_generations(keyring), 2);
    keyring_destroy(keyring);

    /* Retired keys, one per line. */
    static const struct {
        const char *content;
        size_t generations; /* 0: refused */
    } FILES[] = {
        {HEX_KEY "\n\n" BASE64_KEY "\r\n " HEX_KEY " \n", 4},
        {HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY, 8},
        {HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY "\n" HEX_KEY, 0},
        {HEX_KEY "\nsecret\n", 0},
        {"\n\n", 0},
    };
    char others[sizeof path + 8];
    snprintf(others, sizeof others, "%s.others", path);
    for (size_t i = 0; i < COUNT(FILES); i++) {
        FILE *file = fopen(others, "w");

        cr_assert(file && fchmod(fileno(file), 0600) == 0 && fputs(FILES[i].content, file) >= 0 && fclose(file) == 0);
        settings.retired_master_key_file = others;
        keyring = key_file_load(&settings, &why);
        cr_expect_eq(keyring != NULL, FILES[i].generations > 0, "file %zu", i);
        cr_expect(!keyring || keyring_generations(keyring) == FILES[i].generations, "file %zu", i);
        keyring_destroy(keyring);
    }
    unlink(others);

    settings.retired_master_key_file = "/nonexistent";
    cr_expect_null(key_file_load(&settings, &why));
}

Test(key_file, secrets_lose_one_newline_only)
{
    static const struct {
        const char *content, *secret;
    } CASES[] = {{"a\n", "a"},     {"a\n\n", "a\n"}, {"a", "a"},   {"", ""},     {"\n", ""},
                 {" a \n", " a "}, {"a\r\n", "a"},   {"\r\n", ""}, {"a\r", "a"}, {"\"a\"", "\"a\""}};

    for (size_t i = 0; i < COUNT(CASES); i++) {
        char content_storage[64], why_storage[256];
        struct buf content, why;

        write_file(CASES[i].content, strlen(CASES[i].content), 0644);
        buf_init_fixed(&content, content_storage, sizeof content_storage);
        buf_init_fixed(&why, why_storage, sizeof why_storage);
        cr_assert(secret_file_read(path, &content, &why));
        cr_expect(text_equal(buf_text(&content), text_of(CASES[i].secret)), "row %zu", i);
    }
}

Test(key_file, a_secret_in_another_encoding_is_refused_by_name)
{
    static const char *const CONTENTS[] = {"\xef\xbb\xbf"
                                           "a",
                                           "\xff\xfe"
                                           "a",
                                           "\xfe\xff"
                                           "a"};

    for (size_t i = 0; i < COUNT(CONTENTS); i++) {
        char content_storage[64], why_storage[512] = "";
        struct buf content, why;

        write_file(CONTENTS[i], strlen(CONTENTS[i]), 0600);
        buf_init_fixed(&content, content_storage, sizeof content_storage);
        buf_init_fixed(&why, why_storage, sizeof why_storage - 1);
        cr_expect_not(secret_file_read(path, &content, &why));
        cr_expect(strstr(why_storage, path) && strstr(why_storage, i == 0 ? "byte-order mark" : "UTF-16"), "%s",
                  why_storage);
        buf_clear(&content);
        cr_expect(whole_file_read(path, &content, &why), "what is searched may have any encoding");
    }
}
