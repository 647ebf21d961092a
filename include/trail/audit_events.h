/* How an event's id names its entry in Redis, and how scripts return events. For the files of the trail. */
#pragma once
#include "trail/audit_store.h"
#include "redis/reply.h"

/* The part of an event's id that shows whose it is. */
enum { AUDIT_OWNER_BYTES = 6 };
struct audit_owner {
    uint8_t bytes[AUDIT_OWNER_BYTES];
};

struct audit_owner audit_owner_of(const struct id *account);
/* "<ms>-<number>", the event's name in scripts; "none" for an event of another account. */
void audit_print_name(const struct id *event, const struct audit_owner *owner, struct buf *out);
/* The id of the event of that name. False: malformed. */
MUST_CHECK bool audit_read_name(struct text name, const struct audit_owner *owner, struct id *ret_id);
/* An event as event_reply() in the prelude returns it. Its texts are borrowed from the reply. */
MUST_CHECK bool audit_read_event(const struct redis_reply *reply, const struct audit_owner *owner,
                                 struct audit_event *ret_event);

/* The fields of an entry: all of ret_event but its id, time, names and kind. */
MUST_CHECK bool audit_fields_read(const struct redis_reply *fields, struct audit_event *ret_event);
/* The id and time of the event in that entry ("<ms>-<sequence>") of the account's class. account: empty for the
 * store's own trail. */
MUST_CHECK bool audit_entry_read(const struct redis_reply *entry, size_t class, const struct id *account,
                                 struct audit_event *ret_event);
