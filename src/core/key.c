#include "core/key.h"
#include "base/check.h"
#include "core/key_line.h"
#include "core/label.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

struct text key_name(const struct key_record *key)
{
    return (struct text){key->name, key->name_len};
}

bool key_keep_name(struct key_record *key, struct text name)
{
    if (name.len < 1 || name.len > KEY_NAME_MAX_BYTES)
        return false;
    memcpy(key->name, name.ptr, name.len);
    key->name_len = (uint16_t)name.len;
    return true;
}

bool key_set_name(struct key_record *key, struct text name)
{
    return label_valid(name) && key_keep_name(key, name);
}

void key_set_last4(struct key_record *key, struct text secret)
{
    CHECK(secret.len >= KEY_LAST4_BYTES - 1);
    memcpy(key->last4, secret.ptr + secret.len - (KEY_LAST4_BYTES - 1), KEY_LAST4_BYTES - 1);
    key->last4[KEY_LAST4_BYTES - 1] = '\0';
}

void key_copy(struct key_record *to, const struct key_record *from)
{
    CHECK(from->name_len <= KEY_NAME_MAX_BYTES);
    memcpy(to, from, offsetof(struct key_record, name) + from->name_len);
}

void key_made_by_person(struct key_record *key, const struct id *person)
{
    key->by = key->origin = *person;
}

void key_made_by_key(struct key_record *key, const struct key_record *maker)
{
    key->by = maker->id;
    key->origin = maker->origin;
    key->is_origin_unknown = maker->is_origin_unknown;
}

void key_replace_by(struct key_record *key, const struct key_record *replaced, const struct id *actor)
{
    key_copy(key, replaced);
    key->revoked_ms = key->ends_ms = key->last_used_ms = 0;
    key->end_said_ms = key->replaced_ends_ms = 0;
    key->replaced_by = (struct id){0};
    key->is_unconfirmed = false;
    key->replaces = replaced->id;
    key->via = (struct id){0};
    if (id_kind_of(id_text(actor)) == ID_USER) {
        key->origin = *actor;
        key->is_origin_unknown = false;
        key->replacer = (struct id){0};
        if (!id_equal(&key->by, actor))
            key->replacer = *actor;
    } else if (!id_equal(actor, &replaced->id)) {
        key->via = *actor;
    }
}

void key_replace_with(struct key_record *key, const struct key_record *actor)
{
    if (actor->is_origin_unknown)
        return;
    key->origin = actor->origin;
    key->is_origin_unknown = false;
}

bool key_is_made_by(const struct key_record *key, const struct id *maker)
{
    return id_equal(&key->by, maker) || id_equal(&key->replacer, maker);
}

/* The principal */

_Static_assert(SCOPE_COUNT <= 16, "a scope set fits struct key_packed");
/* The end of few keys is known, and most names are short: so the end takes the last bytes of the name. */
enum {
    NAME_BESIDE_END_BYTES = KEY_PACKED_NAME_BYTES - KEY_PACKED_END_BYTES,
    NAME_LEN_OF_END = KEY_PACKED_NAME_BYTES + 1
};
_Static_assert((int)NAME_LEN_OF_END + (int)NAME_BESIDE_END_BYTES < 1 << 5, "so does the length of a name");

struct key_principal key_principal_of(const struct key_record *key)
{
    return (struct key_principal){
        .id = key->id,
        .account = key->account,
        .kind = key->kind,
        .mode = key->mode,
        .scopes = key->scopes,
        .is_revoked = key->revoked_ms != 0,
        .is_suspended = key->is_suspended,
        .is_ending = key->is_ending,
        .is_unconfirmed = key->is_unconfirmed,
        .ends_ms = key->ends_ms,
        .name = key_name(key),
    };
}

enum key_verdict key_verdict_of(const struct key_principal *key)
{
    if (key->is_revoked)
        return KEY_REVOKED;
    return key->is_suspended ? KEY_SUSPENDED : KEY_ACCEPTED;
}

void key_pack(const struct key_principal *key, struct key_packed *ret_packed)
{
    const bool has_end = key->ends_ms > 0 && key->ends_ms >> 8 * KEY_PACKED_END_BYTES == 0;
    const size_t room = has_end ? NAME_BESIDE_END_BYTES : KEY_PACKED_NAME_BYTES;
    const unsigned name_len = key->name.len <= room ? (unsigned)key->name.len : 0;
    CHECK((key->scopes & ~(scope_set)SCOPE_ALL) == 0);
    *ret_packed = (struct key_packed){
        .scopes = (uint16_t)key->scopes,
        .is_device = key->kind == KEY_DEVICE,
        .is_live = key->mode == MODE_LIVE,
        .is_revoked = key->is_revoked,
        .name_len = (name_len + (has_end ? (unsigned)NAME_LEN_OF_END : 0)) & 0x1f,
    };
    id_to_bytes(&key->id, ret_packed->id);
    id_to_bytes(&key->account, ret_packed->account);
    if (name_len)
        memcpy(ret_packed->name, key->name.ptr, name_len);
    for (size_t i = 0; has_end && i < KEY_PACKED_END_BYTES; i++)
        ret_packed->name[NAME_BESIDE_END_BYTES + i] = (char)(key->ends_ms >> 8 * i);
}

static int64_t unpack_end(const struct key_packed *packed)
{
    int64_t ends_ms = 0;

    for (size_t i = 0; i < KEY_PACKED_END_BYTES; i++)
        ends_ms |= (int64_t)(uint8_t)packed->name[NAME_BESIDE_END_BYTES + i] << 8 * i;
    return ends_ms;
}

void key_unpack(const struct key_packed *packed, struct key_principal *ret_key)
{
    ret_key->kind = packed->is_device ? KEY_DEVICE : KEY_API;
    ret_key->mode = packed->is_live ? MODE_LIVE : MODE_TEST;
    id_from_bytes(key_id_kind(ret_key->kind), packed->id, &ret_key->id);
    id_from_bytes(ID_ACCOUNT, packed->account, &ret_key->account);
    ret_key->scopes = packed->scopes;
    ret_key->is_revoked = packed->is_revoked;
    ret_key->is_suspended = ret_key->is_ending = ret_key->is_unconfirmed = false;
    ret_key->ends_ms = 0;
    ret_key->name = (struct text){packed->name, packed->name_len};
    if (packed->name_len >= NAME_LEN_OF_END) {
        ret_key->ends_ms = unpack_end(packed);
        ret_key->name.len -= NAME_LEN_OF_END;
    }
}

/* The stored form: one row per field, with the name by which the store knows it. */

struct key_field {
    struct text name;
    void (*put)(const struct key_record *key, struct buf *out);
    bool (*read)(struct text value, struct key_record *key);
    /* Of a named field without one of these: the id that it is, and its kind. */
    size_t id_at;
    struct text prefix;
};

static bool read_any_id(struct text t, struct text prefix, struct id *ret_id)
{
    if (t.len != prefix.len + ULID_TEXT_CHARS || !text_starts_with(t, prefix))
        return false;
    memcpy(ret_id->text, t.ptr, t.len);
    ret_id->text[t.len] = '\0';
    return true;
}

static bool read_time(struct text t, int64_t *ret_ms)
{
    uint64_t ms;
    if (!text_to_u64(t, INT64_MAX, &ms) || ms == 0)
        return false;
    *ret_ms = (int64_t)ms;
    return true;
}

static void put_id(const struct key_record *key, struct buf *out)
{
    buf_append_text(out, id_text(&key->id));
}

/* The prefix gives the kind. */
static bool read_id(struct text t, struct key_record *key)
{
    key->kind = text_starts_with(t, TEXT("dev_")) ? KEY_DEVICE : KEY_API;
    return read_any_id(t, key->kind == KEY_DEVICE ? TEXT("dev_") : TEXT("key_"), &key->id);
}

static void put_account(const struct key_record *key, struct buf *out)
{
    buf_append_text(out, id_text(&key->account));
}

static bool read_account(struct text t, struct key_record *key)
{
    return read_any_id(t, TEXT("acct_"), &key->account);
}

static void put_mode(const struct key_record *key, struct buf *out)
{
    buf_append_text(out, key_mode_text(key->mode));
}

static bool read_mode(struct text t, struct key_record *key)
{
    return key_mode_parse(t, &key->mode);
}

static void put_last4(const struct key_record *key, struct buf *out)
{
    buf_append_str(out, key->last4);
}

static bool read_last4(struct text t, struct key_record *key)
{
    if (t.len != KEY_LAST4_BYTES - 1)
        return false;
    key_set_last4(key, t);
    return true;
}

static void put_scopes(const struct key_record *key, struct buf *out)
{
    buf_append_u64(out, key->scopes);
}

static bool read_scopes(struct text t, struct key_record *key)
{
    uint64_t bits;
    if (!text_to_u64(t, SCOPE_ALL, &bits))
        return false;
    key->scopes = (scope_set)bits;
    return true;
}

static void put_created(const struct key_record *key, struct buf *out)
{
    buf_append_u64(out, (uint64_t)key->created_ms);
}

static bool read_created(struct text t, struct key_record *key)
{
    return read_time(t, &key->created_ms);
}

static void put_revoked(const struct key_record *key, struct buf *out)
{
    if (key->revoked_ms)
        buf_append_u64(out, (uint64_t)key->revoked_ms);
    else if (key->ends_ms)
        buf_printf(out, "@%" PRId64, key->ends_ms);
    else
        buf_append_char(out, '-');
}

/* No key is revoked before it was created. Versions that do not know '@' refuse such a record as malformed (503). */
static bool read_revoked(struct text t, struct key_record *key)
{
    if (text_starts_with(t, TEXT("@")))
        return read_time(text_skip(t, 1), &key->ends_ms);
    return text_equal(t, TEXT("-")) || (read_time(t, &key->revoked_ms) && key->revoked_ms >= key->created_ms);
}

static void put_name(const struct key_record *key, struct buf *out)
{
    buf_append_text(out, key_name(key));
}

static bool read_name(struct text t, struct key_record *key)
{
    return key_keep_name(key, t);
}

/* A key that a person made goes back to that person, unless `origin` follows. */
static bool read_by(struct text t, struct key_record *key)
{
    if (read_any_id(t, TEXT("usr_"), &key->by)) {
        key->origin = key->by;
        return true;
    }
    key->is_origin_unknown = true;
    return read_any_id(t, TEXT("key_"), &key->by);
}

static bool is_by_key(const struct key_record *key)
{
    return id_kind_of(id_text(&key->by)) == ID_KEY;
}

static void put_origin(const struct key_record *key, struct buf *out)
{
    if (key->is_origin_unknown || id_equal(&key->origin, &key->by))
        return;
    if (key->origin.text[0])
        buf_append_text(out, id_text(&key->origin));
    else if (is_by_key(key))
        buf_append_char(out, '-');
}

static bool read_origin(struct text t, struct key_record *key)
{
    key->is_origin_unknown = false;
    key->origin = (struct id){0};
    return text_equal(t, TEXT("-")) || read_any_id(t, TEXT("usr_"), &key->origin);
}

void key_set_origin(struct key_record *key, struct text origin)
{
    if (key->is_origin_unknown && !read_origin(origin, key))
        key->is_origin_unknown = true;
}

#define LINE_FIELD(field) {.name = TEXT(#field), .put = put_##field, .read = read_##field},
static const struct key_field LINE_FIELDS[] = {KEY_LINE_FIELDS(LINE_FIELD)};

/* The lines after it, "name=value". The MAC binds them, and scripts carry them along. New fields belong here. A field
 * without a value has no line, and a field without a line is zero. A node ignores fields that are newer than itself; so
 * a field that takes a right away needs a new version too, which older nodes refuse. */
static const struct key_field NAMED_FIELDS[] = {
    {TEXT("by"), .read = read_by, .id_at = offsetof(struct key_record, by)},
    {TEXT("origin"), .put = put_origin, .read = read_origin}, /* behind `by`, which says it for most keys */
    {TEXT("replacer"), .id_at = offsetof(struct key_record, replacer), .prefix = TEXT("usr_")},
    {TEXT("replaces"), .id_at = offsetof(struct key_record, replaces), .prefix = TEXT("key_")},
    {TEXT("via"), .id_at = offsetof(struct key_record, via), .prefix = TEXT("key_")},
};

enum {
    LINE_COUNT = sizeof LINE_FIELDS / sizeof *LINE_FIELDS,
    NAMED_COUNT = sizeof NAMED_FIELDS / sizeof *NAMED_FIELDS,
};

static void put_line(const struct key_record *key, struct buf *out)
{
    for (size_t i = 0; i < LINE_COUNT; i++) {
        if (i > 0)
            buf_append_char(out, ' ');
        LINE_FIELDS[i].put(key, out);
    }
}

static void put_field_name(struct buf *out, struct text name)
{
    buf_append_char(out, '\n');
    buf_append_text(out, name);
    buf_append_char(out, '=');
}

static void put_field(struct buf *out, struct text name, struct text value)
{
    put_field_name(out, name);
    buf_append_text(out, value);
}

static void put_named(const struct key_field *field, const struct key_record *key, struct buf *out)
{
    const size_t begin = out->len;
    put_field_name(out, field->name);
    const size_t value_at = out->len;
    if (field->put)
        field->put(key, out);
    else
        buf_append_text(out, id_text((const struct id *)((const char *)key + field->id_at)));
    if (out->len == value_at)
        out->len = begin;
}

/* A stored record taken apart, not yet validated. */
struct key_text {
    struct text line[LINE_COUNT];
    struct text revoked;
    struct text fields; /* after the first line, from its line feed on; empty: first version */
    struct text bound;  /* the part of them that the MAC binds */
    struct text before; /* everything before <revoked> */
    struct text after;  /* from the name on, as far as the MAC binds */
    struct text mac;    /* empty: none */
    struct text loose;  /* what the MAC does not bind, from its line feed on */
};

/* The MAC, and the first line that may follow it: without a MAC, that one ends what the first version wrote. */
static const struct text MAC_FIELD = {"\nm=", 3}, END_FIELD = {"\nend=", 5};

static const char *find_field(struct text fields, struct text name)
{
    return memmem(fields.ptr, fields.len, name.ptr, name.len);
}

static void find_mac(struct key_text *key)
{
    if (!key->fields.ptr)
        return;
    const char *at = find_field(key->fields, MAC_FIELD), *end = key->fields.ptr + key->fields.len;
    const char *loose = at ? memchr(at + 1, '\n', (size_t)(end - at) - 1) : find_field(key->fields, END_FIELD);
    if (loose)
        key->loose = (struct text){loose, (size_t)(end - loose)};
    else
        loose = end;
    if (at)
        key->mac = (struct text){at + MAC_FIELD.len, (size_t)(loose - at) - MAC_FIELD.len};
    else
        at = loose;
    key->bound.len = (size_t)(at - key->bound.ptr);
    key->after.len = (size_t)(at - key->after.ptr);
}

static bool take_line_apart(struct text t, struct key_text *ret)
{
    struct text rest = t, *name = &ret->line[LINE_COUNT - 1];
    for (size_t i = 0; i < LINE_COUNT - 1; i++) {
        if (!text_next(&rest, ' ', &ret->line[i]))
            return false;
        if (LINE_FIELDS[i].read != read_revoked)
            continue;
        ret->revoked = ret->line[i];
        ret->before = (struct text){t.ptr, (size_t)(ret->revoked.ptr - t.ptr)};
        ret->after = rest;
    }
    *name = rest;
    const char *end = rest.ptr ? memchr(rest.ptr, '\n', rest.len) : NULL;
    if (end) {
        name->len = (size_t)(end - rest.ptr);
        ret->fields = ret->bound = text_skip(rest, name->len);
    }
    return rest.ptr != NULL;
}

static bool take_apart(struct text t, struct key_text *ret)
{
    *ret = (struct key_text){0};
    if (!take_line_apart(t, ret))
        return false;
    find_mac(ret);
    return true;
}

/* What the MAC binds. */
struct key_binding {
    struct text parts[3];
};

static struct record_parts bind(const struct key_text *key, const uint8_t digest[KEY_DIGEST_BYTES],
                                struct key_binding *ret)
{
    ret->parts[0] = (struct text){(const char *)digest, KEY_DIGEST_BYTES};
    ret->parts[1] = key->before;
    ret->parts[2] = key->after;
    return (struct record_parts){RECORD_KEY, 3, ret->parts};
}

/* Appends the MAC of the record that begins at `begin`. */
static void put_mac(struct buf *out, size_t begin, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES])
{
    struct key_binding binding;
    struct key_text parts;
    struct record_mac mac;
    CHECK(!out->failed && take_apart(text_skip(buf_text(out), begin), &parts));
    const struct record_parts bound = bind(&parts, digest, &binding);
    record_mac_make(keyring, &bound, &mac);
    put_field(out, TEXT("m"), text_of(mac.text));
}

void key_encode(const struct key_record *key, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                struct buf *out)
{
    const size_t begin = out->len;
    put_line(key, out);
    put_field(out, TEXT("v"), TEXT("2"));
    for (size_t i = 0; i < NAMED_COUNT; i++)
        put_named(&NAMED_FIELDS[i], key, out);
    put_field(out, TEXT("g"), keyring_short_name(keyring, 0));
    put_mac(out, begin, keyring, digest);
}

enum record_seal key_verify(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES])
{
    struct key_binding binding;
    struct key_text parts;
    if (!take_apart(t, &parts))
        return RECORD_ALTERED;
    const struct record_parts bound = bind(&parts, digest, &binding);
    return record_mac_verify(keyring, &bound, parts.mac, NULL);
}

/* The value of the line, if it has that name. */
static bool take_value(struct text line, struct text name, struct text *ret_value)
{
    if (!text_starts_with(line, name) || line.len == name.len || line.ptr[name.len] != '=')
        return false;
    *ret_value = text_skip(line, name.len + 1);
    return true;
}

static struct text bound_field(const struct key_text *parts, struct text name)
{
    struct text fields = parts->bound, line, value;
    while (text_next(&fields, '\n', &line))
        if (take_value(line, name, &value))
            return value;
    return (struct text){0};
}

bool key_examine(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES], struct key_seal *ret)
{
    struct key_binding binding;
    struct key_text parts;
    if (!take_apart(t, &parts))
        return false;
    const struct record_parts bound = bind(&parts, digest, &binding);
    *ret = (struct key_seal){.made_with = bound_field(&parts, TEXT("g")),
                             .is_revoked = !text_equal(parts.revoked, TEXT("-"))};
    ret->seal = record_mac_verify(keyring, &bound, parts.mac, &ret->generation);
    return true;
}

bool key_reseal(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES], struct text made_with,
                struct buf *out)
{
    const size_t begin = out->len;
    struct key_text parts;
    if (!take_apart(t, &parts))
        return false;
    const size_t bound = (size_t)(parts.after.ptr + parts.after.len - t.ptr);
    buf_append_text(out, (struct text){t.ptr, bound});
    if (parts.bound.len == 0) {
        put_field(out, TEXT("v"), TEXT("2"));
        if (made_with.len)
            put_field(out, TEXT("g"), made_with);
    }
    put_mac(out, begin, keyring, digest);
    buf_append_text(out, parts.loose);
    return !out->failed;
}

bool key_rename(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES], struct text name,
                struct buf *storage, struct key_renaming *ret)
{
    struct key_text parts;
    if (!t.ptr || !take_apart(t, &parts))
        return false;
    const size_t head = (size_t)(parts.after.ptr - t.ptr);
    ret->was = text_skip(t, head);
    ret->was.len -= parts.loose.len;
    buf_append_text(storage, (struct text){t.ptr, head});
    buf_append_text(storage, name);
    buf_append_text(storage, parts.bound);
    if (parts.mac.len > 0)
        put_mac(storage, 0, keyring, digest);
    ret->is = text_skip(buf_text(storage), head);
    return !storage->failed;
}

/* A device key acts in live mode and only uploads documents. */
static bool kind_permits(const struct key_record *key)
{
    return key->kind == KEY_API || (key->mode == MODE_LIVE && scope_includes(SCOPE_DOCUMENTS_WRITE, key->scopes));
}

/* An unknown field belongs to a later version and is ignored. */
static bool read_named(struct text line, struct key_record *key)
{
    struct text value;
    for (size_t i = 0; i < NAMED_COUNT; i++) {
        const struct key_field *field = &NAMED_FIELDS[i];
        if (take_value(line, field->name, &value))
            return field->read ? field->read(value, key)
                               : read_any_id(value, field->prefix, (struct id *)((char *)key + field->id_at));
    }
    return true;
}

/* "v" comes first, because it decides how the rest is read. Fields that the MAC does not bind are not read. */
static bool read_fields(const struct key_text *parts, struct key_record *key)
{
    struct text fields = text_skip(parts->bound, 1), line;
    if (parts->bound.len == 0)
        return true;
    if (!text_next(&fields, '\n', &line) || !text_equal(line, TEXT("v=2")))
        return false;
    while (text_next(&fields, '\n', &line))
        if (!read_named(line, key))
            return false;
    return true;
}

/* "<said> <set> <before> <by>": key_end_line() in the prelude. */
static bool read_end(struct text value, struct key_record *key)
{
    struct text said, set, before, by;
    uint64_t ms;
    if (!text_next(&value, ' ', &said) || !text_to_u64(said, INT64_MAX, &ms) || !text_next(&value, ' ', &set) ||
        !text_next(&value, ' ', &before) || !text_next(&value, ' ', &by))
        return false;
    key->end_said_ms = (int64_t)ms;
    if (!text_equal(set, TEXT("-")) && !read_time(set, &key->replaced_ends_ms))
        return false;
    return text_equal(by, TEXT("-")) || read_any_id(by, TEXT("key_"), &key->replaced_by);
}

/* Reads two of the lines that scripts write behind the MAC, and skips the others. */
static bool read_loose(const struct key_text *parts, struct key_record *key)
{
    struct text fields = parts->loose, line, value;
    while (text_next(&fields, '\n', &line)) {
        if (take_value(line, TEXT("confirm"), &value))
            key->is_unconfirmed = true;
        else if (take_value(line, TEXT("end"), &value) && !read_end(value, key))
            return false;
    }
    return true;
}

bool key_decode(struct text t, struct key_record *ret_key)
{
    struct key_text parts;
    if (!take_apart(t, &parts))
        return false;
    memset(ret_key, 0, offsetof(struct key_record, name));
    for (size_t i = 0; i < LINE_COUNT; i++)
        if (!LINE_FIELDS[i].read(parts.line[i], ret_key))
            return false;
    return kind_permits(ret_key) && read_fields(&parts, ret_key) && read_loose(&parts, ret_key);
}

struct text key_mode_text(enum key_mode mode)
{
    return mode == MODE_LIVE ? TEXT("live") : TEXT("test");
}

bool key_mode_parse(struct text t, enum key_mode *ret_mode)
{
    if (text_equal(t, TEXT("test")))
        *ret_mode = MODE_TEST;
    else if (text_equal(t, TEXT("live")))
        *ret_mode = MODE_LIVE;
    else
        return false;
    return true;
}

struct text key_fate_text(enum key_fate fate)
{
    return fate == KEYS_ALL ? TEXT("all") : fate == KEYS_MADE ? TEXT("made") : TEXT("none");
}

bool key_fate_parse(struct text t, enum key_fate *ret_fate)
{
    if (text_equal(t, TEXT("all")) || text_equal(t, TEXT("true")))
        *ret_fate = KEYS_ALL;
    else if (text_equal(t, TEXT("made")))
        *ret_fate = KEYS_MADE;
    else if (text_equal(t, TEXT("none")) || text_equal(t, TEXT("false")))
        *ret_fate = KEYS_NONE;
    else
        return false;
    return true;
}

struct text key_kind_text(enum key_kind kind)
{
    return kind == KEY_DEVICE ? TEXT("device_key") : TEXT("api_key");
}

enum id_kind key_id_kind(enum key_kind kind)
{
    return kind == KEY_DEVICE ? ID_DEVICE : ID_KEY;
}
