/* Whose tickets are accepted, and for how long. */
#include "app/ticket_keys.h"

#include "base/clock.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <string.h>

enum { HOUR_MS = 3600 * 1000 };

static const uint8_t OLD[KEYRING_MASTER_BYTES] = {1}, NEW[KEYRING_MASTER_BYTES] = {2};
static int64_t now_ms = INT64_C(1800000000000);

static int64_t wall_ms(void)
{
    return now_ms;
}

static void replace_clock(void)
{
    clock_replace_wall_for_test(wall_ms);
}

TestSuite(ticket_keys, .init = replace_clock, .fini = leak_guard);

struct node_keys {
    struct keyring *keyring;
    struct ticket_keys *tickets;
};

/* A node with that master key, and perhaps a retired one. */
static struct node_keys node_with(const uint8_t *current, const uint8_t *retired)
{
    uint8_t masters[2][KEYRING_MASTER_BYTES];
    struct node_keys keys;

    memcpy(masters[0], current, sizeof masters[0]);
    if (retired)
        memcpy(masters[1], retired, sizeof masters[1]);
    keys.keyring = keyring_create((const uint8_t(*)[KEYRING_MASTER_BYTES])masters, retired ? 2 : 1);
    keys.tickets = ticket_keys_create(keys.keyring);
    return keys;
}

static void forget(struct node_keys *keys)
{
    ticket_keys_destroy(keys->tickets);
    keyring_destroy(keys->keyring);
}

/* Whether `to` accepts a ticket that `from` makes now, when its clock shows later_ms more. */
static bool accepts(struct node_keys *to, struct node_keys *from, int64_t later_ms)
{
    const struct tls_ticket_key made = *ticket_keys_find(from->tickets, NULL);
    const struct tls_ticket_key *found;

    now_ms += later_ms;
    found = ticket_keys_find(to->tickets, made.name);
    now_ms -= later_ms;
    return found && memcmp(found, &made, sizeof made) == 0;
}

Test(ticket_keys, nodes_of_one_master_key_accept_each_other)
{
    struct node_keys one = node_with(NEW, NULL), other = node_with(NEW, NULL), stranger = node_with(OLD, NULL);

    cr_expect(accepts(&other, &one, 0));
    cr_expect(accepts(&one, &other, 0));
    cr_expect_not(accepts(&stranger, &one, 0));
    forget(&one);
    forget(&other);
    forget(&stranger);
}

Test(ticket_keys, a_ticket_is_good_for_its_lifetime_and_clocks_may_differ)
{
    struct node_keys one = node_with(NEW, NULL), other = node_with(NEW, NULL);

    for (int64_t minute = 0; minute < 60; minute += 7) {
        now_ms = INT64_C(1800000000000) + minute * 60 * 1000;
        cr_expect(accepts(&other, &one, (int64_t)TLS_TICKET_LIFETIME_S * 1000 - 1), "at minute %d", (int)minute);
        cr_expect(accepts(&other, &one, -60 * 1000), "at minute %d", (int)minute);
        cr_expect_not(accepts(&other, &one, 2 * HOUR_MS), "at minute %d", (int)minute);
    }
    forget(&one);
    forget(&other);
}

Test(ticket_keys, each_hour_has_its_own)
{
    struct node_keys one = node_with(NEW, NULL);
    const struct tls_ticket_key first = *ticket_keys_find(one.tickets, NULL);
    const struct tls_ticket_key *next;

    now_ms += HOUR_MS;
    next = ticket_keys_find(one.tickets, NULL);
    cr_expect_neq(memcmp(first.name, next->name, sizeof first.name), 0);
    cr_expect_neq(memcmp(first.cipher_key, next->cipher_key, sizeof first.cipher_key), 0);
    cr_expect_neq(memcmp(first.mac_key, next->mac_key, sizeof first.mac_key), 0);
    cr_expect_neq(memcmp(first.cipher_key, first.mac_key, sizeof first.mac_key), 0);
    now_ms -= HOUR_MS;
    forget(&one);
}

Test(ticket_keys, a_rotation_of_the_master_key_keeps_sessions)
{
    struct node_keys before = node_with(OLD, NULL), after = node_with(NEW, OLD);

    cr_expect(accepts(&after, &before, 0));
    cr_expect_not(accepts(&before, &after, 0));
    forget(&before);
    forget(&after);
}
