/* The parts of store_copy(). A part sends any number of calls, and names the step that follows once all are answered.
 * The first failure ends the copy when the calls under way are answered. */
#pragma once
#include "base/arena.h"
#include "core/bucket.h"
#include "core/id.h"
#include "lease/identity.h"
#include "redis/cluster.h"
#include "redis/link.h"
#include "redis/sentinel.h"
#include "copy/store_copy.h"

enum {
    COPY_NAME_BYTES = 1024,
    COPY_ARGS_MAX = 254,                  /* of a command, behind its name */
    COPY_BATCH_BYTES = 4 * 1024 * 1024,   /* sent before answers are awaited */
    COPY_RECORD_BYTES = 12 * 1024 * 1024, /* largest record: a link holds 16 MiB that are not sent yet */
};

struct store_copy;
typedef void copy_step(struct store_copy *copy);
typedef void copy_answered(struct store_copy *copy, void *item, const struct redis_reply *reply);

struct copy_side {
    struct store_copy *copy;
    const char *what; /* "The source" */
    struct store_settings *settings;
    struct redis_sentinel *sentinel; /* these find Redis for the links; NULL: not used */
    struct redis_cluster *cluster;
    unsigned open, up; /* links */
    struct redis_link *links[PARTITIONS_MAX];
};

struct copy_portion;  /* copy_portion.h */
struct copy_streams;  /* copy_whole.c */
struct copy_counting; /* copy_count.c */

struct store_copy {
    uv_loop_t *loop;
    struct store_settings from_settings, to_settings;
    struct copy_side from, to;
    uv_timer_t timer;
    uint32_t connect_ms;
    copy_step *then;
    copy_step *const *steps; /* the next ones, which copy_next() takes */
    copy_step *failed;       /* the step after a failure */
    copy_step *end;          /* says what became of the copy, which is over */
    unsigned due;            /* calls that are not answered */
    bool is_closing;
    unsigned open; /* links, Sentinels and the timer, while closing */

    struct arena arena; /* for what lasts as long as the copy */
    char trouble[STORE_COPY_TROUBLE_BYTES];
    char cause[STORE_COPY_TROUBLE_BYTES]; /* the trouble that made it undo its last step; empty: it has not */
    struct store_copied copied;
    void (*done)(void *arg, const struct store_copied *copied);
    void *arg;

    bool has_begun;       /* the links of the source's first partition, and of the target, are up */
    bool has_written;     /* to the target */
    bool may_have_left;   /* the source: nobody serves it, or not all of it */
    const char *place;    /* how the source names the target from then on */
    struct text moved_to; /* where the source says that it has moved to; empty: nowhere */
    bool has_moved[PARTITIONS_MAX];
    char id[STORE_ID_CHARS + 1]; /* of the store */
    uint64_t schema, lease_max_ms, suspensions;
    bool has_aliases[PARTITIONS_MAX];  /* of the target */
    unsigned chains[PARTITIONS_MAX];   /* copied to it */
    unsigned marked, finished, others; /* target partitions: a copy of this store is under way; it is done; neither */
    unsigned left_before;              /* and those from where this store has moved: copied back into them */
    bool is_outdated;                  /* one that is marked was copied before the source's last changes */
    struct copy_seen {
        uint64_t nodes;          /* the registries; 0: they are empty */
        uint64_t changes;        /* the hashes `store`, which have the number of each node's last change; whether it
                                    was left makes no difference */
        int64_t nodes_listening; /* to its invalidations */
    } seen[2];                   /* of the source, first and last: sums that differ if anything there does */

    struct copy_portion *portion;
    struct copy_streams *streams;
    struct copy_counting *counting;
    struct store_copy_counts counted[2]; /* of the source, of the target */
};

/* copy_links.c */
void copy_call(struct copy_side *side, unsigned partition, size_t argc, const struct text *argv,
               copy_answered *answered, void *item);
/* Calls a command on the name "prefix kind rest". argv: what follows the name. */
void copy_call_on(struct copy_side *side, unsigned partition, const char *command, const char *kind, struct text rest,
                  size_t argc, const struct text *argv, copy_answered *answered, void *item);
/* The same, without more arguments. */
void copy_read(struct copy_side *side, unsigned partition, const char *command, const char *kind, struct text rest,
               copy_answered *answered, void *item);
/* The same, at the target, which need only succeed. */
void copy_write(struct store_copy *copy, unsigned to, const char *command, const char *kind, struct text rest,
                size_t argc, const struct text *argv);
#define COPY_WITH(...)                                                          \
    sizeof((struct text[]){__VA_ARGS__}) / sizeof(struct text), (struct text[]) \
    {                                                                           \
        __VA_ARGS__                                                             \
    }
/* The step runs once everything sent so far is answered; at once if nothing was sent. */
void copy_then(struct store_copy *copy, copy_step *step);
/* The same for the next step of the copy (the tables of store_copy.c). Each step ends by this or by copy_then(). */
void copy_next(struct store_copy *copy);
PRINTF_LIKE(2, 3) void copy_fail(struct store_copy *copy, const char *format, ...);
void copy_malformed(struct copy_side *side, const char *what);
/* Opens those that are not open yet, up to this number of partitions. */
void copy_links_open(struct copy_side *side, unsigned partitions, void (*on_state)(void *arg, bool is_up));
/* Once the links are closed. */
void copy_finders_close(struct copy_side *side, void (*closed)(void *arg));
/* "prefix kind rest", on the caller's storage. */
struct copy_name {
    char storage[COPY_NAME_BYTES];
};
struct text copy_name(struct copy_name *name, const struct copy_side *side, unsigned partition, const char *kind,
                      struct text rest);
/* The pattern of all names of a partition. */
struct text copy_pattern(struct copy_name *name, const struct copy_side *side, unsigned partition);
/* The partition of the target that belongs to a partition of the source as a whole; more of them may take over what
 * each partition has of the whole store. */
static inline unsigned copy_counterpart(const struct store_copy *copy, unsigned from)
{
    return from & (copy->to.settings->partitions - 1);
}

bool copy_takes_over(const struct store_copy *copy, unsigned from, unsigned to);

/* copy_names.c: what a name is of, without its prefix. */
enum copy_kind {
    COPY_UNKNOWN,
    COPY_ACCOUNT,  /* of the account that it names */
    COPY_USER,     /* of the user that it names */
    COPY_KEY_NOTE, /* of the key that it names by id */
    COPY_KEY,      /* a record that names its account; these four are named by a keyed digest */
    COPY_SESSION,
    COPY_LINK,
    COPY_RECOVERY,  /* holds its user */
    COPY_TOMBSTONE, /* named by a keyed digest, which says where it lies */
    COPY_EMAIL,     /* holds its user, and the account where there are several partitions */
    COPY_DERIVED,   /* made again by the records it leads to */
    COPY_WHOLE,     /* of the whole partition: copy_whole.c */
    COPY_LEFT,      /* left behind */
};
/* *ret_owner: the id, digest or email. */
enum copy_kind copy_kind_of(struct text name, struct text *ret_owner);

/* copy_source.c: asks the source what it is, and how much there changes. */
void copy_source_ask(struct store_copy *copy);
void copy_source_look(struct store_copy *copy, unsigned nth);
/* From now on nodes and commands refuse the source. As long as no partition of the target is finished, a failure after
 * this undoes it. */
copy_step copy_source_leave;
/* Undoes it, and ends the copy. */
copy_step copy_source_return;

copy_step copy_records; /* copy_records.c */
copy_step copy_whole;   /* copy_whole.c */
copy_step copy_wipe;    /* copy_records.c: all of the target but its marker */
copy_step copy_count;   /* copy_count.c: both sides into `counted` */
/* Frees what these parts keep. */
void copy_records_finish(struct store_copy *copy);
void copy_whole_finish(struct store_copy *copy);
void copy_count_finish(struct store_copy *copy);
