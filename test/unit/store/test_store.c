#include "engine/fitness.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "fake_redis.h"
#include "deadline.h"
#include "leak_guard.h"
#include "redis/link_internal.h"
#include "redis/redis_clock.h"
#include "redis_server.h"
#include "engine/script.h"
#include "engine/record.h"
#include "records/seal_store.h"
#include "engine/state.h"
#include "engine/store.h"
#include "engine/store_examine.h"
#include "records/store_parts.h"
#include "test_loop.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Some tests await it; a stall of the machine or its disk is to stay below it. */
enum { TIMEOUT_MS = 2000, UNSURE_MS = 1000 };

struct world {
    uv_loop_t loop;
    struct redis_server server;
    struct fake_redis *fake;
    struct redis_target target;
    struct store *store;
    unsigned ready_told;
    unsigned awaited, failed;
    bool is_calling, is_closed, is_examined;
    enum store_result result;
    char reply[128]; /* the texts of the last one, each followed by a blank; "-": none */
    struct store_facts facts;
};

static struct world w;

static void ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(store, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static void on_ready(void *arg)
{
    (void)arg;
    w.ready_told++;
}

static void open_world(void)
{
    memset(&w, 0, sizeof w);
    cr_assert_eq(uv_loop_init(&w.loop), 0);
}

static void open_store_with(uint32_t timeout_ms, int64_t min_replicas, bool unsafe_redis)
{
    const struct store_settings settings = {
        .parts = STORE_PARTS,
        .target = w.target,
        .timeout_ms = timeout_ms,
        .prefix = "t:",
        .min_replicas = min_replicas,
        .audit_max = 100,
        .unsafe_redis = unsafe_redis,
    };

    w.store = store_create(&w.loop, &settings, on_ready, NULL);
    cr_assert_eq(w.ready_told, 0);
}

static void open_store(int64_t min_replicas, bool unsafe_redis)
{
    open_store_with(TIMEOUT_MS, min_replicas, unsafe_redis);
}

static void open_real(const struct redis_server_options *options)
{
    struct buf why;

    open_world();
    redis_server_start(&w.server, options);
    buf_init(&why, 1000);
    cr_assert(redis_target_parse(text_of(w.server.url), &w.target, &why));
}

static void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "trouble: %s", store_trouble(w.store));
}

static bool is_ready(void *arg)
{
    (void)arg;
    return store_is_ready(w.store);
}

static bool is_not_ready(void *arg)
{
    (void)arg;
    return !store_is_ready(w.store);
}

/* arg: the address of its text */
static bool has_trouble(void *arg)
{
    return strstr(store_trouble(w.store), *(const char **)arg);
}

static bool has_no_trouble(void *arg)
{
    (void)arg;
    return store_trouble(w.store)[0] == '\0';
}

static void until_trouble(const char *trouble)
{
    until(has_trouble, &trouble);
    cr_assert(!store_is_ready(w.store));
}

static void on_closed(void *arg)
{
    (void)arg;
    cr_assert(!w.is_closed);
    w.is_closed = true;
}

static void close_store(void)
{
    store_close(w.store, on_closed, NULL);
    cr_assert(!w.is_closed);
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    cr_assert_eq(w.awaited, 0, "closed is last");
}

static void close_world(void)
{
    close_store();
    if (w.fake)
        fake_redis_close(w.fake);
    else
        redis_server_stop(&w.server);
    cr_assert(test_loop_finish(&w.loop));
}

static void on_done(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)arg;
    cr_assert(!w.is_calling, "completed inside the call");
    w.awaited--;
    w.failed += result != STORE_OK;
    w.result = result;
    snprintf(w.reply, sizeof w.reply, "%s", reply ? "" : "-");
    for (size_t i = 0; reply && i < reply->count; i++) {
        struct text t = TEXT("?");

        if (!reply_text(reply_at(reply, i), &t) && reply->items[i]->type == REPLY_INTEGER)
            t = TEXT("#");
        snprintf(w.reply + strlen(w.reply), sizeof w.reply - strlen(w.reply), "%.*s ", TEXT_ARG(t));
    }
}

static void begin(enum script script, enum script_link link, size_t argc, const struct text *argv)
{
    w.awaited++;
    w.is_calling = true;
    store_call_script(w.store, script, link, argc, argv, on_done, NULL);
    w.is_calling = false;
}

static bool nothing_awaited(void *arg)
{
    (void)arg;
    return w.awaited == 0;
}

static void begin_change(const char *account)
{
    begin(SCRIPT_account_create, SCRIPT_CHANGES, 6,
          (struct text[]){text_of(account), TEXT("North Clinic"), TEXT("1767225600000"), TEXT(FAKE_STORE_ID), TEXT("1"),
                          TEXT("0")});
}

static enum store_result change(const char *account)
{
    begin_change(account);
    until(nothing_awaited, NULL);
    return w.result;
}

static enum store_result read_key(void)
{
    begin(SCRIPT_key_get, SCRIPT_READS, 4, (struct text[]){TEXT("key_x"), TEXT(""), TEXT(""), TEXT("0")});
    until(nothing_awaited, NULL);
    return w.result;
}

static void on_examined(void *arg, enum store_result result, const struct store_facts *facts)
{
    (void)arg;
    cr_assert_eq(facts != NULL, result == STORE_OK);
    w.result = result;
    w.is_examined = true;
    if (facts)
        w.facts = *facts;
}

static enum store_result examine(void)
{
    w.is_examined = false;
    store_examine(w.store, on_examined, NULL);
    cr_assert(!w.is_examined);
    cr_assert(test_loop_until_set(&w.loop, &w.is_examined, PATIENCE_MS));
    return w.result;
}

/* With a real Redis */

Test(store, is_ready_with_a_durable_redis)
{
    open_real(NULL);
    open_store_with(PATIENCE_MS, 0, false);
    cr_assert(!store_is_ready(w.store));
    uint64_t began_ns = clock_boot_ns();
    cr_assert_eq(examine(), STORE_OK);
    /* The store takes it that Redis reads its clock in the middle of this. */
    int64_t unsure_ms = 1000 + (int64_t)((clock_boot_ns() - began_ns) / CLOCK_NS_PER_MS / 2);
    until(is_ready, NULL);
    cr_assert_str_eq(store_trouble(w.store), "");
    cr_assert_eq(w.ready_told, 1);
    cr_assert(w.facts.appendonly && w.facts.appendfsync_always && w.facts.no_fsync_on_rewrite_off);
    cr_assert(w.facts.noeviction && w.facts.writable && w.facts.config_readable);
    cr_assert_eq(w.facts.schema, 2);
    cr_assert_eq(w.facts.replicas, 0);
    cr_assert(w.facts.redis_version[0] >= '7', "%s", w.facts.redis_version);
    cr_assert(w.facts.clock_ahead_ms > -unsure_ms && w.facts.clock_ahead_ms < unsure_ms);
    cr_assert_null(fitness_breach(&w.facts, FITNESS_ALL));
    close_world();
}

static int64_t an_hour_ago(void)
{
    return (int64_t)time(NULL) * 1000 - 3600000;
}

static void note_known(void *arg)
{
    *(bool *)arg = true;
}

static bool is_set(void *arg)
{
    return *(const bool *)arg;
}

/* Whether Redis' clock was set with this one, only Redis knows; scripts refuse a time that is far from it. */
Test(store, asks_redis_for_its_clock_when_this_one_was_set)
{
    int64_t ahead_ms = 0;
    bool is_known = false;

    open_real(NULL);
    open_store_with(PATIENCE_MS, 0, false);
    cr_expect_not(redis_clock_ahead(store_redis_clock(w.store), &ahead_ms), "Redis was not asked yet");
    cr_assert_eq(examine(), STORE_OK);
    store_know_clock(w.store, note_known, &is_known);
    cr_expect(is_known && redis_clock_ahead(store_redis_clock(w.store), &ahead_ms));
    int64_t before_ms = store_clock_ms(w.store);
    clock_replace_wall_for_test(an_hour_ago);
    cr_expect_not(redis_clock_ahead(store_redis_clock(w.store), &ahead_ms));
    is_known = false;
    store_know_clock(w.store, note_known, &is_known);
    cr_expect_not(is_known);
    until(is_set, &is_known);
    int64_t passed_ms = store_clock_ms(w.store) - before_ms;
    cr_expect(redis_clock_ahead(store_redis_clock(w.store), &ahead_ms));
    clock_replace_wall_for_test(NULL);
    cr_expect(passed_ms >= -UNSURE_MS && passed_ms < PATIENCE_MS, "%lld", (long long)passed_ms);
    cr_expect(ahead_ms > 3500000 && ahead_ms < 3700000, "%lld", (long long)ahead_ms);
    close_world();
}

/* Who waits for it goes on when Redis is gone; what is asked of Redis next fails by itself. */
Test(store, whoever_waits_for_redis_clock_goes_on_without_redis)
{
    bool is_over = false;

    open_real(NULL);
    open_store_with(PATIENCE_MS, 0, false);
    until(is_ready, NULL);
    clock_replace_wall_for_test(an_hour_ago);
    redis_server_kill(&w.server);
    store_know_clock(w.store, note_known, &is_over);
    cr_expect_not(is_over);
    until(is_set, &is_over);
    cr_expect_not(redis_clock_is_known(store_redis_clock(w.store)));
    clock_replace_wall_for_test(NULL);
    close_world();
}

Test(store, calls_scripts_that_redis_does_not_know_or_has_forgotten)
{
    open_real(NULL);
    open_store_with(PATIENCE_MS, 0, false);
    until(is_ready, NULL);
    cr_assert_eq(change("acct_1"), STORE_OK);
    redis_server_tell(&w.server, "SCRIPT", "FLUSH", NULL);
    cr_assert_eq(change("acct_2"), STORE_OK);
    cr_assert_eq(read_key(), STORE_NOT_FOUND);
    cr_assert_str_eq(w.reply, "-");
    close_world();
}

static void begin_reads_and_changes(unsigned count)
{
    static unsigned accounts;
    char account[32];

    for (unsigned i = 0; i < count; i++) {
        snprintf(account, sizeof account, "acct_%u", accounts++);
        begin_change(account);
        begin(SCRIPT_account_list, SCRIPT_READS, 2, (struct text[]){TEXT(""), TEXT("1")});
    }
}

static bool some_answered(void *arg)
{
    return w.awaited < *(unsigned *)arg;
}

/* 600 texts would be 28 MB. Redis knows both scripts first: a call outlives that it lacks one twice, not three times.
 */
Test(store, loses_no_call_when_redis_forgets_its_scripts)
{
    open_real(NULL);
    open_store_with(PATIENCE_MS, 0, false);
    until(is_ready, NULL);
    begin_reads_and_changes(1);
    until(nothing_awaited, NULL);
    for (unsigned i = 0; i < 2; i++) {
        begin_reads_and_changes(600);
        unsigned begun = w.awaited;
        until(some_answered, &begun);
        redis_server_tell(&w.server, "SCRIPT", "FLUSH", NULL);
    }
    until(nothing_awaited, NULL);
    cr_assert_eq(w.failed, 0);
    close_world();
}

Test(store, gives_changes_no_redis_that_is_not_durable)
{
    open_real(&(struct redis_server_options){.not_durable = true});
    open_store_with(PATIENCE_MS, 0, false);
    until_trouble("set appendonly yes");
    cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE);
    cr_assert_eq(read_key(), STORE_NOT_FOUND, "reading goes on");
    cr_assert_eq(w.ready_told, 0);

    char reply[64];
    redis_server_ask(&w.server, reply, sizeof reply, "EXISTS", "t:acct:acct_1", NULL);
    cr_assert_str_eq(reply, "0");
    close_world();
}

Test(store, serves_with_a_redis_that_is_not_durable_when_told)
{
    open_real(&(struct redis_server_options){.not_durable = true});
    open_store_with(PATIENCE_MS, 0, true);
    until(is_ready, NULL);
    cr_assert_eq(change("acct_1"), STORE_OK);
    close_world();
}

Test(store, notices_a_redis_that_was_reconfigured_and_forgives_it)
{
    open_real(NULL);
    open_store_with(PATIENCE_MS, 0, false);
    until(is_ready, NULL);
    redis_server_tell(&w.server, "CONFIG", "SET", "appendfsync", "everysec", NULL);
    until_trouble("set appendfsync always");
    cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE);
    redis_server_tell(&w.server, "CONFIG", "SET", "appendfsync", "always", NULL);
    until(is_ready, NULL);
    cr_assert_eq(w.ready_told, 3);
    close_world();
}

/* Not only at the next examination, after five seconds: until then changes are confirmed that a crash would undo. */
Test(store, notices_a_setting_that_is_changed_within_about_a_second)
{
    static const struct {
        const char *name, *value, *trouble;
    } CASES[] = {
        {"appendfsync", "everysec", "set appendfsync always"},
        {"appendonly", "no", "appendonly yes"},
        {"no-appendfsync-on-rewrite", "yes", "no-appendfsync-on-rewrite no"},
        {"maxmemory-policy", "allkeys-lru", "noeviction"},
    };
    enum { SOON_MS = 4000 };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        open_real(NULL);
        open_store_with(PATIENCE_MS, 0, false);
        until(is_ready, NULL);
        cr_assert_eq(examine(), STORE_OK);
        redis_server_tell(&w.server, "CONFIG", "SET", CASES[i].name, CASES[i].value, NULL);
        cr_expect(test_loop_until(&w.loop, is_not_ready, NULL, SOON_MS), "%s", CASES[i].name);
        until_trouble(CASES[i].trouble);
        close_world();
    }
}

Test(store, names_what_makes_redis_unfit)
{
    static const struct {
        const char *command[4];
        const char *trouble;
    } CASES[] = {
        {{"CONFIG", "SET", "no-appendfsync-on-rewrite", "yes"}, "no-appendfsync-on-rewrite no"},
        {{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}, "noeviction"},
        {{"ACL", "SETUSER", "default", "-config"}, "+config|get"},
        {{"ACL", "SETUSER", "default", "-evalsha"}, "refuses scripts"},
        {{"ACL", "SETUSER", "default", "-info"}, "ACL"},
        {{"ACL", "SETUSER", "default", "resetchannels"}, "and channels"},
        {{"SET", "t:schema", "99"}, "newer chatelaine"},
        {{"REPLICAOF", "127.0.0.1", "1"}, "it is a replica"},
        {{"CONFIG", "SET", "maxmemory", "1"}, "memory is full"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *const *c = CASES[i].command;

        open_real(NULL);
        redis_server_tell(&w.server, c[0], c[1], c[2], c[3], NULL);
        open_store_with(PATIENCE_MS, 0, false);
        until_trouble(CASES[i].trouble);
        cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE, "case %zu", i);
        close_world();
    }
}

Test(store, comes_back_with_redis)
{
    open_real(NULL);
    open_store_with(PATIENCE_MS, 0, false);
    until(is_ready, NULL);
    cr_assert_eq(change("acct_1"), STORE_OK);
    redis_server_kill(&w.server);
    until_trouble("cannot be reached");
    cr_assert_eq(change("acct_2"), STORE_UNAVAILABLE);
    cr_assert_eq(read_key(), STORE_UNAVAILABLE);
    redis_server_restart(&w.server);
    until(is_ready, NULL);
    cr_assert_eq(change("acct_2"), STORE_OK);
    cr_assert_eq(w.ready_told, 3);
    close_world();
}

Test(store, does_not_know_while_redis_is_frozen)
{
    open_real(NULL);
    open_store(0, false);
    until(is_ready, NULL);
    redis_server_freeze(&w.server);
    cr_assert_eq(change("acct_1"), STORE_UNKNOWN);
    cr_assert_eq(read_key(), STORE_UNKNOWN);
    redis_server_thaw(&w.server);
    until(is_ready, NULL);
    cr_assert_eq(change("acct_2"), STORE_OK);
    close_world();
}

/* With a fake one */

static void rule(const char *command, enum fake_action action, const char *answer, unsigned times)
{
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = command, .action = action, .answer = answer, .times = times});
}

static const char FIT_INFO[] =
    FAKE_RUN_ID "redis_version:7.0.15\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n"
                "slave0:ip=1,port=1,state=online,offset=0,lag=0\r\n"
                "slave1:ip=1,port=2,state=wait_bgsave,offset=0,lag=0\r\nslave_read_only:1\r\n";

static void open_fake(void)
{
    static char info[512];

    open_world();
    w.fake = fake_redis_create(&w.loop, NULL);
    w.target = (struct redis_target){.host = "127.0.0.1", .port = fake_redis_port(w.fake)};
    snprintf(info, sizeof info, "$%zu\r\n%s\r\n", strlen(FIT_INFO), FIT_INFO);
    rule("INFO", FAKE_ANSWER, info, 0);
    rule("TIME", FAKE_ANSWER, "*2\r\n$10\r\n1767225600\r\n$1\r\n5\r\n", 0);
    rule("CONFIG GET appendonly", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$3\r\nyes\r\n", 0);
    rule("CONFIG GET appendfsync", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$6\r\nalways\r\n", 0);
    rule("CONFIG GET no-appendfsync-on-rewrite", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$2\r\nno\r\n", 0);
    rule("CONFIG GET save", FAKE_ANSWER, "*0\r\n", 0);
    rule("CONFIG GET stop-writes-on-bgsave-error", FAKE_ANSWER, "*0\r\n", 0);
    rule("CONFIG GET maxmemory-policy", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$10\r\nnoeviction\r\n", 0);
    rule("EVALSHA", FAKE_ANSWER, "*2\r\n$2\r\nok\r\n:1\r\n", 0);
}

static void open_fake_ready(int64_t min_replicas)
{
    open_fake();
    open_store(min_replicas, false);
    until(is_ready, NULL);
}

#define GLANCE "CONFIG GET appendonly appendfsync no-appendfsync-on-rewrite maxmemory-policy"
#define GLANCE_REPLY(length, fsync)                                                              \
    "*8\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n$11\r\nappendfsync\r\n$" length "\r\n" fsync "\r\n" \
    "$25\r\nno-appendfsync-on-rewrite\r\n$2\r\nno\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"

static bool waits_for_probe(void *arg)
{
    (void)arg;
    return uv_is_active((uv_handle_t *)&w.store->probe);
}

/* Returns how many examinations it led to so far. */
static unsigned glance(void)
{
    unsigned before = fake_redis_count(w.fake, "INFO server");

    cr_assert_eq(uv_timer_stop(&w.store->probe), 0);
    w.store->on_probe(&w.store->probe);
    until(waits_for_probe, NULL);
    return fake_redis_count(w.fake, "INFO server") - before;
}

/* Two commands, and an examination only if something has changed. */
Test(store, glances_at_settings_between_examinations)
{
    open_fake_ready(0);
    rule(GLANCE, FAKE_ANSWER, GLANCE_REPLY("6", "always"), 0);
    for (unsigned times = 1; times <= 2; times++) {
        cr_assert_eq(glance(), 0);
        cr_assert_eq(fake_redis_count(w.fake, GLANCE), times);
    }
    rule(GLANCE, FAKE_ANSWER, "-NOPERM this user has no permissions\r\n", 1);
    cr_assert_eq(glance(), 0, "the next examination will tell");
    rule(GLANCE, FAKE_ANSWER, GLANCE_REPLY("8", "everysec"), 1);
    cr_assert_eq(glance(), 1);
    cr_assert(is_ready(NULL), "it was set back");
    rule("ACL DRYRUN", FAKE_ANSWER, "$4\r\nnone\r\n", 0);
    cr_assert_eq(glance(), 1);
    until_trouble("as the user `default`");
    close_world();
}

/* So that a cluster runs a script where the slot of its names is, or refuses it as a whole. */
Test(store, each_script_names_a_key_that_does_not_exist)
{
    char none[128], store[128];
    unsigned with_none, with_store;

    open_fake_ready(0);
    cr_assert_eq(read_key(), STORE_OK);
    snprintf(none, sizeof none, " 1 t:no_store t:");
    snprintf(store, sizeof store, " 1 t:store:" FAKE_STORE_ID " t:");
    with_none = with_store = 0;
    for (unsigned i = 0; i < fake_redis_count(w.fake, "EVALSHA"); i++) {
        const char *command = fake_redis_command(w.fake, "EVALSHA", i);

        with_none += strstr(command, none) != NULL;
        with_store += strstr(command, store) != NULL;
    }
    cr_assert_gt(with_none, 0, "the first examination knows no store yet");
    cr_assert_gt(with_store, 0);
    cr_assert_eq(with_none + with_store, fake_redis_count(w.fake, "EVALSHA"));
    close_world();
}

Test(store, maps_what_scripts_answer)
{
    static const struct {
        const char *answer;
        enum store_result result;
        const char *reply;
    } CASES[] = {
        {"*3\r\n+ok\r\n$1\r\na\r\n:5\r\n", STORE_OK, "a # "},
        {"*1\r\n$2\r\nok\r\n", STORE_OK, ""},
        {"*1\r\n$9\r\nnot_found\r\n", STORE_NOT_FOUND, "-"},
        {"*2\r\n$8\r\nconflict\r\n$1\r\nb\r\n", STORE_CONFLICT, "b "},
        {"*2\r\n$7\r\nrefused\r\n:3\r\n", STORE_REFUSED, "# "},
        {"*1\r\n$5\r\nother\r\n", STORE_UNAVAILABLE, "-"},
        {"*0\r\n", STORE_UNAVAILABLE, "-"},
        {"*1\r\n:1\r\n", STORE_UNAVAILABLE, "-"},
        {"$2\r\nok\r\n", STORE_UNAVAILABLE, "-"},
        {"$-1\r\n", STORE_UNAVAILABLE, "-"},
        {"-ERR wrong\r\n", STORE_UNAVAILABLE, "-"},
    };

    open_fake_ready(0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        rule("EVALSHA", FAKE_ANSWER, CASES[i].answer, 1);
        cr_assert_eq(read_key(), CASES[i].result, "case %zu", i);
        cr_assert_str_eq(w.reply, CASES[i].reply, "case %zu", i);
    }
    close_world();
}

static void append_bulk(struct buf *out, const char *text)
{
    buf_printf(out, "$%zu\r\n%s\r\n", strlen(text), text);
}

/* As user_list.lua returns one. */
static void append_user(struct buf *out)
{
    const struct id user = id_mint(ID_USER, 1), account = id_mint(ID_ACCOUNT, 1);
    const char *const fields[] = {"id",      user.text, "account",      account.text,   "email", "ana@north.test",
                                  "created", "1234",    "account_name", "North Clinic", "mac",   "a MAC",
                                  "role",    "owner",   "password",     "a hash",       "totp"};
    char totp[TOTP_SEALED_BYTES + 1];

    buf_append_str(out, "*18\r\n");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        append_bulk(out, fields[i]);
    memset(totp, 't', TOTP_SEALED_BYTES);
    totp[TOTP_SEALED_BYTES] = '\0';
    append_bulk(out, totp);
}

static void on_users(void *arg, enum store_result result, const struct user_record *users, size_t count)
{
    size_t *ret_count = arg;

    (void)users;
    *ret_count = count;
    w.awaited--;
    w.result = result;
}

static enum store_result list_users(size_t *ret_count)
{
    const struct id account = id_mint(ID_ACCOUNT, 1), from_the_first = {0};

    w.awaited++;
    seal_store_list_users(w.store, &account, &from_the_first, on_users, ret_count);
    until(nothing_awaited, NULL);
    return w.result;
}

/* Callers have room for a page and no more. */
Test(store, refuses_a_page_of_users_that_is_too_long)
{
    struct buf answer;
    size_t count;

    open_fake_ready(0);
    for (size_t users = SEAL_USERS_AT_ONCE; users <= SEAL_USERS_AT_ONCE + 1; users++) {
        bool fits = users == SEAL_USERS_AT_ONCE;

        buf_init(&answer, 1 << 20);
        buf_printf(&answer, "*%zu\r\n+ok\r\n", users + 1);
        for (size_t i = 0; i < users; i++)
            append_user(&answer);
        buf_append_char(&answer, '\0');
        cr_assert(!answer.failed);
        rule("EVALSHA", FAKE_ANSWER, buf_text(&answer).ptr, 1);
        cr_expect_eq(list_users(&count), fits ? STORE_OK : STORE_UNAVAILABLE);
        cr_expect_eq(count, fits ? users : 0);
        buf_finish(&answer);
    }
    close_world();
}

Test(store, sends_the_body_once_where_the_script_is_unknown)
{
    open_fake_ready(0);
    rule("EVALSHA", FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 1);
    rule("EVAL ", FAKE_ANSWER, "-NOSCRIPT never\r\n", 1);
    cr_assert_eq(read_key(), STORE_UNAVAILABLE);
    cr_assert_eq(fake_redis_count(w.fake, "EVAL "), 1);
    rule("EVALSHA", FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 1);
    rule("EVAL ", FAKE_ANSWER, "*2\r\n$2\r\nok\r\n$1\r\nz\r\n", 1);
    cr_assert_eq(read_key(), STORE_OK);
    cr_assert_str_eq(w.reply, "z ");
    /* The same arguments follow the script's body. */
    const char *eval = fake_redis_command(w.fake, "EVAL ", 1);
    cr_assert_str_eq(eval + strlen(eval) - strlen(" t: key_x   0"), " t: key_x   0");
    close_world();
}

Test(store, sends_one_body_for_all_who_wait_for_it)
{
    open_fake_ready(1);
    rule("WAIT", FAKE_ANSWER, ":1\r\n", 0);
    rule("EVALSHA", FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 20);
    rule("EVAL ", FAKE_ANSWER, "*1\r\n$2\r\nok\r\n", 0);
    begin_reads_and_changes(10);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.failed, 0);
    cr_assert_eq(fake_redis_count(w.fake, "EVAL "), 2, "one on each connection");
    close_world();
}

/* What one may not load, the others may not either. */
Test(store, does_not_send_the_body_for_everyone_to_a_redis_that_refuses_it)
{
    open_fake_ready(0);
    rule("EVALSHA", FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 0);
    rule("EVAL ", FAKE_ANSWER, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", 0);
    unsigned calls = fake_redis_count(w.fake, "EVALSHA");
    for (unsigned i = 0; i < 10; i++)
        begin_change("acct_1");
    until(nothing_awaited, NULL);
    cr_assert_eq(w.failed, 10);
    cr_assert_eq(w.result, STORE_UNAVAILABLE);
    cr_assert_eq(fake_redis_count(w.fake, "EVAL "), 2);
    cr_assert_leq(fake_redis_count(w.fake, "EVALSHA") - calls, 30);
    rule("EVALSHA", FAKE_ANSWER, "*1\r\n$2\r\nok\r\n", 0);
    cr_assert_eq(change("acct_1"), STORE_OK);
    close_world();
}

/* A text that was lost with its connection does not count as under way. */
Test(store, sends_the_body_again_over_a_new_connection)
{
    open_fake_ready(0);
    rule("EVALSHA", FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 2);
    rule("EVAL ", FAKE_CLOSE, NULL, 1);
    begin_change("acct_1");
    begin_change("acct_2");
    until(nothing_awaited, NULL);
    cr_assert_eq(w.failed, 2);
    until(is_ready, NULL);
    rule("EVALSHA", FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 1);
    rule("EVAL ", FAKE_ANSWER, "*1\r\n$2\r\nok\r\n", 1);
    cr_assert_eq(change("acct_1"), STORE_OK);
    close_world();
}

Test(store, answers_changes_when_replicas_have_them)
{
    static const struct {
        const char *script, *wait;
        enum store_result result;
        const char *reply;
        bool ready_after;
    } CASES[] = {
        {"*3\r\n$2\r\nok\r\n$1\r\na\r\n*1\r\n:1\r\n", ":1\r\n", STORE_OK, "a ? ", true},
        {"*1\r\n$8\r\nconflict\r\n", ":0\r\n", STORE_CONFLICT, "", true},
        {"-ERR wrong\r\n", ":1\r\n", STORE_UNAVAILABLE, "-", true},
        {"*2\r\n$2\r\nok\r\n$1\r\na\r\n", ":0\r\n", STORE_UNKNOWN, "-", false},
        {"*2\r\n$2\r\nok\r\n$1\r\na\r\n", "-ERR WAIT cannot be used\r\n", STORE_UNKNOWN, "-", false},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        open_fake_ready(1);
        rule("EVALSHA", FAKE_ANSWER, CASES[i].script, 1);
        rule("WAIT 1 1500", FAKE_ANSWER, CASES[i].wait, 1);
        cr_assert_eq(change("acct_1"), CASES[i].result, "case %zu", i);
        cr_assert_str_eq(w.reply, CASES[i].reply, "case %zu", i);
        cr_assert_eq(store_is_ready(w.store), CASES[i].ready_after, "case %zu", i);
        until(is_ready, NULL);
        close_world();
    }
}

Test(store, waits_for_replicas_behind_the_body_too)
{
    open_fake_ready(1);
    rule("WAIT", FAKE_ANSWER, ":1\r\n", 0);
    rule("EVALSHA", FAKE_ANSWER, "-NOSCRIPT No matching script.\r\n", 1);
    rule("EVAL ", FAKE_ANSWER, "*2\r\n$2\r\nok\r\n$1\r\nz\r\n", 1);
    cr_assert_eq(change("acct_1"), STORE_OK);
    cr_assert_str_eq(w.reply, "z ");
    cr_assert_eq(fake_redis_count(w.fake, "WAIT"), 2);
    close_world();
}

Test(store, calls_a_script_that_did_a_part_until_it_has_done_all)
{
    open_fake_ready(1);
    rule("WAIT", FAKE_ANSWER, ":1\r\n", 1);
    rule("WAIT", FAKE_ANSWER, ":0\r\n", 2); /* the newest rule first */
    rule("EVALSHA", FAKE_ANSWER, "*2\r\n$2\r\nok\r\n$1\r\nz\r\n", 1);
    rule("EVALSHA", FAKE_ANSWER, "*1\r\n$5\r\nagain\r\n", 2);
    cr_assert_eq(change("acct_1"), STORE_OK);
    cr_assert_str_eq(w.reply, "z ");
    cr_assert_eq(fake_redis_count(w.fake, "WAIT"), 3);
    rule("EVALSHA", FAKE_CLOSE, NULL, 1);
    rule("EVALSHA", FAKE_ANSWER, "*1\r\n$5\r\nagain\r\n", 1);
    cr_assert_eq(read_key(), STORE_UNKNOWN);
    close_world();
}

Test(store, does_not_know_when_the_connection_breaks_behind_the_script)
{
    open_fake_ready(1);
    rule("WAIT", FAKE_CLOSE, NULL, 1);
    cr_assert_eq(change("acct_1"), STORE_UNKNOWN);
    until(is_ready, NULL);
    close_world();
}

Test(store, refuses_changes_once_redis_refused_one)
{
    static const char *const ERRORS[] = {
        "-MISCONF Redis is configured to save RDB snapshots\r\n",
        "-NOREPLICAS Not enough good replicas to write.\r\n",
    };

    open_fake_ready(0);
    for (size_t i = 0; i < sizeof ERRORS / sizeof ERRORS[0]; i++) {
        rule("EVALSHA", FAKE_ANSWER, ERRORS[i], 1);
        cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE);
        cr_assert(!store_is_ready(w.store), "%s", ERRORS[i]);
        cr_assert(strstr(store_trouble(w.store), "refuses writes"), "%s", store_trouble(w.store));

        /* An examination, which calls scripts too, would be counted. */
        cr_assert_eq(uv_timer_stop(&w.store->probe), 0);
        unsigned calls = fake_redis_count(w.fake, "EVALSHA");
        cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE);
        cr_assert_eq(fake_redis_count(w.fake, "EVALSHA"), calls, "not sent");
        w.store->on_probe(&w.store->probe);
        until(is_ready, NULL);
        cr_assert_eq(change("acct_1"), STORE_OK);
    }
    close_world();
}

/* Only Redis knows what it still accepts. */
Test(store, asks_a_full_redis_all_the_same)
{
    open_fake_ready(0);
    rule("EVALSHA", FAKE_ANSWER, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", 1);
    cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE);
    cr_assert(store_is_ready(w.store));
    cr_assert(strstr(store_trouble(w.store), "memory is full"), "%s", store_trouble(w.store));
    cr_assert_eq(metric_values[METRIC_REDIS_FULL], 1);
    cr_assert_eq(change("acct_1"), STORE_OK);
    until(has_no_trouble, NULL);
    cr_assert_eq(metric_values[METRIC_REDIS_FULL], 0);
    close_world();
}

Test(store, becomes_ready_with_a_redis_that_is_full)
{
    open_real(NULL);
    redis_server_tell(&w.server, "SET", "t:schema", "1", NULL);
    redis_server_tell(&w.server, "CONFIG", "SET", "maxmemory", "1", NULL);
    open_store_with(PATIENCE_MS, 0, false);
    until(is_ready, NULL);
    cr_assert(strstr(store_trouble(w.store), "memory is full"), "%s", store_trouble(w.store));
    cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE);
    cr_assert(store_is_ready(w.store));
    close_world();
}

static void on_replied(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)reply;
    cr_assert_eq(outcome, REDIS_REPLIED);
    *(bool *)arg = true;
}

Test(store, gives_each_link_the_time_that_is_set)
{
    open_fake_ready(0);
    struct redis_link *const links[] = {w.store->reads, w.store->scripts, w.store->changes, w.store->work};

    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        bool is_replied = false;

        redis_link_call(links[i], 1, (struct text[]){TEXT("PING")}, on_replied, &is_replied);
        cr_expect_leq(uv_timer_get_due_in(&links[i]->timer), TIMEOUT_MS, "link %zu", i);
        cr_assert(test_loop_until_set(&w.loop, &is_replied, PATIENCE_MS));
    }
    close_world();
}

static bool has_failed_often(void *arg)
{
    const struct redis_link *link = arg;

    return link->attempts >= 8 && link->state == LINK_WAITING;
}

/* However long it has been away. Pauses that went on to double would take 1600 ms and more by then. */
Test(store, tries_each_link_every_second)
{
    open_fake_ready(0);
    rule("PING", FAKE_CLOSE, NULL, 0);
    fake_redis_go_away(w.fake);
    fake_redis_come_back(w.fake);
    struct redis_link *const links[] = {w.store->reads, w.store->scripts, w.store->changes, w.store->work};

    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        until(has_failed_often, links[i]);
        cr_expect_leq(uv_timer_get_due_in(&links[i]->timer), 1000, "link %zu", i);
    }
    close_world();
}

Test(store, is_unavailable_while_redis_does_not_greet)
{
    open_fake_ready(0);
    fake_redis_go_away(w.fake);
    until(is_not_ready, NULL);
    rule("PING", FAKE_SILENT, NULL, 0);
    fake_redis_come_back(w.fake);
    cr_assert_eq(change("acct_1"), STORE_UNAVAILABLE);
    cr_assert_eq(examine(), STORE_UNAVAILABLE, "in time, though there is no connection");
    close_world();
}

static bool others_are_up(void *arg)
{
    (void)arg;
    return w.store->reads_up && w.store->scripts_up && w.store->changes_up && !w.store->unfit;
}

static bool work_is_away(void *arg)
{
    (void)arg;
    return !redis_link_is_ready(w.store->work);
}

/* Whoever waits until a store is ready may list at once. But later, lists that are too slow must not take the store
 * from everybody. */
Test(store, is_ready_once_it_can_work_and_stays_so_when_work_fails)
{
    open_fake();
    rule("CLIENT SETNAME chatelaine-work", FAKE_SILENT, NULL, 0);
    open_store(0, false);
    until(others_are_up, NULL);
    cr_assert_not(store_is_ready(w.store));
    cr_assert(strstr(store_trouble(w.store), "cannot be reached"), "%s", store_trouble(w.store));
    rule("CLIENT SETNAME chatelaine-work", FAKE_ANSWER, "+OK\r\n", 0);
    until(is_ready, NULL);
    rule("CLIENT SETNAME chatelaine-work", FAKE_SILENT, NULL, 0);
    fake_redis_hang_up(w.fake, "chatelaine-work");
    until(work_is_away, NULL);
    cr_assert(store_is_ready(w.store));
    begin(SCRIPT_node_list, SCRIPT_WORK, 0, NULL);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.result, STORE_UNAVAILABLE);
    close_world();
}

/* Closing at every moment */

Test(store, closes_before_the_loop_ran)
{
    open_fake();
    open_store(0, false);
    begin(SCRIPT_node_list, SCRIPT_READS, 0, NULL);
    begin(SCRIPT_store_return, SCRIPT_CHANGES, 0, NULL);
    store_examine(w.store, on_examined, NULL);
    close_world();
    cr_assert(w.is_examined);
    cr_assert_eq(w.result, STORE_UNAVAILABLE);
}

static bool is_being_examined(void *arg)
{
    (void)arg;
    return fake_redis_count(w.fake, "INFO") > 2; /* two greetings */
}

Test(store, closes_while_it_examines)
{
    open_fake();
    rule("INFO", FAKE_SILENT, NULL, 0);
    rule("INFO server", FAKE_ANSWER, "$49\r\n" FAKE_RUN_ID "\r\n", 0);
    open_store(0, false);
    until(is_being_examined, NULL);
    store_examine(w.store, on_examined, NULL);
    close_world();
    cr_assert(w.is_examined);
    cr_assert_eq(w.ready_told, 0);
}

static bool has_no_links(void *arg)
{
    (void)arg;
    return w.is_closed || !w.store->changes;
}

/* Sentinels that hang keep a store waiting between the ends of its links and its own. */
Test(store, closes_while_it_glances)
{
    open_fake_ready(0);
    rule(GLANCE, FAKE_SILENT, NULL, 0);
    w.store->on_probe(&w.store->probe);
    cr_assert_eq(w.store->examination.glance_due, 2);
    w.store->on_probe(&w.store->probe);
    cr_assert_eq(w.store->examination.glance_due, 2, "one at a time");
    close_world();
}

Test(store, is_not_examined_once_its_links_have_ended)
{
    open_real(NULL);
    open_store(0, false);
    until(is_ready, NULL);
    store_close(w.store, on_closed, NULL);
    cr_assert(test_loop_until(&w.loop, has_no_links, NULL, PATIENCE_MS));
    cr_assert(!w.is_closed);
    w.store->on_probe(&w.store->probe);
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    redis_server_stop(&w.server);
    cr_assert(test_loop_finish(&w.loop));
}

Test(store, closes_with_calls_sent_queued_and_refused)
{
    open_fake_ready(1);
    rule("EVALSHA", FAKE_SILENT, NULL, 0);
    begin(SCRIPT_store_return, SCRIPT_CHANGES, 0, NULL);
    begin(SCRIPT_node_list, SCRIPT_READS, 0, NULL);
    test_loop_for(&w.loop, 20);
    begin(SCRIPT_node_list, SCRIPT_READS, 0, NULL);
    store_close(w.store, on_closed, NULL);
    begin(SCRIPT_node_list, SCRIPT_READS, 0, NULL);
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    cr_assert_eq(w.awaited, 0);
    cr_assert_eq(w.ready_told, 1, "its owner knows");
    fake_redis_close(w.fake);
    cr_assert(test_loop_finish(&w.loop));
}
