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
void args_add_hex(struct script_args *args, const void *bytes, size_t count);
/* In the form that known_digest() in the prelude reads. */
void args_add_digests(struct script_args *args, const struct token_digests *digests);
/* The store's time, as this node knows it, in the form that store_ms_within() in the prelude reads. */
void args_add_store_time(struct script_args *args, const struct store *store);
/* For a script that writes an event: actor, address, request id, number of events to keep. */
void args_add_source(struct script_args *args, const struct store *store, const struct audit_source *source);
/* The same without the actor, for a script that knows it. */
void args_add_client(struct script_args *args, const struct store *store, const struct audit_source *source);

/* A copy of the text in a buffer of fixed size. */
struct text text_keep(struct buf *storage, struct text t);

/* A copy of a source, for an operation of several steps: the caller's texts need not outlive its call. Limits of the
 * credential must. Do not copy it. */
struct kept_source {
    struct audit_source source; /* its texts are in storage */
    char storage[3 * ID_TEXT_BYTES + 64];
};
void source_keep(struct kept_source *ret_kept, const struct audit_source *source);

/* The actor's credential, in the form that actor_refused() in the prelude reads. */
void args_add_credential(struct script_args *args, const struct credential *credential);

/* A script of which nothing but its result is asked. */
void verb_call(struct store *store, enum script script, enum script_link link, size_t argc, const struct text *argv,
               store_done *done, void *arg);
/* The same for a change. */
void verb_call_change(struct store *store, enum script script, const struct script_args *args, store_done *done,
                      void *arg);
/* The same for a change that ends something: STORE_OK once that is in effect at every node, see barriers_settle(). */
void verb_call_ending(struct store *store, enum script script, const struct script_args *args, store_done *done,
                      void *arg);

/* How to read the rows of a list. */
struct row_form {
    const char *what; /* for the log: "list of accounts" */
    size_t row_bytes, rows_max;
    bool (*read)(void *arg, const struct redis_reply *reply, void *ret_row);
    void *arg;
};
/* Reads all rows; the caller frees them. If the reply is malformed, *result becomes STORE_UNAVAILABLE. NULL unless
 * *result is STORE_OK. */
MUST_CHECK void *reply_rows(struct store *store, const struct row_form *form, const struct redis_reply *reply,
                            enum store_result *result, size_t *ret_count);

/* A page of records, behind has_more (0 or 1). */
struct reply_page {
    const char *what; /* for the log: "list of keys" */
    size_t record_bytes, limit;
    enum store_result (*read)(struct store *store, const struct redis_reply *item, void *ret_record);
    void *records; /* NULL unless the result is STORE_OK; page_free() wipes and frees them */
    size_t count;
    bool has_more;
};
/* Leaves out altered records. If the reply is malformed, *result becomes STORE_UNAVAILABLE. */
void page_read(struct store *store, const struct redis_reply *reply, enum store_result *result,
               struct reply_page *page);
void page_free(struct reply_page *page);

/* Readers of single values; false if malformed. */
MUST_CHECK bool reply_time(const struct redis_reply *reply, int64_t *ret_ms);          /* above 0 */
MUST_CHECK bool reply_seconds(const struct redis_reply *reply, uint32_t *ret_seconds); /* at least 1 */
MUST_CHECK bool reply_wait(const struct redis_reply *reply, uint32_t *ret_seconds);    /* 0: nothing to wait for */
/* Of a reply that may be STORE_LIMITED: the seconds to wait, else 0. If it is malformed, *result becomes
 * STORE_UNAVAILABLE. */
uint32_t reply_limit(struct store *store, const struct redis_reply *reply, enum store_result *result);
MUST_CHECK bool reply_id(const struct redis_reply *reply, enum id_kind kind, struct id *ret_id);
