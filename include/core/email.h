/* Emails, which are how people sign in: one spelling for one address (RFC 8265, UsernameCaseMapped; RFC 5890). */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include "core/limits.h"

enum { EMAIL_WHY_BYTES = 128 };

/* The address that is meant, for a new user: full-width characters become usual ones, capitals small, all of it
 * Normalization Form C, the domain as DNS has it ("xn--…"). ret_email has room for EMAIL_MAX_BYTES + 1 and is
 * NUL-terminated. False: it is no address that a new user may have. Before the '@' that is at most 64 octets: letters,
 * marks and digits of any script, and the signs of RFC 5322's atoms. Nothing invisible, no direction marks, no secret
 * of a key.
 *
 * Users of versions before 0.4 keep theirs as account_normalise_email() left it. Whether one address is taken is asked
 * under two names: this one, and the written one in that form. This does not find a user of 0.3 whose address is kept
 * in a third spelling (capitals outside ASCII, a domain in another form, letters in two code points): any number of
 * spellings lead to one address, and none leads back. */
MUST_CHECK bool email_read(struct text written, char *ret_email);
/* Why email_read() refuses it: one sentence that begins with "email". out: room for EMAIL_WHY_BYTES. */
void email_explain(struct text written, struct buf *out);
