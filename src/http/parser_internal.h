/* llhttp behind a narrow interface: one request's head in one piece, then its body in pieces of any size. This header
 * does not include llhttp.h, because that defines the same method names as we do. */
#pragma once
#include "base/arena.h"
#include "framing_internal.h"
#include "head_internal.h"

struct llhttp__internal_s;

struct http_parser {
    struct llhttp__internal_s *machine; /* in the request's arena */
    struct http_head *head;
    size_t field_room;
    struct framing framing;
    struct buf *sink;         /* where the body goes; NULL: it is discarded */
    const char *framing_from; /* in the current piece, the first byte that the guard has not seen */
    uint64_t body_bytes;
    uint64_t body_max_bytes;
    enum http_error error; /* why a callback stopped the parser */
    bool is_head_complete;
    bool is_complete; /* the whole message, body included */
};

/* Parses a whole head, as found by head_scan(), into `head`. The bytes must outlive both. On refusal, `head` holds what
 * was parsed until then. */
enum http_error parser_read_head(struct http_parser *parser, struct http_head *head, struct arena *arena,
                                 struct text bytes, size_t lines, const struct http_settings *settings);

enum parser_result { PARSER_MORE, PARSER_DONE, PARSER_REFUSED };
/* Consumes body bytes, not what follows the body; ret_used: how many. PARSER_DONE at once if there is no body. The body
 * is appended to sink (NULL: discarded) and may not exceed parser->body_max_bytes. */
enum parser_result parser_read_body(struct http_parser *parser, struct text input, struct buf *sink, size_t *ret_used);
