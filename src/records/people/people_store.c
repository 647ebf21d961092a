#include "records/people_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "person_read.h"
#include "engine/verb.h"
#include <stdlib.h>

/* person_reply() in the prelude, behind the fields of the user. */
static const struct reply_field PERSON_FIELDS[] = {
    REPLY_FIELD_OR_NONE("locked", value_flag, person, is_locked),
    REPLY_FIELD_OR_NONE("invited", value_flag, person, is_invited),
    REPLY_FIELD_OR_NONE("last_sign_in_at", value_count, person, last_sign_in_ms),
};

bool person_read(const struct redis_reply *reply, struct person *ret_person)
{
    *ret_person = (struct person){0};
    return user_record_read(reply, false, &ret_person->user) && REPLY_RECORD(reply, PERSON_FIELDS, ret_person);
}

static enum store_result person_believed(struct store *store, const struct redis_reply *item, void *ret_person)
{
    struct person *person = ret_person;

    if (person_read(item, person))
        return user_record_believe(store, &person->user);
    store_malformed(store, "person");
    return STORE_UNAVAILABLE;
}

static void people_done(verb_done *done, void *arg, enum store_result result, const struct record_list *list)
{
    ((people_listed *)done)(arg, result, list->records, list->count, list->has_more);
}

static const struct list_form PEOPLE = {"list of people", true, sizeof(struct person), person_believed, people_done};

void people_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *behind,
                       people_listed *done, void *arg)
{
    struct script_args args;

    CHECK(limit >= 1 && limit <= LIST_LIMIT_MAX);
    args_begin(&args);
    args_add(&args, id_text(account));
    args_add_int(&args, limit);
    args_add(&args, id_text(behind));
    verb_list(store, SCRIPT_people_list, &args, &PEOPLE, limit, (verb_done *)done, arg);
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
