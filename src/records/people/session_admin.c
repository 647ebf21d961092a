/* Sessions by user, without their tokens: to list and to end them. */
#include "records/session_store.h"

#include "base/check.h"
#include "engine/verb.h"

/* session_list.lua. A session of an earlier version has no address and no browser. */
static const struct reply_field ROW_FIELDS[] = {
    REPLY_FIELD("sid", value_chars, session_row, sid),
    REPLY_ID("user", ID_USER, session_row, user),
    REPLY_FIELD("email", value_chars, session_row, email),
    REPLY_ID("account", ID_ACCOUNT, session_row, account),
    REPLY_FIELD("created", value_time, session_row, created_ms),
    REPLY_FIELD("seen", value_time, session_row, seen_ms),
    REPLY_FIELD("ends", value_time, session_row, ends_ms),
    REPLY_FIELD_OR_NONE("step_up", value_count, session_row, step_up_ms),
    REPLY_FIELD_OR_NONE("ip", value_chars, session_row, ip),
    REPLY_FIELD_OR_NONE("browser", value_chars, session_row, browser),
};

static enum store_result session_read(struct store *store, const struct redis_reply *item, void *ret_row)
{
    return reply_checked(store, REPLY_RECORD(item, ROW_FIELDS, ret_row), "list of sessions");
}

static void sessions_done(verb_done *done, void *arg, enum store_result result, const struct record_list *list)
{
    ((sessions_listed *)done)(arg, result, list->records, list->count);
}

static const struct list_form SESSIONS = {"list of sessions", false, sizeof(struct session_row), session_read,
                                          sessions_done};

void session_store_list(struct store *store, const struct id *users, size_t user_count, sessions_listed *done,
                        void *arg)
{
    struct script_args args;

    CHECK(user_count <= SESSION_LIST_USERS_MAX);
    args_begin(&args);
    for (size_t i = 0; i < user_count; i++)
        args_add(&args, id_text(&users[i]));
    verb_list(store, SCRIPT_session_list, &args, &SESSIONS, SIZE_MAX, (verb_done *)done, arg);
}

void session_store_stop(struct store *store, const struct id *user, struct text sid, const uint8_t *except,
                        const struct audit_source *source, store_counted *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(user));
    args_add(&args, sid);
    args_add_hex(&args, except, KEYRING_DIGEST_BYTES);
    args_add_actor(&args, store, source);
    verb_call_endings(store, SCRIPT_session_stop, &args, done, arg);
}
