#include "engine/outcome.h"
#include "engine/access.h"
#include "state.h"

enum { LOGGED_ERROR_BYTES = 200 };

enum store_result store_outcome(struct store *store, enum redis_outcome outcome, const struct redis_reply *reply)
{
    if (outcome == REDIS_NOT_SENT)
        return STORE_UNAVAILABLE;
    if (outcome == REDIS_LOST)
        return STORE_UNKNOWN;
    if (reply->type != REPLY_ERROR)
        return STORE_OK;

    if (!text_equal(reply_error_kind(reply), TEXT("NOSCRIPT")))
        store_note_error(store, reply_error_shown(reply));
    return STORE_UNAVAILABLE;
}

void store_note_error(struct store *store, struct text error)
{
    error.len = error.len < LOGGED_ERROR_BYTES ? error.len : LOGGED_ERROR_BYTES;
    if (store_may_log(store, &store->error_pause))
        LOG(LOG_WARN, "Redis returned an error", log_text("error", error),
            log_int("suppressed", store->error_pause.suppressed));
}

void store_malformed(struct store *store, const char *what)
{
    if (store_may_log(store, &store->malformed_pause))
        LOG(LOG_WARN, "unexpected reply from Redis", log_str("what", what),
            log_int("suppressed", store->malformed_pause.suppressed));
}
