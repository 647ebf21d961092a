#include "admin/store_client.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>

TestSuite(store_client, .fini = leak_guard);

/* A Redis that another program writes to may give any answer: that must not abort a command. */
Test(store_client, explains_an_answer_that_no_command_expects)
{
    static const struct store_refusals NOT_FOUND_ALONE = {.not_found = "there is no such thing"};
    struct store_client client = {0};

    cr_expect_eq(store_client_explain(&client, STORE_OK, NULL), EXIT_DONE);
    cr_expect_eq(store_client_explain(&client, STORE_CONFLICT, NULL), EXIT_FAILED);
    cr_expect_eq(store_client_explain(&client, STORE_NOT_FOUND, &NOT_FOUND_ALONE), EXIT_FAILED);
    cr_expect_eq(store_client_explain(&client, STORE_REFUSED, &NOT_FOUND_ALONE), EXIT_FAILED);
}

/* Closes itself after a few turns. */
static void be_slow(uv_check_t *check)
{
    enum { TURNS = 5, TURN_MS = 300 };
    int *turns = check->data;

    poll(NULL, 0, TURN_MS);
    if (++*turns == TURNS)
        uv_close((uv_handle_t *)check, NULL);
}

/* The partitions of a cluster are freed before what they share. On a busy machine that takes longer than it takes until
 * a command says that it waits for leases. */
Test(store_client, closes_slowly)
{
    const struct option_table tables[] = {SETTINGS_STORE};
    char storage[256];
    struct buf why;
    struct settings settings;
    struct store_client client;
    uv_check_t check;
    int rest, turns = 0;

    buf_init_fixed(&why, storage, sizeof storage);
    cr_assert(options_read(tables, 1, &settings, 0, NULL, &rest, &why));
    settings.redis = "redis-cluster://127.0.0.1:1";
    settings.partitions = 4;
    cr_assert_eq(store_client_open_to_look(&client, &settings, NULL), EXIT_DONE);
    uv_check_init(&client.loop, &check);
    check.data = &turns;
    uv_check_start(&check, be_slow);
    store_client_close(&client);
    cr_expect_eq(turns, 5);
}
