#include "records/people_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "person_read.h"
#include "engine/verb.h"
#include <stdlib.h>

bool person_read(const struct redis_reply *reply, struct person *ret_person)
{
    int64_t locked, invited;

    *ret_person = (struct person){0};
    if (!reply || !user_record_read(reply_at(reply, 0), false, &ret_person->user) ||
        !reply_integer(reply_at(reply, 1), &locked) ||
        !reply_integer(reply_at(reply, 2), &ret_person->last_sign_in_ms) || ret_person->last_sign_in_ms < 0 ||
        !reply_integer(reply_at(reply, 3), &invited))
        return false;
    ret_person->is_locked = locked != 0;
    ret_person->is_invited = invited != 0;
    return true;
}

struct list_call {
    struct store *store;
    unsigned limit;
    people_listed *done;
    void *arg;
};

/* Leaves out altered records. */
static enum store_result list_read(const struct list_call *call, const struct redis_reply *reply, struct person *people,
                                   size_t *ret_count, bool *ret_has_more)
{
    int64_t has_more;

    if (!reply_integer(reply_at(reply, 0), &has_more) || reply->count - 1 > call->limit) {
        store_malformed(call->store, "list of people");
        return STORE_UNAVAILABLE;
    }
    *ret_has_more = has_more != 0;
    for (size_t i = 1; i < reply->count; i++) {
        enum store_result result;

        if (!person_read(reply_at(reply, i), &people[*ret_count])) {
            store_malformed(call->store, "person");
            return STORE_UNAVAILABLE;
        }
        result = user_record_believe(call->store, &people[*ret_count].user);
        if (result == STORE_UNAVAILABLE)
            return result;
        *ret_count += result == STORE_OK;
    }
    return STORE_OK;
}

static void list_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_call call = *(struct list_call *)arg;
    struct person *people = mem_alloc(call.limit * sizeof *people);
    bool has_more = false;
    size_t count = 0;

    free(arg);
    if (result == STORE_OK)
        result = list_read(&call, reply, people, &count, &has_more);
    call.done(call.arg, result, people, result == STORE_OK ? count : 0, has_more);
    free(people);
}

void people_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *behind,
                       people_listed *done, void *arg)
{
    struct list_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    CHECK(limit >= 1 && limit <= LIST_LIMIT_MAX);
    *call = (struct list_call){store, limit, done, arg};
    args_begin(&args);
    args_add(&args, id_text(account));
    args_add_int(&args, limit);
    args_add(&args, id_text(behind));
    store_call_script(store, SCRIPT_people_list, SCRIPT_WORK, args.count, args.argv, list_called, call);
}

struct find_call {
    struct store *store;
    struct id user;
    person_found *done;
    void *arg;
};

static enum store_result find_read(const struct find_call *call, const struct redis_reply *reply,
                                   struct person *ret_person)
{
    if (!person_read(reply_at(reply, 0), ret_person) || !id_equal(&ret_person->user.id, &call->user)) {
        store_malformed(call->store, "person");
        return STORE_UNAVAILABLE;
    }
    return user_record_believe(call->store, &ret_person->user);
}

static void find_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_call call = *(struct find_call *)arg;
    struct person person;

    free(arg);
    if (result == STORE_OK)
        result = find_read(&call, reply, &person);
    call.done(call.arg, result, result == STORE_OK ? &person : NULL);
}

void people_store_find(struct store *store, const struct id *account, const struct id *user, bool with_removed,
                       person_found *done, void *arg)
{
    struct find_call *call = mem_alloc(sizeof *call);
    const struct text argv[] = {id_text(account), id_text(user), with_removed ? TEXT("1") : TEXT("0")};

    *call = (struct find_call){store, *user, done, arg};
    store_call_script(store, SCRIPT_person_find, SCRIPT_READS, sizeof argv / sizeof *argv, argv, find_called, call);
}
