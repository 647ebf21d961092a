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

void key_encode(const struct key_record *key, struct buf *out)
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

bool key_decode(struct text t, struct key_record *ret_key)
{
    struct text id, account, mode, last4, scopes, created, revoked;
    if (!text_next(&t, ' ', &id) || !text_next(&t, ' ', &account) || !text_next(&t, ' ', &mode) ||
        !text_next(&t, ' ', &last4) || !text_next(&t, ' ', &scopes) || !text_next(&t, ' ', &created) ||
        !text_next(&t, ' ', &revoked))
        return false;
    if (!read_key_id(id, ret_key) || !read_id(account, TEXT("acct_"), &ret_key->account) ||
        !key_mode_parse(mode, &ret_key->mode) || last4.len != KEY_LAST4_BYTES - 1 ||
        !read_scopes(scopes, &ret_key->scopes) || !read_time(created, &ret_key->created_ms) ||
        !read_revoked(revoked, ret_key) || !kind_permits(ret_key) || t.len < 1 || t.len > KEY_NAME_MAX_BYTES)
        return false;
    key_set_last4(ret_key, last4);
    ret_key->last_used_ms = 0;
    memcpy(ret_key->name, t.ptr, t.len);
    ret_key->name_len = (uint16_t)t.len;
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
