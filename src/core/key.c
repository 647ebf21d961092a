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

void key_copy(struct key_record *to, const struct key_record *from)
{
    CHECK(from->name_len <= KEY_NAME_MAX_BYTES);
    memcpy(to, from, offsetof(struct key_record, name) + from->name_len);
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
