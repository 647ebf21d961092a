/* A list of ids that grows. */
#pragma once
#include "core/id.h"

/* All zero: empty. Owned by whoever made it: free(ids). */
struct id_list {
    struct id *ids;
    size_t count, room;
};
void id_list_add(struct id_list *list, const struct id *id);
/* The ids from `from` on, at most `most` of them, separated by blanks, in storage of most * ID_TEXT_BYTES. */
struct text id_list_print(const struct id_list *list, size_t from, size_t most, char *storage);
