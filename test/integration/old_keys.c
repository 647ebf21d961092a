#include "old_keys.h"
#include "base/clock.h"
#include "base/encode.h"
#include "core/tombstone.h"
#include "deadline.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES = 2048, TIME_CHARS = 13, FIELDS_BEFORE_REVOKED = 6 };

const char *redis_get(const struct fixture *fixture, const char *name)
{
    static char reply[RECORD_BYTES];

    redis_server_ask(&fixture->redis, reply, sizeof reply, "GET", name, NULL);
    return reply;
}

static const char *name_of(const struct fixture *fixture, const char *account, const char *kind, const char *rest)
{
    char name[OLD_NAME_BYTES];

    snprintf(name, sizeof name, "%s%s", kind, rest);
    return fixture_name(account ? account : fixture->account, name);
}

/* The MAC does not bind when a key was revoked, because scripts write that. */
static void set_back(const struct fixture *fixture, const char *name, int64_t ended_ms)
{
    char record[RECORD_BYTES], reply[16], time[TIME_CHARS + 1], *field = record;

    snprintf(record, sizeof record, "%s", redis_get(fixture, name));
    for (unsigned i = 0; field && i < FIELDS_BEFORE_REVOKED; i++) {
        field = strchr(field, ' ');
        field += field != NULL;
    }
    if (!field || strcspn(field, " ") != TIME_CHARS)
        test_give_up("not the record of a revoked key: %s", record);
    snprintf(time, sizeof time, "%013" PRId64, ended_ms);
    memcpy(field, time, TIME_CHARS);
    redis_server_ask(&fixture->redis, reply, sizeof reply, "SET", name, record, NULL);
}

void old_key_add(struct fixture *fixture, const char *account, enum key_kind kind, int64_t days, struct old_key *ret)
{
    int64_t ended_ms = clock_wall_ms() - days * DAY_MS;
    uint8_t digest[KEY_DIGEST_BYTES];
    struct buf out;

    /* Without keys:manage: one that could make keys before the store was first used is not buried. */
    fixture_add_key_of(fixture, account, kind, MODE_LIVE,
                       kind == KEY_DEVICE ? SCOPE_DOCUMENTS_WRITE : SCOPE_ALL & ~SCOPE_KEYS_MANAGE, ended_ms - DAY_MS,
                       &ret->key);
    fixture_revoke_key(fixture, &ret->key);
    snprintf(ret->digest, sizeof ret->digest, "%s", redis_get(fixture, name_of(fixture, account, "id:", ret->key.id)));
    if (!decode_hex(text_of(ret->digest), digest, sizeof digest))
        test_give_up("no digest of %s: %s", ret->key.id, ret->digest);
    buf_init_fixed(&out, ret->tombstone, sizeof ret->tombstone - 1);
    buf_append_str(&out, "dead:");
    tombstone_print_name(digest, &out);
    ret->tombstone[out.len] = '\0';
    set_back(fixture, name_of(fixture, account, "key:", ret->digest), ended_ms);
}

void old_key_await(const struct fixture *fixture, const char *account, const struct old_key *old)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (strcmp(redis_get(fixture, name_of(fixture, account, "", old->tombstone)), "(nil)") == 0) {
        if (deadline_left_ms(deadline) == 0)
            test_give_up("nobody has buried %s", old->key.id);
        poll(NULL, 0, 20);
    }
}
