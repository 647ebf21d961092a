#include "config/tls_files.h"

#include "certificates.h"
#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define AT(name) in_folder((char[PROCESS_PATH_BYTES * 2]){0}, name)

static char folder[PROCESS_PATH_BYTES];
static struct certificate ca, one;

static const char *in_folder(char room[PROCESS_PATH_BYTES * 2], const char *names)
{
    struct text rest = text_of(names), part;
    size_t bytes = 0;

    while (text_next(&rest, ',', &part))
        bytes += (size_t)snprintf(room + bytes, PROCESS_PATH_BYTES * 2 - bytes, "%s%s/%.*s", bytes > 0 ? "," : "",
                                  folder, TEXT_ARG(part));
    return room;
}

static void write_files(void)
{
    folder_make(folder);
    certificate_make(&ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificate_make(&one, &(struct certificate_wish){.name = "one", .names = "DNS:one.example", .issuer = &ca});
    certificate_write(AT("one.pem"), one.full);
    certificate_write(AT("one.key"), one.key_pem);
    certificate_write(AT("ca.pem"), ca.pem);
}

static void remove_files(void)
{
    certificate_free(&one);
    certificate_free(&ca);
    folder_remove(folder);
    leak_guard();
}

TestSuite(tls_files, .init = write_files, .fini = remove_files);

static void check(struct tls_context *context, const struct buf *why, const char *phrase)
{
    cr_assert_eq(context != NULL, phrase == NULL, "%s", why->ptr);
    if (phrase)
        cr_assert(strstr(why->ptr, phrase), "\"%s\" does not say \"%s\"", why->ptr, phrase);
    tls_context_release(context);
}

/* phrase: what the refusal says; NULL: it is accepted. */
static void check_server(const char *certificates, const char *keys, const char *client_ca, const char *phrase)
{
    const struct tls_server_settings settings = {.service = TEXT("test")};
    char storage[1024] = "";
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage - 1);
    check(tls_files_open_server((struct tls_file_option){"--tls-cert", certificates},
                                (struct tls_file_option){"--tls-key", keys},
                                (struct tls_file_option){"--client-ca", client_ca}, &settings, &why),
          &why, phrase);
}

static void check_client(const char *client_ca, const char *certificate, const char *key, const char *phrase)
{
    char storage[1024] = "";
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage - 1);
    check(tls_files_open_client((struct tls_file_option){"--redis-ca", client_ca},
                                (struct tls_file_option){"--redis-cert", certificate},
                                (struct tls_file_option){"--redis-key", key}, &why),
          &why, phrase);
}

Test(tls_files, a_server_has_pairs_and_perhaps_a_client_ca)
{
    check_server(AT("one.pem"), AT("one.key"), NULL, NULL);
    check_server(AT("one.pem,one.pem"), AT("one.key,one.key"), AT("ca.pem"), NULL);
}

/* PEM allows any text in front, and editors put that there. */
Test(tls_files, a_byte_order_mark_in_front_of_a_comment_is_fine)
{
    char content[32 * 1024];

    snprintf(content, sizeof content, "\xef\xbb\xbf# ours\r\n%s", one.full);
    certificate_write(AT("marked.pem"), content);
    snprintf(content, sizeof content, "\xef\xbb\xbf# ours\r\n%s", one.key_pem);
    certificate_write(AT("marked.key"), content);
    check_server(AT("marked.pem"), AT("marked.key"), NULL, NULL);
}

Test(tls_files, each_certificate_needs_its_key)
{
    check_server(AT("one.pem,one.pem"), AT("one.key"), NULL, "--tls-cert names 2 files, but --tls-key names 1");
    check_server(AT("one.pem"), NULL, NULL, "--tls-cert names 1 files, but --tls-key names 0");
    check_client(NULL, NULL, AT("one.key"), "--redis-cert names 0 files, but --redis-key names 1");
}

Test(tls_files, a_file_that_cannot_be_read_is_named)
{
    check_server(AT("none.pem"), AT("one.key"), NULL, "--tls-cert: cannot open /");
    check_server(AT("one.pem"), AT("none.key"), NULL, "cannot open --tls-key /");
    check_server(AT("one.pem"), AT("one.key"), AT("none.pem"), "--client-ca: cannot open /");
    check_server(AT("one.pem"), "", NULL, "--tls-key has an empty path");
}

Test(tls_files, a_key_that_others_can_read_is_refused)
{
    cr_assert_eq(chmod(AT("one.key"), 0644), 0);
    check_server(AT("one.pem"), AT("one.key"), NULL, "every user of this machine can read it");
    check_client(AT("ca.pem"), AT("one.pem"), AT("one.key"), "every user of this machine can read it");
}

Test(tls_files, a_client_may_have_a_ca_and_a_pair)
{
    check_client(NULL, NULL, NULL, NULL);
    check_client(AT("ca.pem"), AT("one.pem"), AT("one.key"), NULL);
    check_client(AT("one.key"), NULL, NULL, "holds no certificate");
}

/* Each set that an option may name: an empty one must not count as none. */
Test(tls_files, a_set_without_a_certificate_is_refused)
{
    static const char *const CONTENTS[] = {"", "\n", "# the CAs follow\n",
                                           "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"};

    for (size_t i = 0; i < sizeof CONTENTS / sizeof *CONTENTS; i++) {
        char storage[1024] = "";
        struct buf why;

        certificate_write(AT("bare.pem"), CONTENTS[i]);
        check_server(AT("bare.pem"), AT("one.key"), NULL, "--tls-cert /");
        check_server(AT("one.pem,bare.pem"), AT("one.key,one.key"), NULL, "--tls-cert /");
        check_server(AT("one.pem"), AT("one.key"), AT("bare.pem"), "--client-ca /");
        check_client(AT("bare.pem"), NULL, NULL, "--redis-ca /");
        check_client(NULL, AT("bare.pem"), AT("one.key"), "--redis-cert /");
        buf_init_fixed(&why, storage, sizeof storage - 1);
        check(tls_files_open_pinned((struct tls_file_option){"--internal-tls-cert", AT("bare.pem")}, &why), &why,
              "--internal-tls-cert /");
    }
}

Test(tls_files, what_is_pinned_is_named_too)
{
    char storage[1024] = "";
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage - 1);
    check(tls_files_open_pinned((struct tls_file_option){"--internal-tls-cert", AT("one.pem,ca.pem")}, &why), &why,
          NULL);
    check(tls_files_open_pinned((struct tls_file_option){"--internal-tls-cert", AT("one.key")}, &why), &why,
          "holds no certificate");
}
