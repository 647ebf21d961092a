/* The records of one SCAN, while they are copied. */
#pragma once
#include "copy_internal.h"

/* How to find the account of a record: one question, or two. */
enum question { ASK_NOTHING, ASK_KEY, ASK_USER };

/* Of a record, in the order of their bytes. */
struct elements {
    struct text *texts;
    size_t count;
};

struct copy_item {
    enum copy_kind kind;
    struct text name;  /* without the prefix */
    struct text owner; /* in the name */
    enum question next;
    struct text asked; /* the digest or user of the next question */
    struct id account; /* empty: none */
    struct id key;     /* of COPY_KEY */
    int64_t ends_ms;   /* of COPY_KEY: when it will be revoked; 0: nobody knows */
    struct text user;  /* of COPY_EMAIL */
    bool is_there;
    int64_t expires_ms; /* -1: never */
    struct text payload;
    unsigned to;
    bool differs; /* as bytes: a hash has no order, and versions write other bytes */
    struct text type;
    struct elements elements[2]; /* at the source and the target */
};

struct copy_portion {
    struct copy_side *side; /* the source; while wiping, the target */
    copy_answered *scanned;
    copy_step *then, *compared;
    unsigned partition; /* of that side */
    char cursor[24];
    struct arena arena;
    size_t count, next;
    struct copy_item *items;
};

/* A copy that lasts as long as the portion. */
static inline struct text copy_keep(struct store_copy *copy, struct text t)
{
    return arena_copy(&copy->portion->arena, t);
}
/* copy_compare.c: compares the records that are there at both sides. Ends by going on to `then`. */
void copy_compare(struct store_copy *copy, copy_step *then);
