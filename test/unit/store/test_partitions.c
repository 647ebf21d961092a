/* The partitions of a store, all in one Redis. */
#include "engine/partitions.h"
#include "deadline.h"
#include "leak_guard.h"
#include "lease/names.h"
#include "redis_server.h"
#include "records/account_store.h"
#include "records/store_parts.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 4, COUNT_MAX = 32 };

static struct world {
    uv_loop_t loop;
    struct redis_server server;
    struct partitions *partitions;
    bool is_done;
    enum store_result result;
    unsigned changes[COUNT_MAX];
} w;

static void on_changed(void *arg, struct store *store)
{
    (void)arg;
    w.changes[store_partition(store)]++;
}

static bool all_ready(void *arg)
{
    (void)arg;
    return partitions_ready(w.partitions) == partitions_count(w.partitions);
}

static void open_partitions(unsigned count, const char *prefix)
{
    struct store_settings settings = {
        .parts = STORE_PARTS, .timeout_ms = PATIENCE_MS, .prefix = prefix, .partitions = count, .audit_max = 100};
    struct buf why;

    buf_init(&why, 1000);
    cr_assert(redis_target_parse(text_of(w.server.url), &settings.target, &why));
    w.partitions = partitions_create(&w.loop, &settings, on_changed, NULL);
}

static void start(void)
{
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    redis_server_start(&w.server, NULL);
    open_partitions(COUNT, "t:");
    cr_assert(test_loop_until(&w.loop, all_ready, NULL, PATIENCE_MS));
}

static void on_closed(void *arg)
{
    (void)arg;
    w.is_done = true;
}

static void close_partitions(void)
{
    w.is_done = false;
    partitions_close(w.partitions, on_closed, NULL);
    cr_assert(test_loop_until_set(&w.loop, &w.is_done, PATIENCE_MS));
}

static void stop(void)
{
    close_partitions();
    cr_assert(test_loop_finish(&w.loop));
    redis_server_stop(&w.server);
    leak_guard();
}

TestSuite(partitions, .init = start, .fini = stop, .timeout = TEST_WITHIN_S);

static void on_done(void *arg, enum store_result result)
{
    (void)arg;
    w.result = result;
    w.is_done = true;
}

static enum store_result wait_for_it(void)
{
    cr_assert(test_loop_until_set(&w.loop, &w.is_done, PATIENCE_MS));
    w.is_done = false;
    return w.result;
}

static enum store_result found(void)
{
    w.is_done = false;
    partitions_found(w.partitions, on_done, NULL);
    return wait_for_it();
}

static const char *ask(const char *name, const char *field)
{
    static char reply[128];

    redis_server_ask(&w.server, reply, sizeof reply, "HGET", name, field, NULL);
    return reply;
}

static void print_trouble(struct buf *out)
{
    buf_clear(out);
    partitions_trouble(w.partitions, out);
    buf_append_char(out, '\0');
}

struct wanted {
    struct buf trouble;
    const char *text;
};

static bool has_trouble(void *arg)
{
    struct wanted *wanted = arg;

    print_trouble(&wanted->trouble);
    return strcmp(wanted->trouble.ptr, wanted->text) == 0;
}

static void expect_trouble(const char *text)
{
    struct wanted wanted = {.text = text};

    buf_init(&wanted.trouble, 1000);
    cr_expect(test_loop_until(&w.loop, has_trouble, &wanted, PATIENCE_MS), "%s", wanted.trouble.ptr);
    buf_finish(&wanted.trouble);
}

Test(partitions, one_store_is_founded_in_all)
{
    char id[64], name[32];

    for (unsigned i = 0; i < COUNT; i++)
        cr_expect_eq(w.changes[i], 1, "each tells of itself that it is ready");
    cr_assert_eq(found(), STORE_OK);
    snprintf(id, sizeof id, "%s", ask("t:{0}:store", "id"));
    cr_assert_eq(strlen(id), 32);
    cr_assert_eq(found(), STORE_OK, "and again");
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "t:{%u}:store", i);
        cr_expect_str_eq(ask(name, "id"), id);
        cr_expect_str_eq(ask(name, "partitions"), "4");
        cr_expect_eq(ask(name, "partition")[0], (char)('0' + i));
    }
}

Test(partitions, another_store_in_one_of_them_is_refused)
{
    redis_server_tell(&w.server, "HSET", "t:{2}:store", "id", "00112233445566778899aabbccddeeff", "partitions", "4",
                      "partition", "2", NULL);
    cr_expect_eq(found(), STORE_CONFLICT);
}

/* Two commands found the store at once, with different numbers: the second one leaves the other partitions alone. */
Test(partitions, a_store_of_another_number_is_not_mixed_in)
{
    redis_server_tell(&w.server, "HSET", "t:{0}:store", "id", "00112233445566778899aabbccddeeff", "partitions", "8",
                      "partition", "0", NULL);
    cr_expect_eq(found(), STORE_CONFLICT);
    cr_expect_str_eq(ask("t:{1}:store", "id"), "(nil)");
}

Test(partitions, an_account_lies_where_its_id_says)
{
    struct id account;
    char name[64];

    cr_assert_eq(found(), STORE_OK);
    for (int i = 0; i < 20; i++) {
        account = id_mint(ID_ACCOUNT, 1700000000000 + i);
        account_store_create(partition_of_account(w.partitions, &account), &account, TEXT("North"), on_done, NULL);
        cr_assert_eq(wait_for_it(), STORE_OK);
        snprintf(name, sizeof name, "t:{%u}:acct:%s", bucket_of_account(&account) % COUNT, account.text);
        cr_expect_str_eq(ask(name, "name"), "North");
    }
}

/* By what the examination publishes. */
static void expect_channels_of_slots(unsigned count, const char *prefix, const char *of_last, bool expected)
{
    char stats[16384];

    close_partitions();
    redis_server_tell(&w.server, "CONFIG", "RESETSTAT", NULL);
    open_partitions(count, prefix);
    cr_assert(test_loop_until(&w.loop, all_ready, NULL, PATIENCE_MS));
    redis_server_ask(&w.server, stats, sizeof stats, "INFO", "commandstats", NULL);
    cr_expect_eq(strstr(stats, "cmdstat_spublish:") != NULL, expected, "%s", prefix);
    cr_expect_eq(strstr(stats, "cmdstat_publish:") == NULL, expected, "%s", prefix);
    cr_expect_eq(prefix_has_tag(of_last), expected, "%s", of_last);
}

/* A node of an earlier version would not hear what is published to a slot, nor be heard. */
Test(partitions, one_partition_has_plain_channels_whatever_its_prefix)
{
    expect_channels_of_slots(1, "{x}:", "{x}:", false);
    expect_channels_of_slots(1, "a}:", "a}:", false);
    expect_channels_of_slots(1, "{1x}:", "{1x}:", false);
    expect_channels_of_slots(1, "{}:", "{}:", false);
    expect_channels_of_slots(2, "{x}:", "{x}:{1}:", true);
    expect_channels_of_slots(16, "t:", "t:{15}:", true);
}

/* Accounts would not be found, and a second store would grow beside the first. */
Test(partitions, another_number_is_refused)
{
    cr_assert_eq(found(), STORE_OK);
    close_partitions();
    open_partitions(2, "t:");
    expect_trouble("The store has 4 partitions, not 2, and keeps them for ever: set --partitions 4.");
    cr_expect_eq(partitions_ready(w.partitions), 0);
}

/* Their names differ, so neither would see the other. */
Test(partitions, one_and_several_are_not_founded_beside_each_other)
{
    cr_assert_eq(found(), STORE_OK);
    close_partitions();
    open_partitions(1, "t:");
    expect_trouble("The store has 4 partitions, not 1, and keeps them for ever: set --partitions 4.");
    cr_expect_str_eq(ask("t:store", "id"), "(nil)");
    close_partitions();
    redis_server_tell(&w.server, "FLUSHALL", NULL);
    open_partitions(1, "t:");
    cr_assert(test_loop_until(&w.loop, all_ready, NULL, PATIENCE_MS));
    cr_assert_eq(found(), STORE_OK);
    close_partitions();
    open_partitions(COUNT, "t:");
    expect_trouble("The store has 1 partition, not 4, and keeps them for ever: set --partitions 1.");
    cr_expect_eq(partitions_ready(w.partitions), 0);
    cr_expect_str_eq(ask("t:{0}:store", "id"), "(nil)");
}

/* 'store copy' made the one from the other, in the same Redis. */
Test(partitions, one_and_several_that_exist_are_both_served)
{
    cr_assert_eq(found(), STORE_OK);
    redis_server_tell(&w.server, "HSET", "t:store", "id", "00112233445566778899aabbccddeeff", "partitions", "1", NULL);
    for (unsigned count = 1; count <= COUNT; count += COUNT - 1) {
        close_partitions();
        open_partitions(count, "t:");
        cr_expect(test_loop_until(&w.loop, all_ready, NULL, PATIENCE_MS), "%u", count);
    }
}

/* More than there is room for. */
Test(partitions, trouble_that_does_not_fit_is_counted)
{
    static const char FIRST[] =
        "Partition 0: The store has 8 partitions, not 4, and keeps them for ever: set --partitions 8.";
    char storage[sizeof FIRST + 60], name[32], number[8];
    struct buf trouble;

    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "t:{%u}:store", i);
        snprintf(number, sizeof number, "%u", 8U << i);
        redis_server_tell(&w.server, "HSET", name, "id", "00112233445566778899aabbccddeeff", "partitions", number,
                          NULL);
    }
    close_partitions();
    open_partitions(COUNT, "t:");
    expect_trouble("Partition 0: The store has 8 partitions, not 4, and keeps them for ever: set --partitions 8. "
                   "Partition 1: The store has 16 partitions, not 4, and keeps them for ever: set --partitions 16. "
                   "Partition 2: The store has 32 partitions, not 4, and keeps them for ever: set --partitions 32. "
                   "Partition 3: The store has 64 partitions, not 4, and keeps them for ever: set --partitions 64.");
    buf_init_fixed(&trouble, storage, sizeof storage);
    partitions_trouble(w.partitions, &trouble);
    cr_expect_not(trouble.failed);
    cr_expect_eq(trouble.len, strlen(FIRST) + strlen(" 3 more partitions have other troubles."));
    cr_expect(text_starts_with(buf_text(&trouble), text_of(FIRST)), "%.*s", TEXT_ARG(buf_text(&trouble)));
    cr_expect(memmem(trouble.ptr, trouble.len, " 3 more partitions have other troubles.", 39));
    for (size_t max = 0; max < sizeof FIRST + 38; max++) {
        size_t fits = max < strlen(FIRST) ? max : strlen(FIRST);

        buf_init_fixed(&trouble, storage, max);
        partitions_trouble(w.partitions, &trouble);
        cr_assert_not(trouble.failed);
        cr_assert_eq(trouble.len, fits, "%zu bytes of %zu", trouble.len, max);
        cr_assert_eq(memcmp(storage, FIRST, fits), 0);
    }
}

Test(partitions, trouble_lists_so_many_numbers)
{
    char name[32];

    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "t:{%u}:store", i);
        redis_server_tell(&w.server, "HSET", name, "id", "00112233445566778899aabbccddeeff", "partitions", "8", NULL);
    }
    close_partitions();
    open_partitions(COUNT_MAX, "t:");
    expect_trouble("Partitions 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 and 4 more: "
                   "The store has 8 partitions, not 32, and keeps them for ever: set --partitions 8.");
}

Test(partitions, trouble_names_those_that_have_it)
{
    expect_trouble("");
    cr_assert_eq(found(), STORE_OK);
    redis_server_tell(&w.server, "HSET", "t:{1}:store", "partition", "3", NULL);
    redis_server_tell(&w.server, "HSET", "t:{3}:store", "partition", "1", NULL);
    close_partitions();
    open_partitions(COUNT, "t:");
    expect_trouble("Partitions 1, 3: The names of the store's partitions were mixed up: restore the data as it was.");
    cr_expect_eq(partitions_ready(w.partitions), 2);
}
