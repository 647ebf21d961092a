/* The shared table: what a reader in a process of its own accepts, and until when. The readers are this one. */
#include "auth/table_listener.h"
#include "chatelaine/check.h"
#include "cli.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USES = 1000 };

TestSuite(table, .fini = leak_guard, .timeout = TEST_WITHIN_S);

struct shared {
    struct fixture fixture;
    char path[PROCESS_PATH_BYTES + 16];
    struct chatelaine_table table;
};

/* The reader's node is the last one. */
static void start(struct shared *s, size_t nodes)
{
    fixture_start(&s->fixture, nodes - 1, NULL);
    snprintf(s->path, sizeof s->path, "%s/table.sock", s->fixture.folder);
    fixture_add_node(&s->fixture, (const char *const[]){"--table", s->path, "--table-deployment", "test", NULL});
    chatelaine_table_init(&s->table, s->path, "test", CHATELAINE_OWNER_OF_FOLDER);
}

static size_t sharing_node(const struct shared *s)
{
    return s->fixture.node_count - 1;
}

static void get_table(struct shared *s)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!chatelaine_table_refresh(&s->table)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", chatelaine_trouble_text(s->table.trouble));
        poll(NULL, 0, 10);
    }
}

static void stop(struct shared *s)
{
    chatelaine_table_finish(&s->table);
    fixture_stop(&s->fixture);
}

static bool ask(const struct shared *s, const char *secret, uint32_t scopes, struct chatelaine_principal *ret_who)
{
    return chatelaine_check(&s->table, secret, strlen(secret), scopes, ret_who);
}

static bool is_accepted(const struct shared *s, const struct fixture_key *key)
{
    struct chatelaine_principal who;

    return ask(s, key->secret, CHATELAINE_PATIENTS_READ, &who);
}

/* Asks the node until the reader accepts the key, once: the first requests may come before there is a lease, and a
 * lease may end on a busy machine. */
static void share_with(struct shared *s, const struct fixture_key *key, uint32_t scopes,
                       struct chatelaine_principal *ret_who)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!ask(s, key->secret, scopes, ret_who)) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        get_table(s);
        fixture_try_key(&s->fixture, sharing_node(s), key->secret);
    }
}

static void share(struct shared *s, const struct fixture_key *key)
{
    struct chatelaine_principal who;

    share_with(s, key, CHATELAINE_PATIENTS_READ, &who);
}

static void add_key(struct shared *s, scope_set scopes, struct fixture_key *ret_key)
{
    fixture_add_key(&s->fixture, NULL, KEY_API, MODE_LIVE, scopes, ret_key);
}

static void end_key(struct shared *s, size_t node, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[96];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = s->fixture.manager.secret};
    cr_assert_eq(fixture_call(&s->fixture, node, &call, &answer), 200, "%s", answer.body);
}

Test(table, accepts_what_the_node_accepts)
{
    struct shared s;
    struct fixture_key key, device;
    struct chatelaine_principal who;

    start(&s, 1);
    add_key(&s, SCOPE_PATIENTS_READ | SCOPE_EXCHANGES_READ, &key);
    fixture_add_key(&s.fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    get_table(&s);
    cr_expect_not(is_accepted(&s, &key), "the node has not met it");
    share_with(&s, &key, CHATELAINE_PATIENTS_READ, &who);
    cr_expect_str_eq(who.principal, key.id);
    cr_expect_str_eq(who.account, s.fixture.account);
    cr_expect_eq(who.scopes, SCOPE_PATIENTS_READ | SCOPE_EXCHANGES_READ);
    cr_expect(who.is_live && !who.is_device);
    cr_expect_not(ask(&s, key.secret, CHATELAINE_PATIENTS_WRITE, &who));
    cr_expect_not(ask(&s, key.secret, CHATELAINE_PATIENTS_READ | CHATELAINE_PATIENTS_WRITE, &who));
    cr_expect_not(chatelaine_check(&s.table, key.secret, strlen(key.secret) - 1, 0, &who));
    share_with(&s, &device, CHATELAINE_DOCUMENTS_WRITE, &who);
    cr_expect_str_eq(who.principal, device.id);
    cr_expect(who.is_device);
    stop(&s);
}

/* Until the node has counted so many. */
static void await_uses(const struct shared *s, long uses)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(&s->fixture, sharing_node(s), "chatelaine_table_uses_total") < uses) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 10);
    }
}

static long misses(const struct shared *s)
{
    return fixture_metric(&s->fixture, sharing_node(s), "chatelaine_cache_lookups_total{result=\"miss\"}");
}

/* The node hears of it only by the table. */
Test(table, a_key_in_use_is_not_evicted_from_a_full_cache)
{
    enum { OTHERS = 100 };
    struct shared s;
    struct fixture_key first, key, others[OTHERS];

    fixture_start(&s.fixture, 0, NULL);
    snprintf(s.path, sizeof s.path, "%s/table.sock", s.fixture.folder);
    /* The canary reads keys, too. */
    fixture_add_node(&s.fixture, (const char *const[]){"--table", s.path, "--cache-entries", "64",
                                                       "--canary-interval-ms", "0", NULL});
    chatelaine_table_init(&s.table, s.path, CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    fixture_open_store(&s.fixture);
    add_key(&s, SCOPE_PATIENTS_READ, &first);
    add_key(&s, SCOPE_PATIENTS_READ, &key);
    for (int i = 0; i < OTHERS; i++)
        add_key(&s, SCOPE_PATIENTS_READ, &others[i]);
    fixture_close_store(&s.fixture);
    share(&s, &first); /* now there is a lease, so that the node is asked once about each of the others */
    await_uses(&s, 1);
    share(&s, &key);
    await_uses(&s, 2);
    for (int i = 0; i < OTHERS; i++)
        fixture_try_key(&s.fixture, sharing_node(&s), others[i].secret);
    cr_expect_not(is_accepted(&s, &others[0]));
    const long before = misses(&s);
    share(&s, &key); /* asks the node only if it has lost its lease meanwhile */
    cr_expect_eq(misses(&s), before);
    stop(&s);
}

Test(table, accepts_nothing_that_was_revoked_at_another_node)
{
    enum { KEYS = 30 };
    struct shared s;
    struct fixture_key keys[KEYS];

    start(&s, 2);
    fixture_open_store(&s.fixture);
    for (int i = 0; i < KEYS; i++)
        add_key(&s, SCOPE_PATIENTS_READ, &keys[i]);
    fixture_close_store(&s.fixture);
    for (int i = 0; i < KEYS; i++)
        share(&s, &keys[i]);
    for (int i = 0; i < KEYS; i++) {
        share(&s, &keys[i]);
        end_key(&s, 0, &keys[i]);
        cr_expect_not(is_accepted(&s, &keys[i]));
        fixture_try_key(&s.fixture, 1, keys[i].secret);
        cr_expect_not(is_accepted(&s, &keys[i]));
    }
    stop(&s);
}

static void change_account(struct shared *s, const char *what)
{
    struct cli_run run;

    RUN(&s->fixture, &run, "account", what, s->fixture.account);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
}

Test(table, accepts_nothing_of_a_suspended_account)
{
    struct shared s;
    struct fixture_key key;

    start(&s, 1);
    add_key(&s, SCOPE_PATIENTS_READ, &key);
    share(&s, &key);
    change_account(&s, "suspend");
    cr_expect_not(is_accepted(&s, &key));
    fixture_try_key(&s.fixture, 0, key.secret);
    cr_expect_not(is_accepted(&s, &key));
    change_account(&s, "resume");
    share(&s, &key);
    stop(&s);
}

Test(table, each_use_is_counted_once)
{
    struct shared s;
    struct fixture_key keys[2];
    struct deadline deadline;
    long counted, uses = 0;

    start(&s, 1);
    for (int i = 0; i < 2; i++)
        add_key(&s, SCOPE_PATIENTS_READ, &keys[i]);
    for (; uses < 2 * USES; uses++)
        share(&s, &keys[uses % 2]);
    end_key(&s, 0, &keys[1]); /* whose uses are counted when it leaves the table */
    deadline = deadline_in(PATIENCE_MS);
    while ((counted = fixture_metric(&s.fixture, 0, "chatelaine_table_uses_total")) < uses) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%ld of %ld", counted, uses);
        poll(NULL, 0, 20);
    }
    cr_expect_eq(counted, uses);
    stop(&s);
}

/* A gateway may write whatever it likes into the counters. */
Test(table, uses_that_cannot_be_are_not_counted)
{
    struct shared s;
    struct fixture_key key;
    struct deadline deadline = deadline_in(PATIENCE_MS);

    start(&s, 1);
    add_key(&s, SCOPE_PATIENTS_READ, &key);
    share(&s, &key);
    for (uint32_t slot = 0; slot <= s.table.set_mask * CHATELAINE_WAYS; slot++)
        s.table.uses[slot] = UINT64_C(0x0123456789abcdef) * slot | UINT32_MAX;
    while (fixture_metric(&s.fixture, 0, "chatelaine_table_uses_refused_total") < (long)s.table.set_mask) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 20);
    }
    cr_expect_leq(fixture_metric(&s.fixture, 0, "chatelaine_table_uses_total"), 2);
    cr_expect_eq(fixture_try_key(&s.fixture, 0, key.secret), 200);
    stop(&s);
}

/* Nor does it matter to others if it writes in front of them. The node tells of it. */
Test(table, the_header_of_the_uses_is_nobodys_to_spoil)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct chatelaine_uses_header before;
    struct fixture_key key;
    struct shared s;
    char *log;

    start(&s, 1);
    add_key(&s, SCOPE_PATIENTS_READ, &key);
    share(&s, &key);
    before = *s.table.uses_header;
    memset(s.table.uses_header, 0xff, CHATELAINE_HEADER_BYTES);
    chatelaine_table_finish(&s.table);
    get_table(&s);
    share(&s, &key);
    while (memcmp(s.table.uses_header, &before, sizeof before) != 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "readers with an earlier check.h get no table");
        poll(NULL, 0, 20);
    }
    log = node_log(&s.fixture.nodes[0]);
    cr_expect(strstr(log, "message=\"a gateway has written over the header of the shared table's counters"), "%s", log);
    free(log);
    stop(&s);
}

/* The table of a node that is gone is used no longer than its lease, and the next node's as soon as there is one. */
Test(table, of_a_node_that_died)
{
    struct shared s;
    struct fixture_key key;
    struct deadline deadline;

    start(&s, 2);
    add_key(&s, SCOPE_PATIENTS_READ, &key);
    share(&s, &key);
    node_kill(&s.fixture.nodes[1]);
    end_key(&s, 0, &key);
    cr_expect_not(is_accepted(&s, &key));
    cr_expect_not(chatelaine_table_refresh(&s.table));
    cr_expect_eq(s.table.trouble, CHATELAINE_UNREACHABLE);
    s.fixture.node_count = 1;
    add_key(&s, SCOPE_PATIENTS_READ, &key);
    fixture_add_node(&s.fixture, (const char *const[]){"--table", s.path, "--table-deployment", "test", NULL});
    share(&s, &key);
    process_signal(&s.fixture.nodes[1].process, SIGSTOP);
    end_key(&s, 0, &key);
    deadline = deadline_in(PATIENCE_MS);
    cr_expect_not(is_accepted(&s, &key));
    process_signal(&s.fixture.nodes[1].process, SIGCONT);
    while (deadline_left_ms(deadline) > PATIENCE_MS - 500)
        cr_expect_not(is_accepted(&s, &key));
    stop(&s);
}

Test(table, is_for_its_own_deployment)
{
    struct shared s;
    struct chatelaine_table other;
    struct deadline deadline;

    start(&s, 1);
    chatelaine_table_init(&other, s.path, "staging", CHATELAINE_OWNER_OF_FOLDER);
    get_table(&s);
    deadline = deadline_in(PATIENCE_MS);
    while (other.trouble == CHATELAINE_NOT_ASKED_YET || other.trouble == CHATELAINE_WAITING) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        cr_expect_not(chatelaine_table_refresh(&other));
        poll(NULL, 0, 20);
    }
    cr_expect_eq(other.trouble, CHATELAINE_WRONG_DEPLOYMENT);
    chatelaine_table_finish(&other);
    stop(&s);
}
