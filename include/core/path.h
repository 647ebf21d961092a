/* Request paths in the one form in which they are matched (RFC 3986 section 6.2.2). */
#pragma once
#include "base/text.h"

/* Decodes percent escapes of characters that may stand in a path, removes dot segments, folds repeated slashes, and
 * upper-cases the hex digits of escapes that stay. Escapes are decoded once: "%252e" stays. A slash at the end stays.
 * False (answer 400) for paths that can be read in more than one way: not beginning with '/'; an encoded slash,
 * backslash, NUL or control character; a broken escape; escapes that decode to invalid UTF-8; bytes that a request line
 * may not have; dot segments that climb above the root or past a folded slash ("/a//../b"); dot segments with a
 * parameter ("/..;x"). ret_path has room for path.len bytes, and must not overlap path. */
MUST_CHECK bool path_normalise(struct text path, char *ret_path, size_t *ret_len);

/* Whether all servers read a path that path_normalise() accepts in the same way, as it was sent. They do not if it has
 * empty or dot segments, which only some remove; ';', at which some truncate it; segments that end in a dot, which some
 * file systems drop; segments that begin or end with a blank, which some routers trim; an escaped '?' or '#', at which
 * a backend truncates it if it decodes before it looks for the query; an escaped '%' before two hex digits (themselves
 * escaped or not), which is an escape to backends that decode twice; or characters that compatibility folding (NFKC)
 * turns into one of these, such as the full-width dot and slash, for backends that fold after decoding. */
bool path_is_unambiguous(struct text path);

/* Whether a path begins with the segments of a pattern, ignoring case; *ret_exact: whether the case matches too. A
 * segment "*" of the pattern matches any one segment that is not empty. */
MUST_CHECK bool path_covers(struct text pattern, struct text path, bool *ret_exact);

/* Decodes the next parameter of a query string (RFC 3986 escapes; '+' is a blank, as in HTML forms). Call it until it
 * returns PATH_QUERY_END. Names and values go into *storage, which has room for query.len bytes in all and advances. */
/* MALFORMED: a broken escape, NUL or invalid UTF-8, in the value of ret_name; or in a name, then ret_name is {NULL,
 * 0}. */
enum path_query_result { PATH_QUERY_ITEM, PATH_QUERY_END, PATH_QUERY_MALFORMED };
enum path_query_result path_next_parameter(struct text *rest, char **storage, struct text *ret_name,
                                           struct text *ret_value);
