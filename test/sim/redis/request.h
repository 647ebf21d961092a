/* One request of a client, as RESP or as a line. */
#pragma once
#include "base/text.h"

enum request_state { REQUEST_PART, REQUEST_WHOLE, REQUEST_BAD };

struct request {
    size_t argc, bytes; /* bytes: that it took */
    struct text *argv;  /* each with a NUL behind it */
    char *copy;         /* of what has arrived: they are in it */
    const char *trouble;
};

/* If it is whole, request_finish() frees it, and does no harm otherwise. */
enum request_state request_read(struct text in, struct request *ret_request);
void request_finish(struct request *request);
