/* Request paths, brought to the one form that is matched (RFC 3986 section 6.2.2). */
#pragma once
#include "base/text.h"

/* Decodes percent escapes of characters that may stand in a path, removes dot segments, folds repeated slashes,
 * upper-cases the hex digits of escapes that stay. False, to be answered with 400, for what cannot be read in one way
 * only: not beginning with '/', an encoded slash, backslash, NUL or control character, a broken escape, invalid UTF-8
 * behind the escapes, bytes that a request line may not have, dot segments that climb above the root or past a folded
 * slash ("/a//../b"), dot segments with a parameter ("/..;x"). Escapes are decoded once: "%252e" stays. A slash at the
 * end stays. ret_path has room for path.len bytes, and must not overlap path. */
MUST_CHECK bool path_normalise(struct text path, char *ret_path, size_t *ret_len);

/* Whether a path that path_normalise() takes is read alike by whoever gets it as it was sent. Not so where there are
 * empty or dot segments, which some remove and others do not; ';', behind which some cut; segments that end in a dot,
 * which some file systems drop; segments that begin or end with a blank, which some routers trim; an escaped '?' or
 * '#', behind which a backend cuts that decodes before it looks for the query; an escaped '%' before two hex digits,
 * themselves escaped or not, which is an escape to who decodes twice; characters that compatibility folding (NFKC)
 * turns into one of these, like the full-width dot and slash, for backends that fold what they decoded. */
bool path_is_unambiguous(struct text path);

/* Whether a path begins with the segments of a pattern, whatever the case of letters; *ret_exact: in their case too. A
 * segment "*" of the pattern stands for any one that is not empty. */
MUST_CHECK bool path_covers(struct text pattern, struct text path, bool *ret_exact);

/* One parameter of a query string, decoded (RFC 3986 escapes; '+' is a blank as in HTML forms). Call until it returns
 * PATH_QUERY_END. Names and values are written into `storage`, query.len bytes large, by repeated calls. */
/* MALFORMED: a broken escape, NUL or invalid UTF-8; ret_name tells whose value it is, {NULL, 0}: the name itself. */
enum path_query_result { PATH_QUERY_ITEM, PATH_QUERY_END, PATH_QUERY_MALFORMED };
enum path_query_result path_next_parameter(struct text *rest, char **storage, struct text *ret_name,
                                           struct text *ret_value);
