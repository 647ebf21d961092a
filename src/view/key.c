#include "core/key.h"
#include "table.h"

/* Device keys are live, and devices are approved by people. */
enum { DEVICE_KEY = VIEW_OPERATOR << 1, PEOPLE = VIEW_SESSION | VIEW_OPERATOR };
enum { CLIENTS = VIEW_KEY | VIEW_SESSION, ALL = CLIENTS | DEVICE_KEY | VIEW_OPERATOR };

static struct text kind_of(const void *kind, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return key_kind_text(*(const enum key_kind *)kind);
}

static struct text name_of(const void *key, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return key_name(key);
}

static struct text mode_of(const void *mode, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return key_mode_text(*(const enum key_mode *)mode);
}

static struct text status_of(const void *key, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return ((const struct key_record *)key)->revoked_ms ? TEXT("revoked") : TEXT("active");
}

static void put_scopes(struct json_writer *w, const void *scopes)
{
    view_put_scopes(w, *(const scope_set *)scopes);
}

#define KEY(member) offsetof(struct key_record, member)
static const struct view_member MEMBERS[] = {
    {"id", ALL, view_chars, KEY(id.text), NULL, NULL},
    {"kind", VIEW_OPERATOR, kind_of, KEY(kind), NULL, NULL},
    {"account_id", VIEW_OPERATOR, view_chars, KEY(account.text), NULL, NULL},
    {"name", ALL, name_of, 0, NULL, NULL},
    {"last4", CLIENTS | DEVICE_KEY, view_chars, KEY(last4), NULL, NULL},
    {"mode", CLIENTS | VIEW_OPERATOR, mode_of, KEY(mode), NULL, NULL},
    {"status", VIEW_OPERATOR, status_of, 0, NULL, NULL},
    {"scopes", ALL, NULL, KEY(scopes), put_scopes, NULL},
    {"last4", VIEW_OPERATOR, view_chars, KEY(last4), NULL, NULL},
    {"created_at", ALL, view_time, KEY(created_ms), NULL, NULL},
    {"created_by", PEOPLE, view_chars, KEY(by.text), NULL, NULL},
    {"origin", PEOPLE, view_chars, KEY(origin.text), NULL, NULL},
    {"last_used_at", ALL, view_time, KEY(last_used_ms), NULL, NULL},
    {"revoke_at", VIEW_OPERATOR, view_time, KEY(ends_ms), NULL, NULL},
    {"revoked_at", ALL, view_time, KEY(revoked_ms), NULL, NULL},
};

void view_put_key(struct json_writer *w, const struct key_record *key, enum view_reader reader)
{
    VIEW_PUT(w, MEMBERS, key, reader != VIEW_OPERATOR && key->kind == KEY_DEVICE ? (unsigned)DEVICE_KEY : reader);
}
