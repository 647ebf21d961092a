#include "totp_view_internal.h"
#include "base/secure.h"
#include "core/qr.h"

void view_put_totp(struct json_writer *w, const struct totp_secret *secret, struct text email)
{
    char uri[TOTP_URI_MAX_BYTES];
    struct buf out;

    buf_init_fixed(&out, uri, sizeof uri - 1);
    totp_print_uri(secret, TOTP_ISSUER, email, &out);
    uri[out.len] = '\0';
    json_put_member(w, "totp_uri", text_of(uri));
    json_key(w, "totp_qr");
    qr_put_rows(w, uri);
    secure_wipe(uri, sizeof uri);
}
