#include "dev_guide.h"

#include "admin/qr.h"
#include "base/clock.h"
#include "base/secure.h"
#include "core/totp.h"

#include <unistd.h>

enum { GUIDE_MAX_BYTES = 256 * 1024 };

/* One word for a shell: NAME='value'. */
static void put_variable(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "  %s='", name);
    for (; *value; value++) {
        if (*value == '\'')
            buf_append_str(out, "'\\'");
        buf_append_char(out, *value);
    }
    buf_append_str(out, "'\n");
}

static void put_code(struct buf *out, const char *uri)
{
    char code[TOTP_DIGITS + 2];
    struct totp_secret secret;
    int64_t now_ms = clock_wall_ms();

    if (!totp_parse_uri(text_of(uri), &secret))
        return;
    totp_print(secret.bytes, TOTP_SECRET_BYTES, totp_step(now_ms), TOTP_DIGITS, code);
    buf_printf(out, "  Code now      %s (for %lld s; each counts once)\n", code,
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

    buf_printf(out,
               "\nChatelaine " CHATELAINE_VERSION ", development mode: all of this lies in clear in\n%s\n\n"
               "  Console       %s/console/\n"
               "  Public        %s\n"
               "  Internal      http://%s (livez, readyz, metrics)\n"
               "  Email         %s\n"
               "  Password      %s\n"
               "  TOTP secret   %.*s\n"
               "  TOTP address  %s\n",
               guide->home->path, guide->origin, guide->origin, guide->internal_address, c->email, c->password,
               TEXT_ARG(uri_secret(c->totp_uri)), c->totp_uri);
    put_code(out, c->totp_uri);
    if (!guide->show_qr)
        return;
    buf_append_char(out, '\n');
    if (!qr_print(c->totp_uri, out))
        buf_append_str(out, "  (too long for a QR code)\n");
}

static const char TRY_SESSION[] =
    "\n"
    "  api() { curl -sS -w '\\n' -H 'Content-Type: application/json' \"$@\"; }\n"
    "  field() { sed -n \"s/.*\\\"$1\\\":\\\"\\([^\\\"]*\\)\\\".*/\\1/p\"; }\n"
    "\n"
    "  # Sign in; the session's cookie goes into a file\n"
    "  LOGIN=$(api \"$URL/v1/auth/login\" -c \"$DIR/cookies\" \\\n"
    "    -d \"{\\\"email\\\":\\\"$EMAIL\\\",\\\"password\\\":\\\"$PASSWORD\\\",\\\"totp\\\":\\\"$(\"$BIN\" totp "
    "\"$DIR/totp.uri\")\\\"}\")\n"
    "  echo \"$LOGIN\"\n"
    "  CSRF=$(echo \"$LOGIN\" | field csrf_token)\n"
    "  api \"$URL/v1/console/session\" -b \"$DIR/cookies\"\n"
    "\n"
    "  # Password and code again, for what needs them; a code counts once, so this is the next one\n"
    "  api \"$URL/v1/console/step_up\" -b \"$DIR/cookies\" -c \"$DIR/cookies\" -H \"X-CSRF-Token: $CSRF\" \\\n"
    "    -d \"{\\\"password\\\":\\\"$PASSWORD\\\",\\\"totp\\\":\\\"$(\"$BIN\" totp --next \"$DIR/totp.uri\")\\\"}\"\n";

static const char TRY_KEY[] =
    "\n"
    "  # The first API key: its secret is shown once\n"
    "  CREATED=$(api \"$URL/v1/console/api_keys\" -b \"$DIR/cookies\" -H \"X-CSRF-Token: $CSRF\" \\\n"
    "    -d '{\"name\":\"First key\",\"mode\":\"test\"}')\n"
    "  echo \"$CREATED\"\n"
    "  KEY=$(echo \"$CREATED\" | field secret)\n"
    "  ID=$(echo \"$CREATED\" | field id)\n"
    "\n"
    "  # Use it\n"
    "  api \"$URL/v1/whoami\" -H \"Authorization: Bearer $KEY\"\n"
    "  api \"$URL/v1/api_keys\" -H \"Authorization: Bearer $KEY\"\n"
    "\n"
    "  # Revoke it; from the answer on no node accepts it: 401 api_key_revoked\n"
    "  api \"$URL/v1/api_keys/$ID\" -X DELETE -H \"Authorization: Bearer $KEY\"\n"
    "  api \"$URL/v1/whoami\" -H \"Authorization: Bearer $KEY\"\n";

static const char SECOND_NODE[] =
    "\n"
    "A second node on the same data, from another terminal (with the variables above):\n"
    "\n"
    "  \"$BIN\" serve --redis \"$REDIS\" --master-key-file \"$DIR/master.key\" --public-origin \"$URL\" \\\n"
    "    --listen 127.0.0.1:8082 --internal-listen 127.0.0.1:8083\n"
    "\n"
    "A sign-in right after another is refused until its code changes: wait up to half a minute. ^C stops all.\n\n";

static void put_commands(struct buf *out, const struct dev_guide *guide)
{
    char binary[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", binary, sizeof binary - 1);

    binary[length > 0 ? length : 0] = '\0';
    buf_append_str(out, "\nTry it, by pasting into a shell:\n\n");
    put_variable(out, "BIN", length > 0 ? binary : "chatelaine");
    put_variable(out, "DIR", guide->home->path);
    put_variable(out, "URL", guide->origin);
    put_variable(out, "REDIS", guide->home->redis_url);
    put_variable(out, "EMAIL", guide->credentials->email);
    put_variable(out, "PASSWORD", guide->credentials->password);
    buf_append_str(out, TRY_SESSION);
    buf_append_str(out, TRY_KEY);
    buf_append_str(out, SECOND_NODE);
}

int dev_guide_print(const struct dev_guide *guide)
{
    struct buf out CLEANUP(buf_wipe);

    buf_init(&out, GUIDE_MAX_BYTES);
    put_sign_in(&out, guide);
    put_commands(&out, guide);
    return command_print(buf_text(&out));
}
