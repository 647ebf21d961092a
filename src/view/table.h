/* A record's members, in the order in which they are printed. */
#pragma once
#include "view/view.h"
#include <stddef.h>

enum { VIEW_TEXT_BYTES = 64 };

/* Empty: null. storage: for what the record does not contain as text. */
typedef struct text view_text(const void *member, char storage[VIEW_TEXT_BYTES]);
view_text view_chars; /* char[] */
view_text view_slice; /* struct text */
view_text view_time;  /* int64_t, ms; none: empty */

struct view_member {
    const char *name;
    unsigned readers; /* of enum view_reader, and what the table adds to it */
    view_text *text;  /* NULL: put */
    size_t offset;    /* of the member that text or put is given */
    void (*put)(struct json_writer *w, const void *member);
    const char *label; /* for people; NULL: the name */
};

void view_put_members(struct json_writer *w, const struct view_member *members, size_t count, const void *record,
                      unsigned reader);
#define VIEW_PUT(w, table, record, reader) view_put_members(w, table, sizeof(table) / sizeof *(table), record, reader)
