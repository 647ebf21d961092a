/* audit verify --expect FILE: heads that an account was given, signed. */
#include "admin_internal.h"

#include "config/key_file.h"
#include "core/audit_chain.h"

#include <stdlib.h>

static int read_heads(struct audit_verifier *verifier, const struct keyring *keyring, const char *path,
                      struct text content)
{
    struct receipt_keys keys;
    struct audit_signed heads;
    const char *why;

    receipt_keys_of(keyring, &keys);
    if (!audit_signed_read(text_trim(content), &keys, &heads, &why))
        return command_fail(EXIT_FAILED, "%s has no signed heads: %s", path, why);
    audit_verifier_expect(verifier, text_of(path), &heads);
    free(heads.digests);
    return EXIT_DONE;
}

int audit_expect_file(struct audit_verifier *verifier, const struct keyring *keyring, struct text name)
{
    char path[ADMIN_WHY_MAX_BYTES / 2], storage[ADMIN_WHY_MAX_BYTES];
    struct buf content CLEANUP(buf_finish), printed, why;

    buf_init(&content, AUDIT_SIGNED_MAX_BYTES);
    buf_init_fixed(&printed, path, sizeof path);
    buf_init_fixed(&why, storage, sizeof storage);
    buf_append_text(&printed, name);
    buf_append_char(&printed, '\0');
    if (printed.failed || !secret_file_read(path, &content, &why))
        return command_fail(EXIT_USAGE,
                            "--expect takes CHAIN:SEQ:MAC, as an earlier run printed it, or a file with signed heads: "
                            "%.*s",
                            TEXT_ARG(printed.failed ? name : buf_text(&why)));
    return read_heads(verifier, keyring, path, buf_text(&content));
}
