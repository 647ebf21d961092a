/* A new authenticator's secret, as its owner sees it once. */
#pragma once
#include "base/json.h"
#include "core/totp.h"

/* Two members of an object: totp_uri, the otpauth:// address, and totp_qr, the rows of its QR code. Wipe what they are
 * written to. */
void view_put_totp(struct json_writer *w, const struct totp_secret *secret, struct text email);
