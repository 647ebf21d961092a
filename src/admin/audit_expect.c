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
    struct buf content CLEANUP(buf_finish) = BUF_UP_TO(AUDIT_SIGNED_MAX_BYTES);
    struct buf path = BUF_FIXED(ADMIN_WHY_MAX_BYTES / 2), why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    buf_append_text(&path, name);
    buf_append_char(&path, '\0');
    if (path.failed || !secret_file_read(path.ptr, &content, &why))
        return command_fail(EXIT_USAGE,
                            "--expect takes CHAIN:SEQ:MAC, as an earlier run printed it, or a file with signed heads: "
                            "%.*s",
                            TEXT_ARG(path.failed ? name : buf_text(&why)));
    return read_heads(verifier, keyring, path.ptr, buf_text(&content));
}
