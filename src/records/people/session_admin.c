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

static bool read_row(UNUSED void *arg, const struct redis_reply *reply, void *ret_row)
{
    struct session_row *row = ret_row;

    return reply_chars(reply_at(reply, 0), row->sid, sizeof row->sid) &&
           reply_id(reply_at(reply, 1), ID_USER, &row->user) &&
           reply_chars(reply_at(reply, 2), row->email, sizeof row->email) &&
           reply_id(reply_at(reply, 3), ID_ACCOUNT, &row->account) &&
           reply_time(reply_at(reply, 4), &row->created_ms) && reply_time(reply_at(reply, 5), &row->seen_ms) &&
           reply_integer(reply_at(reply, 6), &row->step_up_ms) && reply_time(reply_at(reply, 7), &row->ends_ms) &&
           reply_chars(reply_at(reply, 8), row->ip, sizeof row->ip) &&
           reply_chars(reply_at(reply, 9), row->browser, sizeof row->browser);
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
