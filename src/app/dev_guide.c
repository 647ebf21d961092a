#include "dev_guide.h"

#include "base/clock.h"
#include "base/secure.h"
#include "config/key_file.h"
#include "core/qr.h"
#include "core/totp.h"

#include <stdio.h>
#include <unistd.h>

enum { GUIDE_MAX_BYTES = 256 * 1024, WHY_MAX_BYTES = 512 };

/* The guide: a shell file; what is not for the shell is in comments */

/* One word for a shell, whatever it contains. */
static void put_quoted(struct buf *out, const char *value)
{
    buf_append_char(out, '\'');
    for (; *value; value++) {
        if (*value == '\'')
            buf_append_str(out, "'\\'");
        buf_append_char(out, *value);
    }
    buf_append_char(out, '\'');
}

/* A shell assignment: NAME='value'. */
static void put_variable(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s=", name);
    put_quoted(out, value);
    buf_append_char(out, '\n');
}

/* As comments, because the file is for a shell. */
static void put_qr(struct buf *out, const char *uri)
{
    struct buf code CLEANUP(buf_wipe) = BUF_UP_TO(GUIDE_MAX_BYTES);
    struct text rest, line;

    if (!qr_print(uri, &code))
        return;
    buf_append_str(out, "# For an authenticator app:\n");
    rest = buf_text(&code);
    while (text_next(&rest, '\n', &line))
        if (line.len > 0)
            buf_printf(out, "#%.*s\n", TEXT_ARG(line));
    buf_append_char(out, '\n');
}

static void find_binary(char ret_path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);

    if (length > 0)
        ret_path[length] = '\0';
    else
        snprintf(ret_path, PATH_MAX, "chatelaine");
}

static void put_guide(struct buf *out, const struct dev_guide *guide)
{
    char binary[PATH_MAX];

    find_binary(binary);
    put_qr(out, guide->credentials->totp_uri);
    put_variable(out, "BIN", binary);
    put_variable(out, "DIR", guide->home->path);
    put_variable(out, "URL", guide->origin);
    put_variable(out, "REDIS", guide->home->redis_url);
    put_variable(out, "REDIS_OPTION", guide->home->is_cluster ? "--unsafe-redis" : "");
    put_variable(out, "EMAIL", guide->credentials->email);
    put_variable(out, "PASSWORD", guide->credentials->password);
    buf_append_char(out, '\n');
    buf_append_str(out, DEV_GUIDE_COMMANDS);
}

int dev_guide_show(const char *dir)
{
    char path[PATH_MAX];
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(GUIDE_MAX_BYTES);
    int length = snprintf(path, sizeof path, "%s/" DEV_GUIDE_FILE, dir);

    if (length >= (int)sizeof path || !secret_file_read(path, &content, &why))
        return command_fail(EXIT_FAILED, "the node in %s is still starting; try again", dir);
    buf_append_char(&content, '\n'); /* the reader strips one */
    return command_print(buf_text(&content));
}

/* How to sign in */

static void put_code(struct buf *out, const char *uri)
{
    char code[TOTP_DIGITS + 2];
    struct totp_secret secret;
    int64_t now_ms = clock_wall_ms();

    if (!totp_parse_uri(text_of(uri), &secret))
        return;
    totp_print(secret.bytes, TOTP_SECRET_BYTES, totp_step(now_ms), TOTP_DIGITS, code);
    buf_printf(out, "  Code now      %s (for %lld s; each code works once)\n", code,
               (long long)((TOTP_STEP_MS - now_ms % TOTP_STEP_MS) / 1000));
    secure_wipe(&secret, sizeof secret);
}

/* The value of "secret=" in the address. */
static struct text uri_secret(const char *uri)
{
    struct text rest = text_of(uri), part = {0};

    if (!text_next(&rest, '?', &part) || !rest.ptr)
        return (struct text){0};
    while (text_next(&rest, '&', &part))
        if (text_starts_with(part, TEXT("secret=")))
            return text_skip(part, sizeof "secret=" - 1);
    return (struct text){0};
}

static void put_sign_in(struct buf *out, const struct dev_guide *guide)
{
    const struct dev_credentials *c = guide->credentials;
    char binary[PATH_MAX];

    find_binary(binary);
    buf_printf(out,
               "\nChatelaine " CHATELAINE_VERSION ", development mode. Everything is stored in clear text in %s\n"
               "  Internal      http://%s (checks, livez, readyz, metrics)\n"
               "  Terminal      . ",
               guide->home->path, guide->internal_address);
    put_quoted(out, guide->home->guide);
    buf_append_str(out, " && tour\n  QR code       ");
    put_quoted(out, binary);
    buf_append_str(out, " dev --dir ");
    put_quoted(out, guide->home->path);
    buf_printf(out,
               " --guide\n"
               "  Stop          ^C\n\n"
               "  Documentation %s/docs\n"
               "  Console       %s/console/\n"
               "  Email         %s\n"
               "  Password      %s\n"
               "  TOTP secret   %.*s\n",
               guide->origin, guide->origin, c->email, c->password, TEXT_ARG(uri_secret(c->totp_uri)));
    put_code(out, c->totp_uri);
    buf_append_char(out, '\n');
}

int dev_guide_print(const struct dev_guide *guide)
{
    struct buf out CLEANUP(buf_wipe) = BUF_UP_TO(GUIDE_MAX_BYTES);

    put_guide(&out, guide);
    int code = dev_home_write(guide->home, guide->home->guide, buf_text(&out));
    if (code != EXIT_DONE)
        return code;
    if (!guide->is_wanted)
        buf_clear(&out);
    put_sign_in(&out, guide);
    return command_print(buf_text(&out));
}
