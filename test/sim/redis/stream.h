/* A stream. Its entries lie in nodes, which are full where Redis' are, because XTRIM MAXLEN ~ removes whole nodes. */
#pragma once
#include "base/text.h"

struct stream_id {
    uint64_t ms, seq;
};

struct stream_entry {
    struct stream_id id;
    struct text *fields; /* field, value, field, value...; all its own */
    size_t count;        /* of fields and values */
};

struct stream_node {
    struct stream_entry *entries; /* those that are not deleted */
    size_t count, all, room;      /* all: with the deleted ones */
    size_t bytes;                 /* as Redis packs them */
    struct stream_id first;       /* of the entry that began it */
    struct text *names;           /* its fields' names, which later entries with the same ones need not repeat */
    size_t name_count;
};

struct stream {
    struct stream_node *nodes;
    size_t node_count, node_room;
    uint64_t length, added;
    struct stream_id last, deleted; /* deleted: the highest that was deleted alone */
};

struct stream_place {
    size_t node, entry;
};

void stream_finish(struct stream *stream);
/* To one that is empty. */
void stream_copy(struct stream *to, const struct stream *from);
int stream_compare(struct stream_id a, struct stream_id b);
/* fields are copied. The id is higher than `last`. */
void stream_append(struct stream *stream, struct stream_id id, size_t count, const struct text *fields);
/* The place of the first entry with that id or a higher one; and of the last with that id or a lower one. False: none.
 */
bool stream_seek(const struct stream *stream, struct stream_id id, struct stream_place *ret_place);
bool stream_seek_back(const struct stream *stream, struct stream_id id, struct stream_place *ret_place);
const struct stream_entry *stream_at(const struct stream *stream, struct stream_place place);
/* Of one that is not empty. */
const struct stream_entry *stream_last(const struct stream *stream);
/* False: there is no more. */
bool stream_next(const struct stream *stream, struct stream_place *place);
bool stream_previous(const struct stream *stream, struct stream_place *place);
bool stream_delete(struct stream *stream, struct stream_id id);

struct stream_trim {
    bool by_id, is_approximate;
    uint64_t length;     /* at most, unless by_id */
    struct stream_id id; /* the first that stays */
    uint64_t limit;      /* of entries to delete; 0: none */
};
uint64_t stream_trim(struct stream *stream, const struct stream_trim *trim);
