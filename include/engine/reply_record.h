/* Records that scripts reply as {name, value, name, value…} (record_add() in the prelude), read by a table of fields.
 */
#pragma once
#include "base/attr.h"
#include "redis/reply.h"
#include <stddef.h>

/* Reads a value into a member of `size` bytes. False: malformed. */
typedef bool value_reader(const struct redis_reply *value, void *ret, size_t size);
value_reader value_chars;   /* char[size], as reply_chars() */
value_reader value_bytes;   /* uint8_t[size], of just that length */
value_reader value_text;    /* struct text, valid as long as the reply */
value_reader value_time;    /* int64_t, above 0 */
value_reader value_count;   /* int64_t, not below 0 */
value_reader value_integer; /* int64_t */
value_reader value_flag;    /* bool: any number but 0 */
value_reader value_id;      /* struct id; size: its kind */

struct reply_field {
    struct text name;
    bool is_optional; /* without it, the member keeps its value */
    value_reader *read;
    size_t offset, size; /* of the member */
};
/* clang-format off */
#define REPLY_ROW(name, optional, reader, record, member, size) \
    {TEXT(name), optional, reader, offsetof(struct record, member), size}
#define REPLY_SIZE(record, member) sizeof(((struct record *)NULL)->member)
#define REPLY_FIELD(name, reader, record, member) \
    REPLY_ROW(name, false, reader, record, member, REPLY_SIZE(record, member))
#define REPLY_FIELD_OR_NONE(name, reader, record, member) \
    REPLY_ROW(name, true, reader, record, member, REPLY_SIZE(record, member))
#define REPLY_ID(name, kind, record, member) REPLY_ROW(name, false, value_id, record, member, kind)
/* clang-format on */

/* False: malformed, or a field is missing. Values that the table does not name are skipped. */
MUST_CHECK bool reply_record(const struct redis_reply *reply, const struct reply_field *fields, size_t count,
                             void *ret_record);
#define REPLY_RECORD(reply, table, ret_record) reply_record(reply, table, sizeof(table) / sizeof *(table), ret_record)
