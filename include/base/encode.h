/* Hex, base64, base64url (RFC 4648 sections 4 and 5, the latter without padding) and base32 (section 6, without
 * padding). Decoders except base32 are strict: no white space, no stray bits, exact length. */
#pragma once
#include "base/text.h"

void encode_hex(struct buf *out, const void *bytes, size_t count); /* lower case */
void encode_base64url(struct buf *out, const void *bytes, size_t count);
void encode_base32(struct buf *out, const void *bytes, size_t count);
/* The same, NUL-terminated, into the caller's text, which must have room. */
void encode_hex_text(char *ret_text, size_t size, const void *bytes, size_t count);
void encode_base64url_text(char *ret_text, size_t size, const void *bytes, size_t count);

/* Each writes exactly `count` bytes, or returns false and leaves ret_bytes alone. */
MUST_CHECK bool decode_hex(struct text t, void *ret_bytes, size_t count);    /* either case */
MUST_CHECK bool decode_base64(struct text t, void *ret_bytes, size_t count); /* padding as RFC 4648 asks */
MUST_CHECK bool decode_base64url(struct text t, void *ret_bytes, size_t count);
/* Any length up to max_bytes; padding and blanks between groups are tolerated, letters of either case. */
MUST_CHECK bool decode_base32(struct text t, void *ret_bytes, size_t max_bytes, size_t *ret_count);

/* Percent-encodes everything except RFC 3986's unreserved characters. */
void encode_percent(struct buf *out, struct text t);
