/* Adopting a private store of an earlier version, as 'dev' does: see test_master_keys.c for the command. */
#include "admin/commands.h"
#include "admin/store_client.h"
#include "admin/users.h"
#include "leak_guard.h"
#include "redis_server.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(key_rotation, .fini = leak_guard);

static struct redis_server redis;
static struct settings settings;
static struct keyring *keyring;

static void start(int64_t partitions)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{1}};
    const struct option_table tables[] = {SETTINGS_STORE};
    char storage[256];
    struct buf why;
    int rest;

    buf_init_fixed(&why, storage, sizeof storage);
    cr_assert(options_read(tables, 1, &settings, 0, NULL, &rest, &why));
    redis_server_start(&redis, NULL);
    settings.redis = redis.url;
    settings.partitions = partitions;
    keyring = keyring_create(MASTER, 1);
}

static void stop(void)
{
    redis_server_stop(&redis);
    keyring_destroy(keyring);
}

/* A name in that partition. Valid until four more are made. */
static const char *name_in(unsigned partition, const char *rest)
{
    static char names[4][128];
    static unsigned next;
    char *name = names[next++ % 4];

    if (settings.partitions > 1)
        snprintf(name, sizeof *names, "chatelaine:{%u}:%s", partition, rest);
    else
        snprintf(name, sizeof *names, "chatelaine:%s", rest);
    return name;
}

/* A store with one user, whose record has no seal. */
static void make_older_store(void)
{
    struct store_client client;
    struct new_user user;
    struct id account;
    char name[64];

    cr_assert_eq(store_client_open(&client, &settings, keyring), EXIT_DONE);
    cr_assert_eq(account_add(&client, TEXT("North Clinic"), &account), EXIT_DONE);
    cr_assert_eq(user_add(&client, keyring, &account, "ada@north.test", ROLE_OWNER, TEXT("a long password of hers"),
                          false, &user),
                 EXIT_DONE);
    store_client_close(&client);

    unsigned home = bucket_of_account(&account) % (unsigned)settings.partitions;
    snprintf(name, sizeof name, "user:%s", user.id.text);
    redis_server_tell(&redis, "HDEL", name_in(home, name), "mac", NULL);
    redis_server_tell(&redis, "DEL", name_in(home, "master_keys"), NULL);
}

/* The records are sealed, and none without a seal is accepted any longer. */
static void expect_adopted(void)
{
    char reply[64];

    for (unsigned i = 0; i < settings.partitions; i++) {
        redis_server_ask(&redis, reply, sizeof reply, "EXISTS", name_in(i, "unsealed"), NULL);
        cr_expect_str_eq(reply, "0", "partition %u", i);
        redis_server_ask(&redis, reply, sizeof reply, "SCARD", name_in(i, "master_keys"), NULL);
        cr_expect_str_eq(reply, "1", "partition %u", i);
    }
}

Test(key_rotation, adopting_a_private_store_ends_at_once)
{
    start(1);
    make_older_store();
    cr_assert_eq(master_key_adopt_own(&settings, keyring), EXIT_DONE);
    expect_adopted();
    stop();
}

Test(key_rotation, adopting_a_private_store_of_several_partitions_ends_at_once)
{
    start(4);
    make_older_store();
    cr_assert_eq(master_key_adopt_own(&settings, keyring), EXIT_DONE);
    expect_adopted();
    stop();
}
