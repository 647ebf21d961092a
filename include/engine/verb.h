/* Shared by the store's verbs: building arguments for scripts and reading their replies. */
#pragma once
#include "core/token.h"
#include "engine/access.h"
#include "engine/outcome.h"
#include "engine/record.h"
#include "engine/reply_record.h"
#include "engine/script.h"

enum { SCRIPT_ARGS_MAX = 24, SCRIPT_ARGS_BYTES = 1024 };

/* The arguments of one call, on the caller's stack. Texts are borrowed; numbers and digests are printed to storage. */
struct script_args {
    size_t count;
    struct text argv[SCRIPT_ARGS_MAX];
    struct buf printed;
    char storage[SCRIPT_ARGS_BYTES];
};

void args_begin(struct script_args *args);
void args_add(struct script_args *args, struct text value);
void args_add_int(struct script_args *args, int64_t value);
/* For keys_are_full() in the prelude: how many active ones there may be, and how many may be made in a day. */
void args_add_key_limits(struct script_args *args, const struct store *store, int64_t active_max);
/* bytes: NULL adds an empty text. */
void args_add_hex(struct script_args *args, const void *bytes, size_t count);
/* 0 adds an empty text. */
void args_add_time(struct script_args *args, int64_t ms);
/* In the form that known_digest() in the prelude reads. */
void args_add_digests(struct script_args *args, const struct token_digests *digests);
/* The store's time, as this node knows it, in the form that store_ms_within() in the prelude reads. */
void args_add_store_time(struct script_args *args, const struct store *store);
/* For a script that writes an event: actor, address, request id, number of events to keep. */
void args_add_source(struct script_args *args, const struct store *store, const struct audit_source *source);
/* The same without the actor, for a script that knows it. */
void args_add_client(struct script_args *args, const struct store *store, const struct audit_source *source);

/* A copy of the text, or a number, in a buffer of fixed size. */
struct text text_keep(struct buf *storage, struct text t);
struct text text_keep_u64(struct buf *storage, uint64_t number);

/* A copy of a source, for an operation of several steps: the caller's texts need not outlive its call. Limits of the
 * credential must. Do not copy it. */
struct kept_source {
    struct audit_source source; /* its texts are in storage */
    char storage[3 * ID_TEXT_BYTES + 64];
};
void source_keep(struct kept_source *ret_kept, const struct audit_source *source);

/* The actor's credential, in the form that actor_refused() in the prelude reads. */
void args_add_credential(struct script_args *args, const struct credential *credential);
/* For a change: source, then its credential. */
void args_add_actor(struct script_args *args, const struct store *store, const struct audit_source *source);

/* A script of which nothing but its result is asked. */
void verb_call(struct store *store, enum script script, enum script_link link, size_t argc, const struct text *argv,
               store_done *done, void *arg);
/* The same for a change. */
void verb_call_change(struct store *store, enum script script, const struct script_args *args, store_done *done,
                      void *arg);
/* The same for a call that may be STORE_LIMITED. */
void verb_call_limited(struct store *store, enum script script, enum script_link link, const struct script_args *args,
                       store_limited *done, void *arg);
/* The same for a change that ends something: STORE_OK once that is in effect at every node, see barriers_settle(). */
void verb_call_ending(struct store *store, enum script script, const struct script_args *args, store_done *done,
                      void *arg);
/* The same for one whose reply is how many it has ended. */
void verb_call_endings(struct store *store, enum script script, const struct script_args *args, store_counted *done,
                       void *arg);

/* Verbs that are one call. Their answer reads the reply and runs the verb's done. */
typedef void verb_done(void); /* stands for a verb's own type, to which its answer casts it back */
struct verb_asked;
typedef void verb_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply);
struct verb_asked {
    struct store *store;
    verb_done *done;
    void *arg;
    verb_answer *answer;
    const struct list_form *form; /* this and the next of a list */
    size_t most;
};
/* args: NULL for none. */
void verb_ask(struct store *store, enum script script, enum script_link link, const struct script_args *args,
              verb_answer *answer, verb_done *done, void *arg);

/* Of a verb's done: valid during its call. */
struct record_list {
    const void *records; /* NULL unless the result is STORE_OK */
    size_t count;
    bool has_more;
};
/* How to read a list of records. */
struct list_form {
    const char *what; /* for the log: "list of accounts" */
    bool is_page;     /* has_more (0 or 1) is in front of the records */
    size_t record_bytes;
    /* STORE_OK: the record is listed. STORE_UNAVAILABLE: it is malformed, and so is the list. Else it is left out. */
    enum store_result (*read)(struct store *store, const struct redis_reply *item, void *ret_record);
    void (*listed)(verb_done *done, void *arg, enum store_result result, const struct record_list *list);
};
/* A verb that lists at most so many records. More are malformed. */
void verb_list(struct store *store, enum script script, const struct script_args *args, const struct list_form *form,
               size_t most, verb_done *done, void *arg);
/* For readers of records: STORE_OK; if the reply is malformed, STORE_UNAVAILABLE and a line in the log. */
enum store_result reply_checked(struct store *store, bool is_well_formed, const char *what);

/* Readers of single values; false if malformed. */
MUST_CHECK bool reply_time(const struct redis_reply *reply, int64_t *ret_ms);          /* above 0 */
MUST_CHECK bool reply_seconds(const struct redis_reply *reply, uint32_t *ret_seconds); /* at least 1 */
MUST_CHECK bool reply_wait(const struct redis_reply *reply, uint32_t *ret_seconds);    /* 0: nothing to wait for */
/* Of a reply that may be STORE_LIMITED: the seconds to wait, else 0. If it is malformed, *result becomes
 * STORE_UNAVAILABLE. */
uint32_t reply_limit(struct store *store, const struct redis_reply *reply, enum store_result *result);
MUST_CHECK bool reply_flag(const struct redis_reply *reply, bool *ret_flag); /* any number but 0 */
MUST_CHECK bool reply_id(const struct redis_reply *reply, enum id_kind kind, struct id *ret_id);
/* The index of the word among count others, or count. */
size_t reply_word(const struct redis_reply *reply, const char *const *words, size_t count);
