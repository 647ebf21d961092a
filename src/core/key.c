#include "core/key.h"
#include "base/check.h"
#include "label_internal.h"

#include <stddef.h>
#include <string.h>

struct text key_name(const struct key_record *key)
{
    return (struct text){key->name, key->name_len};
}

bool key_set_name(struct key_record *key, struct text name)
{
    if (name.len > KEY_NAME_MAX_BYTES || !label_valid(name, KEY_NAME_MAX_CHARS))
        return false;
    memcpy(key->name, name.ptr, name.len);
    key->name_len = (uint16_t)name.len;
    return true;
}

void key_set_last4(struct key_record *key, struct text secret)
{
    CHECK(secret.len >= KEY_LAST4_BYTES - 1);
    memcpy(key->last4, secret.ptr + secret.len - (KEY_LAST4_BYTES - 1), KEY_LAST4_BYTES - 1);
    key->last4[KEY_LAST4_BYTES - 1] = '\0';
}

size_t key_bytes(const struct key_record *key)
{
    CHECK(key->name_len <= KEY_NAME_MAX_BYTES);
    return offsetof(struct key_record, name) + key->name_len;
}

void key_copy(struct key_record *to, const struct key_record *from)
{
    memcpy(to, from, key_bytes(from));
}

/* The stored form */

static void put_fixed(const struct key_record *key, struct buf *out)
{
    buf_append_text(out, id_text(&key->id));
    buf_append_char(out, ' ');
    buf_append_text(out, id_text(&key->account));
    buf_append_char(out, ' ');
    buf_append_text(out, key_mode_text(key->mode));
    buf_append_char(out, ' ');
    buf_append_str(out, key->last4);
    buf_append_char(out, ' ');
    buf_append_u64(out, key->scopes);
    buf_append_char(out, ' ');
    buf_append_u64(out, (uint64_t)key->created_ms);
    buf_append_char(out, ' ');
    if (key->revoked_ms)
        buf_append_u64(out, (uint64_t)key->revoked_ms);
    else
        buf_append_char(out, '-');
    buf_append_char(out, ' ');
    buf_append_text(out, key_name(key));
}

static void put_field(struct buf *out, const char *name, struct text value)
{
    buf_append_char(out, '\n');
    buf_append_str(out, name);
    buf_append_char(out, '=');
    buf_append_text(out, value);
}

/* A stored record taken apart, nothing of it judged. */
struct key_text {
    struct text id, account, mode, last4, scopes, created, revoked, name;
    struct text fields; /* behind the first line, from its line feed on; empty: of the first version */
    struct text before; /* all before <revoked> */
    struct text after;  /* from the name on, as far as the MAC goes */
    struct text mac;    /* empty: none */
};

static const struct text MAC_FIELD = {"\nm=", 3};

static void find_mac(struct key_text *key)
{
    const char *at = key->fields.len ? memmem(key->fields.ptr, key->fields.len, MAC_FIELD.ptr, MAC_FIELD.len) : NULL;
    struct text rest;
    if (!at)
        return;
    rest = text_skip(key->fields, (size_t)(at - key->fields.ptr) + MAC_FIELD.len);
    key->after.len = (size_t)(at - key->after.ptr);
    if (!text_next(&rest, '\n', &key->mac))
        key->mac = (struct text){0};
}

static bool take_apart(struct text t, struct key_text *ret)
{
    struct text rest = t;
    *ret = (struct key_text){0};
    if (!text_next(&rest, ' ', &ret->id) || !text_next(&rest, ' ', &ret->account) ||
        !text_next(&rest, ' ', &ret->mode) || !text_next(&rest, ' ', &ret->last4) ||
        !text_next(&rest, ' ', &ret->scopes) || !text_next(&rest, ' ', &ret->created) ||
        !text_next(&rest, ' ', &ret->revoked) || !rest.ptr)
        return false;
    ret->before = (struct text){t.ptr, (size_t)(ret->revoked.ptr - t.ptr)};
    ret->after = ret->name = rest;
    const char *end = memchr(rest.ptr, '\n', rest.len);
    if (end) {
        ret->name.len = (size_t)(end - rest.ptr);
        ret->fields = text_skip(rest, ret->name.len);
    }
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

/* Of the record that begins there. */
static void put_mac(struct buf *out, size_t begin, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES])
{
    struct key_binding binding;
    struct key_text parts;
    struct record_mac mac;
    CHECK(!out->failed && take_apart(text_skip(buf_text(out), begin), &parts));
    const struct record_parts bound = bind(&parts, digest, &binding);
    record_mac_make(keyring, &bound, &mac);
    put_field(out, "m", text_of(mac.text));
}

void key_encode(const struct key_record *key, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                struct buf *out)
{
    const size_t begin = out->len;
    put_fixed(key, out);
    put_field(out, "v", TEXT("2"));
    if (key->by.text[0])
        put_field(out, "by", id_text(&key->by));
    put_field(out, "g", keyring_short_name(keyring, 0));
    put_mac(out, begin, keyring, digest);
}

enum record_seal key_judge(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES])
{
    struct key_binding binding;
    struct key_text parts;
    if (!take_apart(t, &parts))
        return RECORD_ALTERED;
    const struct record_parts bound = bind(&parts, digest, &binding);
    return record_mac_judge(keyring, &bound, parts.mac, NULL);
}

static struct text bound_field(const struct key_text *parts, struct text name)
{
    struct text fields = text_skip(parts->after, parts->name.len), line;
    while (text_next(&fields, '\n', &line))
        if (text_starts_with(line, name))
            return text_skip(line, name.len);
    return (struct text){0};
}

bool key_examine(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES], struct key_seal *ret)
{
    struct key_binding binding;
    struct key_text parts;
    if (!take_apart(t, &parts))
        return false;
    const struct record_parts bound = bind(&parts, digest, &binding);
    *ret = (struct key_seal){.made_with = bound_field(&parts, TEXT("g=")),
                             .is_revoked = !text_equal(parts.revoked, TEXT("-"))};
    ret->seal = record_mac_judge(keyring, &bound, parts.mac, &ret->generation);
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
    if (parts.fields.len == 0) {
        put_field(out, "v", TEXT("2"));
        if (made_with.len)
            put_field(out, "g", made_with);
    }
    put_mac(out, begin, keyring, digest);
    if (parts.mac.len)
        buf_append_text(out, text_skip(t, (size_t)(parts.mac.ptr + parts.mac.len - t.ptr)));
    return !out->failed;
}

static bool read_id(struct text t, struct text prefix, struct id *ret_id)
{
    if (t.len != prefix.len + ULID_TEXT_CHARS || !text_starts_with(t, prefix))
        return false;
    memcpy(ret_id->text, t.ptr, t.len);
    ret_id->text[t.len] = '\0';
    return true;
}

/* The prefix tells the kind. */
static bool read_key_id(struct text t, struct key_record *key)
{
    key->kind = text_starts_with(t, TEXT("dev_")) ? KEY_DEVICE : KEY_API;
    return read_id(t, key->kind == KEY_DEVICE ? TEXT("dev_") : TEXT("key_"), &key->id);
}

static bool read_scopes(struct text t, scope_set *ret_scopes)
{
    uint64_t bits;
    if (!text_to_u64(t, SCOPE_ALL, &bits))
        return false;
    *ret_scopes = (scope_set)bits;
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

/* Nothing is revoked before it was made. */
static bool read_revoked(struct text t, struct key_record *key)
{
    key->revoked_ms = 0;
    return text_equal(t, TEXT("-")) || (read_time(t, &key->revoked_ms) && key->revoked_ms >= key->created_ms);
}

/* A device key acts in live mode and only uploads documents. */
static bool kind_permits(const struct key_record *key)
{
    return key->kind == KEY_API || (key->mode == MODE_LIVE && scope_includes(SCOPE_DOCUMENTS_WRITE, key->scopes));
}

static bool read_by(struct text t, struct key_record *key)
{
    return read_id(t, TEXT("key_"), &key->by) || read_id(t, TEXT("usr_"), &key->by);
}

/* "v" is the first: what it says decides how the rest reads. What is not bound is not read. */
static bool read_fields(const struct key_text *parts, struct key_record *key)
{
    struct text fields = text_skip(parts->after, parts->name.len), line;
    key->by.text[0] = '\0';
    if (fields.len == 0)
        return true;
    fields = text_skip(fields, 1);
    if (!text_next(&fields, '\n', &line) || !text_equal(line, TEXT("v=2")))
        return false;
    while (text_next(&fields, '\n', &line))
        if (text_starts_with(line, TEXT("by=")) && !read_by(text_skip(line, strlen("by=")), key))
            return false;
    return true;
}

bool key_decode(struct text t, struct key_record *ret_key)
{
    struct key_text parts;
    if (!take_apart(t, &parts))
        return false;
    if (!read_key_id(parts.id, ret_key) || !read_id(parts.account, TEXT("acct_"), &ret_key->account) ||
        !key_mode_parse(parts.mode, &ret_key->mode) || parts.last4.len != KEY_LAST4_BYTES - 1 ||
        !read_scopes(parts.scopes, &ret_key->scopes) || !read_time(parts.created, &ret_key->created_ms) ||
        !read_revoked(parts.revoked, ret_key) || !kind_permits(ret_key) || parts.name.len < 1 ||
        parts.name.len > KEY_NAME_MAX_BYTES || !read_fields(&parts, ret_key))
        return false;
    key_set_last4(ret_key, parts.last4);
    ret_key->last_used_ms = 0;
    memcpy(ret_key->name, parts.name.ptr, parts.name.len);
    ret_key->name_len = (uint16_t)parts.name.len;
    return true;
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

struct text key_kind_text(enum key_kind kind)
{
    return kind == KEY_DEVICE ? TEXT("device_key") : TEXT("api_key");
}

enum id_kind key_id_kind(enum key_kind kind)
{
    return kind == KEY_DEVICE ? ID_DEVICE : ID_KEY;
}
