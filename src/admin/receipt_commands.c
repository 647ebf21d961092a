/* receipt verify, receipt keys: certificates of revocations, without asking anybody. */
#include "admin/commands.h"

#include "admin_internal.h"

#include "base/clock.h"
#include "core/receipt.h"
#include "view/view.h"

#include <inttypes.h>

enum { OUTPUT_BYTES = 16384 };

static const struct option_row VERIFY_ROWS[] = {
    ROW_TEXT("jwks", file, "FILE",
             "The public keys, as /.well-known/jwks.json has them. Without it, those of the master keys."),
    ROW_JSON,
};
const struct option_group RECEIPT_VERIFY_OPTIONS[] = {OPTIONS_OF(VERIFY_ROWS), {"Keys", &SETTINGS_KEYS}, {0}};
const struct option_group RECEIPT_KEYS_OPTIONS[] = {{"Keys", &SETTINGS_KEYS}, {0}};

static int keys_of_masters(const struct command_line *line, struct receipt_keys *ret_keys)
{
    int code = EXIT_DONE;
    struct keyring *keyring = command_keyring(line, &code);

    if (!keyring)
        return code;
    receipt_keys_of(keyring, ret_keys);
    keyring_destroy(keyring);
    return EXIT_DONE;
}

static int read_whole(const char *path, struct buf *content)
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    return secret_file_read(path, content, &why) ? EXIT_DONE
                                                 : command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
}

static int keys_of_file(const char *path, struct receipt_keys *ret_keys)
{
    struct buf content CLEANUP(buf_finish) = BUF_UP_TO(RECEIPT_JWKS_MAX_BYTES);
    const char *why;
    int code;

    code = read_whole(path, &content);
    if (code == EXIT_DONE && !receipt_keys_read(buf_text(&content), ret_keys, &why))
        code = command_fail(EXIT_FAILED, "%s has no keys for receipts: %s", path, why);
    return code;
}

/* As the claims. */
static void print_json(const struct receipt *receipt, struct buf *out)
{
    char revoked[CLOCK_RFC3339_BYTES], effective[CLOCK_RFC3339_BYTES];
    struct json_writer w = {.out = out};

    clock_print_rfc3339(receipt->revoked_ms, revoked);
    clock_print_rfc3339(receipt->effective_ms, effective);
    json_object_begin(&w);
    json_put_member(&w, "iss", receipt->issuer);
    json_put_member(&w, "sub", receipt->key);
    json_put_member(&w, "store", receipt->store);
    json_put_member(&w, "revoked_at", text_of(revoked));
    json_put_member(&w, "effective_at", text_of(effective));
    json_put_number(&w, "nodes", receipt->nodes);
    json_put_number(&w, "waited_for", receipt->waited_for);
    view_put_text_or_null(&w, "event", receipt->event);
    json_put_number(&w, "iat", receipt->issued_s);
    json_line_end(&w);
}

static void print_line(struct buf *out, const char *name, struct text value)
{
    buf_printf(out, "%-13s ", name);
    buf_append_printable(out, value);
    buf_append_char(out, '\n');
}

static void print_text(const struct receipt *receipt, struct buf *out)
{
    char time[CLOCK_RFC3339_BYTES];

    print_line(out, text_starts_with(receipt->key, TEXT("acct_")) ? "account" : "key", receipt->key);
    clock_print_rfc3339(receipt->revoked_ms, time);
    print_line(out, "revoked at", text_of(time));
    clock_print_rfc3339(receipt->effective_ms, time);
    print_line(out, "effective at", text_of(time));
    buf_printf(out, "%-13s %" PRId64 ", of which %" PRId64 " did not confirm: their leases had expired\n", "nodes",
               receipt->nodes, receipt->waited_for);
    print_line(out, "event", receipt->event.len > 0 ? receipt->event : TEXT("not known"));
    print_line(out, "issuer", receipt->issuer);
    print_line(out, "store", receipt->store);
    clock_print_rfc3339(receipt->issued_s < INT64_MAX / 1000 ? receipt->issued_s * 1000 : 0, time);
    print_line(out, "signed at", text_of(time));
}

static int print_receipt(const struct command_line *line, const struct receipt *receipt)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(OUTPUT_BYTES);

    if (line->json)
        print_json(receipt, &out);
    else
        print_text(receipt, &out);
    return command_print(buf_text(&out));
}

static int verify(const struct command_line *line, struct text jws, const struct receipt_keys *keys)
{
    struct receipt receipt;
    const char *why;
    struct json *claims = receipt_verify(jws, keys, &receipt, &why);

    if (!claims)
        return command_fail(EXIT_FAILED, "the receipt is refused: %s", why);
    int code = print_receipt(line, &receipt);
    json_free(claims);
    return code;
}

int receipt_verify_run(const struct command_line *line)
{
    struct buf content CLEANUP(buf_finish) = BUF_UP_TO(RECEIPT_MAX_BYTES + 1);
    struct receipt_keys keys;
    int code = line->file ? keys_of_file(line->file, &keys) : keys_of_masters(line, &keys);

    if (code == EXIT_DONE)
        code = read_whole(line->operands[0], &content);
    return code == EXIT_DONE ? verify(line, buf_text(&content), &keys) : code;
}

int receipt_keys_run(const struct command_line *line)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(RECEIPT_JWKS_MAX_BYTES);
    struct receipt_keys keys;
    int code = keys_of_masters(line, &keys);

    if (code != EXIT_DONE)
        return code;
    receipt_keys_print(&keys, &out);
    buf_append_char(&out, '\n');
    return command_print(buf_text(&out));
}
