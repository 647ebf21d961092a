#include "app/node.h"

#include "lease/membership.h"
#include "engine/store.h"

static void print_lease(const struct membership *member, struct buf *out)
{
    uint64_t now_ns;

    if (!membership_may_cache(member))
        buf_append_str(out, "serves; every check reads Redis");
    else if (membership_has_lease(member, &now_ns))
        buf_append_str(out, "serves; lease held, checks are answered from memory");
    else
        buf_printf(out, "serves without a lease, checks read Redis: %s", membership_trouble(member));
}

void node_view_print(const struct node_view *view, struct buf *out)
{
    const char *trouble = view->store ? store_trouble(view->store) : "";

    if (view->troubled > 0 && view->troubled < view->partitions)
        buf_printf(out, "in %u of %u partitions: ", view->troubled, view->partitions);
    if (view->is_stopping) {
        buf_printf(out, "drains: %zu connections", view->connections);
    } else if (!view->store || !view->member) {
        buf_append_str(out, "starts");
    } else if (store_is_empty(view->store) && !view->is_serving) {
        buf_append_str(out, "waits for the first account: run 'chatelaine account create'");
    } else if (!store_is_ready(view->store)) {
        buf_printf(out, view->is_serving ? "answers 503: %s" : "waits, and answers 503: %s", trouble);
    } else {
        print_lease(view->member, out);
        if (*trouble)
            buf_printf(out, "; %s", trouble);
    }
}
