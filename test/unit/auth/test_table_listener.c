#include "auth/table_listener.h"
#include "base/metrics.h"
#include "chatelaine/check.h"
#include "deadline.h"
#include "leak_guard.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { ROUND_MS = 100, TICK_MS = 20, WAIT_MS = 10 * TICK_MS };

struct world {
    uv_loop_t loop;
    uv_prepare_t turns;
    unsigned turn_count;
    struct shared_table *table;
    struct table_listener *listener;
    char folder[32], path[64];
    bool is_closed;
};

TestSuite(table_listener, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static void on_used(void *arg, const struct key_principal *key, uint32_t uses)
{
    (void)arg, (void)key, (void)uses;
}

static void on_in_use(UNUSED void *arg, UNUSED uint32_t owner)
{
}

static bool has_room(void *arg)
{
    (void)arg;
    return true;
}

static void set_up(struct world *w)
{
    int error;

    *w = (struct world){.folder = "/tmp/table-test-XXXXXX"};
    cr_assert(mkdtemp(w->folder));
    snprintf(w->path, sizeof w->path, "%s/t", w->folder);
    cr_assert_eq(uv_loop_init(&w->loop), 0);
    w->table = shared_table_create(&(struct shared_table_settings){
        .keys_max = 64, .partitions = 1, .deployment = "", .used = on_used, .in_use = on_in_use, .has_room = has_room});
    w->listener = table_listener_create(&w->loop, w->table, w->path, ROUND_MS, &error);
    cr_assert(w->listener, "%d", error);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void tear_down(struct world *w)
{
    table_listener_close(w->listener, on_closed, &w->is_closed);
    cr_assert(test_loop_until_set(&w->loop, &w->is_closed, PATIENCE_MS));
    shared_table_destroy(w->table);
    cr_expect_eq(rmdir(w->folder), 0, "the socket's file stays");
    cr_assert(test_loop_finish(&w->loop));
}

static bool gets_table(struct world *w, struct chatelaine_table *reader)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!chatelaine_table_refresh(reader) && deadline_left_ms(deadline) > 0)
        test_loop_for(&w->loop, 1);
    return reader->header != NULL;
}

static void init_reader(const struct world *w, struct chatelaine_table *reader)
{
    chatelaine_table_init(reader, w->path, CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
}

Test(table_listener, each_side_learns_that_the_other_has_ended)
{
    struct chatelaine_table first, second;
    struct world w;

    set_up(&w);
    init_reader(&w, &first);
    init_reader(&w, &second);
    cr_assert(gets_table(&w, &first) && gets_table(&w, &second));
    chatelaine_table_finish(&first);
    test_loop_for(&w.loop, TICK_MS);
    cr_expect(chatelaine_table_refresh(&second));
    tear_down(&w);
    cr_expect_not(chatelaine_table_refresh(&second));
    cr_expect_eq(second.trouble, CHATELAINE_UNREACHABLE);
}

/* Readers have nothing to say. */
Test(table_listener, ends_a_reader_that_says_something)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct chatelaine_table reader;
    struct world w;

    set_up(&w);
    init_reader(&w, &reader);
    cr_assert(gets_table(&w, &reader));
    cr_assert_eq(send(reader.socket, "x", 1, MSG_NOSIGNAL), 1);
    while (!chatelaine_is_over(&reader)) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        test_loop_for(&w.loop, 1);
    }
    chatelaine_table_finish(&reader);
    tear_down(&w);
}

static void on_turn(uv_prepare_t *turns)
{
    struct world *w = turns->data;

    w->turn_count++;
}

/* The connection waits meanwhile, and the loop does not turn without end. */
Test(table_listener, waits_for_a_descriptor)
{
    struct chatelaine_table reader;
    struct rlimit before, none;
    struct world w;

    set_up(&w);
    init_reader(&w, &reader);
    cr_assert_eq(uv_prepare_init(&w.loop, &w.turns), 0);
    w.turns.data = &w;
    test_loop_for(&w.loop, TICK_MS);
    cr_assert_not(chatelaine_table_refresh(&reader));
    cr_assert_eq(reader.trouble, CHATELAINE_WAITING);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)reader.socket, .rlim_max = before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_assert_eq(uv_prepare_start(&w.turns, on_turn), 0);
    test_loop_for(&w.loop, WAIT_MS);
    cr_expect_lt(w.turn_count, 10 * WAIT_MS / TICK_MS, "%u turns", w.turn_count);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    cr_expect(gets_table(&w, &reader));
    uv_close((uv_handle_t *)&w.turns, NULL);
    chatelaine_table_finish(&reader);
    tear_down(&w);
}

Test(table_listener, is_reached_again_when_its_file_was_removed)
{
    struct chatelaine_table reader;
    struct world w;

    set_up(&w);
    cr_assert_eq(unlink(w.path), 0);
    table_listener_look(w.listener);
    cr_expect_eq(metric_values[METRIC_SOCKETS_LOST], 1);
    init_reader(&w, &reader);
    cr_expect(gets_table(&w, &reader));
    chatelaine_table_finish(&reader);
    tear_down(&w);
}
