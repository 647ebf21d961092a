#include "core/audit_line.h"
#include "table.h"
#include "trail/audit_store.h"

static struct text actor_kind_of(const void *actor, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return audit_actor_kind(*(const struct text *)actor);
}

#define EVENT(member) offsetof(struct audit_event, member)
static const struct view_member MEMBERS[] = {
    {"type", 1, view_slice, EVENT(type), NULL, NULL},
    {"created_at", 1, view_time, EVENT(created_ms), NULL, NULL},
    {"actor", 1, view_slice, EVENT(actor), NULL, NULL},
    {"actor_kind", 1, actor_kind_of, EVENT(actor), NULL, NULL},
    {"actor_name", 1, view_slice, EVENT(actor_name), NULL, NULL},
    {"target", 1, view_slice, EVENT(target), NULL, NULL},
    {"target_name", 1, view_slice, EVENT(target_name), NULL, NULL},
    {"target_kind", 1, view_slice, EVENT(target_kind), NULL, NULL},
    {"ip", 1, view_slice, EVENT(ip), NULL, NULL},
    {"request_id", 1, view_slice, EVENT(request_id), NULL, NULL},
};

void view_event_data(struct json_writer *w, const struct audit_event *event)
{
    json_object_begin(w);
    for (size_t i = 0; i < event->data_count; i++)
        json_put_named(w, event->data[i].name, event->data[i].value);
    json_object_end(w);
}

void view_event(struct json_writer *w, const struct id *account, const struct audit_event *event)
{
    json_object_begin(w);
    json_put_member(w, "id", id_text(&event->id));
    if (account)
        json_put_member(w, "account_id", id_text(account));
    VIEW_PUT(w, MEMBERS, event, 1);
    if (event->count)
        json_put_number(w, "count", event->count);
    if (event->data_count > 0) {
        json_key(w, "data");
        view_event_data(w, event);
    }
    json_object_end(w);
}
