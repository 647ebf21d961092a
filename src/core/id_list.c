#include "core/id_list.h"
#include "base/check.h"
#include "base/mem.h"

void id_list_add(struct id_list *list, const struct id *id)
{
    if (list->count == list->room) {
        list->room = 2 * list->room + 16;
        list->ids = mem_resize(list->ids, list->room * sizeof *list->ids);
    }
    list->ids[list->count++] = *id;
}

struct text id_list_print(const struct id_list *list, size_t from, size_t most, char *storage)
{
    const size_t end = list->count - from < most ? list->count : from + most;
    struct buf out = BUF_OVER(storage, most * ID_TEXT_BYTES);
    for (size_t i = from; i < end; i++)
        buf_printf(&out, i > from ? " %s" : "%s", list->ids[i].text);
    CHECK(!out.failed);
    return buf_text(&out);
}
