/* Sessions by user, without their tokens: to list and to end them. */
#include "records/session_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "lease/lease.h"
#include "engine/verb.h"
#include <stdlib.h>

struct list_call {
    struct store *store;
    sessions_listed *done;
    void *arg;
};

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

static bool read_row(UNUSED void *arg, const struct redis_reply *reply, void *ret_row)
{
    return REPLY_RECORD(reply, ROW_FIELDS, ret_row);
}

static void list_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_call call = *(struct list_call *)arg;
    const struct row_form form = {"list of sessions", sizeof(struct session_row), SIZE_MAX, read_row, NULL};
    size_t count;
    struct session_row *rows = reply_rows(call.store, &form, reply, &result, &count);

    free(arg);
    call.done(call.arg, result, rows, count);
    free(rows);
}

void session_store_list(struct store *store, const struct id *users, size_t user_count, sessions_listed *done,
                        void *arg)
{
    struct list_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    CHECK(user_count <= SESSION_LIST_USERS_MAX);
    *call = (struct list_call){store, done, arg};
    args_begin(&args);
    for (size_t i = 0; i < user_count; i++)
        args_add(&args, id_text(&users[i]));
    store_call_script(store, SCRIPT_session_list, SCRIPT_WORK, args.count, args.argv, list_called, call);
}

struct stop_call {
    struct store *store;
    int64_t count;
    sessions_stopped *done;
    void *arg;
};

static void on_settled(void *arg, bool is_over)
{
    struct stop_call call = *(struct stop_call *)arg;

    free(arg);
    call.done(call.arg, is_over ? STORE_OK : STORE_UNKNOWN, call.count);
}

static void stop_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct stop_call *call = arg;

    if (result == STORE_OK && reply_integer(reply_at(reply, 0), &call->count)) {
        barriers_settle(lease_barriers(store_lease(call->store)), on_settled, call);
        return;
    }
    if (result == STORE_OK) {
        store_malformed(call->store, "sessions ended");
        result = STORE_UNKNOWN;
    }
    call->done(call->arg, result, 0);
    free(call);
}

void session_store_stop(struct store *store, const struct id *user, struct text sid, const uint8_t *except,
                        const struct audit_source *source, sessions_stopped *done, void *arg)
{
    struct stop_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct stop_call){.store = store, .done = done, .arg = arg};
    args_begin(&args);
    args_add(&args, id_text(user));
    args_add(&args, sid);
    if (except)
        args_add_hex(&args, except, KEYRING_DIGEST_BYTES);
    else
        args_add(&args, TEXT(""));
    args_add_source(&args, store, source);
    args_add_credential(&args, &source->credential);
    store_call_script(store, SCRIPT_session_stop, SCRIPT_CHANGES, args.count, args.argv, stop_called, call);
}
