/* The fields of the first line of a key's stored record (key.h), in their order: X(name) for each. They are fixed for
 * ever, because every version reads them. The build writes them into the scripts, too (src/engine/lua/embed.c). */
#pragma once
/* `revoked` is the one that changes, so the MAC does not bind it; `name` is last, because it may have blanks. */
#define KEY_LINE_FIELDS(X) X(id) X(account) X(mode) X(last4) X(scopes) X(created) X(revoked) X(name)
