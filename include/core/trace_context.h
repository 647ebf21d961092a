/* W3C Trace Context, level 1: the header traceparent, which names the trace that a request belongs to and the span of
 * whoever sent it. */
#pragma once
#include "base/text.h"

enum { TRACEPARENT_CHARS = 55 };

/* Views into the parsed text. Both are empty if there is no trace. */
struct trace_context {
    struct text trace_id; /* 32 lower-case hex digits, not all 0 */
    struct text span_id;  /* 16 of them */
    bool is_sampled;
};

/* Parses a version that is known, 00, or a later one, whose unknown end is ignored. False: malformed, and to be treated
 * as absent (section 4.3 of the specification). */
MUST_CHECK bool trace_context_parse(struct text traceparent, struct trace_context *ret_context);
/* Prints TRACEPARENT_CHARS of version 00. */
void trace_context_print(const struct trace_context *context, struct buf *out);
