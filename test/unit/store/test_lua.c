/* Scripts against a real Redis, as tables of commands and expected replies: the state before, the call, the state
 * after. Here is what C never sends and does not see; what an operation of the store can show is tested through C. */
#include "deadline.h"
#include "leak_guard.h"
#include "redis_server.h"
#include "engine/lua_scripts.h"

#include <criterion/criterion.h>
#include <endian.h>
#include <fnmatch.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* command: words. '' is an empty one; $now and $now+N are milliseconds of Redis' clock, before
 * what follows a colon; @name is a script, whose arguments follow the prefix "t:" (<ids>@name: for the store and the
 * caller that they say, as epilogue.lua reads KEYS[1] behind "t:store:"); :use and :uses set and read the uses of keys
 * (below); =5:100,2:90 are counts as usage_flush takes them. reply: a pattern for fnmatch(), with arrays in
 * parentheses; NULL: any reply but an error. In it ~N stands for a number of ms up to N and above N - 5000, ~Ns for one
 * of seconds up to N and above N - 10, as time goes by; neither takes 0 or less. One of them excludes wildcards. */
struct step {
    const char *command, *reply;
};

enum { WORDS_MAX = 64, NUMBERS_BYTES = 512 };

static struct redis_server server;
static redisContext *redis, *subscriber;

static void start(void)
{
    redis_server_start(&server, NULL);
    redis = redisConnectUnix(server.socket_path);
    cr_assert(redis && !redis->err);
}

static void stop(void)
{
    redisFree(redis);
    redisFree(subscriber);
    redis_server_stop(&server);
    leak_guard();
}

TestSuite(lua, .init = start, .fini = stop);

static long long redis_now(void)
{
    redisReply *time = redisCommand(redis, "TIME");
    long long ms = atoll(time->element[0]->str) * 1000 + atoll(time->element[1]->str) / 1000;

    freeReplyObject(time);
    return ms;
}

static void render(const redisReply *reply, FILE *out)
{
    switch (reply->type) {
    case REDIS_REPLY_ARRAY:
        fputc('(', out);
        for (size_t i = 0; i < reply->elements; i++) {
            fputs(i > 0 ? " " : "", out);
            render(reply->element[i], out);
        }
        fputc(')', out);
        break;
    case REDIS_REPLY_INTEGER:
        fprintf(out, "%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        fputs("nil", out);
        break;
    default:
        fprintf(out, "%s%s", reply->type == REDIS_REPLY_ERROR ? "-" : "", reply->str);
    }
}

static char *script_text(const char *name)
{
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        if (strcmp(LUA_SCRIPTS[i].name, name) == 0)
            return strndup(LUA_SCRIPTS[i].body.ptr, LUA_SCRIPTS[i].body.len);
    cr_assert_fail("no script %s", name);
    return NULL;
}

/* :uses ACCOUNT KEY...: the last use, total, day and uses on that day of each. */
#define USES                                                                                 \
    "local uses = {} "                                                                       \
    "for i = 2, #ARGV do "                                                                   \
    "local packed = redis.call('HGET', 't:acct:' .. ARGV[1] .. ':key_uses', ARGV[i]) "       \
    "local last, total, day, on_day = struct.unpack('<I6I6c10I6', packed or ('0'):rep(28)) " \
    "uses[i - 1] = packed and {last, total, day, on_day} "                                   \
    "end return uses"
/* :use ACCOUNT KEY LAST TOTAL DAY ON_DAY: sets them. */
#define USE                                                                    \
    "return redis.call('HSET', 't:acct:' .. ARGV[1] .. ':key_uses', ARGV[2], " \
    "struct.pack('<I6I6c10I6', ARGV[3], ARGV[4], ARGV[5], ARGV[6]))"

static size_t pack_counts(const char *list, char *ret_packed)
{
    size_t bytes = 0;

    for (char *at = (char *)list; *at; at += *at == ',') {
        const uint64_t uses = htole64(strtoull(at, &at, 10)), used = htole64(strtoull(at + 1, &at, 10));

        memcpy(ret_packed + bytes, &uses, 4);
        memcpy(ret_packed + bytes + 4, &used, 6);
        bytes += 10;
    }
    return bytes;
}

/* Returns the reply as text, which the caller frees. Blanks separate the arguments; a + within one stands for a
 * blank. */
static char *run(const char *command)
{
    char *words = strdup(command), *rest = words, *word, *body = NULL, *text = NULL;
    char numbers[NUMBERS_BYTES];
    size_t printed = 0, len = 0, lengths[WORDS_MAX];
    const char *argv[WORDS_MAX];
    int argc = 0, counted = 0;

    while ((word = strsep(&rest, " "))) {
        const char *name = argc == 0 ? strchr(word, '@') : NULL;

        if (name || word[0] == ':') {
            body = name ? script_text(name + 1) : strdup(strcmp(word, ":use") == 0 ? USE : USES);
            argv[argc++] = "EVAL";
            argv[argc++] = body;
            argv[argc++] = name > word ? "1" : "0";
            if (name > word) {
                argv[argc++] = numbers + printed;
                printed += 1 + (size_t)snprintf(numbers + printed, sizeof numbers - printed, "t:store:%.*s",
                                                (int)(name - word), word);
            }
            if (name)
                argv[argc++] = "t:";
        } else if (strncmp(word, "$now", 4) == 0) {
            const char *colon = strchr(word, ':');

            argv[argc++] = numbers + printed;
            printed += 1 + (size_t)snprintf(numbers + printed, sizeof numbers - printed, "%lld%s",
                                            redis_now() + atoll(word + 4), colon ? colon : "");
        } else if (strcmp(word, "$era") == 0) {
            char *era = run("HGET t:store era");

            argv[argc++] = numbers + printed;
            printed += 1 + (size_t)snprintf(numbers + printed, sizeof numbers - printed, "%s", era);
            free(era);
        } else if (word[0] != '=') {
            for (char *plus = word + 1; (plus = strchr(plus, '+')) != NULL;)
                *plus = ' ';
            argv[argc++] = strcmp(word, "''") == 0 ? "" : word;
        } else {
            argv[argc++] = numbers + printed;
            printed += pack_counts(word + 1, numbers + printed);
        }
        for (; counted < argc; counted++)
            lengths[counted] = word[0] == '=' ? (size_t)(numbers + printed - argv[counted]) : strlen(argv[counted]);
    }
    redisReply *reply = redisCommandArgv(redis, argc, argv, lengths);
    FILE *out = open_memstream(&text, &len);

    cr_assert(reply, "%s: %s", command, redis->errstr);
    render(reply, out);
    fclose(out);
    freeReplyObject(reply);
    free(body);
    free(words);
    return text;
}

static bool matches(const char *pattern, const char *reply)
{
    if (!pattern)
        return reply[0] != '-';
    const char *most = strchr(pattern, '~');
    if (!most)
        return fnmatch(pattern, reply, 0) == 0;
    if (strncmp(pattern, reply, (size_t)(most - pattern)) != 0)
        return false;
    char *pattern_rest, *reply_rest;
    const long long max = strtoll(most + 1, &pattern_rest, 10),
                    got = strtoll(reply + (most - pattern), &reply_rest, 10);
    const bool is_seconds = *pattern_rest == 's';
    return got > 0 && got <= max && got > max - (is_seconds ? 10 : 5000) &&
           strcmp(pattern_rest + is_seconds, reply_rest) == 0;
}

static void run_steps(const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *reply = run(steps[i].command);

        cr_expect(matches(steps[i].reply, reply), "step %zu: %s\n  got  %s\n  want %s", i, steps[i].command, reply,
                  steps[i].reply ? steps[i].reply : "no error");
        free(reply);
    }
}

#define STEPS(...)                                      \
    do {                                                \
        const struct step steps[] = {__VA_ARGS__};      \
        run_steps(steps, sizeof steps / sizeof *steps); \
    } while (0)

/* From now on, expect_message() reads what is published there. */
static void subscribe(const char *channel)
{
    subscriber = redisConnectUnix(server.socket_path);
    cr_assert_eq(redisSetTimeout(subscriber, (struct timeval){.tv_sec = PATIENCE_MS / 1000}), REDIS_OK);
    freeReplyObject(redisCommand(subscriber, "SUBSCRIBE %s", channel));
}

static void expect_message(const char *payload)
{
    redisReply *message;

    cr_assert_eq(redisGetReply(subscriber, (void **)&message), REDIS_OK, "no %s", payload);
    cr_expect(matches(payload, message->element[2]->str), "%s", message->element[2]->str);
    freeReplyObject(message);
}

#define ACCOUNT                                        \
    {                                                  \
        "HSET t:acct:acct_A name North created 1", "2" \
    }
#define EMAIL(email, user) "@email_claim " email " " user " " user " ''"
#define USER                                                                                    \
    {EMAIL("a@b.test", "usr_U"), "(ok)"},                                                       \
    {                                                                                           \
        "@user_create usr_U acct_A a@b.test hash sealed 5 operator '' '' 100 mac owner", "(ok)" \
    }
/* How scripts return them. */
#define A_USER "(id usr_U account_name North account acct_A email a@b.test created 5 mac mac role owner)"
#define A_USER_WITH_SECRETS                                                                    \
    "(id usr_U account_name North account acct_A email a@b.test created 5 mac mac role owner " \
    "password hash totp sealed)"
#define A_SESSION(step_up, step_up_expires)                                                                       \
    "(sid sid1 account acct_A created 1* expires 1* ends 1* step_up " step_up " step_up_expires " step_up_expires \
    " mac mac* password_expired 0)"
#define FROM " usr_U 192.0.2.1 req_1"
#define ORIGIN FROM " 100"
/* Without a credential, like the command line, and without limits. */
#define BY " usr_U 192.0.2.1 req_1 100 '' 0 0"

/* Calls a script for a store with this id. Returns its reply as text; the caller frees it. */
static char *call_in_store(const char *script, const char *store, const char *argument)
{
    char *body = script_text(script), *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    redisReply *reply = redisCommand(redis, "EVAL %s 1 %s t: %s 5 6 7", body, store, argument);

    cr_assert_not_null(reply);
    render(reply, out);
    fclose(out);
    freeReplyObject(reply);
    free(body);
    return text;
}

Test(lua, epilogue)
{
    static const struct {
        const char *script, *store, *argument, *reply, *chain; /* chain: that of node bb afterwards */
    } CASES[] = {
        {"account_create", "t:store:aa", "acct_A", "(ok)", ""}, /* a command */
        {"account_create", "t:store:ab", "acct_B", "(other_store aa)", ""},
        {"account_create", "t:store:aa:bb:0:other", "acct_B", "(numbered 0 1 (ok))", "0 1 -"},
        {"account_create", "t:store:aa:bb:0:other", "acct_B", "(conflict)", "0 1 -"}, /* nothing was changed */
        {"account_create", "t:store:aa:bb:0:ends", "acct_C", "(numbered 1 2 (ok))", "1 2 -"},
        {"account_create", "t:store:aa:bb:1:ends", "acct_D", "(numbered 2 3 (ok))", "2 3 -"},
        {"account_create", "t:store:aa:bb:3:other", "acct_E", "(behind 2)", "2 3 -"},
        {"account_create", "t:store:aa:bb:3", "acct_E", "(behind 2)", "2 3 -"},
        {"account_create", "t:store:aa:bb:2", "acct_F", "(ok)", "2 3 -"}, /* it is not numbered */
        {"account_create", "t:store:aa:cc:1", "acct_E", "(behind 0)", "2 3 -"},
        {"account_create", "t:store:aa:bb::ends", "acct_G", "(numbered 3 4 (ok))", "3 4 -"}, /* a command */
        {"account_list", "t:store:ab:bb:0", "x", "(other_store aa)", "3 4 -"},
        {"store_accept_loss", "t:store:aa", "run", "(ok 0 0)", "3 4 -"},
    };

    STEPS({"HSET t:store id aa", "1"}, {"EXISTS t:acct:acct_C", "0"});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char *text = call_in_store(CASES[i].script, CASES[i].store, CASES[i].argument);
        redisReply *held = redisCommand(redis, "HGET t:chains bb");

        cr_expect_str_eq(text, CASES[i].reply, "case %zu", i);
        cr_expect_str_eq(held->str ? held->str : "", CASES[i].chain, "case %zu", i);
        freeReplyObject(held);
        free(text);
    }
    STEPS({"EXISTS t:acct:acct_B t:acct:acct_C t:acct:acct_D t:acct:acct_E t:acct:acct_F", "4"},
          {"HGET t:store accepted", "run"}, {"HGET t:store changes", "4"},
          {"ZRANGE t:chain_order 0 -1 WITHSCORES", "(bb 4)"}, {"DEL t:store", "1"},
          {"@store_accept_loss run", "(not_found)"});
    char *text = call_in_store("account_create", "t:store:aa:bb:0:other", "acct_E");
    cr_expect_str_eq(text, "(other_store )");
    free(text);
    STEPS({"EXISTS t:acct:acct_E t:store", "0"});
}

/* Runs this body, in the place of that of a script that writes events, with the keys (0 to 2, blank-separated). The
 * caller frees the reply. */
static char *run_body(const char *body, const char *keys)
{
    char *whole = script_text("account_suspend"), *script, *command, *text;
    char *begin = strstr(whole, "local function run()\n"), *end = strstr(begin, "\nend\n\nif STORE_ID");
    size_t size;
    FILE *out = open_memstream(&text, &size);

    cr_assert(end && asprintf(&script, "%.*s%s%s", (int)(begin - whole) + 21, whole, body, end) > 0);
    cr_assert_gt(asprintf(&command, "EVAL %%s %s t:", keys), 0);
    redisReply *reply = redisCommand(redis, command, script);
    render(reply, out);
    fclose(out);
    freeReplyObject(reply);
    free(command);
    free(script);
    free(whole);
    return text;
}

/* What a script wrote reaches callers that write an audit log, in front of its reply. */
Test(lua, events_are_told_to_who_logs_them)
{
    static const char BODY[] = "audit('acct_A', 'x.y', 'key_1', {'usr_U', '192.0.2.1', 'req_1', 9}, "
                               "{class = 'test', count = 3, data = {b = '2', a = '1'}}) "
                               "audit('acct_A', 'x.z', 'usr_U', {'operator', '', '', 9}) return {'ok', 5}";
    static const struct {
        const char *body, *keys, *reply;
    } CASES[] = {
        {BODY, "0", "(ok 5)"},
        {BODY, "1 t:store:aa", "(ok 5)"},
        {BODY, "1 t:log:c1c1",
         "(events ((acct_A test *-* (type x.y actor usr_U target key_1 ip 192.0.2.1 request_id req_1 count 3 data:a 1 "
         "data:b 2) *-*) (acct_A people *-* (type x.z actor operator target usr_U ip  request_id ) *-*)) (ok 5))"},
        {BODY, "2 t:store:aa t:log:c1c1", "(events (*) (ok 5))"},
        {BODY, "2 t:store:ab t:log:c1c1", "(other_store aa)"},
        {"return {'ok'}", "2 t:store:aa t:log:c1c1", "(ok)"},
    };

    STEPS({"HSET t:store id aa", "1"});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char *text = run_body(CASES[i].body, CASES[i].keys);

        cr_expect(matches(CASES[i].reply, text), "case %zu: %s", i, text);
        free(text);
    }
    STEPS({"XRANGE t:acct:acct_A:audit:test - + COUNT 1", "((* (type x.y * count 3 data:a 1 data:b 2)))"},
          {"XLEN t:acct:acct_A:audit", "4"});
}

/* Copies of events for logs: none where no node writes one, and each class with its own bound. */
Test(lua, events_wait_for_a_log)
{
    static const char REFUSED[] = "audit('acct_A', 'x', 'y', {'', '', '', 9}, {class = 'refused'}) return {'ok'}";
    static const char PEOPLE[] = "audit('acct_A', 'x', 'y', {'operator', '', '', 9}, {data = {a = '1'}}) return {'ok'}";

    free(run_body(PEOPLE, "0"));
    STEPS({"EXISTS t:unlogged:people", "0"}, {"@audit_unlogged '' 60000 10", "(ok 0 0 0 0)"});
    free(run_body(REFUSED, "1 t:log:c1c1"));
    STEPS({"XLEN t:unlogged:refused", "1"}, {"@audit_heads d2d2 '' 8", "(ok)"}, {"EXISTS t:log_heads", "0"},
          {"@audit_heads d2d2 1+2+x 8", "(ok)"}, {"HLEN t:log_heads", "0"}, /* long ago */
          {"@audit_unlogged d2d2 60000 10", "(ok 1 * 0 0)"});
    STEPS({"HSET t:log_heads d2d2 $now", "1"});
    free(run_body(PEOPLE, "0"));
    STEPS({"@audit_unlogged '' 60000 10", "(ok 2 * 0 1)"}, /* a command takes none */
          {"@audit_unlogged d2d2 60000 10",
           "(ok 2 * 0 1 (acct_A people *-* (type x actor operator target y ip  request_id  data:a 1) *-* ))"},
          {"@audit_unlogged e3e3 60000 10", "(ok 2 * 0 1)"}, /* another node is about it */
          {"PTTL t:log_taker", "~30000"}, {"DEL t:log_taker", "1"}, {"@audit_unlogged e3e3 0 1", "(ok 2 * 0 1 (*))"},
          {"@audit_unlogged e3e3 0 10", "(ok 2 * 0 1 (*) (* c1c1))"},
          {"XREVRANGE t:unlogged:refused + - COUNT 1", NULL}, {"@audit_logged people 1-1 refused 1-1", "(ok)"});
}

Test(lua, events_of_the_store_wait_for_a_log_too)
{
    STEPS({"HSET t:store id aa", "1"}, {"HSET t:log_heads d2d2 $now", "1"},
          {"@store_durability asserted operator", "(ok)"}, {"XLEN t:unlogged:people", "1"},
          {"@store_upgrade 9 bb operator", "(ok 1 *)"}, {"XLEN t:unlogged:people", "2"},
          {"XREVRANGE t:unlogged:people + - COUNT 1", "((* (account  class people * type store.upgraded *)))"});
}

Test(lua, events_that_wait_have_a_bound)
{
    static const char FILL[] = "for i = 1, 100000 do redis.call('XADD', K.unlogged('refused'), '*', 'a', 'b') end "
                               "return {'ok'}";
    static const char REFUSED[] = "audit('acct_A', 'x', 'y', {'', '', '', 9}, {class = 'refused'}) return {'ok'}";
    static const char PEOPLE[] = "audit('acct_A', 'x', 'y', {'', '', '', 9}) return {'ok'}";

    free(run_body(PEOPLE, "1 t:log:c1c1"));
    free(run_body(FILL, "0"));
    for (size_t i = 0; i < 3; i++)
        free(run_body(REFUSED, "1 t:log:c1c1"));
    STEPS({"XLEN t:unlogged:refused", "100000"}, {"GET t:log_dropped", "3"}, {"XLEN t:unlogged:people", "1"},
          {"@audit_unlogged '' 60000 10", "(ok 100001 * 3 0)"});
}

/* Each node notes the chains that follow its own, in a ring. */
Test(lua, audit_heads)
{
    STEPS({"HSET t:log_heads a1 $now b2 $now c3 $now d4 1", "4"}, {"@audit_heads b2 '' 1", "(ok c3 *)"},
          {"@audit_heads c3 '' 8", "(ok a1 * b2 *)"}, {"HEXISTS t:log_heads d4", "0"},
          {"@audit_heads b3 '' 2", "(ok c3 * a1 *)"}, {"HLEN t:log_heads", "3"});
}

/* One place at a time writes a chain, and after a refusal only one that has all that was published. */
Test(lua, audit_writers)
{
    STEPS({"@audit_unlogged a1 0 1 a1 here 7 0", "(ok 0 0 0 0)"}, {"GET t:log_writer:a1", "here"},
          {"PTTL t:log_writer:a1", "~35000"}, {"@audit_unlogged a1 0 1 a1 here 9 0", "(ok 0 0 0 0)"},
          {"DEL t:log_taker", "1"}, {"@audit_unlogged a1 0 1 a1 there 7 0", "(ok 0 0 0 ~35002)"},
          {"EXISTS t:log_taker", "0"}, {"@audit_unlogged b2 0 1 b2 there 7 0", "(ok 0 0 0 0)"},
          {"@audit_heads a1 '' 8 there", "(ok)"}, {"GET t:log_writer:a1", "here"},
          {"@audit_heads a1 '' 8 here", "(ok)"}, {"EXISTS t:log_writer:a1", "0"},
          {"HSET t:log_heads a1 1+9+mac+9+tag+n", "1"}, {"@audit_unlogged a1 0 1 a1 there 7 1", "(ok 0 0 0 70002)"},
          {"EXISTS t:log_writer:a1", "0"}, {"@audit_unlogged a1 0 1 a1 there 9 1", "(ok 0 0 0 1)"},
          {"GET t:log_writer:a1", "there"});
}

Test(lua, audit_logged)
{
    STEPS({"XADD t:unlogged:live 1-1 a b", "1-1"}, {"XADD t:unlogged:live 1-2 a b", "1-2"},
          {"XADD t:unlogged:test 1-1 a b", "1-1"}, {"@audit_logged live 1-1 test 1-1 people 1-1", "(ok)"},
          {"XRANGE t:unlogged:live - +", "((1-2 (a b)))"}, {"XLEN t:unlogged:test", "0"});
}

Test(lua, store_durability)
{
    STEPS({"HSET t:store id aa", "1"}, {"@store_durability observed operator", "(ok)"}, {"EXISTS t:audit", "0"},
          {"@store_durability asserted operator", "(ok)"}, {"@store_durability asserted operator", "(ok)"},
          {"XLEN t:audit", "1"}, {"@store_durability observed operator", "(ok)"},
          {"@store_durability observed operator", "(ok)"},
          {"XRANGE t:audit - +", "((* (type store.durability_asserted actor operator target aa ip  request_id ))"
                                 " (* (type store.durability_observed actor operator target aa ip  request_id )))"});
}

/* The first account, and a store from before identities. */
Test(lua, a_store_gets_its_identity_once)
{
    STEPS({"@schema_claim 1 aa", "(ok 1 * 0)"}, {"EXISTS t:store", "0"},
          {"@account_create acct_A North 1 bb 1 0", "(ok)"}, {"HGET t:store id", "bb"},
          {"@account_create acct_B North 1 cc 1 0", "(ok)"},
          {"@account_list '' 1", "(ok (id acct_A name North status active))"},
          {"@account_list acct_A 1", "(ok (id acct_B name North status active))"}, {"@schema_claim 1 dd", "(ok 1 * 0)"},
          {"HGET t:store id", "bb"}, {"DEL t:store", "1"}, {"@schema_claim 1 ee", "(ok 1 * 0)"},
          {"HGET t:store id", "ee"});
}

/* A store of one partition that was made before it said so has one. */
Test(lua, a_store_keeps_its_partitions)
{
    STEPS({"@store_found aa 16 3", "(ok aa)"}, {"@store_found bb 16 3", "(ok aa)"},
          {"@store_found bb 8 0", "(conflict)"}, {"@account_create acct_A North 1 cc 1 0", "(ok)"},
          {"HGET t:store id", "aa"}, {"@schema_claim 2 dd", "(ok 2 * 0 0 16 3 0 0)"},
          {"HDEL t:store partitions partition", "2"}, {"@schema_claim 2 dd", "(ok 2 * 0 0 1 0 0 0)"},
          {"HSET t:store aliased 1", "1"}, {"@schema_claim 2 dd", "(ok 2 * 0 0 1 0 1 0)"});
}

/* Of the same names, but for the tag that the names of a store with several partitions have. */
Test(lua, nothing_is_claimed_beside_a_store_of_other_partitions)
{
    STEPS({"HSET u:store id aa partitions 16", "2"}, {"@schema_claim 2 dd u:", "(ok 2 * 0 0 16 0 0 0)"},
          {"@store_found dd 1 0 u:", "(conflict)"}, {"KEYS t:*", "()"}, {"HDEL u:store partitions", "1"},
          {"@schema_claim 2 dd u:", "(ok 2 * 0 0 1 0 0 0)"}, {"DEL u:store", "1"}, {"ZADD u:accounts 0 acct_A", "1"},
          {"@schema_claim 2 dd u:", "(ok 2 * 0 0 1 0 0 0)"}, {"@store_found dd 1 0 u:", "(conflict)"},
          {"@store_found dd 1 0", "(ok dd)"}, {"@schema_claim 2 dd u:", "(ok 2 * 0 0 1 0 0 0)"}, {"GET t:schema", "2"});
}

Test(lua, a_copy_under_way_is_no_store)
{
    STEPS({"SET t:schema 1000000", "OK"}, {"HSET t:store copying aa", "1"}, {"ZADD t:accounts 0 acct_A", "1"},
          {"@schema_claim 2 dd", "(refused 1000000 1 )"}, {"HEXISTS t:store id", "0"});
}

/* Whoever knows the store by any of its ids is sent away, and everything comes back. */
Test(lua, a_store_that_has_moved_is_left)
{
    STEPS({"SET t:schema 2", "OK"}, {"HSET t:store id bb former aa b1 5", "3"}, {"ZADD t:accounts 0 acct_A", "1"},
          {"@store_leave aa redis://b:6379 cc 1000000", "(conflict)"}, {"HEXISTS t:store moved", "0"},
          {"@store_leave bb redis://b:6379 cc 1000000", "(ok)"}, {"@store_leave bb redis://d:6379 dd 1000000", "(ok)"},
          {"@store_leave cc redis://d:6379 dd 1000000", "(conflict)"},
          {"HMGET t:store id former copying moved b1", "(cc nil bb redis://b:6379 5)"},
          {"@schema_claim 2 dd", "(refused 1000000 1 redis://b:6379)"});
    for (size_t i = 0; i < 3; i++) {
        static const char *const IDS[] = {"t:store:aa:b1:5", "t:store:bb:b1:5", "t:store:cc:b1:5"};
        char *text = call_in_store("account_create", IDS[i], "acct_X");

        cr_expect_str_eq(text, "(moved redis://b:6379)", "%s", IDS[i]);
        free(text);
    }
    STEPS({"ZCARD t:accounts", "1"}, {"@store_return", "(ok)"}, {"HGET t:store id", "bb"}, {"GET t:schema", "2"},
          {"HGET t:store former", "aa"}, {"HLEN t:store", "3"}, {"@store_return", "(ok)"}, {"HGET t:store id", "bb"});
}

Test(lua, store_upgrade)
{
    STEPS({"SET t:schema 1", "OK"}, {"@store_upgrade 2 bb operator", "(not_found)"}, {"HSET t:store id aa b1 5", "2"},
          {"SET t:lease_max 700", "OK"}, {"@store_upgrade 2 bb operator", "(ok 1 700 ())"}, {"GET t:schema", "2"},
          {"HMGET t:store id former b1", "(bb aa 5)"},
          {"XRANGE t:audit - +", "((* (type store.upgraded actor operator target bb ip  request_id  data:former aa "
                                 "data:schema 2)))"},
          {"@store_upgrade 2 cc operator", "(ok 0 700 ())"}, {"HGET t:store id", "bb"}, {"XLEN t:audit", "1"});
    /* Nodes that know the store by its former id go on; others do not. */
    char *text = call_in_store("account_create", "t:store:aa:b1:0:other", "acct_X");
    cr_expect_str_eq(text, "(numbered 0 1 (ok))");
    free(text);
    text = call_in_store("account_create", "t:store:cc:b1:5", "acct_Y");
    cr_expect_str_eq(text, "(other_store bb)");
    free(text);
}

#define LOWER(mark, waited, digest) "@store_lower_lease 1000 " mark " " waited " operator " digest

/* Not while a member with a longer lease may have had a heartbeat since it was marked. */
Test(lua, store_lower_lease)
{
    char *text, step[256];

    STEPS({LOWER("?aa", "-1", "''"), "(ok 0 ()  0)"}, {"HSET t:store id aa", "1"}, {"SET t:lease_max 3000", "OK"},
          {"HSET t:nodes s1 1+1000+3 s2 1+3000+3 s3 ?zz+2000+3 s4 broken", "4"}, {"HSET t:tellers s1 e s2 e", "2"});
    text = run(LOWER("?aa", "-1", "''"));
    cr_assert(text_starts_with(text_of(text), TEXT("(ok 3000 (s2 ?aa 3000 3 s3 ?zz 2000 3 s4 ?aa) ")), "%s", text);
    snprintf(step, sizeof step, LOWER("?aa", "3000", "%.40s"), strrchr(text, ' ') + 1);
    free(text);
    STEPS({"HGET t:nodes s1", "1 1000 3"}, {"GET t:lease_max", "3000"},
          {"HSET t:nodes s3 2+2000+3", "0"}, /* a heartbeat */
          {step, "(ok 3000 1 1 2000)"}, {"HSET t:nodes s3 ?yy+2000+3", "0"},
          {step, "(ok 3000 1 0 0)"}, /* marked again */
          {"HSET t:nodes s3 ?zz+2000+3", "0"}, {"SET t:lease_max 3001", "OK"}, {step, "(ok 3001 1 0 0)"},  /* raised */
          {"SET t:lease_max 3000", "OK"}, {"HSET t:nodes s5 1+2000+3", "1"}, {step, "(ok 3000 1 1 2000)"}, /* joined */
          {"HDEL t:nodes s5", "1"}, {"HLEN t:nodes", "4"}, {"EXISTS t:audit", "0"}, {step, "(ok 3000 0 0 0)"},
          {"GET t:lease_max", "1000"}, {"HGETALL t:nodes", "(s1 1 1000 3)"}, {"HKEYS t:tellers", "(s1)"},
          {"XRANGE t:audit - +", "((* (type store.lease_lowered actor operator target aa ip  request_id  "
                                 "data:from_ms 3000 data:to_ms 1000)))"},
          {step, "(ok 1000 0 0 0)"}, {"XLEN t:audit", "1"}, {"@node_heartbeat s5 1 2000 n1 0 0 0", "(ok *)"},
          {"GET t:lease_max", "2000"}, {LOWER("?bb", "-1", "''"), "(ok 2000 (s5 ?bb 2000 3) *)"},
          {"@node_heartbeat s5 1 2000 n2 0 0 0", "(ok *)"}, {LOWER("?bb", "2000", "x"), "(ok 2000 1 1 2000)"},
          {"HDEL t:nodes s5", "1"}, {LOWER("?bb", "2000", "x"), "(ok 2000 0 0 0)"}); /* swept */
}

Test(lua, schema_claim)
{
    STEPS({"GET t:schema", "nil"}, {"@schema_claim 3 0123", "(ok 3 * 0 0 0 0 0 0)"}, {"GET t:schema", "3"},
          {"@schema_claim 2 0123", "(refused 3 0 )"}, {"SET t:lease_max 700", "OK"},
          {"@schema_claim 4 0123", "(ok 3 * 0 700 0 0 0 0)"}, {"GET t:schema", "3"});
}

Test(lua, key_insert)
{
    STEPS({"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(refused)"}, {"DBSIZE", "0"}, ACCOUNT,
          {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name"}, {"GET t:id:key_1", "d1"},
          {"ZRANGE t:acct:acct_A:keys:ak-live:active 0 -1 WITHSCORES", "(key_1 0)"},
          {"XRANGE t:acct:acct_A:audit - +",
           "((* (type api_key.created actor usr_U target key_1 ip 192.0.2.1 request_id req_1)))"},
          {"@key_insert d1 key_2+acct_A+live+wxyz+3+7+-+Name" BY, "(conflict)"},
          {"@key_insert d2 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(conflict)"}, {"EXISTS t:id:key_2 t:key:d2", "0"},
          {"XLEN t:acct:acct_A:audit", "1"}, {"@key_insert d3 dev_3+acct_A+live+wxyz+1024+7+-+Name" BY, "(ok)"},
          {"ZRANGE t:acct:acct_A:keys:dk:active 0 -1", "(dev_3)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1", "((* (type device_key.created *)))"});
}

/* Revoked from the start: it is never among the active keys, and not counted among them. */
Test(lua, key_insert_of_a_decoy)
{
    STEPS(ACCOUNT,
          {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+7+Decoy operator 192.0.2.1 req_1 100 key+d0 1 0",
           "(actor_unknown)"},
          {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+7+Decoy" BY, "(ok)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 7 Decoy"},
          {"ZRANGE t:acct:acct_A:keys:ak-live:revoked 0 -1 WITHSCORES", "(key_1 0)"},
          {"EXISTS t:acct:acct_A:keys:ak-live:active", "0"},
          {"XRANGE t:acct:acct_A:audit - +",
           "((* (type api_key.created actor usr_U target key_1 ip 192.0.2.1 request_id req_1)) "
           "(* (type api_key.revoked actor usr_U target key_1 ip 192.0.2.1 request_id req_1 data:reason decoy)))"},
          {"@key_get key_1 acct_A api_key 0", "(ok (key_1 acct_A live wxyz 3 7 7 Decoy nil d1))"},
          {"@effect_read key_1 acct_A api_key 0", "(ok (key_1 * d1)  1*-* 0 0 0)"});
    /* A full account has room for decoys, and none for keys. */
    STEPS({"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+A" BY, "(ok)"},
          {"@key_insert d3 key_3+acct_A+live+wxyz+3+7+-+B key_2 192.0.2.1 req_1 100 key+d2 1 0", "(full)"},
          {"@key_insert d4 key_4+acct_A+live+wxyz+3+7+9+C key_2 192.0.2.1 req_1 100 key+d2 1 0", "(ok)"});
}

Test(lua, key_get)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {"@key_get key_1 acct_A api_key 0", "(ok (key_1 acct_A live wxyz 3 7 - Name nil d1))"},
          {"@key_get key_1 '' '' 0", "(ok *)"}, {"@key_get key_9 acct_A api_key 0", "(not_found)"},
          {"@key_get key_1 acct_B api_key 0", "(not_found)"}, {"@key_get key_1 acct_A device_key 0", "(not_found)"},
          {"@key_get key_1 acct_A api_key 1", "(not_found)"}, {":use acct_A key_1 99 5 2026-01-31 2", "1"},
          {"@key_get key_1 acct_A api_key 0", "(ok (key_1 acct_A live wxyz 3 7 - Name 99 d1))"},
          /* Another key's record must never be returned. */
          {"SET t:key:d1 key_2+acct_A+live+wxyz+3+7+-+Name", "OK"}, {"@key_get key_1 acct_A api_key 0", "-*"},
          {"SET t:key:d1 key_1+acct_A+live", "OK"}, {"@key_get key_1 acct_A api_key 0", "-*"});
}

Test(lua, key_show)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+N operator '' '' 100 '' 0 0", "(ok)"},
          {"@key_show key_1", "(ok (key_1 acct_A live wxyz 3 7 - N * d1) North )"}, {"@key_show key_2", "(not_found)"},
          {"SET t:id:key_3 ''", "OK"}, {"@key_show key_3", "(not_found)"});
}

Test(lua, key_revoke)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+Name" BY, "(ok)"},
          {"@key_revoke 100 0 - - key_1 acct_B api_key 0" FROM " ''", "(refused 0 () (not_found))"},
          {"@key_revoke 100 0 - - key_9 acct_A api_key 0" FROM " ''", "(refused 0 () (not_found))"},
          {"EXISTS t:id:key_9", "0"}, {"GET t:key:d1", "* 7 - Name"},
          {"@key_revoke 100 0 - - key_1 acct_A api_key 1" FROM " ''",
           "(ok 0 () (ok (key_1 acct_A test wxyz 3 7 1???????????? Name nil d1) 0))"},
          {"ZRANGE t:acct:acct_A:keys:ak-test:active 0 -1", "()"},
          {"ZRANGE t:acct:acct_A:keys:ak-test:revoked 0 -1", "(key_1)"},
          {"XREVRANGE t:acct:acct_A:audit:test + - COUNT 1",
           "((* (type api_key.revoked actor usr_U target key_1 ip 192.0.2.1 request_id req_1)))"},
          /* Again: the first time stays, and there is no second event. */
          {"SET t:key:d1 key_1+acct_A+test+wxyz+3+7+1234+A+name", "OK"},
          {"@key_revoke 100 0 - - key_1 acct_A api_key 0" FROM " ''", "(ok 0 () (ok (key_1 * 1234 A name nil d1) 1))"},
          {"GET t:key:d1", "* 1234 A name"}, {"XLEN t:acct:acct_A:audit:test", "2"});
}

#define REVOKE(id, account, actor, credential) " " id " " account " api_key 0 " actor " 192.0.2.1 req_1 " credential
#define THREE_KEYS                                                           \
    ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+One" BY, "(ok)"}, \
        {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Two" BY, "(ok)"},      \
    {                                                                        \
        "@key_insert d3 key_3+acct_A+live+wxyz+3+7+-+Three" BY, "(ok)"       \
    }

Test(lua, keys_are_revoked_together_each_by_its_own_actor)
{
    STEPS(THREE_KEYS, {"@node_heartbeat s1 1 3000 n1 0 0 0", "(ok * 0  1 0)"},
          {"@key_revoke 100 0 - -" REVOKE("key_1", "acct_A", "usr_U", "''") REVOKE("key_9", "acct_A", "usr_U", "''")
               REVOKE("key_2", "acct_B", "usr_V", "''") REVOKE("key_3", "acct_A", "key_2", "key+d2")
                   REVOKE("key_1", "acct_A", "usr_W", "''"),
           "(ok 3000 (s1 1 3000 3) (ok (key_1 * One nil d1) 0) (not_found) (not_found) (ok (key_3 * Three nil d3) 0) "
           "(ok (key_1 * One nil d1) 1))"},
          {"GET t:key:d2", "* 7 - Two"}, {"ZRANGE t:acct:acct_A:keys:ak-live:revoked 0 -1", "(key_1 key_3)"},
          {"XREVRANGE t:acct:acct_A:audit:live + - COUNT 1",
           "((* (type api_key.revoked actor key_2 target key_3 ip 192.0.2.1 request_id req_1)))"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1", "((* (type api_key.revoked actor usr_U target key_1 *)))"});
}

/* As if they had come one after the other: a key that is revoked first revokes nothing. */
Test(lua, a_key_that_its_group_revokes_before_is_dead)
{
    STEPS(THREE_KEYS,
          {"@key_revoke 100 0 - -" REVOKE("key_1", "acct_A", "key_1", "key+d1")
               REVOKE("key_2", "acct_A", "key_1", "key+d1") REVOKE("key_3", "acct_A", "key_2", "key+d2")
                   REVOKE("key_2", "acct_A", "key_3", "key+d3"),
           "(ok 0 () (ok (key_1 *) 0) (actor_revoked) (ok (key_3 *) 0) (actor_revoked))"},
          {"GET t:key:d2", "* 7 - Two"});
}

Test(lua, a_malformed_record_does_not_hinder_its_group)
{
    STEPS(THREE_KEYS, {"SET t:key:d1 key_1+acct_A+live", "OK"}, {"ZADD t:acct:acct_B:x 0 x", "1"},
          {"@key_revoke 100 0 - -" REVOKE("key_1", "acct_A", "usr_U", "''") REVOKE("key_2", "acct_A", "usr_U", "''")
               REVOKE("key_3", "acct_A", "usr_U", "nonsense"),
           "(ok 0 () (failed *malformed key record) (ok (key_2 *) 0) (failed *))"},
          {"GET t:key:d1", "key_1 acct_A live"}, {"GET t:key:d3", "* 7 - Three"},
          /* What it fails on while it writes. */
          {"DEL t:acct:acct_A:keys:ak-live:active", "1"}, {"SET t:acct:acct_A:keys:ak-live:active x", "OK"},
          {"@key_insert d5 dev_5+acct_A+live+wxyz+1024+7+-+Device" BY, "(ok)"},
          {"@key_revoke 100 0 - -" REVOKE("key_3", "acct_A", "usr_U", "''") " dev_5 '' '' 0" FROM " ''",
           "(ok 0 () (failed *WRONGTYPE*) (ok (dev_5 *) 0))"});
}

/* The first end of a barrier that is noted stays. */
Test(lua, effect_note)
{
    STEPS(
        ACCOUNT, {"HSET t:store id abc", "1"}, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
        {"@effect_read key_1 '' '' 0", "(not_found)"},
        {"@key_revoke 100 0 - - key_1 acct_A api_key 0" FROM " ''", "(ok *)"},
        {"HGET t:acct:acct_A:key_endings key_1", "people 1*-*"}, {"@effect_read key_1 acct_B api_key 0", "(not_found)"},
        {"@effect_read key_1 acct_A api_key 1", "(not_found)"}, {"@effect_read key_9 '' '' 0", "(not_found)"},
        {"@effect_read key_1 acct_A api_key 0", "(ok (key_1 * d1) abc 1*-* 0 0 0)"},
        {"@effect_note key_1 acct_A 7 0 1000 2 1", "(ok)"},
        {"@effect_read key_1 '' '' 0", "(ok (key_1 * d1) abc 1*-* 1???????????? 2 1)"},
        {"@effect_note key_1 acct_A 7 0 0 7 7 key_2 acct_A 9999999999000 999 3 6 5", "(ok)"},
        {"@effect_read key_1 '' '' 0", "(ok (key_1 * d1) abc 1*-* 1???????????? 2 1)"},
        {"HGET t:acct:acct_A:key_endings key_2", "- - 9999999999999 6 5"},
        /* Of several accounts, and of one key twice. */
        {"@effect_note key_3 acct_A 9999999999998 0 0 1 0 key_4 acct_B 9999999999997 0 0 2 0 "
         "key_3 acct_A 9999999999999 0 0 3 0",
         "(ok)"},
        {"HGET t:acct:acct_A:key_endings key_3", "- - 9999999999998 1 0"},
        {"HGET t:acct:acct_B:key_endings key_4", "- - 9999999999997 2 0"},
        /* Of an earlier version: nothing is invented, and nothing is before the revocation, or sooner
         * than the barrier took. */
        {"DEL t:acct:acct_A:key_endings", "1"}, {"SET t:key:d1 key_1+acct_A+live+wxyz+3+7+9999999999999+A+name", "OK"},
        {"@effect_read key_1 '' '' 0", "(ok (key_1 * d1) abc  0 0 0)"},
        {"@effect_note key_1 acct_A 9999999999000 998 0 3 0", "(ok)"},
        {"@effect_read key_1 '' '' 0", "(ok (key_1 * d1) abc  9999999999998 3 0)"},
        {"HSET t:acct:acct_A:key_endings key_1 nonsense", "0"}, {"@effect_read key_1 '' '' 0", "-*"});
}

/* The canary: what nodes n1 to n4 say and are told. Nothing is stored of its account. */
#define CANARY_KEY(n) "key_" n "+acct_0000000000canary00000000" n n "+test+wxyz+0+1+-+canary\nv=2\nm=mac"
#define CANARY_VISIT(node, run, state) "@canary_visit " node " p" node " 60000 " run " " state
#define CANARY_BEGIN(node, n) \
    "@canary_begin " node " p" node " 60000 90000 nonce" n " k1 key_" n " d" n " " CANARY_KEY(n)
#define CANARY_STEP(node, run, phase, why) "@canary_step " node " p" node " " run " " phase " 1234 " why
#define CANARY_REVOKE(n) "@key_revoke 100 0 - - key_" n " '' '' 0 system '' '' ''"
/* As told to a node, with the run that is under way: whether it runs it, nodes that used the key, those that answered.
 */
#define CANARY_IN_USE(mine, used, answered) CANARY_SAID("use", "[89]????", mine, used, answered, "[56]????", "0")
#define CANARY_ASKED(mine, used, answered) CANARY_SAID("ask", "[89]????", mine, used, answered, "[56]????", "0")
#define CANARY_SAID(phase, revoke_in, mine, used, answered, due_in, may)                                      \
    "(ok (run 1 phase " phase " nonce nonce1 master_key k1 key key_1 revoke_in " revoke_in " is_runner " mine \
    " used " used " answered " answered " due_in " due_in " may_begin " may "))"
#define CANARY_NO_RUN(due_in, may) \
    "(ok (run 0 revoke_in 0 is_runner 0 used 0 answered 0 due_in " due_in " may_begin " may "))"

Test(lua, canary_of_four_nodes)
{
    STEPS({"@canary_read", "(not_found)"},
          /* The first visit starts the clock. */
          {CANARY_VISIT("n1", "0", "''"), CANARY_NO_RUN("[56]????", "0")}, {CANARY_BEGIN("n1", "1"), "(refused)"},
          {"HINCRBY t:canary started -60000", NULL}, {CANARY_VISIT("n2", "0", "''"), CANARY_NO_RUN("0", "1")},
          {CANARY_BEGIN("n2", "1"), "(ok 0)"},
          /* One node at a time. */
          {CANARY_BEGIN("n1", "9"), "(refused)"}, {"EXISTS t:key:d9", "0"}, {"GET t:canary_runner", "pn2"},
          {"PTTL t:canary_runner", "~10000"}, {"PTTL t:key:d1", "~600000"}, {"PTTL t:id:key_1", "~600000"},
          {CANARY_VISIT("n1", "0", "''"), CANARY_IN_USE("0", "0", "0")}, {"EXISTS t:canary_nodes", "0"},
          {CANARY_VISIT("n1", "1", "used"), CANARY_IN_USE("0", "0", "0")},
          {CANARY_VISIT("n2", "1", "used"), CANARY_IN_USE("1", "2", "0")},
          {CANARY_VISIT("n3", "1", "used"), CANARY_IN_USE("0", "0", "0")},
          {CANARY_VISIT("n4", "1", "used"), CANARY_IN_USE("0", "0", "0")},
          {CANARY_STEP("n1", "1", "ask", "''"), "(refused)"}, {CANARY_REVOKE("1"), "(ok *)"},
          {"PTTL t:key:d1", "~600000"}, {CANARY_VISIT("n1", "1", "refused"), CANARY_IN_USE("0", "0", "0")},
          {"HGET t:canary_nodes n1", "1???????????? 1 refused [0-9]*"}, {CANARY_STEP("n2", "1", "ask", "''"), "(ok)"},
          {CANARY_VISIT("n1", "1", "asked"), CANARY_ASKED("0", "0", "0")},
          {CANARY_VISIT("n2", "1", "asked"), CANARY_ASKED("1", "4", "2")},
          /* A violation counts once, and stays one. */
          {CANARY_VISIT("n3", "1", "violated"), CANARY_ASKED("0", "0", "0")},
          {CANARY_VISIT("n3", "1", "violated"), CANARY_ASKED("0", "0", "0")}, {"HGET t:canary violations", "1"},
          {"HGET t:canary_nodes n3", "1???????????? 1 violated -"},
          {CANARY_VISIT("n3", "1", "asked"), CANARY_ASKED("0", "0", "0")},
          {"HGET t:canary_nodes n3", "1???????????? 1 violated [0-9]*"},
          {CANARY_STEP("n1", "1", "over", "''"), "(refused)"}, {CANARY_STEP("n2", "2", "over", "''"), "(refused)"},
          {CANARY_STEP("n2", "1", "over", "''"), "(ok)"}, {CANARY_STEP("n2", "1", "over", "''"), "(refused)"},
          {"@canary_read", "(ok (since_finished [0-9]* since_violated [0-9]* interval 60000 finished_runs 1 "
                           "finished_by n2 finished_us 1234 "
                           "refused 2 accepted 1 silent 1 slowest n? slowest_ms [0-9]* violations 1 violated_by n3))"},
          /* Nothing else is left: no key, list, trail or note. */
          {"@effect_note key_1 acct_0000000000canary0000000011 7 0 0 4 0", "(ok)"}, {"KEYS t:*", NULL},
          {"DEL t:canary t:canary_nodes t:inv_log", "3"}, {"KEYS t:*", "()"});
}

/* A node that stops takes its row along, and gives up its run. */
Test(lua, canary_is_taken_over)
{
    STEPS({CANARY_VISIT("n1", "0", "''"), "(ok (run 0 *)"}, {"HINCRBY t:canary started -60000", NULL},
          {CANARY_BEGIN("n1", "1"), "(ok 0)"}, {CANARY_VISIT("n1", "1", "used"), CANARY_IN_USE("1", "1", "0")},
          {CANARY_VISIT("n2", "1", "used"), CANARY_IN_USE("0", "0", "0")},
          /* A process of the same name is not the one that runs it. */
          {"@canary_visit n1 other 60000 0 ''", CANARY_IN_USE("0", "0", "0")}, {"DEL t:canary_runner", "1"},
          {CANARY_VISIT("n2", "1", "''"), CANARY_SAID("use", "[89]????", "0", "0", "0", "[56]????", "1")},
          {CANARY_STEP("n1", "1", "ask", "''"), "(refused)"}, {CANARY_BEGIN("n2", "2"), "(ok 1)"},
          {"EXISTS t:key:d1 t:id:key_1", "0"}, {"EXISTS t:key:d2 t:id:key_2", "2"},
          {CANARY_STEP("n1", "1", "over", "''"), "(refused)"},
          {"@canary_read",
           "(ok (since_unfinished [0-9]* interval 60000 unfinished 1 unfinished_why the node that ran it stopped))"},
          {CANARY_VISIT("n1", "2", "left"), "(ok)"}, {"HGET t:canary_nodes n1", "nil"}, {"GET t:canary_runner", "pn2"},
          {CANARY_VISIT("n2", "2", "left"), "(ok)"}, {"EXISTS t:canary_runner t:canary_nodes", "0"},
          {CANARY_BEGIN("n3", "3"), "(ok 1)"},
          /* A violation that is told late counts, and a finding of another run is no news. */
          {CANARY_VISIT("n3", "3", "used"), "(ok (run 3 phase use *)"},
          {CANARY_VISIT("n3", "2", "asked"), "(ok (run 3 phase use *)"},
          {"HGET t:canary_nodes n3", "1???????????? 3 used -"},
          {CANARY_VISIT("n4", "1", "violated"), "(ok (run 3 phase use *)"},
          {CANARY_VISIT("n4", "1", "violated"), "(ok (run 3 phase use *)"}, {"HGET t:canary violations", "1"},
          {CANARY_STEP("n3", "3", "over", "Redis+has+lost+its+key"), "(ok)"},
          {"@canary_read", "(ok (since_unfinished [0-9]* since_violated [0-9]* interval 60000 unfinished 3 "
                           "unfinished_why Redis has lost its "
                           "key violations 1 violated_by n4))"},
          {CANARY_BEGIN("n1", "4"), "(refused)"});
}

/* If it was set back by an hour, nothing waits for an hour. */
Test(lua, canary_survives_a_clock_that_is_set_back)
{
    STEPS({CANARY_VISIT("n1", "0", "''"), "(ok (run 0 *)"}, {"HINCRBY t:canary started 3600000", NULL},
          {CANARY_VISIT("n1", "0", "''"), CANARY_NO_RUN("0", "1")}, {CANARY_BEGIN("n1", "1"), "(ok 0)"},
          {"HINCRBY t:canary started 3600000", NULL}, {"HINCRBY t:canary revoke 3600000", NULL},
          {CANARY_VISIT("n1", "1", "used"), CANARY_SAID("use", "0", "1", "1", "0", "0", "0")});
}

/* Nodes that were not heard of for an hour are forgotten. The shorter of two intervals counts. */
Test(lua, canary_forgets_nodes)
{
    STEPS(
        {CANARY_VISIT("n1", "0", "''"), "(ok (run 0 *)"}, {"HINCRBY t:canary started -60000", NULL},
        {"HSET t:canary_nodes old 1700000000000+1+asked+4 new $now odd x", "3"},
        {"HSET t:canary_nodes near 9700000000000+1+asked+4", "1"}, {CANARY_BEGIN("n1", "1"), "(ok 0)"},
        {"HKEYS t:canary_nodes", "(near)"}, {CANARY_STEP("n1", "1", "ask", "''"), "(ok)"},
        {CANARY_STEP("n1", "1", "over", "''"), "(ok)"},
        {"@canary_visit n2 pn2 30000 0 ''",
         "(ok (run 1 phase over nonce nonce1 master_key k1 key key_1 revoke_in [89]???? is_runner 0 used 0 answered 0 "
         "due_in [0-9]* may_begin 0 since_finished [0-9]*))"},
        {"HINCRBY t:canary started -30000", NULL},
        {CANARY_VISIT("n1", "0", "''"), "(ok (run 1 phase over * may_begin 0 since_finished [0-9]*))"},
        {"@canary_visit n2 pn2 30000 0 ''", "(ok (run 1 phase over * due_in 0 may_begin 1 since_finished [0-9]*))"});
}

/* Scripts carry along the lines after the first, including those of later versions. */
Test(lua, a_revocation_leaves_all_else_of_a_record)
{
    STEPS(ACCOUNT,
          {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+A+name\nv=2\nby=usr_U\nnew=-\nm=mac\nlater=1" BY, "(ok)"},
          {"@key_revoke 100 0 - - key_1 acct_A api_key 0" FROM " ''", "(ok *)"},
          {"GET t:key:d1", "key_1 acct_A test wxyz 3 7 1???????????? A name\nv=2\nby=usr_U\nnew=-\nm=mac\nlater=1"});
}

/* A key or session that ended while the request's body was arriving changes nothing. */
#define INSERT_BY(actor, credential) \
    "@key_insert d9 key_9+acct_A+live+wxyz+3+7+-+Nine " actor " 192.0.2.1 req_1 100 " credential " 0 0"
#define REVOKE_BY(actor, credential) \
    "@key_revoke 100 0 - - key_2 acct_A api_key 0 " actor " 192.0.2.1 req_1 " credential

Test(lua, a_key_that_is_dead_changes_nothing)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+One" BY, "(ok)"},
          {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Two" BY, "(ok)"}, {"DEL t:acct:acct_A:audit", "1"},
          {INSERT_BY("key_1", "key+d1"), "(ok)"}, {"DEL t:key:d9 t:id:key_9 t:acct:acct_A:audit:live", "3"},
          {"@key_revoke 100 0 - - key_1 acct_A api_key 0" FROM " ''", "(ok *)"}, {"XLEN t:acct:acct_A:audit", "1"},
          {INSERT_BY("key_1", "key+d1"), "(actor_revoked)"},
          {REVOKE_BY("key_1", "key+d1"), "(refused 0 () (actor_revoked))"},
          {INSERT_BY("key_1", "key+d7"), "(actor_unknown)"},
          {REVOKE_BY("key_1", "key+d7"), "(refused 0 () (actor_unknown))"},
          /* Another key's digest, another account's key. */
          {INSERT_BY("key_1", "key+d2"), "(actor_unknown)"},
          {"@key_insert d8 key_8+acct_B+live+wxyz+3+7+-+B key_2 '' '' 100 key+d2 0 0", "(actor_unknown)"},
          /* A malformed credential does not count as none. */
          {INSERT_BY("key_2", "d2"), "-*"}, {"EXISTS t:key:d9 t:id:key_9 t:key:d8", "0"}, {"GET t:key:d2", "* 7 - Two"},
          {"XLEN t:acct:acct_A:audit", "1"},
          /* It may revoke itself. */
          {"@key_revoke 100 0 - - key_2 acct_A api_key 0 key_2 '' '' key+d2", "(ok *)"},
          {"@key_revoke 100 0 - - key_2 acct_A api_key 0 key_2 '' '' key+d2", "(refused 0 () (actor_revoked))"});
}

#define BY_SESSION(digest) "session+" digest "+1000000+5000000+0+auditor"
#define BY_ROLE(role) "session+s1+1000000+5000000+300000+" role
#define BY_STEP_UP "session+s1+1000000+5000000+300000+auditor"

Test(lua, a_session_that_is_over_changes_nothing)
{
    STEPS(ACCOUNT, USER, {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Two" BY, "(ok)"},
          {"HSET t:session:s1 sid S user usr_U account acct_A created $now expires $now+5000000 seen $now step_up $now",
           "7"},
          {INSERT_BY("usr_U", BY_SESSION("s1")), "(ok)"}, {"DEL t:key:d9 t:id:key_9", "2"},
          {INSERT_BY("usr_U", BY_STEP_UP), "(ok)"}, {"DEL t:key:d9 t:id:key_9 t:acct:acct_A:audit", "3"},
          /* Its step-up has expired: only changes that need one are refused. */
          {"HSET t:session:s1 step_up $now-300000", "0"}, {INSERT_BY("usr_U", BY_STEP_UP), "(actor_unproven)"},
          /* The user's role is too low, before the step-up is looked at; or nobody knows it. */
          {"HSET t:user:usr_U role responder", "1"}, {INSERT_BY("usr_U", BY_ROLE("responder")), "(actor_unproven)"},
          {INSERT_BY("usr_U", BY_ROLE("developer")), "(actor_role)"}, {"HSET t:user:usr_U role admin", "0"},
          {INSERT_BY("usr_U", BY_ROLE("auditor")), "-*"}, {"HDEL t:user:usr_U role", "1"},
          {INSERT_BY("usr_U", BY_ROLE("owner")), "(actor_unproven)"}, {"HSET t:user:usr_U disabled 7", "1"},
          {INSERT_BY("usr_U", BY_SESSION("s1")), "(actor_unknown)"}, {"HDEL t:user:usr_U disabled", "1"},
          {INSERT_BY("usr_V", BY_SESSION("s1")), "(actor_unknown)"},
          {"@key_insert d9 key_9+acct_B+live+wxyz+3+7+-+B usr_U '' '' 100 " BY_SESSION("s1") " 0 0", "(actor_unknown)"},
          {"HSET t:session:s1 seen $now-1000000", "0"}, {INSERT_BY("usr_U", BY_SESSION("s1")), "(actor_unknown)"},
          {REVOKE_BY("usr_U", BY_SESSION("s1")), "(refused 0 () (actor_unknown))"},
          {"HSET t:session:s1 seen $now created $now-5000000", "0"},
          {INSERT_BY("usr_U", BY_SESSION("s1")), "(actor_unknown)"},
          /* Nothing was written, not even the end of the session. */
          {"EXISTS t:session:s1", "1"}, {"DEL t:session:s1", "1"},
          {INSERT_BY("usr_U", BY_SESSION("s1")), "(actor_unknown)"},
          {REVOKE_BY("usr_U", BY_STEP_UP), "(refused 0 () (actor_unknown))"},
          {"EXISTS t:key:d9 t:id:key_9 t:acct:acct_A:audit", "0"}, {"GET t:key:d2", "* 7 - Two"});
}

Test(lua, master_keys)
{
    STEPS({"@master_keys one 0", "(ok 0 )"}, {"EXISTS t:master_keys", "0"}, {"@master_keys one 1", "(ok 0  one)"},
          {"@master_keys two 1", "(ok 0  one)"}, {"DEL t:master_keys", "1"}, ACCOUNT,
          {"@master_keys one 1", "(ok 0  one)"}, {"DEL t:master_keys", "1"}, {"ZADD t:accounts 0 acct_A", "1"},
          /* Records of a version that noted no master key: nothing says that this one made them. */
          {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"}, {"@master_keys one 1", "(ok 1 )"},
          {"EXISTS t:master_keys", "0"}, {"@master_key_note one '' 99+mac", "(ok)"},
          {"@master_keys one 1", "(ok 0 99 mac one)"}, {"@master_key_note two one ''", "(ok)"},
          {"@master_keys one 1", "(ok 0  two)"});
}

Test(lua, key_walk_and_record_seal)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+One" BY, "(ok)"},
          {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Two" BY, "(ok)"},
          {"@key_walk acct_A ak-live:active '' 1", "(ok (key_1 d1 key_1 acct_A live wxyz 3 7 - One))"},
          {"@key_walk acct_A ak-live:active key_1 9", "(ok (key_2 d2 *))"},
          {"@key_walk acct_A ak-test:active '' 9", "(ok)"}, {"DEL t:key:d1", "1"},
          {"@key_walk acct_A ak-live:active '' 1", "(ok (key_1 d1 ))"},
          {"@record_seal key d2 key_2+acct_A+live+wxyz+3+7+-+Two sealed", "(ok)"}, {"GET t:key:d2", "sealed"},
          {"@record_seal key d2 key_2+acct_A+live+wxyz+3+7+-+Two again", "(conflict)"}, {"GET t:key:d2", "sealed"},
          {"HSET t:user:usr_U password p totp t", "2"}, {"@record_seal user usr_U p t m q u n", "(conflict)"},
          {"@record_seal user usr_U p t '' q u n", "(ok)"}, {"HMGET t:user:usr_U password totp mac", "(q u n)"},
          {"@record_seal user usr_U p t '' q u n", "(conflict)"}, {"@record_seal user usr_U q u n p t m", "(ok)"});
}

/* A later version's fields of a key, and its MAC, survive a revocation by this version. */
Test(lua, key_revoke_carries_further_fields_along)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+Name\nv=9\nfuture=a+b\nm=x" BY, "(ok)"},
          {"@key_get key_1 '' '' 0", "(ok (key_1 acct_A test wxyz 3 7 - Name\nv=9\nfuture=a b\nm=x nil d1))"},
          {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok *)"},
          {"GET t:key:d1", "key_1 acct_A test wxyz 3 7 1???????????? Name\nv=9\nfuture=a b\nm=x"});
}

Test(lua, key_revoke_is_never_before_creation)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+test+wxyz+3+99999999999999+-+Name" BY, "(ok)"},
          {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''",
           "(ok 0 () (ok (key_1 * 99999999999999 99999999999999 Name nil d1) 0))"},
          {"GET t:key:d1", "* 99999999999999 Name"});
}

Test(lua, key_revoke_publishes_each_time)
{
    subscribe("t:inv");
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+Name" BY, "(ok)"});
    for (int i = 0; i < 2; i++) {
        STEPS({"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok *)"});
        expect_message("d1 - - - 0 key_1/acct_A/r1*");
    }
    STEPS({"XRANGE t:inv_log - +", "((* (key d1 id key_1 account acct_A revoked 1*)))"});
}

/* A node of an earlier version takes a list for nonsense and forgets all keys. So it gets a message for each. */
Test(lua, keys_are_published_together_if_all_nodes_read_lists)
{
    subscribe("t:inv");
    STEPS(THREE_KEYS, {"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 0)"},
          {"@key_revoke 100 0 m b" REVOKE("key_1", "acct_A", "usr_U", "''") REVOKE("key_9", "acct_A", "usr_U", "''")
               REVOKE("key_2", "acct_A", "usr_U", "''") REVOKE("key_1", "acct_A", "usr_U", "''"),
           "(ok *)"});
    expect_message("d1,d2 m b - 0 key_1/acct_A/r1*,key_2/acct_A/r1*");
    STEPS({"EVAL return(redis.call('HSET','t:nodes','old','5'..string.char(32)..'1000')) 0", "1"},
          {"@key_revoke 100 0 m b" REVOKE("key_2", "acct_A", "usr_U", "''") REVOKE("key_3", "acct_A", "usr_U", "''"),
           "(ok *)"});
    expect_message("d2 - -");
    expect_message("d3 m b");
    STEPS({"HDEL t:nodes old", "1"},
          {"@key_revoke 100 0 m b" REVOKE("key_3", "acct_A", "usr_U", "''") REVOKE("key_2", "acct_A", "usr_U", "''"),
           "(ok *)"});
    expect_message("d3,d2 m b - 0 key_3/acct_A/r1*,key_2/acct_A/r1*");
}

Test(lua, node_heartbeat)
{
    subscribe("t:node:s1");
    STEPS({"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 0)"}, {"HGETALL t:nodes", "(s1 1 1000 3)"},
          {"GET t:lease_max", "1000"}, {"@node_heartbeat s2 7 500 n2 0 0 0", "(ok * 0  2 0)"},
          {"HGET t:nodes s2", "7 500 3"}, {"GET t:lease_max", "1000"},
          {"@node_heartbeat s1 2 3000 n3 0 0 0", "(ok * 0  2 0)"}, {"HGET t:nodes s1", "2 3000 3"},
          {"GET t:lease_max", "3000"},
          /* What a revocation has to wait for. */
          ACCOUNT, {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+Name" BY, "(ok)"},
          {"@key_revoke 100 0 s1 b1 key_1 acct_A api_key 1" FROM " ''", "(ok 3000 (s? * s? *) (ok (key_1 *) 0))"});
    expect_message("lease n1");
}

#define SCHEDULE "@key_schedule key_1 acct_A api_key 0 usr_U '' '' 100 '' - - "
#define RENAME "@key_rename key_1 acct_A api_key 0 usr_U '' '' 100 '' "

/* What stands in the record beside the name stays as it is there, whatever the caller has read. */
Test(lua, key_rename)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+Old\nm=1\nend=5+-+-+-" BY, "(ok)"},
          {RENAME "0 Old\nm=1 New+name\nm=2", "(ok (key_1 acct_A test wxyz 3 7 - New name\nm=2\nend=5 - - - nil d1))"},
          {"GET t:key:d1", "key_1 acct_A test wxyz 3 7 - New name\nm=2\nend=5 - - -"},
          {"XREVRANGE t:acct:acct_A:audit:test + - COUNT 1",
           "((* (type api_key.renamed actor usr_U target key_1 ip  request_id  data:from Old data:to New name)))"},
          /* Again: no second event, whatever the seals are. */
          {RENAME "0 Old\nm=1 New+name\nm=3", "(ok (key_1 *))"},
          {RENAME "0 New+name\nm=2 New+name\nm=3", "(ok (key_1 *))"}, {"XLEN t:acct:acct_A:audit:test", "2"},
          {"GET t:key:d1", "key_1 acct_A test wxyz 3 7 - New name\nm=2\nend=5 - - -"},
          /* Read before the last renaming, before the record was sealed anew, or sealed at all. */
          {RENAME "0 Old\nm=1 Third\nm=4", "(conflict)"}, {RENAME "0 New+name\nm=1 Third\nm=4", "(conflict)"},
          {RENAME "0 New+name Third", "(conflict)"}, {RENAME "0 New Third", "(conflict)"},
          {"GET t:key:d1", "key_1 acct_A test wxyz 3 7 - New name\nm=2\nend=5 - - -"});
    STEPS({"@key_rename key_2 acct_A api_key 0 usr_U '' '' 100 '' 0 a b", "(not_found)"},
          {"@key_rename key_1 acct_B api_key 0 usr_U '' '' 100 '' 0 a b", "(not_found)"},
          {"@key_rename key_1 acct_A device_key 0 usr_U '' '' 100 '' 0 a b", "(not_found)"});
}

Test(lua, a_revocation_outlives_a_renaming)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Old\nm=1" BY, "(ok)"},
          {SCHEDULE "$now+60000 1000000 sooner 0", "(ok *)"},
          {RENAME "0 Old\nm=1 New\nm=2", "(ok (key_1 acct_A live wxyz 3 7 - New\nm=2\nend=1* - - - nil d1 1*))"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @* New\nm=2\nend=1* - - -"},
          /* One that is due is written down by what tells of it (key_end_due.lua). */
          {"HSET t:store ahead 120000", "1"},
          {RENAME "0 New\nm=2 Due\nm=3", "(ok (key_1 acct_A live wxyz 3 7 1* Due\nm=3\nend=1* - - - nil d1))"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @* Due\nm=3\nend=1* - - -"}, {"ZCARD t:key_ends", "1"},
          {"@key_end_due 100 0", "(ok (key_1 *))"},
          {RENAME "0 Due\nm=3 Gone\nm=4", "(ok (key_1 acct_A live wxyz 3 7 1* Gone\nm=4\nend=1* - - - nil d1))"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 1* Gone\nm=4\nend=1* - - -"},
          {"ZCARD t:acct:acct_A:keys:ak-live:revoked", "1"}, {"ZCARD t:acct:acct_A:keys:ak-live:active", "0"});
}

Test(lua, renamings_are_limited_unless_they_change_nothing)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+A" BY, "(ok)"}, {"DEL t:changes:usr_U", "*"},
          {RENAME "1 A B", "(ok *)"}, {RENAME "1 B C", "(limited *)"}, {RENAME "1 B B", "(ok *)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - B"});
}

Test(lua, key_schedule)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {SCHEDULE "$now+60000 1000000 sooner 0",
           "(ok (key_1 acct_A live wxyz 3 7 - Name\nend=1* - - - nil d1 *) 0 () 1*)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @* Name\nend=1* - - -"}, {"ZCARD t:key_ends", "1"},
          {"XRANGE t:inv_log - +", "((* (key d1 id key_1 account acct_A at 1* said 1*)))"},
          {"XLEN t:acct:acct_A:audit", "2"}, {SCHEDULE "$now+90000 1000000 sooner 0", "(refused later)"},
          {SCHEDULE "'' 1000000 sooner 0", "(refused later)"}, {SCHEDULE "$now 1000000 sooner 0", "(refused past)"},
          {SCHEDULE "$now+2000000 1000000 any 0", "(refused far)"}, {SCHEDULE "$now+30000 1000000 sooner 0", "(ok *)"},
          {SCHEDULE "$now+90000 1000000 any 0", "(ok (key_1 *) 0 () 1*)"}, {"XLEN t:acct:acct_A:audit", "4"},
          {"@key_get key_1 '' '' 0", "(ok (key_1 acct_A live wxyz 3 7 - Name\nend=1* - - - nil d1 *))"},
          {SCHEDULE "'' 1000000 any 0", "(ok (key_1 acct_A live wxyz 3 7 - Name\nend=1* - - - nil d1) 0 () 1*)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name\nend=1* - - -"}, {"ZCARD t:key_ends", "0"},
          {"@key_schedule key_2 acct_A api_key 0 usr_U '' '' 100 '' - - $now+60000 1000000 any 0", "(not_found)"},
          {"@key_schedule key_1 acct_B api_key 0 usr_U '' '' 100 '' - - $now+60000 1000000 any 0", "(not_found)"});
}

/* Events and invalidations of others are not pushed out. */
Test(lua, a_schedule_that_is_changed_often_is_limited_and_the_first_one_never)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"}, {"DEL t:changes:usr_U", "*"},
          {SCHEDULE "$now+60000 1000000 any 1", "(ok *)"}, {SCHEDULE "$now+50000 1000000 any 1", "(ok *)"},
          {SCHEDULE "$now+40000 1000000 any 1", "(limited *)"}, {SCHEDULE "'' 1000000 any 1", "(limited *)"},
          {"@key_schedule key_2 acct_A api_key 0 usr_U '' '' 100 '' - - $now+60000 1000000 any 1", "(ok *)"});
}

/* By the store's time, which nobody else asks. What was written down stays, whatever the time then is. */
Test(lua, a_key_that_is_due_is_revoked)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {SCHEDULE "$now+60000 1000000 sooner 0", "(ok *)"}, {"XLEN t:inv_log", "1"},
          {"HSET t:store ahead 120000", "1"},
          {"@key_get key_1 '' '' 0", "(ok (key_1 acct_A live wxyz 3 7 1* Name\nend=1* - - - nil d1))"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @* Name\nend=1* - - -"},
          {SCHEDULE "$now+160000 1000000 any 0", "(conflict)"}, {"ZCARD t:acct:acct_A:keys:ak-live:active", "1"},
          {"@key_end_due 100 0", "(ok (key_1 acct_A live wxyz 3 7 1* Name\nend=1* - - - nil d1))"},
          {"@key_end_due 100 0", "(ok)"}, {"ZCARD t:key_ends", "0"}, {"ZCARD t:acct:acct_A:keys:ak-live:active", "0"},
          {"XLEN t:inv_log", "2"}, {"ZCARD t:acct:acct_A:keys:ak-live:revoked", "1"}, {"HSET t:store ahead 0", "0"},
          {"@key_get key_1 '' '' 0", "(ok (key_1 acct_A live wxyz 3 7 1* Name\nend=1* - - - nil d1))"});
}

/* Whoever is told that it is revoked must not depend on a clock. */
Test(lua, a_key_that_is_due_and_is_revoked_stays_so_whatever_the_time)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {SCHEDULE "$now+60000 1000000 sooner 0", "(ok *)"}, {"HSET t:store ahead 120000", "1"},
          {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok 0 () (ok (key_1 *) 1))"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 1* Name\nend=1* - - -"}, {"ZCARD t:key_ends", "0"},
          {"XLEN t:acct:acct_A:audit:live", "1"}, {"HSET t:store ahead 0", "0"}, {"@key_end_due 100 0", "(ok)"},
          {"@key_get key_1 '' '' 0", "(ok (key_1 acct_A live wxyz 3 7 1* Name\nend=1* - - - nil d1))"});
}

Test(lua, a_key_that_is_revoked_before_its_time_is_not_scheduled_any_more)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {SCHEDULE "$now+60000 1000000 sooner 0", "(ok *)"}, {"ZCARD t:key_ends", "1"},
          {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok 0 () (ok (key_1 *) 0))"}, {"ZCARD t:key_ends", "0"});
}

/* A record that nobody can read is refused anyway, and others do not wait for it. */
Test(lua, a_malformed_record_does_not_keep_others_from_being_due)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {SCHEDULE "$now+60000 1000000 sooner 0", "(ok *)"}, {"SET t:id:key_0 d0", "OK"},
          {"SET t:key:d0 nonsense", "OK"}, {"ZADD t:key_ends 1 key_0", "1"}, {"HSET t:store ahead 120000", "1"},
          {"@key_end_due 100 0", "(ok (key_1 acct_A live wxyz 3 7 1* Name\nend=1* - - - nil d1))"},
          {"ZCARD t:key_ends", "0"});
}

/* No key is revoked before it was created; that is by the clock of a node, which may be ahead. */
Test(lua, a_key_that_ends_before_it_was_created)
{
    STEPS(
        ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+9999999999999+-+Name" BY, "(ok)"},
        {SCHEDULE "$now+60000 1000000 sooner 0", "(ok *)"}, {"HSET t:store ahead 120000", "1"},
        {"@key_end_due 100 0", "(ok (key_1 acct_A live wxyz 3 9999999999999 9999999999999 Name\nend=1* - - - nil d1))"},
        {"GET t:key:d1", "key_1 acct_A live wxyz 3 9999999999999 9999999999999 Name\nend=1* - - -"});
}

#define SUCCESSOR(new, old) new "+acct_A+live+wxyz+3+7+-+Name\nreplaces=" old "\nm=mac"
#define REPLACE(digest, new, old, overlap) \
    "@key_replace " digest " " SUCCESSOR(new, old) " usr_U '' '' 100 '' 100 100 " old " acct_A api_key 0 - - " overlap

/* It says the time, so it needs a clock: see test_lua_time.c for how long. */
Test(lua, key_replace)
{
    STEPS(
        ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
        {REPLACE("d2", "key_2", "key_9", "5000"), "(not_found)"}, {"EXISTS t:key:d2", "0"},
        {REPLACE("d2", "key_2", "key_1", "90000"),
         "(ok (key_1 acct_A live wxyz 3 7 - Name\nend=1* 1* - key_2 nil d1 1*) 0 () 1*)"},
        {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 - Name\nreplaces=key_1\nm=mac\nconfirm=later"},
        {"ZCARD t:key_ends", "1"}, {"ZCARD t:acct:acct_A:keys:ak-live:active", "2"},
        {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
         "((* (type api_key.revocation_scheduled * target key_1 * data:replaced_by key_2*)))"},
        /* Whoever asks has not seen it: it may be what they ask for again. */
        {REPLACE("d3", "key_3", "key_1", "0"), "(refused again)"},
        {REPLACE("d3", "key_3", "key_1", "0 0 key_9"), "(refused again)"},
        {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 - Name*"}, {"EXISTS t:key:d3", "0"},
        /* Nobody has used it: it was lost, and another one takes its place. */
        {REPLACE("d3", "key_3", "key_1", "0 0 key_2"),
         "(ok (key_1 acct_A live wxyz 3 7 - Name\nend=1* 1* - key_3 nil d1 1*) 0 () 1* (key_2 acct_A live wxyz 3 7 1* "
         "Name*))"},
        {"GET t:key:d3", "key_3 acct_A live wxyz 3 7 - Name\nreplaces=key_1\nm=mac\nconfirm=now"},
        {"XREVRANGE t:acct:acct_A:audit + - COUNT 2",
         "(* (type api_key.revoked * target key_2 * data:reason not_accepted data:replaced_by key_3*))"},
        {"ZCARD t:acct:acct_A:keys:ak-live:active", "2"}, {"ZCARD t:acct:acct_A:keys:ak-live:revoked", "1"},
        /* It was used: that ends the other one. */
        {"@key_confirm key_2 100 0", "(ok)"}, {"@key_confirm key_9 100 0", "(not_found)"},
        {"@key_confirm key_3 100 0", "(ok (key_1 acct_A live wxyz 3 7 1* Name*))"},
        {"GET t:key:d3", "key_3 acct_A live wxyz 3 7 - Name\nreplaces=key_1\nm=mac"},
        {"XREVRANGE t:acct:acct_A:audit:live + - COUNT 1",
         "((* (type api_key.revoked actor system target key_1 * data:reason replaced data:replaced_by key_3*)))"},
        {"@key_confirm key_3 100 0", "(ok)"}, {"ZCARD t:key_ends", "0"},
        {REPLACE("d4", "key_4", "key_1", "0"), "(refused)"}, {"EXISTS t:key:d4", "0"});
}

#define DISCARD(id) "@key_revoke 100 1 - - " id " '' '' 0 system '' '' ''"

/* The end that stood before stands again, and a successor that was used is left alone. */
Test(lua, a_successor_that_reached_nobody_leaves_nothing_behind)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {REPLACE("d2", "key_2", "key_1", "90000"), "(ok *)"},
          {DISCARD("key_2"), "(ok 0 () (ok (key_2 * 1* Name*) 0 (key_1 * - Name*) 1*))"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name\nend=1* - - -"}, {"ZCARD t:key_ends", "0"},
          {"XREVRANGE t:acct:acct_A:audit:live + - COUNT 2",
           "((* (type api_key.revoked actor system target key_2 *)) (* (type api_key.revocation_withdrawn actor system "
           "target key_1 * data:reason not_delivered*)))"},
          /* Once more, with an end of its own. */
          {SCHEDULE "$now+80000 1000000 sooner 0", "(ok *)"}, {REPLACE("d3", "key_3", "key_1", "0"), "(ok *)"},
          {DISCARD("key_3"), "(ok *)"}, {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1* Name\nend=1* - - -"},
          {"ZCARD t:key_ends", "1"},
          /* Late, after the request was repeated: the newer one stands. */
          {REPLACE("d4", "key_4", "key_1", "70000"), "(ok *)"},
          {REPLACE("d5", "key_5", "key_1", "70000 0 key_4"), "(ok *)"},
          {DISCARD("key_4"), "(ok 0 () (ok (key_4 *) 1))"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1* Name\nend=1* 1* 1* key_5"},
          /* Used, although its answer was not delivered. */
          {"@key_confirm key_5 100 0", "(ok)"}, {DISCARD("key_5"), "(refused 0 () (not_found))"},
          {"GET t:key:d5", "key_5 * - Name*"}, {REPLACE("d6", "key_6", "key_1", "0 0 key_5"), "(refused key_5)"},
          /* Never sent: what arrives late does nothing. */
          {DISCARD("key_7"), "(refused 0 () (not_found))"}, {REPLACE("d7", "key_7", "key_5", "0"), "(conflict)"},
          {"GET t:key:d5", "key_5 * - Name*"});
}

/* Whatever became of the successor, and unless somebody has said the end since. */
Test(lua, a_discard_withdraws_only_what_its_replacement_has_set)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {REPLACE("d2", "key_2", "key_1", "0"), "(ok *)"},
          {"@key_revoke 100 0 - - key_2 '' '' 0" FROM " ''", "(ok *)"},
          {DISCARD("key_2"), "(ok 0 () (ok (key_2 *) 1*))"}, {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name*"},
          {REPLACE("d3", "key_3", "key_1", "0"), "(ok *)"},
          {"SET t:key:d1 key_1+acct_A+live+wxyz+3+7+@1999999999999+Name\nend=1+1999999999999+-+key_3", "OK"},
          {SCHEDULE "1999999999999 999999999999 sooner 0", "(ok *)"}, {DISCARD("key_3"), "(ok *)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1999999999999 Name*"});
}

/* What a node noted of a use was lost, and usage tells of it. */
Test(lua, a_successor_that_was_used_is_known_by_its_usage)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {REPLACE("d2", "key_2", "key_1", "0"), "(ok *)"},
          {"HSET t:acct:acct_A:key_uses key_2 0123456789012345678901234567", "1"},
          {REPLACE("d3", "key_3", "key_1", "0 0 key_2"), "(refused key_2)"},
          {DISCARD("key_2"), "(refused 0 () (not_found))"});
}

/* Somebody has said since that the key goes on, or when it ends. */
Test(lua, a_use_ends_only_what_a_replacement_may_end)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {REPLACE("d2", "key_2", "key_1", "0"), "(ok *)"}, {SCHEDULE "'' 1000000 any 0", "(ok *)"},
          {"@key_confirm key_2 100 0", "(ok)"}, {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name*"},
          {"@key_insert d3 key_3+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {REPLACE("d4", "key_4", "key_3", "0"), "(ok *)"},
          {"@key_schedule key_3 acct_A api_key 0 usr_U '' '' 100 '' - - $now+30000 1000000 any 0", "(ok *)"},
          {DISCARD("key_4"), "(ok *)"}, {"GET t:key:d3", "key_3 acct_A live wxyz 3 7 @1* Name*"});
}

/* The limit is 2. With the key that it replaces a key may exceed it, and with no more. */
Test(lua, a_replacement_needs_no_place)
{
#define REPLACE_FULL(digest, new, old) \
    "@key_replace " digest " " SUCCESSOR(new, old) " usr_U '' '' 100 '' 2 100 " old " acct_A api_key 0 - - 0"
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {REPLACE_FULL("d3", "key_3", "key_1"), "(ok *)"}, {REPLACE_FULL("d4", "key_4", "key_2"), "(ok *)"},
          {REPLACE_FULL("d5", "key_5", "key_3"), "(full)"});
}

#define BY_KEY(script, digest, new, by, more) \
    "@" script " " digest " " new "+acct_A+live+wxyz+3+7+-+Name key_" by " '' '' 100 key+d" by " 100 100" more
#define MAKE_WITH(by, new) BY_KEY("key_insert", "d" new, "key_" new, by, "")
#define REPLACE_WITH(by, old, new, overlap) \
    BY_KEY("key_replace", "d" new, "key_" new, by, " key_" old " acct_A api_key 0 - - " overlap)

/* What a key makes does not outlive it, unless only a replacement has set its end. */
Test(lua, ends_are_handed_on)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"}, {MAKE_WITH("1", "2"), "(ok)"},
          {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 - Name"}, {SCHEDULE "$now+60000 1000000 sooner 0", "(ok *)"},
          {MAKE_WITH("1", "3"), "(ok)"}, {"GET t:key:d3", "key_3 acct_A live wxyz 3 7 @1* Name"},
          {"ZCARD t:key_ends", "2"},
          {"XREVRANGE t:acct:acct_A:audit:live + - COUNT 1",
           "((* (type api_key.created actor key_1 target key_3 * data:revoke_at 2*)))"},
          {MAKE_WITH("3", "4"), "(ok)"}, {"ZCARD t:key_ends", "3"}, {REPLACE_WITH("1", "1", "5", "5000000"), "(ok *)"},
          {"ZCARD t:key_ends", "4"}, {"GET t:key:d5", "key_5 acct_A live wxyz 3 7 @1* Name\nconfirm=later"},
          /* What ends is replaced by a key without an end, or by a person. */
          {REPLACE_WITH("2", "3", "6", "0"), "(ok *)"},
          {"GET t:key:d6", "key_6 acct_A live wxyz 3 7 @1* Name\nconfirm=now"},
          {REPLACE("d7", "key_7", "key_4", "0"), "(ok *)"}, {"GET t:key:d7", "key_7 acct_A live wxyz 3 7 - Name*"},
          /* A replacement sets the end of key_2, twice. */
          {REPLACE_WITH("2", "2", "8", "90000"), "(ok *)"},
          {"GET t:key:d8", "key_8 acct_A live wxyz 3 7 - Name\nconfirm=later"},
          {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 @1* Name\nend=1* 1* - key_8"},
          {REPLACE_WITH("2", "2", "9", "70000 0 key_8"), "(ok *)"}, {MAKE_WITH("2", "10"), "(ok)"},
          {"GET t:key:d10", "key_10 acct_A live wxyz 3 7 - Name"},
          {"GET t:key:d9", "key_9 acct_A live wxyz 3 7 - Name*"},
          /* And of key_5, which has one of its own: that is handed on. */
          {REPLACE_WITH("5", "5", "11", "5000"), "(ok *)"},
          {"GET t:key:d5", "key_5 acct_A live wxyz 3 7 @1* Name\nconfirm=later\nend=1* 1* 1* key_11"},
          {"GET t:key:d11", "key_11 acct_A live wxyz 3 7 @1* Name*"},
          /* Somebody sets another end since: that is its own. */
          {"@key_schedule key_2 acct_A api_key 0 usr_U '' '' 100 '' - - $now+3000 1000000 sooner 0", "(ok *)"},
          {MAKE_WITH("2", "12"), "(ok)"}, {"GET t:key:d12", "key_12 acct_A live wxyz 3 7 @1* Name"});
}

Test(lua, a_replacement_without_memory_tells_nobody)
{
    subscribe("t:inv");
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"}, {"CONFIG SET maxmemory 1", "OK"},
          {REPLACE("d2", "key_2", "key_1", "5000"), "-OOM*"}, {"CONFIG SET maxmemory 0", "OK"},
          {"@key_revoke 100 0 m b key_1 '' '' 0" FROM " ''", "(ok *)"});
    expect_message("d1 m b - 0 key_1/acct_A/r1*");
}

Test(lua, a_heartbeat_names_the_last_invalidation)
{
    STEPS({"SET t:schema 1", "OK"}, THREE_KEYS, {"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 0)"},
          {"SET t:schema 2", "OK"}, {"@node_heartbeat s1 2 1000 n1 0 0 0", "(ok * 0 0-0 1 0)"},
          {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok *)"}, {"DEL t:inv_log", "1"},
          {"XADD t:inv_log 5-1 key d1 id key_1 account acct_A", "5-1"},
          {"@node_heartbeat s1 3 1000 n1 0 0 0", "(ok * 0 5-1 1 0)"});
}

/* Rule 13: chains, and what a Redis has lost */

#define STORE_AA                  \
    {                             \
        "HSET t:store id aa", "1" \
    }
#define NODE(name, holds)                   \
    {                                       \
        "HSET t:nodes " name " " holds, "1" \
    }
#define ONE_KEY(digest, id)                                                    \
    {                                                                          \
        "@key_insert " digest " " id "+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)" \
    }
#define TELL(id, what, at, change, completes) " " id " " what " " at " " change " " completes

/* Refused calls, calls that did a part, and those of commands have none. */
Test(lua, changes_are_numbered_without_gaps)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), ONE_KEY("d2", "key_2"),
          {"aa:bb:0:ends@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(numbered 1 1 (ok 0 () (ok (key_1 *) 0)))"},
          {"aa:bb:1:ends@key_revoke 100 0 - - key_9 '' '' 0" FROM " ''", "(refused 0 () (not_found))"},
          {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok *)"},
          {"aa:bb:1:ends@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(numbered 2 2 (ok *))"},
          {"aa:bb:2:ends@key_schedule key_1 acct_A api_key 0 usr_U '' '' 100 '' - - $now+60000 1000000 any 0",
           "(conflict)"},
          {"aa:bb:2:other@account_create acct_B South 1 100 operator", NULL}, {"HGET t:chains bb", "2 3 -"},
          {"aa:bb:2:ends@key_revoke 100 0 - - key_2 '' '' 0" FROM " ''", "(numbered 3 4 (ok *))"},
          {"HGET t:store changes", "4"}, {"ZRANGE t:chain_order 0 -1 WITHSCORES", "(bb 4)"});
}

/* That a list has to be made first is not a change. */
Test(lua, a_part_has_no_number)
{
    STEPS(STORE_AA, ACCOUNT, USER,
          {"EVAL for+i=1,250+do+redis.call('SADD','t:acct:acct_A:users','usr_'..i)end 0", "nil"},
          {"DEL t:acct:acct_A:people", NULL}, {"aa:bb:0:ends@people_list acct_A '' 10 0", "(again)"},
          {"EXISTS t:chains", "0"});
}

Test(lua, messages_say_what_was_ended_only_to_nodes_that_all_read_it)
{
    subscribe("t:inv");
    STEPS(STORE_AA, {"SET t:schema 2", "OK"}, ACCOUNT, ONE_KEY("d1", "key_1"), ONE_KEY("d2", "key_2"),
          NODE("s1", "1+1000+3"), {"aa:bb:0:ends@key_revoke 100 0 m b key_1 '' '' 0" FROM " ''", "(numbered *)"});
    expect_message("d1 m b bb 1 key_1/acct_A/r1*");
    STEPS(
        {"aa:bb:1:ends@key_schedule key_2 acct_A api_key 0 usr_U '' '' 100 '' - - $now+60000 1000000 any 0", "(num*)"});
    expect_message("d2 - - bb 2 key_2/acct_A/e1*:1*");
    STEPS({"aa:bb:2:ends@key_schedule key_2 acct_A api_key 0 usr_U '' '' 100 '' - - '' 1000000 any 0", "(num*)"});
    expect_message("d2 - - bb 3 key_2/acct_A/n:1*");
    STEPS({"aa:bb:3:ends@account_suspend acct_A operator '' '' 100 - - 0", "(num*)"});
    expect_message("@acct_A - - suspended 1 bb 4");
    STEPS({"aa:bb:4:other@account_resume acct_A operator '' '' 100", "(num*)"});
    expect_message("@acct_A - - resumed 2 - 0");
    STEPS(NODE("s2", "1+1000+2"), {"aa:bb:4:ends@key_revoke 100 0 m b key_2 '' '' 0" FROM " ''", "(numbered 5 *)"});
    expect_message("d2 m b");
    STEPS({"aa:bb:5:ends@account_suspend acct_A operator '' '' 100 - - 0", "(numbered 6 *)"});
    expect_message("@acct_A - - suspended 3");
    STEPS(
        {"XRANGE t:inv_log - +",
         "((* (key d1 id key_1 account acct_A revoked 1* chain bb number 1)) (* (key d2 id key_2 account acct_A at 1* "
         "said 1* chain bb number 2)) (* (key d2 id key_2 account acct_A at  said 1* chain bb number 3)) (* (account "
         "acct_A state "
         "suspended chain bb number 4)) (* (account acct_A state resumed)) (* (key d2 id key_2 account acct_A revoked "
         "1* chain bb number 5)) (* (account acct_A state suspended chain bb number 6)))"});
}

/* The last call of closing an account may find none left. A message without keys would end every membership. */
Test(lua, where_no_key_is_revoked_none_is_published)
{
    subscribe("t:inv");
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, {"@account_suspend acct_A operator '' '' 100 - - 1", "(ok *)"});
    expect_message("@acct_A - - suspended 1 - 0");
    STEPS({"@account_close_keys acct_A operator '' '' 100 - -", "(ok 0 1 *)"});
    expect_message("@acct_A - - suspended 2 - 0");
}

/* Nodes keep what a message says, and would end a key at another Redis that was never replaced. */
Test(lua, a_replacement_that_is_refused_tells_nobody)
{
    subscribe("t:inv");
    STEPS(ACCOUNT, ONE_KEY("d1", "key_1"), ONE_KEY("d2", "key_2"),
          {"@key_replace d2 key_3+acct_A+live+wxyz+3+7+-+Name usr_U '' '' 100 '' 0 0 key_1 acct_A api_key 0 - - 0",
           "(conflict)"},
          {"@key_replace d3 key_3+acct_Z+live+wxyz+3+7+-+Name usr_U '' '' 100 '' 0 0 key_1 acct_A api_key 0 - - 0",
           "(not_found)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name"}, {"EXISTS t:key:d3", "0"},
          {"@key_revoke 100 0 m b key_2 '' '' 0" FROM " ''", "(ok *)"});
    expect_message("d2 m b - 0 key_2/*");
}

Test(lua, heartbeats_name_the_chains_that_have_changed)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"),
          {"aa:b1:0:ends@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(numbered 1 1 *)"},
          {"aa:b2:0:ends@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(numbered 1 1 *)"},
          {"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 2 (b1 1 1 -) (b2 1 1 -))"},
          {"@node_heartbeat s1 1 1000 n1 0 0 2", "(ok * 0  1 2)"},
          {"aa:b1:1:ends@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(numbered 2 2 *)"},
          {"@node_heartbeat s1 1 1000 n1 0 0 2", "(ok * 0  1 3 (b1 2 2 -))"},
          {"@node_heartbeat s1 1 1000 n1 0 0 1", "(ok * 0  1 3 (b2 1 1 -) (b1 2 2 -))"},
          /* The store went back. */
          {"@node_heartbeat s1 1 1000 n1 0 0 9", "(ok * 0  1 3 (b2 1 1 -) (b1 2 2 -))"},
          {"HSET t:store missing 2", "1"}, {"@node_heartbeat s1 1 1000 n1 0 0 3", "(missing 2)"});
}

#define FILL_CHAINS                                                                                                \
    {                                                                                                              \
        "EVAL for+i=1,250+do+redis.call('HSET','t:chains','m'..i,'1'..string.char(32)..'1'..string.char(32)..'-')" \
        "redis.call('ZADD','t:chain_order',i,'m'..i)end+redis.call('HSET','t:store','changes',250) 0",             \
            "nil"                                                                                                  \
    }

Test(lua, heartbeats_name_chains_in_pages)
{
    STEPS(FILL_CHAINS, {"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 200 (m1 1 1 -) * (m200 1 1 -))"},
          {"@node_heartbeat s1 1 1000 n1 0 0 200", "(ok * 0  1 250 (m201 1 1 -) * (m250 1 1 -))"},
          {"@node_heartbeat s1 1 1000 n1 0 0 50", "(ok * 0  1 250 (m51 1 1 -) * (m250 1 1 -))"},
          {"@node_heartbeat s1 1 1000 n1 0 0 49", "(ok * 0  1 249 (m50 1 1 -) * (m249 1 1 -))"});
}

/* Then come the era in which it has told, whether it gives up, and how many joined. $era: the store's. */
#define LOOK(run, name, member, previous) "@node_gather " run " " name " " member " " previous " "

Test(lua, node_gather)
{
    STEPS(STORE_AA, NODE("s1", "1+1000+3"), NODE("s2", "1+1000+3"), NODE("old", "1+1000+2"), NODE("oldest", "1+1000"),
          /* Who comes first names the era, after Redis' history. */
          {LOOK("r1", "aa11", "s1", "''") "'' 0 0", "(ok r1:*:aa11 0 0 1 0)"}, {"HGET t:store era", "r1:*:aa11"},
          {"HGET t:tellers s1", "come r1:*:aa11"},
          {LOOK("r1", "bb22", "s1", "''") "r1:0:aa11 0 0", "(ok r1:*:aa11 0 0 1 0)"},
          {"HGET t:tellers s1", "come r1:*:aa11"}); /* told in another era */
    STEPS({LOOK("r1", "bb22", "s2", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 1)"},
          {LOOK("r1", "bb22", "s1", "''") "$era 0 0", "(ok r1:*:aa11 0 0 0 1)"}, {"HGET t:tellers s1", "r1:*:aa11"},
          {"HGET t:tellers s2", "come r1:*:aa11"},
          {LOOK("r1", "bb22", "s2", "''") "$era 0 0", "(ok r1:*:aa11 0 0 0 0)"},
          {LOOK("r1", "cc33", "s9", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 0)"}, NODE("s3", "1+1000+3"),
          {LOOK("r1", "cc33", "s9", "''") "'' 0 0", "(ok r1:*:aa11 0 0 1 0)"},
          /* By its old membership's name too. */
          {LOOK("r1", "cc33", "s4", "s3") "$era 0 0", "(ok r1:*:aa11 0 0 0 0)"},
          {"HMGET t:tellers s3 s4", "(r1:*:aa11 r1:*:aa11)"},
          /* Who has told comes once more. */
          {LOOK("r1", "dd44", "s2", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 0)"}, {"HGET t:tellers s2", "r1:*:aa11"});
}

Test(lua, node_gather_names_chains_until_the_node_has_told)
{
    STEPS(STORE_AA, {"HSET t:chains bb 4+5+- cc 1+1+1", "2"},
          {LOOK("r1", "aa11", "s1", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 0 (bb 4 5 -) (cc 1 1 1))"},
          {"HSET t:store missing 2", "1"});
    STEPS({LOOK("r1", "bb22", "s1", "''") "$era 0 0", "(ok r1:*:aa11 0 2 0 0)"},
          {LOOK("r1", "bb22", "''", "''") "'' 0 0", "(ok r1:*:aa11 0 2 0 0 (bb *) (cc *))"},
          {"HKEYS t:tellers", "(s1)"});
}

/* Another process, and the same one with another history. */
Test(lua, in_another_era_nobody_has_told)
{
    STEPS(STORE_AA, NODE("s1", "1+1000+3"), NODE("s2", "1+1000+3"),
          {LOOK("r1", "aa11", "s1", "''") "'' 0 0", "(ok r1:*:aa11 0 0 1 0)"});
    STEPS({LOOK("r1", "bb22", "s1", "''") "$era 0 0", "(ok r1:*:aa11 0 0 1 0)"},
          {LOOK("r2", "cc33", "s2", "''") "$era 0 0", "(ok r2:*:cc33 0 0 1 0)"},
          {"HGETALL t:tellers", "(s2 come r2:*:cc33)"},
          {"HSET t:store era r2:0123456789abcdef0123456789abcdef01234567:cc33", "0"},
          {LOOK("r2", "dd44", "s2", "''") "'' 0 0", "(ok r2:*:dd44 0 0 1 0)"});
}

/* It may be dead. When it comes, it is waited for as before. */
Test(lua, who_was_waited_for_in_vain_is_not_waited_for_again)
{
    STEPS(STORE_AA, NODE("s1", "1+1000+3"), NODE("s2", "1+1000+3"), NODE("s3", "1+1000+3"),
          {LOOK("r1", "aa11", "s3", "''") "'' 0 0", "(ok r1:*:aa11 0 0 2 0)"},
          {LOOK("r1", "aa11", "s1", "''") "'' 1 0", "(ok r1:*:aa11 0 0 1 1)"}, {"HGET t:tellers s2", "gone"},
          {"HGET t:tellers s3", "come r1:*:aa11"}, /* it is not gone */
          {LOOK("r1", "aa11", "s1", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 1)"},
          {LOOK("r2", "bb22", "s1", "''") "'' 0 0", "(ok r2:*:bb22 0 0 1 0)"}, {"HGET t:tellers s2", "gone"},
          {LOOK("r2", "bb22", "s2", "''") "'' 0 0", "(ok r2:*:bb22 0 0 1 1)"}, {"HGET t:tellers s2", "come r2:*:bb22"},
          {LOOK("r3", "cc33", "s1", "''") "'' 0 0", "(ok r3:*:cc33 0 0 2 0)"});
}

/* The registry went back: it cannot say who they are. */
Test(lua, members_that_this_redis_does_not_know_of_are_waited_for)
{
    STEPS(STORE_AA, {"@node_heartbeat s1 1 1000 n1 0 0 0 ''", "(ok * 0  1 0)"},
          {LOOK("r1", "aa11", "s1", "''") "'' 0 1", "(ok r1:*:aa11 0 0 0 0)"},
          {LOOK("r1", "aa11", "s1", "''") "'' 0 2", "(ok r1:*:aa11 0 0 1 0)"});
}

/* A member that joins says that its node has told, if that is so. */
Test(lua, who_joins_later_is_not_waited_for)
{
    STEPS(STORE_AA, {LOOK("r1", "aa11", "''", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 0)"});
    STEPS({"@node_heartbeat s1 1 1000 n1 0 0 0 $era", "(ok * 0  1 0)"}, {"HGETALL t:tellers", "(s1 r1:*:aa11)"},
          {LOOK("r1", "bb22", "s2", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 0)"},
          /* It has told elsewhere. */
          {"@node_heartbeat s3 1 1000 n1 0 0 0 r1:0:aa11", "(ok * 0  2 0)"},
          {LOOK("r1", "bb22", "s2", "''") "'' 0 0", "(ok r1:*:aa11 0 0 1 0)"},
          /* A member of long standing says it by itself. */
          {"@node_heartbeat s3 2 1000 n1 0 0 0 $era", "(ok * 0  2 0)"}, {"HGET t:tellers s3", "nil"},
          {"@node_leave s3 '' ''", "(ok 1)"}, {LOOK("r1", "bb22", "s2", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 0)"});
}

/* What a node knows of a chain must still be so. */
Test(lua, chains_fold)
{
    STEPS(STORE_AA, {"HSET t:chains bb 3+5+- cc 1+1+2", "2"}, {"@chains_fold bb 3+4+- 3+4+f", "(ok)"},
          {"HGET t:chains bb", "3 5 -"}, {"@chains_fold bb 3+5+- 3+5+f cc 1+1+2 1+1+f", "(ok)"},
          {"HGET t:chains bb", "3 5 f"}, {"HGET t:chains cc", "1 1 f"}, {"ZRANGE t:chain_order 0 -1", "(bb cc)"},
          {"HGET t:store changes", "2"}, {"@chains_fold bb 3+5+f 3+5+- cc 1+1+- ''", "(ok)"},
          {"HGET t:chains bb", "3 5 -"}, {"@chains_fold cc 1+1+f ''", "(ok)"}, {"HGET t:chains cc", "nil"},
          {"ZRANGE t:chain_order 0 -1", "(bb)"}, {"@chains_fold dd 1+1+f ''", "(ok)"});
}

/* As if it were not. */
Test(lua, a_folded_chain_goes_on)
{
    STEPS(STORE_AA, {"HSET t:chains bb 3+5+f", "1"}, {"@chains_declare bb 4 6", "(ok 1)"},
          {"HGET t:chains bb", "4 6 4"}, {"SMEMBERS t:missing", "(bb:4)"});
}

Test(lua, chains_declare)
{
    STEPS(STORE_AA, {"HSET t:chains bb 3+5+-", "1"}, {"@chains_declare bb 3 5", "(ok 0)"},
          {"HGET t:store missing", "nil"}, {"@chains_declare bb 5 9 cc 1 1", "(ok 3)"},
          {"SORT t:missing ALPHA", "(bb:4 bb:5 cc:1)"}, {"HGET t:chains bb", "5 9 4"}, {"HGET t:chains cc", "1 1 1"},
          {"HMGET t:store missing lost_changes", "(3 2)"},
          /* Another node knows as much, more, and less. */
          {"@chains_declare bb 5 9", "(ok 3)"}, {"@chains_declare bb 6 10", "(ok 4)"},
          {"@chains_declare bb 2 2", "(ok 4)"}, {"HGET t:chains bb", "6 10 4"},
          {"HMGET t:store missing lost_changes", "(4 2)"},
          /* Nobody decides, except by what must run. */
          {"aa:bb:0@account_list '' 10", "(missing 4)"}, {"aa:bb:0:ends@key_revoke 100 0 - -", "(missing 4)"},
          {"aa@account_list '' 10", "(ok*)"},
          /* A command ends something all the same. */
          ACCOUNT, ONE_KEY("d1", "key_1"),
          {"aa:dd::ends@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(numbered 1 1 (ok *))"});
}

/* Others than those that end something: served on, and counted. */
Test(lua, lost_changes_are_counted)
{
    STEPS(STORE_AA, {"HSET t:chains bb 3+5+-", "1"}, {"@chains_declare bb 3 9", "(ok 0)"},
          {"HMGET t:store missing lost_changes", "(nil 4)"}, {"HGET t:chains bb", "3 9 -"},
          {"@chains_declare bb 3 9", "(ok 0)"}, {"HGET t:store lost_changes", "4"},
          {"@store_accept_loss run", "(ok 0 4)"}, {"HGET t:store lost_changes", "nil"});
}

/* 70,000: more than are kept anywhere. What nobody can tell is one member. */
Test(lua, a_huge_gap)
{
    STEPS(STORE_AA, {"@chains_declare bb 70000 70000", "(ok 65537)"}, {"SISMEMBER t:missing bb:1-4464", "1"},
          {"SISMEMBER t:missing bb:4464", "0"}, {"SISMEMBER t:missing bb:4465", "1"},
          {"SISMEMBER t:missing bb:70000", "1"}, {"HGET t:chains bb", "70000 70000 1"},
          {"@store_accept_loss run", "(ok 65537 0)"}, {"EXISTS t:missing", "0"});
}

/* Where a number and the next are one. Only a broken node, or somebody who writes to Redis by hand, says so; the script
 * ends all the same. */
Test(lua, a_number_beyond_those_that_lua_counts)
{
    STEPS(STORE_AA, {"@chains_declare bb 9223372036854775806 9223372036854775806", "(ok 66)"});
}

/* In the present era. */
Test(lua, store_accept_loss)
{
    STEPS({"@store_accept_loss run", "(not_found)"}, STORE_AA,
          {LOOK("r1", "aa11", "''", "''") "'' 0 0", "(ok r1:*:aa11 0 0 0 0)"}, {"@chains_declare bb 2 2", "(ok 2)"},
          {"@store_accept_loss run", "(ok 2 0)"},
          {"HMGET t:store missing accepted accepted_era", "(nil run r1:*:aa11)"}, {"EXISTS t:missing", "0"},
          {"HGET t:chains bb", "2 2 1"}, {"aa:bb:2@account_list '' 10", "(ok*)"},
          /* A node that comes later and knows of more. */
          {"@chains_declare bb 9 11", "(ok 0)"}, {"HGET t:chains bb", "2 2 1"},
          {"HMGET t:store missing lost_changes", "(nil nil)"},
          {LOOK("r1", "bb22", "''", "''") "'' 0 0", "(ok r1:*:aa11 1 0 0 0 (bb 2 2 1))"},
          /* In the next era it counts again. */
          {LOOK("r2", "bb22", "''", "''") "'' 0 0", "(ok r2:*:bb22 0 0 0 0 (bb 2 2 1))"},
          {"@chains_declare bb 9 11", "(ok 7)"}, {"HGET t:store lost_changes", "2"});
}

#define SEEN "(key d1 id key_1 account acct_A revoked 77)"

Test(lua, endings_tell)
{
    subscribe("t:inv");
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), ONE_KEY("d2", "key_2"), {"@chains_declare bb 2 2", "(ok 2)"},
          /* Since when it was revoked, as it was answered. */
          {"@endings_tell" TELL("key_1", "r", "77", "bb:1", "0"), "(ok 1 2 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 77 Name"}, {"XRANGE t:inv_log - +", "((* " SEEN "))"},
          {"XREVRANGE t:acct:acct_A:audit:live + - COUNT 1",
           "((* (type api_key.revoked actor system target key_1 * data:reason repeated)))"},
          {"ZCARD t:acct:acct_A:keys:ak-live:revoked", "1"});
    expect_message("d1 - - - 0 key_1/acct_A/r77");
    STEPS(/* The same, and the rest of its change. */
          {"@endings_tell" TELL("key_1", "r", "78", "bb:1", "0") TELL("key_2", "r", "78", "bb:1", "1"), "(ok 1 1 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 77 Name"},
          {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 78 Name"}, {"SMEMBERS t:missing", "(bb:2)"},
          {"HGET t:store missing", "1"},
          /* A key that is lost as well, and what another change has overtaken. */
          {"@endings_tell" TELL("key_9", "r", "5", "bb:2", "1"), "(ok 0 0 1 0)"}, {"HGET t:store missing", "nil"},
          {"@chains_declare bb 3 3", "(ok 1)"}, {"@endings_tell" TELL("key_1", "-", "0", "bb:3", "1"), "(ok 0 0 0 0)"},
          {"XLEN t:inv_log", "2"});
    expect_message("d2 - - - 0 key_2/acct_A/r78");
}

Test(lua, an_id_that_leads_to_another_key_ends_neither)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), ONE_KEY("d2", "key_2"), {"SET t:id:key_1 d2", "OK"},
          {"@chains_declare bb 1 1", "(ok 1)"}, {"@endings_tell" TELL("key_1", "r", "77", "bb:1", "1"), "(ok 0 0 1 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name"}, {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 - Name"},
          {"EXISTS t:inv_log", "0"});
}

Test(lua, endings_tell_of_schedules)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), {"@chains_declare bb 3 3", "(ok 3)"},
          {"@endings_tell" TELL("key_1", "e", "$now+60000:1", "bb:1", "1"), "(ok 1 2 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1* Name\nend=1 - - -"}, {"ZCARD t:key_ends", "1"},
          /* Said as often in another history: the sooner counts. */
          {"@endings_tell" TELL("key_1", "e", "$now+90000:1", "bb:2", "1"), "(ok 0 1 0 0)"},
          {"@endings_tell" TELL("key_1", "e", "$now+30000:1", "bb:3", "1"), "(ok 1 0 0 0)"},
          {"XLEN t:acct:acct_A:audit:live", "2"}, {"XLEN t:inv_log", "2"},
          /* Redis' clock, which may be wrong, is beyond both. */
          {"HSET t:store ahead 120000", "*"}, {"@chains_declare bb 7 7", "(ok 4)"},
          {"@endings_tell" TELL("key_1", "e", "$now+20000:1", "bb:7", "1"), "(ok 1 3 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1* Name\nend=1 - - -"}, {"SREM t:missing bb:4 bb:5 bb:6", "3"},
          {"HDEL t:store ahead missing", "2"},
          /* At once, if its time has come. */
          {"@endings_tell" TELL("key_1", "e", "5000:1", "bb:4", "1"), "(ok 1 0 0 0)"},
          {"@key_get key_1 '' '' 0", "(ok (key_1 acct_A live wxyz 3 7 5000 Name\nend=1 - - - nil d1))"},
          /* It is due there, and was revoked before. */
          {"@endings_tell" TELL("key_1", "r", "4000", "bb:5", "1"), "(ok 1 0 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 4000 Name\nend=1 - - -"}, {"ZCARD t:key_ends", "0"},
          {"@endings_tell" TELL("key_1", "e", "3000:9", "bb:6", "1"), "(ok 0 0 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 4000 Name\nend=1 - - -"});
}

/* The replacement itself was lost with a Redis. Whoever repeats it gets a key that does not end with the old one. */
Test(lua, an_end_that_a_replacement_has_set_is_told_as_such)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), {"@chains_declare bb 1 1", "(ok *)"},
          {"@endings_tell" TELL("key_1", "p", "$now+60000:7", "bb:1", "1"), "(ok 1 * 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1* Name\nend=7 1* - -"},
          {"XREVRANGE t:inv_log + - COUNT 1", "((* replaced_at 1* said 7*))"},
          {REPLACE_WITH("1", "1", "2", "90000"), "(ok *)"},
          {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 - Name\nconfirm=later"});
}

/* Another history may have said it more often, but before. */
Test(lua, what_was_said_before_undoes_nothing)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), {SCHEDULE "$now+10000 1000000 sooner 0", "(ok *)"},
          {"@chains_declare bb 1 2", "(ok *)"},
          {"@endings_tell" TELL("key_1", "n", "0:9", "bb:1", "1"), "(ok 0 * 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1* Name\nend=1*"}, {"XLEN t:inv_log", "1"});
}

/* A withdrawn end does not come back, whoever tells first. */
Test(lua, of_what_a_key_said_of_its_end_the_last_counts)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), {"@chains_declare bb 1 6", "(ok *)"},
          {"@endings_tell" TELL("key_1", "e", "$now+60000:1", "bb:1", "1"), "(ok 1 * 0 0)"},
          {"@endings_tell" TELL("key_1", "n", "0:2", "bb:2", "1"), "(ok 1 * 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name\nend=2 - - -"},
          {"@endings_tell" TELL("key_1", "e", "$now+30000:1", "bb:3", "1"), "(ok 0 * 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name\nend=2 - - -"},
          {"@endings_tell" TELL("key_1", "e", "$now+90000:4", "bb:4", "1"), "(ok 1 * 0 0)"},
          {"@endings_tell" TELL("key_1", "n", "0:3", "bb:5", "1"), "(ok 0 * 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 @1* Name\nend=4 - - -"},
          /* Due by what a Redis says that has lost the withdrawal, and not written down. */
          {"HSET t:store ahead 120000", "*"}, {"@endings_tell" TELL("key_1", "n", "0:5", "bb:6", "1"), "(ok 1 * 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 - Name\nend=5 - - -"});
}

/* Once, and only of accounts that are there. The version of the set goes up, so that nodes read it. */
Test(lua, endings_tell_of_suspensions)
{
    subscribe("t:inv");
    STEPS(STORE_AA, {"SET t:schema 2", "OK"}, ACCOUNT, {"@chains_declare bb 3 3", "(ok 3)"},
          {"@endings_tell" TELL("acct_A", "s", "0", "bb:1", "1"), "(ok 1 2 0 0)"},
          {"HGET t:acct:acct_A suspended", "1*"}, {"HGET t:store suspensions", "1"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type account.suspended actor system target acct_A * data:reason repeated)))"});
    expect_message("@acct_A - - suspended 1 *");
    STEPS({"@endings_tell" TELL("acct_A", "s", "0", "bb:2", "1") TELL("acct_Z", "s", "0", "bb:3", "1"), "(ok 0 0 * 0)"},
          {"HGET t:store suspensions", "1"}, {"EXISTS t:acct:acct_Z", "0"}, {"HGET t:store missing", "nil"});
}

/* Nodes repeat the same changes. A change that one of them has told completely is skipped when others tell it, and is
 * not declared to be missing. */
Test(lua, what_was_told_is_skipped)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), ONE_KEY("d2", "key_2"), ONE_KEY("d3", "key_3"),
          {"@chains_declare bb 2 2", "(ok 2)"},
          {"@endings_tell" TELL("key_9", "r", "77", "bb:1", "1") TELL("key_1", "r", "77", "bb:2", "0"), "(ok 1 1 1 0)"},
          {"PTTL t:told", "~1200000"}, {"SMEMBERS t:told", "(bb:1)"},
          {"@endings_tell" TELL("key_9", "r", "77", "bb:1", "1") TELL("key_1", "r", "77", "bb:2", "0")
               TELL("key_2", "r", "77", "bb:2", "1"),
           "(ok 1 0 0 1)"},
          {"SORT t:told ALPHA", "(bb:1 bb:2)"},
          /* A node hears of a change before it is acknowledged, so it may tell it before another node declares it. */
          {"@endings_tell" TELL("key_3", "r", "77", "bb:4", "1"), "(ok 1 0 0 0)"}, {"@chains_declare bb 5 5", "(ok 2)"},
          {"SORT t:missing ALPHA", "(bb:3 bb:5)"}, {"HGET t:store missing", "2"}, {"PEXPIRE t:told 5000", "1"},
          {"@changes_told bb:1 bb:3 bb:4", "(ok 1 0 1)"}, {"PTTL t:told", "~1200000"},
          /* A change without a number is never skipped. */
          {"@endings_tell" TELL("key_9", "r", "77", "''", "0"), "(ok 0 2 1 0)"},
          /* A log may name a key several times. Each line counts, because the reader of the log counts lines. */
          {"@endings_tell" TELL("key_9", "r", "77", "''", "0") TELL("key_1", "r", "77", "''", "0")
               TELL("key_9", "r", "78", "''", "0"),
           "(ok 0 2 2 0)"});
}

/* One message for all keys, each with its own time. A key that is told twice keeps the first time. */
Test(lua, keys_are_told_together)
{
    subscribe("t:inv");
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), ONE_KEY("d2", "key_2"),
          {"@endings_tell" TELL("key_2", "e", "$now+60000:1", "bb:1", "1") TELL("key_1", "r", "77", "bb:2", "1")
               TELL("key_2", "r", "78", "bb:3", "1") TELL("key_1", "r", "79", "bb:4", "1"),
           "(ok 2 0 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 77 Name"},
          {"GET t:key:d2", "key_2 acct_A live wxyz 3 7 78 Name"}, {"ZCARD t:key_ends", "0"});
    expect_message("d1,d2 - - - 0 key_1/acct_A/r77,key_2/acct_A/r78");
}

/* A loss that was accepted makes no revocation undone that a node remembers. */
Test(lua, a_revocation_is_told_although_its_loss_was_accepted)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), {"@chains_declare bb 1 1", "(ok 1)"},
          {"@store_accept_loss run", "(ok 1 0)"},
          {"@endings_tell" TELL("key_1", "r", "77", "bb:1", "1"), "(ok 1 0 0 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 77 Name"});
}

Test(lua, a_malformed_record_does_not_keep_others_from_being_told)
{
    STEPS(STORE_AA, ACCOUNT, ONE_KEY("d1", "key_1"), {"SET t:id:key_0 d0", "OK"}, {"SET t:key:d0 nonsense", "OK"},
          {"@endings_tell" TELL("key_0", "r", "77", "''", "0") TELL("key_1", "r", "77", "''", "0"), "(ok 1 0 1 0)"},
          {"GET t:key:d1", "key_1 acct_A live wxyz 3 7 77 Name"});
}

Test(lua, node_reports)
{
    STEPS({"@node_list", "(ok 0 ())"}, {"@node_report a {1}", "(ok)"},
          {"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 0)"}, {"@node_list", "(ok 1000 (s1 1 1000 3) (a * {1}))"},
          {"@node_report a {2}", "(ok)"}, {"@node_report b {3}", "(ok)"},
          {"@node_list", "(ok 1000 (s1 1 1000 3) (a * {2}) (b * {3}))"}, {"PTTL t:report:a", "~3600000"},
          {"@node_report a ''", "(ok)"}, {"EXISTS t:report:a", "0"},
          {"@node_list", "(ok 1000 (s1 1 1000 3) (b * {3}))"},
          /* Silent for more than an hour: forgotten with the next report. */
          {"ZADD t:reports 1 b", "0"}, {"@node_report c {4}", "(ok)"}, {"ZRANGE t:reports 0 -1", "(c)"},
          /* A report that has expired before its place in the list. */
          {"DEL t:report:c", "1"}, {"@node_list", "(ok 1000 (s1 1 1000 3))"});
}

Test(lua, node_leave)
{
    STEPS({"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 0)"},
          {"@node_heartbeat s2 5 1000 n2 0 0 0", "(ok * 0  2 0)"},
          {"@node_heartbeat s3 9 1000 n3 0 0 0", "(ok * 0  3 0)"}, {"@node_leave s1 '' ''", "(ok 1)"},
          {"HKEYS t:nodes", "(s2 s3)"},
          /* Swept only if it has not been heard of since. The words of a registry entry are one argument. */
          {"EVAL return(redis.call('HSET','t:nodes','s2','5')) 0", "0"},
          {"@node_leave s2 4 '' s3 8 '' s9 1 '' s9 1 ?b", "(ok 0)"}, {"HKEYS t:nodes", "(s2 s3)"},
          {"@node_leave s2 4 ?b", "(ok 0)"}, {"HGET t:nodes s2", "5"}, {"@node_leave s2 5 ?b", "(ok 0)"},
          {"HGET t:nodes s2", "?b"}, {"@node_leave s2 ?c ''", "(ok 0)"}, {"@node_leave s2 ?b '' s3 '' ?d", "(ok 1)"},
          {"HGETALL t:nodes", "(s3 ?d)"}, {"GET t:lease_max", "1000"});
}

Test(lua, a_heartbeat_writes_only_what_has_changed)
{
    STEPS({"@node_heartbeat s1 1 1000 n1 0 0 0", "(ok * 0  1 0)"},
          {"ACL SETUSER default resetkeys %R~t:nodes ~t:no_store ~t:store ~t:schema ~t:lease_max ~t:key_ends", "OK"},
          {"@node_heartbeat s1 1 1000 n2 0 0 0", "(ok * 0  1 0)"},
          {"@node_heartbeat s1 1 1000 n3 0 0 0", "(ok * 0  1 0)"}, {"@node_heartbeat s1 2 1000 n3 0 0 0", "-*"},
          {"ACL SETUSER default allkeys", "OK"}, {"HGET t:nodes s1", "1 1000 3"}, {"HSET t:nodes s1 ?b", "0"},
          {"@node_heartbeat s1 1 1000 n4 0 0 0", "(ok * 0  1 0)"}, {"HGET t:nodes s1", "1 1000 3"},
          {"HDEL t:nodes s1", "1"}, {"@node_heartbeat s1 1 1000 n5 0 0 0", "(ok * 0  2 0)"},
          {"HGET t:nodes s1", "1 1000 3"});
}

/* A change that was made must not be reported as one that was not. */
Test(lua, key_revoke_writes_nothing_where_it_may_not_publish)
{
    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+Name" BY, "(ok)"},
          {"ACL SETUSER default resetchannels", "OK"}, {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "-*"},
          {"GET t:key:d1", "* - Name"}, {"XLEN t:acct:acct_A:audit:test", "1"},
          {"ACL SETUSER default allchannels", "OK"}, {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok *)"});
}

Test(lua, discarded_before_its_insertion_a_key_is_never_made)
{
    STEPS(ACCOUNT, {"@key_revoke 100 1 - - key_1 '' '' 0" FROM " ''", "(refused 0 () (not_found))"},
          {"@key_insert d1 key_1+acct_A+test+wxyz+3+7+-+Name" BY, "(conflict)"}, {"EXISTS t:key:d1", "0"},
          {"@key_get key_1 '' '' 0", "(not_found)"}, {"TTL t:id:key_1", "~86400s"},
          /* An existing key is revoked as always. */
          {"@key_insert d2 key_2+acct_A+test+wxyz+3+7+-+Name" BY, "(ok)"},
          {"@key_revoke 100 1 - - key_2 '' '' 0" FROM " ''", "(ok *)"}, {"GET t:key:d2", "* 7 1* Name"},
          {"GET t:id:key_2", "d2"});
}

#define SUSPEND "@account_suspend acct_A operator '' '' 100 - - 0"
#define RESUME "@account_resume acct_A operator '' '' 100"

Test(lua, account_suspend)
{
    STEPS({"SET t:schema 2", "OK"}, {SUSPEND, "(not_found)"}, {RESUME, "(not_found)"}, ACCOUNT,
          {"HSET t:nodes m1 5+1000", "1"}, {"SET t:lease_max 1000", "OK"},
          {SUSPEND, "(ok North 1* 0 1000 (m1 5 1000))"}, {"HGETALL t:suspended", "(acct_A 1* version 1)"},
          {"HGET t:store suspensions", "1"}, {"@account_find acct_A", "(ok (id acct_A name North status suspended))"},
          {"@account_find acct_C", "(not_found)"}, {"@suspension_read acct_A", "(ok 1????????????  1*-* 0 0 0)"},
          {"@effect_note acct_A acct_A 7 0 0 2 1", "(ok)"},
          {"@suspension_read acct_A", "(ok 1????????????  1*-* 1???????????? 2 1)"},
          {"@suspension_read acct_9", "(not_found)"},
          {"XRANGE t:acct:acct_A:audit - +",
           "((* (type account.suspended actor operator target acct_A ip  request_id )))"},
          /* Again: every node is told again, but it is no event. */
          {SUSPEND, "(ok North 1* 1 1000 (m1 5 1000))"}, {"HGET t:store suspensions", "2"},
          {"XLEN t:acct:acct_A:audit", "1"}, {RESUME, "(ok North 1)"}, {"HGETALL t:suspended", "(version 3)"},
          {"HMGET t:acct:acct_A suspended name", "(nil North)"}, {RESUME, "(ok North 0)"},
          {"HGET t:store suspensions", "3"}, {"XLEN t:acct:acct_A:audit", "2"}, {"SET t:schema 1", "OK"},
          {SUSPEND, "(refused)"}, {"HGETALL t:suspended", "(version 3)"}, {"DEL t:schema", "1"},
          {SUSPEND, "(refused)"});
}

Test(lua, accounts_are_suspended_although_memory_is_full)
{
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, {"CONFIG SET maxmemory 1", "OK"}, {SUSPEND, "(ok *)"},
          {"HLEN t:suspended", "2"});
}

/* If nodes heard of a version that is not in the store, they would not hear the next change, which has the same. */
Test(lua, a_resumption_without_memory_tells_nobody)
{
    subscribe("t:inv");
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, {"@account_suspend acct_A operator '' '' 100 - - 0", "(ok *)"},
          {"CONFIG SET maxmemory 1", "OK"}, {RESUME, "-OOM*"}, {"CONFIG SET maxmemory 0", "OK"}, {RESUME, "(ok *)"},
          {"@account_suspend acct_A operator '' '' 100 - - 0", "(ok *)"});
    expect_message("@acct_A - - suspended 1 - 0");
    expect_message("@acct_A - - resumed 2 - 0");
    expect_message("@acct_A - - suspended 3 - 0");
}

Test(lua, account_suspend_tells_every_node)
{
    subscribe("t:inv");
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, {"@account_suspend acct_A operator '' '' 100 m1 b1 0", "(ok *)"},
          {RESUME, "(ok *)"}, {"@account_suspend_again 0 acct_A", "(ok)"},
          {"XRANGE t:inv_log - +", "((* (account acct_A state suspended)) (* (account acct_A state resumed)) *)"});
    expect_message("@acct_A m1 b1 suspended 1 - 0");
    expect_message("@acct_A - - resumed 2 - 0");
    expect_message("@acct_A - - suspended 3 - 0");
}

Test(lua, invalidations_read)
{
    STEPS({"@invalidations_read '' 2", "(ok 0-0 0)"}, {"@invalidations_read 0-0 2", "(ok 0-0 0)"},
          {"@invalidations_read 5-1 2", "(refused 0-0)"}, {"XADD t:inv_log 5-1 a b", "5-1"},
          {"XADD t:inv_log 6-0 a c", "6-0"}, {"XADD t:inv_log 6-1 a d", "6-1"},
          {"@invalidations_read '' 2", "(ok 6-1 0)"},
          {"@invalidations_read 0-0 2", "(ok 6-0 1 (5-1 (a b)) (6-0 (a c)))"},
          {"@invalidations_read 0-0 3", "(ok 6-1 0 (5-1 (a b)) (6-0 (a c)) (6-1 (a d)))"},
          {"@invalidations_read 5-1 1", "(ok 6-0 1 (6-0 (a c)))"},
          {"@invalidations_read 5-1 2", "(ok 6-1 0 (6-0 (a c)) (6-1 (a d)))"},
          {"@invalidations_read 6-1 2", "(ok 6-1 0)"});
}

/* After a position that the log does not have, anything may be missing: it was cut, or another Redis never had it. */
Test(lua, invalidations_read_finds_gaps)
{
    STEPS({"XADD t:inv_log 5-1 a b", "5-1"}, {"XADD t:inv_log 6-0 a c", "6-0"}, {"XADD t:inv_log 6-1 a d", "6-1"},
          {"@invalidations_read 5-0 2", "(refused 6-1)"}, {"@invalidations_read 7-0 2", "(refused 6-1)"},
          {"XTRIM t:inv_log MAXLEN 2", "1"}, {"@invalidations_read 0-0 2", "(refused 6-1)"},
          {"@invalidations_read 5-1 2", "(refused 6-1)"}, {"@invalidations_read 6-0 2", "(ok 6-1 0 (6-1 (a d)))"});
}

/* At a Redis that lost them. The version rises at least to what the node remembers, so that no number is given twice.
 */
Test(lua, account_suspend_again)
{
    STEPS(
        ACCOUNT, {"@account_suspend_again 7 acct_A acct_gone", "(ok)"},
        {"HGETALL t:suspended", "(acct_A 1* version 7)"}, {"HGET t:store suspensions", "7"},
        {"EXISTS t:acct:acct_gone", "0"},
        {"XRANGE t:acct:acct_A:audit - +", "((* (type account.suspended actor system target acct_A ip  request_id )))"},
        {"@account_suspend_again 7 acct_A", "(ok)"}, {"HGET t:store suspensions", "7"},
        {"XLEN t:acct:acct_A:audit", "1"}, {"@account_suspend_again 8", "(ok)"}, {"HGET t:suspended version", "8"});
}

Test(lua, user_create)
{
    STEPS({"@user_create usr_U acct_A a@b.test hash sealed 5" ORIGIN " mac owner", "(refused)"}, {"DBSIZE", "0"},
          ACCOUNT, {"@user_create usr_U acct_A a@b.test hash sealed 5" ORIGIN " mac owner", "(ok)"},
          {"HMGET t:user:usr_U account email password totp totp_step created", "(acct_A a@b.test hash sealed nil 5)"},
          {"EXISTS t:email:a@b.test", "0"}, {"SMEMBERS t:acct:acct_A:users", "(usr_U)"},
          {"XRANGE t:acct:acct_A:audit - +",
           "((* (type user.created actor usr_U target usr_U ip 192.0.2.1 request_id req_1)))"},
          /* Repeated, of another email or account, and voided. */
          {"@user_create usr_U acct_A a@b.test other other 6" ORIGIN " mac2 auditor", "(ok)"},
          {"@user_create usr_U acct_A c@b.test hash sealed 5" ORIGIN " mac owner", "(conflict)"},
          {"@user_create usr_U acct_B a@b.test hash sealed 5" ORIGIN " mac owner", "(conflict)"},
          {"@user_void usr_V v@b.test", "(ok)"},
          {"@user_create usr_V acct_A v@b.test hash sealed 5" ORIGIN " mac owner", "(conflict)"},
          {"EXISTS t:user:usr_V", "0"}, {"HMGET t:user:usr_U account password mac role", "(acct_A hash mac nil)"},
          {"XLEN t:acct:acct_A:audit", "1"},
          /* An owner's record is the one that versions without roles know. */
          {"HMGET t:user:usr_U role disabled", "(nil nil)"},
          {"@user_create usr_W acct_A w@b.test hash sealed 5" ORIGIN " mac responder", "(ok)"},
          {"HMGET t:user:usr_W role disabled", "(responder nil)"},
          {"@user_find usr_W", "(ok (id usr_W account_name North account acct_A email w@b.test created 5 mac mac role "
                               "responder password hash totp sealed))"},
          {"@user_create usr_X acct_A x@b.test hash sealed 5" ORIGIN " mac owner 0", "(ok)"},
          {"@user_create usr_Y acct_A y@b.test hash sealed 5" ORIGIN " mac owner 1", "(ok)"},
          {"HEXISTS t:user:usr_X password_expired", "0"}, {"HEXISTS t:user:usr_Y password_expired", "1"});
}

#define CREATE(digest, step)                                                                                          \
    "@session_create usr_U " step " " digest " sid1 a pair:p,network:n,email:e, b1 '' 1800000 43200000 300000 '' '' " \
    "192.0.2.1 req_1 100 $now mac Firefox"
#define LIMITS " 1800000 43200000 300000"

Test(lua, user_reset)
{
    STEPS(ACCOUNT, USER, {"@user_reset usr_X new '' operator '' '' 100", "(not_found)"}, {CREATE("s1", "7"), "(ok *)"},
          {CREATE("s2", "8"), "(ok *)"}, {"HSET t:user:usr_U locked 1 wrong_codes 100", "2"},
          {"@user_reset usr_U new '' operator '' '' 100", "(ok)"},
          {"EXISTS t:session:s1 t:session:s2 t:user:usr_U:sessions t:user:usr_U:browsers", "0"},
          {"HMGET t:user:usr_U locked wrong_codes forgiven", "(nil nil 1*)"},
          /* The earlier code must not work again. */
          {"HMGET t:user:usr_U password totp totp_step", "(new sealed 8)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 4",
           "((* (type user.unlocked actor operator target usr_U *)) (* (type session.ended *)) (* (type session.ended "
           "actor operator target usr_U *)) (* (type user.password_reset actor operator target usr_U *)))"},
          {"HSET t:user:usr_U password_expired 1", "1"}, {"@user_reset usr_U '' sealed2 operator '' '' 100 0", "(ok)"},
          {"HMGET t:user:usr_U password totp totp_step password_expired", "(new sealed2 nil 1)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1", "((* (type user.totp_reset *)))"},
          {"@user_reset usr_U own '' operator '' '' 100 0", "(ok)"},
          {"HMGET t:user:usr_U password password_expired", "(own nil)"},
          {"@user_reset usr_U chosen '' operator '' '' 100 1", "(ok)"},
          {"HMGET t:user:usr_U password password_expired", "(chosen 1)"});
}

#define RESERVE(attempt, counters) "@throttle_reserve " attempt " " counters " 0"
#define FAIL(user, counters) "@login_fail " user " a " counters " 0 192.0.2.1 req_1 100 '' 0"

Test(lua, login_begin)
{
    STEPS(ACCOUNT, USER, {"@login_begin usr_U a1 '' '' '' ''", "(ok " A_USER_WITH_SECRETS " 0 0 0 0)"},
          {"@login_begin '' a2 '' '' '' ''", "(ok nil 0 0 0 0)"},
          {"@login_begin usr_U a3 user:u, '' '' ''", "(ok (id usr_U *) 0 0 0 0)"},
          {"@login_begin usr_X a4 user:v, '' '' ''", "(ok nil 0 0 0 0)"},
          /* Reserved, and not counted. */
          {"ZCARD t:throttle:u:under_way", "1"}, {"PTTL t:throttle:u:under_way", "~60000"},
          {"EXISTS t:throttle:u t:throttle:v", "0"}, {"HSET t:user:usr_U forgiven 12345", "1"},
          {"@login_begin usr_U a5 '' '' '' ''", "(ok (id usr_U *) 0 0 0 12345)"},
          {"HSET t:throttle:u n 20 first $now until $now+9000", "3"},
          {"@login_begin usr_U a6 user:u, '' '' ''", "(refused ~9s)"});
}

Test(lua, throttle_steps)
{
    STEPS({RESERVE("a1", "pair:p,network:n,"), "(ok)"}, {RESERVE("a2", "network:n,"), "(ok)"},
          {"ZCARD t:throttle:n:under_way", "2"}, {"PTTL t:throttle:n:under_way", "~60000"},
          {"EXISTS t:throttle:p t:throttle:n", "0"},
          /* At all of them or at none. */
          {"HSET t:throttle:q n 5 first $now until $now+9000", "3"},
          {RESERVE("a3", "network:n,pair:q,"), "(refused ~9s)"}, {"ZCARD t:throttle:n:under_way", "2"},
          {"@throttle_check a3 network:n,pair:q, 0", "(refused ~9s)"},
          {"@throttle_check a1 network:n,pair:p, 0", "(ok)"},
          {"@throttle_fail a3 network:n,pair:q, 0 net 100", "(refused ~9s)"}, {"EXISTS t:throttle:n", "0"},
          {"@throttle_fail a2 network:n, 0 net 100", "(ok 0)"}, {"HGET t:throttle:n n", "1"},
          {"ZRANGE t:throttle:n:under_way 0 -1", "(a1)"},
          /* What was counted before an operator cleared it is void, once that time is reached. */
          {"@throttle_check a3 pair:q, $now+60000", "(refused *)"}, {"@throttle_check a3 pair:q, $now", "(ok)"},
          {"@throttle_reserve a3 pair:q, $now", "(ok)"}, {"@throttle_fail a3 pair:q, $now net 100", "(ok 0)"},
          {"HMGET t:throttle:q n until", "(1 0)"}, {"@throttle_succeed a1 pair:q,network:n,", "(ok)"},
          {"EXISTS t:throttle:q t:throttle:n:under_way", "0"}, {"HGET t:throttle:n n", "1"},
          {"HSET t:throttle:e n 29 first $now until 0", "3"}, {"@throttle_fail a4 email:e, 0 net 100", "(ok 1)"},
          {"@throttle_fail a4 email:e, 0 net 100", "(refused 3*)"});
}

Test(lua, attempts_that_a_node_left_behind_end_by_themselves)
{
    STEPS({"ZADD t:throttle:p:under_way $now+60000 1 $now+60000 2 $now+60000 3 $now+60000 4 $now+60000 5", "5"},
          {"ZADD t:throttle:p:under_way $now+60000 6 $now+60000 7 $now+60000 8 $now+60000 9 $now+60000 10", "5"},
          {RESERVE("a1", "pair:p,"), "(refused 1)"}, {"ZADD t:throttle:p:under_way XX CH $now-1 1 $now-1 2", "2"},
          {RESERVE("a1", "pair:p,"), "(ok)"}, {"ZCARD t:throttle:p:under_way", "9"},
          {"@throttle_give_back a1 pair:p,", "(ok)"}, {"ZCARD t:throttle:p:under_way", "8"});
}

Test(lua, after_five_failures_from_a_network_an_email_waits_there)
{
    STEPS({FAIL("''", "pair:p,"), "(ok 0 0)"}, {FAIL("''", "pair:p,"), "(ok 0 0)"}, {FAIL("''", "pair:p,"), "(ok 0 0)"},
          {FAIL("''", "pair:p,"), "(ok 0 0)"}, {RESERVE("a1", "pair:p,"), "(ok)"}, {FAIL("''", "pair:p,"), "(ok 0 0)"},
          {RESERVE("a1", "pair:p,network:o,"), "(refused ~30s)"}, {RESERVE("a1", "pair:q,network:o,"), "(ok)"},
          /* Attempts that end beyond the limit are neither reported nor counted. */
          {FAIL("''", "pair:p,network:n,"), "(refused ~30s)"}, {"HGET t:throttle:p n", "5"},
          {"EXISTS t:throttle:n", "0"},
          /* The wait is over: one attempt, then twice as long. */
          {"HSET t:throttle:p until $now-1", "0"}, {RESERVE("a2", "pair:p,"), "(ok)"},
          {FAIL("''", "pair:p,"), "(ok 0 0)"}, {RESERVE("a2", "pair:p,"), "(refused ~60s)"},
          {"HSET t:throttle:p until $now-1", "0"}, {FAIL("''", "pair:p,"), "(ok 0 0)"},
          {RESERVE("a2", "pair:p,"), "(refused ~120s)"});
}

/* A client that waits as long as it was told is let in. */
Test(lua, waits_are_rounded_up)
{
    const long long until = redis_now() + 59990;
    char set[64];

    snprintf(set, sizeof set, "HSET t:throttle:p n 5 first $now until %lld", until);
    STEPS({set, "3"});
    char *reply = run(RESERVE("a", "pair:p,"));
    cr_assert(matches("(refused ~60s)", reply), "%s", reply);
    cr_assert_geq(redis_now() + 1000 * atoll(reply + strlen("(refused ")), until, "%s", reply);
    free(reply);
}

Test(lua, waits_are_capped_and_forgotten_after_the_window)
{
    STEPS({"HSET t:throttle:p n 12 first $now-100000 until $now-1", "3"}, {FAIL("''", "pair:p,"), "(ok 0 0)"},
          {RESERVE("a", "pair:p,"), "(refused ~900s)"}, {"PTTL t:throttle:p", "~900000"},
          {"HSET t:throttle:q n 12 first $now-900000 until $now-1", "3"}, {FAIL("''", "pair:q,"), "(ok 0 0)"},
          {"HMGET t:throttle:q n until", "(1 0)"},
          /* During a wait, the end of the window changes nothing. */
          {"HSET t:throttle:r n 12 first $now-900000 until $now+50000", "3"},
          {RESERVE("a", "pair:r,"), "(refused ~50s)"});
}

static void fail_times(unsigned times, const char *counters)
{
    for (unsigned i = 0; i < times; i++) {
        char command[128];

        snprintf(command, sizeof command, "@login_fail '' a %s 0 192.0.2.1 req_1 100 '' 0", counters);
        STEPS({command, "(ok * 0)"});
    }
}

#define FROM_BROWSER(digest) "@login_begin usr_U a9 '' browser:b, " digest " ''"
#define FROM_STRANGER RESERVE("a9", "pair:new,email:e,")

/* Thirty failures within an hour, from anywhere: for the rest of the hour, only known browsers get in. */
Test(lua, an_email_under_attack_is_closed_to_unknown_browsers)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok (sid sid1 * step_up 0 step_up_expires 0 *) (*) 0 (*))"},
          {"ZCARD t:user:usr_U:browsers", "1"});
    fail_times(29, "email:e,");
    STEPS(
        {FAIL("usr_U", "email:e,"), "(ok 1 0)"}, {FAIL("usr_U", "email:e,"), "(refused ~3600s)"},
        {FROM_BROWSER("''"), "(ok (id usr_U *) 0 0 0 0)"}, {FROM_BROWSER("b2"), "(ok (id usr_U *) 0 0 0 0)"},
        {FROM_STRANGER, "(refused ~3600s)"}, {FROM_BROWSER("b1"), "(ok (id usr_U *) 1 0 0 0)"},
        {"ZRANGE t:throttle:b:under_way 0 -1", "(a9)"}, {"PTTL t:throttle:e", "~3600000"},
        /* The owner is informed once. Strangers' failures stay counted. */
        {"@session_create usr_U 8 s2 sid2 a9 browser:b, b1 '' 1800000 43200000 300000 '' '' '' '' 100 $now mac Firefox",
         "(ok (sid sid2 * step_up 0 step_up_expires 0 *) (*) 1* (*))"},
        {"@session_create usr_U 9 s3 sid3 a9 browser:b, b1 '' 1800000 43200000 300000 '' '' '' '' 100 $now mac Firefox",
         "(ok (sid sid3 * step_up 0 step_up_expires 0 *) (*) 0 (*))"},
        {FROM_STRANGER, "(refused ~3600s)"},
        /* A known browser has a counter of its own. */
        {FAIL("usr_U", "browser:b,"), "(ok 0 0)"}, {"HGET t:throttle:b n", "1"}, {"HGET t:throttle:e n", "30"},
        {"HSET t:throttle:e until $now-1 first $now-3600000", "0"}, {FROM_STRANGER, "(ok)"},
        {FAIL("usr_U", "email:e,"), "(ok 0 0)"}, {"HGET t:throttle:e n", "1"});
}

Test(lua, twenty_browsers_are_known_and_the_longest_unused_goes)
{
    STEPS(ACCOUNT, USER);
    for (int i = 0; i < 22; i++) {
        char command[160];

        snprintf(command, sizeof command, "ZADD t:user:usr_U:browsers $now-%d b%d", 1000 - i, 100 + i);
        STEPS({command, "1"});
    }
    STEPS({"ZADD t:user:usr_U:browsers $now-31536001000 year", "1"}, {CREATE("s1", "7"), "(ok *)"},
          {"ZCARD t:user:usr_U:browsers", "20"}, {"ZSCORE t:user:usr_U:browsers b1", "1*"},
          {"ZSCORE t:user:usr_U:browsers b102", "nil"}, {"ZSCORE t:user:usr_U:browsers b103", "1*"},
          {"ZSCORE t:user:usr_U:browsers year", "nil"});
}

Test(lua, unlocking_clears_what_is_counted)
{
    STEPS(ACCOUNT, USER, {"@user_unlock usr_X operator '' '' 100", "(not_found)"});
    fail_times(5, "pair:p,email:e,");
    fail_times(25, "email:e,");
    STEPS({RESERVE("a1", "pair:p,email:e,"), "(refused *)"}, {"HSET t:user:usr_U locked 1", "1"},
          {"@login_begin usr_U a1 '' '' '' ''", "(ok (id usr_U *) 0 1 0 0)"},
          {"@user_unlock usr_U operator '' '' 100", "(ok)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1", "((* (type user.unlocked actor operator target usr_U *)))"},
          {"@login_begin usr_U a1 pair:p,email:e, '' '' ''", "(ok (id usr_U *) 0 0 0 1*)"},
          {"@throttle_reserve a1 pair:p,email:e, $now", "(ok)"}, {FAIL("usr_U", "pair:p,email:e,"), "(ok 0 0)"},
          {"HGET t:throttle:p n", "1"}, {"HGET t:throttle:e n", "1"});
}

Test(lua, login_fail)
{
    STEPS(
        ACCOUNT, USER, {FAIL("usr_U", "pair:p,"), "(ok 0 0)"},
        {"XREVRANGE t:acct:acct_A:audit:refused + - COUNT 1",
         "((* (type login.failed actor  target usr_U ip 192.0.2.1 request_id req_1)))"},
        {FAIL("''", "pair:q,"), "(ok 0 0)"}, {FAIL("usr_X", "pair:q,"), "(ok 0 0)"},
        {"XLEN t:acct:acct_A:audit:refused", "1"},
        {"XRANGE t:strangers - +", "((* (type login.failed actor  target  ip 192.0.2.1 request_id req_1)) (*))"},
        {"HGET t:user:usr_U wrong_codes", "nil"},
        {"@login_fail usr_U a pair:r, 1 192.0.2.1 req_1 100 usr_U 0", "(ok 0 0)"},
        {"XREVRANGE t:acct:acct_A:audit:refused + - COUNT 1", "((* (type step_up.failed actor usr_U target usr_U *)))"},
        {"HGET t:user:usr_U wrong_codes", "1"}, {"HSET t:user:usr_U wrong_codes 99", "0"},
        {"@login_fail usr_U a pair:r, 1 192.0.2.1 req_1 100 usr_U 0", "(ok 0 1)"},
        {"HMGET t:user:usr_U wrong_codes locked attacked", "(100 1* nil)"},
        /* Its counters were elsewhere, and closed sign-in. */
        {"@login_fail usr_U a '' 0 192.0.2.1 req_1 100 '' 1", "(ok 1 0)"}, {"HGET t:user:usr_U attacked", "1*"},
        {"XREVRANGE t:acct:acct_A:audit + - COUNT 1", "((* (type user.locked actor system target usr_U *)))"},
        {CREATE("s1", "7"), "(refused 0)"}, {"EXISTS t:session:s1", "0"});
}

Test(lua, session_create)
{
    STEPS(ACCOUNT, {CREATE("s1", "7"), "(not_found)"}, USER, {"SADD t:user:usr_U:sessions stale", "1"},
          {CREATE("s1", "7"),
           "(ok " A_SESSION("0", "0") " " A_USER " 0 (last_sign_in_at 0 failed_sign_ins 0 attacked 0 browsers ()))"},
          {"HMGET t:session:s1 sid user account step_up", "(sid1 usr_U acct_A nil)"}, {"PTTL t:session:s1", "~1800000"},
          {"SMEMBERS t:user:usr_U:sessions", "(s1)"}, {"PTTL t:user:usr_U:sessions", "~43200000"},
          {"HGET t:user:usr_U totp_step", "7"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type session.created actor usr_U target usr_U ip 192.0.2.1 request_id req_1)))"},
          {CREATE("s2", "7"), "(conflict 7)"}, {CREATE("s2", "6"), "(conflict 7)"}, {CREATE("s1", "8"), "(conflict 8)"},
          {"EXISTS t:session:s2", "0"}, {"HGET t:user:usr_U totp_step", "7"}, {CREATE("s2", "8"), "(ok *)"},
          {"SCARD t:user:usr_U:sessions", "2"});
}

#define CREATE_AS(password, totp)                                                  \
    "@session_create usr_U 7 s1 sid1 a pair:p, '' ''" LIMITS " " password " " totp \
    " 192.0.2.1 req_1 100 $now mac Firefox"

Test(lua, session_create_notices_a_reset)
{
    STEPS(ACCOUNT, USER, {CREATE_AS("old", "sealed"), "(not_found)"}, {CREATE_AS("hash", "old"), "(not_found)"},
          {"EXISTS t:session:s1", "0"}, {CREATE_AS("hash", "sealed"), "(ok *)"});
}

Test(lua, success_forgives_the_email_at_its_network_and_nothing_else)
{
    STEPS(ACCOUNT, USER, {"HSET t:throttle:p n 4 first $now until 0", "3"},
          {"HSET t:throttle:n n 19 first $now until 0", "3"}, {"HSET t:throttle:e n 9 first $now until 0", "3"},
          {"HSET t:user:usr_U wrong_codes 99", "1"}, {RESERVE("a", "pair:p,network:n,email:e,"), "(ok)"},
          {CREATE("s1", "7"), "(ok *)"}, {"EXISTS t:throttle:p t:throttle:p:under_way t:throttle:n:under_way", "0"},
          {"HGET t:throttle:n n", "19"}, {"HGET t:throttle:e n", "9"}, {"HGET t:user:usr_U wrong_codes", "nil"});
}

#define CREATE_FROM(digest, step, presented)                                        \
    "@session_create usr_U " step " " digest " sid1 a pair:p, '' " presented LIMITS \
    " '' '' 192.0.2.1 req_1 100 $now mac Firefox"

Test(lua, a_sign_in_ends_the_session_that_it_came_with)
{
    STEPS(ACCOUNT, USER, {"@user_create usr_V acct_A v@b.test hash sealed 5" ORIGIN " mac owner", "(ok)"},
          {CREATE_FROM("s1", "7", "unknown"), "(ok *)"}, {CREATE_FROM("s2", "8", "s1"), "(ok *)"},
          {"EXISTS t:session:s1", "0"}, {"SMEMBERS t:user:usr_U:sessions", "(s2)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 2",
           "((* (type session.created *)) (* (type session.ended actor usr_U target usr_U *)))"},
          /* Whoever it belongs to. */
          {"@session_create usr_V 7 s3 sid1 a pair:p, '' s2" LIMITS " '' '' '' '' 100 $now mac Firefox", "(ok *)"},
          {"EXISTS t:session:s2 t:user:usr_U:sessions", "0"},
          /* A refused sign-in ends no session. */
          {CREATE_FROM("s4", "8", "s3"), "(conflict 8)"}, {"EXISTS t:session:s3", "1"});
}

Test(lua, twenty_sessions_a_user_and_the_oldest_ends)
{
    STEPS(ACCOUNT, USER);
    for (int i = 0; i < 22; i++) {
        char command[160], created[96];

        snprintf(command, sizeof command, "SADD t:user:usr_U:sessions d%02d", i);
        snprintf(created, sizeof created, "HSET t:session:d%02d sid s user usr_U created $now-%d expires 1", i,
                 9000 - i);
        STEPS({command, "1"}, {created, "4"});
    }
    STEPS({CREATE("s1", "7"), "(ok *)"}, {"SCARD t:user:usr_U:sessions", "20"},
          {"EXISTS t:session:d00 t:session:d01 t:session:d02", "0"}, {"EXISTS t:session:d03 t:session:s1", "2"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 2", "((* (type session.created *)) (* (type session.ended *)))"});
}

#define STEP(what) "@account_" what " acct_A operator '' '' 100"

Test(lua, account_close)
{
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, USER, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+One" BY, "(ok)"},
          {"@key_insert d2 key_2+acct_A+test+wxyz+3+7+-+Two" BY, "(ok)"}, {CREATE("s1", "7"), "(ok *)"},
          {STEP("close_keys") " - -", "(conflict)"}, {STEP("close_people"), "(conflict)"},
          {STEP("close") " 0", "(conflict)"}, {SUSPEND, "(ok *)"}, {STEP("close_keys") " - -", "(conflict)"},
          {STEP("close") " 0", "(conflict)"}, {"@account_suspend acct_A operator '' '' 100 - - 1", "(ok *)"},
          {RESUME, "(conflict)"}, {"@account_find acct_A", "(ok (id acct_A name North status closing))"},
          {STEP("close") " 0", "(conflict)"},
          {"@user_create usr_V acct_A b@b.test hash sealed 5" ORIGIN " mac ''", "(refused)"},
          {"SET t:lease_max 700", "OK"}, {STEP("close_keys") " - -", "(ok 2 1 700 ())"}, {"GET t:key:d1", "* 7 1* One"},
          {"GET t:key:d2", "* 7 1* Two"}, {"ZCARD t:acct:acct_A:keys:ak-live:active", "0"},
          {STEP("close_keys") " - -", "(ok 0 1 700 ())"}, {STEP("close") " 0", "(conflict)"},
          {STEP("close_people"), "(ok 1 1 1 ((usr_U a@b.test)))"},
          {"EXISTS t:user:usr_U t:session:s1 t:user:usr_U:sessions t:acct:acct_A:users", "0"},
          {STEP("close_people"), "(ok 0 1 0 ())"}, {STEP("close") " 0", "(ok)"}, {STEP("close") " 0", "(ok)"},
          {"@account_suspend_again 0 acct_A", "(ok)"}, {"HKEYS t:suspended", "(version)"},
          {"@account_find acct_A", "(ok (id acct_A name North status closed))"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 3",
           "((* (type account.closed actor operator target acct_A ip  request_id )) (* (type user.removed * usr_U *)) "
           "(* (type session.ended actor operator target usr_U ip  request_id )))"},
          {SUSPEND, "(conflict)"}, {RESUME, "(conflict)"}, {STEP("close_keys") " - -", "(conflict)"},
          {"@key_insert d3 key_3+acct_A+live+wxyz+3+7+-+Three" BY, "(suspended)"},
          {"@account_suspend_again 0 acct_A", "(ok)"}, {"HKEYS t:suspended", "(version)"},
          {"@account_close acct_B operator '' '' 100 0", "(not_found)"});
}

Test(lua, account_close_takes_so_many_at_a_time)
{
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, {"@account_suspend acct_A operator '' '' 100 - - 1", "(ok *)"},
          {"EVAL for+i=1,150+do+local+n=string.format('%03d',i)+redis.call('SET','t:id:key_'..n,'d'..n)+"
           "redis.call('SET','t:key:d'..n,'key_'..n..'+acct_A+live+wxyz+3+7+-+N')+"
           "redis.call('ZADD','t:acct:acct_A:keys:ak-live:active',0,'key_'..n)+end 0",
           "nil"},
          {STEP("close_keys") " - -", "(ok 100 0 0 ())"}, {"ZCARD t:acct:acct_A:keys:ak-live:active", "50"},
          {STEP("close_keys") " - -", "(ok 50 1 0 ())"}, {STEP("close_keys") " - -", "(ok 0 1 0 ())"});
}

Test(lua, a_suspended_account_changes_nothing)
{
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, USER, {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Two" BY, "(ok)"},
          {CREATE("s1", "7"), "(ok *)"}, {SUSPEND, "(ok *)"}, {INSERT_BY("key_2", "key+d2"), "(suspended)"},
          {INSERT_BY("usr_U", BY_SESSION("s1")), "(suspended)"},
          {REVOKE_BY("key_2", "key+d2"), "(refused 0 () (suspended))"},
          {REVOKE_BY("usr_U", BY_SESSION("s1")), "(refused 0 () (suspended))"},
          /* Nor for whoever needs no credential. */
          {"@key_insert d9 key_9+acct_A+live+wxyz+3+7+-+Nine" BY, "(suspended)"}, {"EXISTS t:key:d9 t:id:key_9", "0"},
          {"@session_load s1" LIMITS, "(suspended)"}, {"EXISTS t:session:s1", "1"},
          {"@session_step_up s1 s9 9 a session:s," LIMITS " '' '' 100 $now mac", "(suspended)"},
          {"@totp_confirm usr_U T new 9 '' '' '' 100 ''", "(suspended)"},
          /* A code that was right is used up. */
          {CREATE("s2", "8"), "(suspended)"}, {"EXISTS t:session:s2", "0"}, {CREATE("s2", "8"), "(conflict 8)"},
          /* The operator may still revoke. */
          {"@key_revoke 100 0 - - key_2 '' '' 0 operator '' '' ''", "(ok *)"}, {RESUME, "(ok *)"},
          {"@session_load s1" LIMITS, "(ok *)"}, {INSERT_BY("usr_U", BY_SESSION("s1")), "(ok)"});
}

Test(lua, session_load)
{
    STEPS(ACCOUNT, USER, {"@session_load s1" LIMITS " ''", "(not_found)"}, {CREATE("s1", "7"), "(ok *)"},
          {"@session_load s1" LIMITS " ''", "(ok " A_SESSION("0", "0") " " A_USER ")"},
          /* Usually it only reads. */
          {"HSET t:session:s1 seen $now-5000", "0"}, {"PEXPIRE t:session:s1 999999", "1"},
          {"@session_load s1" LIMITS " ''", "(ok *)"}, {"PTTL t:session:s1", "~999999"},
          {"HSET t:session:s1 seen $now-10001", "0"}, {"@session_load s1" LIMITS " ''", "(ok *)"},
          {"PTTL t:session:s1", "~1800000"},
          /* With a short idle limit, uses are noted more often, so that no session in use ends. */
          {"HSET t:session:s1 seen $now-6001", "0"}, {"@session_load s1 60000 43200000 300000 ''", "(ok *)"},
          {"PTTL t:session:s1", "~60000"});
}

Test(lua, sessions_end_by_idle_and_absolute_limit)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {"HSET t:session:s1 seen $now-1800000", "0"},
          {"@session_load s1" LIMITS " ''", "(not_found)"}, {"EXISTS t:session:s1", "0"},
          {"SMEMBERS t:user:usr_U:sessions", "()"}, {CREATE("s2", "8"), "(ok *)"},
          {"HSET t:session:s2 expires $now", "0"}, {"@session_load s2" LIMITS " ''", "(not_found)"},
          {CREATE("s3", "9"), "(ok *)"}, {"HSET t:session:s3 expires $now+60000 seen $now-20000", "0"},
          {"@session_load s3" LIMITS " ''", "(ok *)"}, {"PTTL t:session:s3", "~60000"},
          /* A lowered limit applies to existing sessions too. */
          {"HSET t:session:s3 created $now-7200000", "0"}, {"@session_load s3 1800000 7200000 1 ''", "(not_found)"},
          {CREATE("s4", "10"), "(ok *)"}, {"DEL t:user:usr_U", "1"}, {"@session_load s4" LIMITS " ''", "(not_found)"},
          {"EXISTS t:session:s4", "0"});
}

#define STEP_UP(old, new, step) \
    "@session_step_up " old " " new " " step " a session:s,user:u," LIMITS " 192.0.2.1 req_1 100 $now mac"

Test(lua, session_step_up)
{
    STEPS(ACCOUNT, USER, {STEP_UP("s1", "s2", "7"), "(not_found)"}, {CREATE("s1", "7"), "(ok *)"},
          {STEP_UP("s1", "s2", "7"), "(conflict 7)"}, {STEP_UP("s1", "s2", "6"), "(conflict 7)"},
          {"EXISTS t:session:s1", "1"}, {"HSET t:throttle:s n 4 first $now until 0", "3"},
          {"HSET t:throttle:u n 19 first $now until $now+9000", "3"}, {STEP_UP("s1", "s2", "8"), "(refused ~9s)"},
          {"HSET t:throttle:u until 0", "0"}, {"HSET t:user:usr_U locked 1", "1"},
          {STEP_UP("s1", "s2", "8"), "(refused 0)"}, {"HDEL t:user:usr_U locked", "1"},
          {STEP_UP("s1", "s2", "8"), "(ok " A_SESSION("1*", "1*") " (id usr_U *))"},
          {"@session_load s1" LIMITS " ''", "(not_found)"},
          {"@session_load s2" LIMITS " ''", "(ok " A_SESSION("1*", "1*") " (id usr_U *))"},
          {"SMEMBERS t:user:usr_U:sessions", "(s2)"}, {"HGET t:user:usr_U totp_step", "8"},
          {"EXISTS t:throttle:s", "0"}, {"HGET t:throttle:u n", "19"}, {"PTTL t:session:s2", "~1800000"},
          {"PTTL t:user:usr_U:sessions", "~43200000"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type session.step_up actor usr_U target usr_U ip 192.0.2.1 request_id req_1)))"},
          {"HSET t:session:s2 step_up $now-300000", "0"},
          {"@session_load s2" LIMITS " ''", "(ok " A_SESSION("1*", "0") " (*))"});
}

/* The MAC binds the times that the node gave, unless its clock is wrong. */
Test(lua, a_session_begins_when_its_node_says)
{
    STEPS(ACCOUNT, USER,
          {"@session_create usr_U 7 s1 sid1 a pair:p, '' ''" LIMITS " '' '' '' '' 100 $now+20000 mac Firefox", "-*"},
          {"@session_create usr_U 7 s1 sid1 a pair:p, '' ''" LIMITS " '' '' '' '' 100 $now-20000 mac Firefox", "-*"},
          {"EXISTS t:session:s1", "0"}, {"HGET t:user:usr_U totp_step", "nil"}, {CREATE("s1", "7"), "(ok *)"},
          {"@session_step_up s1 s2 8 a session:s,user:u," LIMITS " '' '' 100 $now+20000 mac2", "-*"},
          {"HMGET t:session:s1 step_up mac", "(nil mac)"},
          {"@session_step_up s1 s2 8 a session:s,user:u," LIMITS " '' '' 100 $now mac2", "(ok *)"},
          {"HMGET t:session:s2 step_up mac", "(1* mac2)"});
}

Test(lua, session_list)
{
    STEPS(ACCOUNT, USER, {"@session_list usr_U usr_X", "(ok)"}, {CREATE("s1", "7"), "(ok *)"},
          {"@session_list usr_U", "(ok (user usr_U email a@b.test account acct_A ends 1* sid sid1 created 1* seen 1* "
                                  "ip 192.0.2.1 browser Firefox))"},
          {"@session_list", "(ok)"}, {"SADD t:user:usr_U:sessions gone", "1"},
          {"@session_list usr_U", "(ok (user usr_U email a@b.test account acct_A ends 1* sid sid1 created 1* seen 1* "
                                  "ip 192.0.2.1 browser Firefox))"});
}

Test(lua, session_stop)
{
    STEPS(ACCOUNT, USER, {"@session_stop usr_X '' '' operator '' '' 100 ''", "(not_found)"},
          {"@session_stop usr_U '' '' operator '' '' 100 ''", "(ok 0)"},
          {"@session_stop usr_U sid1 '' operator '' '' 100 ''", "(not_found)"}, {CREATE("s1", "7"), "(ok *)"},
          {CREATE("s2", "8"), "(ok *)"}, {"HSET t:session:s2 sid other", "0"},
          {"@session_stop usr_U nobody '' operator '' '' 100 ''", "(not_found)"},
          {"EXISTS t:session:s1 t:session:s2", "2"}, {"@session_stop usr_U other '' operator '' '' 100 ''", "(ok 1)"},
          {"EXISTS t:session:s1 t:session:s2", "1"}, {"SMEMBERS t:user:usr_U:sessions", "(s1)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type session.ended actor operator target usr_U ip  request_id )))"},
          {"@session_stop usr_U '' '' operator '' '' 100 ''", "(ok 1)"},
          {"EXISTS t:session:s1 t:user:usr_U:sessions", "0"});
}

#define BY_OWN(digest) "usr_U 192.0.2.1 req_1 100 session+" digest "+1800000+43200000+0+auditor"
#define BY_PROVEN(digest) "usr_U 192.0.2.1 req_1 100 session+" digest "+1800000+43200000+300000+auditor"

Test(lua, session_stop_by_its_user)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {CREATE("s2", "8"), "(ok *)"}, {CREATE("s3", "9"), "(ok *)"},
          {"@session_stop usr_U '' s2 " BY_OWN("s4"), "(actor_unknown)"}, {"SCARD t:user:usr_U:sessions", "3"},
          {"@session_stop usr_U '' s2 " BY_OWN("s2"), "(ok 2)"}, {"SMEMBERS t:user:usr_U:sessions", "(s2)"},
          {"@session_stop usr_U '' s2 " BY_OWN("s2"), "(ok 0)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type session.ended actor usr_U target usr_U ip 192.0.2.1 request_id req_1)))"},
          /* Whoever was signed out ends nothing any more. */
          {"@session_stop usr_U '' '' " BY_OWN("s1"), "(actor_unknown)"}, {"EXISTS t:session:s2", "1"});
}

/* It may run out after the node has looked. */
Test(lua, session_stop_needs_a_step_up_that_is_valid_by_then)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {CREATE("s2", "8"), "(ok *)"},
          {"HSET t:session:s1 sid other step_up $now-300000", "1"}, {"HSET t:session:s2 step_up $now-300000", "1"},
          {"@session_stop usr_U other '' " BY_PROVEN("s2"), "(actor_unproven)"},
          {"@session_stop usr_U '' s2 " BY_PROVEN("s2"), "(actor_unproven)"}, {"EXISTS t:session:s1 t:session:s2", "2"},
          {"HSET t:session:s2 step_up $now", "0"}, {"@session_stop usr_U other '' " BY_PROVEN("s2"), "(ok 1)"},
          {"EXISTS t:session:s1 t:session:s2", "1"});
}

Test(lua, a_session_remembers_from_where_it_was_used)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {"HMGET t:session:s1 ip browser", "(192.0.2.1 Firefox)"},
          {"@session_load s1" LIMITS " 192.0.2.9", "(ok *)"}, {"HGET t:session:s1 ip", "192.0.2.1"},
          {"HSET t:session:s1 seen $now-10001", "0"}, {"@session_load s1" LIMITS " 192.0.2.9", "(ok *)"},
          {"HGET t:session:s1 ip", "192.0.2.9"}, {"HSET t:session:s1 seen $now-10001", "0"},
          /* A gateway's check says nothing about the browser. */
          {"@session_load s1" LIMITS " ''", "(ok *)"}, {"HGET t:session:s1 ip", "192.0.2.9"});
}

#define CREATE_BY(digest, sid, step, browser)                                                                         \
    "@session_create usr_U " step " " digest " " sid " a pair:p, " browser " ''" LIMITS " '' '' 192.0.2.1 req_1 100 " \
    "$now mac Firefox"

/* The first browser of a user is no news. */
Test(lua, new_browsers_are_told_to_the_others)
{
    STEPS(ACCOUNT, USER,
          {CREATE_BY("s1", "sid1", "7", "b1"), "(ok * (last_sign_in_at 0 failed_sign_ins 0 attacked 0 browsers ()))"},
          {"EXISTS t:user:usr_U:new_browsers", "0"}, {"ZADD t:user:usr_U:browsers XX CH $now-60000 b1", "1"},
          {"HSET t:session:s1 since $now-60000", "0"},
          {CREATE_BY("s2", "sid2", "8", "b2"),
           "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 attacked 0 browsers ()))"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type browser.new actor usr_U target usr_U ip 192.0.2.1 request_id req_1 data:browser Firefox)))"},
          /* To a session that was open, and to the next one from a browser that was known. */
          {"@session_notices usr_U s1",
           "(ok (last_sign_in_at 0 failed_sign_ins 0 attacked 0 browsers ((at 1* ip 192.0.2.1 name Firefox))))"},
          {"@session_notices usr_U s2",
           "(ok (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 attacked 0 browsers ()))"},
          {CREATE_BY("s3", "sid3", "9", "b1"), "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 "
                                               "attacked 0 browsers ((at 1* ip 192.0.2.1 name Firefox))))"},
          {CREATE_BY("s4", "sid4", "10", "b1"),
           "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 attacked 0 browsers ()))"},
          /* Known again is not new. */
          {CREATE_BY("s5", "sid5", "11", "b2"),
           "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 attacked 0 browsers ()))"},
          {"LLEN t:user:usr_U:new_browsers", "1"});
}

Test(lua, notices_count_failed_sign_ins_since_the_last)
{
    STEPS(ACCOUNT, USER, {FAIL("usr_U", "pair:p,"), "(ok 0 0)"},
          {CREATE("s1", "7"), "(ok * (last_sign_in_at 0 failed_sign_ins 1 attacked 0 browsers ()))"},
          {FAIL("usr_U", "pair:q,"), "(ok 0 0)"}, {FAIL("usr_U", "pair:q,"), "(ok 0 0)"},
          {"@login_fail usr_U a pair:r, 0 192.0.2.1 req_1 100 usr_U 0", "(ok 0 0)"},
          {"@session_notices usr_U s1", "(ok (last_sign_in_at 0 failed_sign_ins 3 attacked 0 browsers ()))"},
          {CREATE("s2", "8"),
           "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 2 attacked 0 browsers ()))"},
          {"HMGET t:user:usr_U last_sign_in_at last_sign_in_ip", "(1* 192.0.2.1)"},
          {CREATE("s3", "9"),
           "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 attacked 0 browsers ()))"},
          /* A session of an earlier version knows nothing of what was before it. */
          {"HDEL t:session:s3 since failures last_at last_ip attacked", "5"},
          {"@session_notices usr_U s3", "(ok (failed_sign_ins 0 browsers ()))"});
}

#define PASSWORD(old, new, step, was) \
    "@user_password " old " " new " " step " a session:s,user:u," LIMITS " 192.0.2.1 req_1 100 $now mac2 " was " new"

Test(lua, user_password)
{
    STEPS(ACCOUNT, USER, {PASSWORD("s1", "s9", "7", "hash"), "(not_found)"}, {CREATE("s1", "7"), "(ok *)"},
          {CREATE("s2", "8"), "(ok *)"}, {"HSET t:user:usr_U password_expired 1", "1"},
          {"@session_load s1" LIMITS " ''", "(ok (sid sid1 * mac mac password_expired 1) *)"},
          {"@totp_begin s2 9 a session:s,user:u," LIMITS " waits", "(ok)"},
          {PASSWORD("s1", "s9", "9", "hash"), "(conflict 9)"}, {PASSWORD("s1", "s9", "10", "other"), "(not_found)"},
          {"HSET t:throttle:s n 5 first $now until $now+9000", "3"},
          {PASSWORD("s1", "s9", "10", "hash"), "(refused ~9s)"}, {"DEL t:throttle:s", "1"},
          {"HSET t:user:usr_U locked 1", "1"}, {PASSWORD("s1", "s9", "10", "hash"), "(refused 0)"},
          {"HDEL t:user:usr_U locked", "1"}, {"HMGET t:user:usr_U password totp_step password_expired", "(hash 9 1)"},
          {"EXISTS t:session:s1 t:session:s2 t:user:usr_U:new_totp", "3"},
          {PASSWORD("s1", "s9", "10", "hash"),
           "(ok (sid sid1 * step_up 1* step_up_expires 1* mac mac2 password_expired 0) (id usr_U *))"},
          {"HMGET t:user:usr_U password totp_step password_expired", "(new 10 nil)"},
          {"EXISTS t:session:s1 t:session:s2 t:user:usr_U:new_totp", "0"}, {"SMEMBERS t:user:usr_U:sessions", "(s9)"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 2",
           "((* (type session.ended actor usr_U target usr_U *)) (* (type user.password_changed actor usr_U target "
           "usr_U ip 192.0.2.1 request_id req_1)))"},
          /* Of two changes at once, the second finds another password. */
          {PASSWORD("s9", "s8", "11", "hash"), "(not_found)"}, {"HGET t:user:usr_U totp_step", "10"});
}

#define TOTP_BEGIN(session, step, totp) "@totp_begin " session " " step " a session:s,user:u," LIMITS " " totp
#define TOTP_CONFIRM(by, totp, step, session)                                                       \
    "@totp_confirm usr_U " by " " totp " " step " " session " 192.0.2.1 req_1 100 session+" session \
    "+1800000+43200000+0+auditor"

Test(lua, a_new_authenticator_is_confirmed_by_its_session)
{
    STEPS(ACCOUNT, USER, {TOTP_BEGIN("s1", "7", "new"), "(not_found)"}, {CREATE("s1", "7"), "(ok *)"},
          {CREATE("s2", "8"), "(ok *)"}, {"HSET t:session:s2 sid sid2", "0"},
          {TOTP_BEGIN("s1", "8", "new"), "(conflict 8)"}, {"@totp_waiting usr_U sid1", "(not_found)"},
          {TOTP_BEGIN("s1", "9", "new"), "(ok)"}, {"HGET t:user:usr_U totp_step", "9"},
          {"PTTL t:user:usr_U:new_totp", "~600000"}, {"@totp_waiting usr_U sid1", "(ok " A_USER " new sid1)"},
          {"@totp_waiting usr_U sid2", "(not_found)"}, {"HGET t:user:usr_U totp", "sealed"},
          {TOTP_CONFIRM("sid1", "other", "5", "s1"), "(not_found)"},
          {TOTP_CONFIRM("sid2", "new", "5", "s2"), "(not_found)"},
          {TOTP_CONFIRM("sid1", "new", "5", "s3"), "(actor_unknown)"}, {"HGET t:user:usr_U totp", "sealed"},
          {TOTP_CONFIRM("sid1", "new", "5", "s1"), "(ok 1)"}, {"HMGET t:user:usr_U totp totp_step", "(new 5)"},
          {"SMEMBERS t:user:usr_U:sessions", "(s1)"}, {"EXISTS t:user:usr_U:new_totp", "0"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 2",
           "((* (type session.ended *)) (* (type user.totp_changed actor usr_U target usr_U ip 192.0.2.1 request_id "
           "req_1)))"},
          {TOTP_CONFIRM("sid1", "new", "6", "s1"), "(not_found)"});
}

Test(lua, a_new_authenticator_may_be_tried_twenty_times)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {TOTP_BEGIN("s1", "9", "new"), "(ok)"},
          {"HSET t:user:usr_U:new_totp tries 19", "1"}, {"@totp_waiting usr_U sid1", "(ok *)"},
          {"@totp_waiting usr_U sid1", "(not_found)"}, {"EXISTS t:user:usr_U:new_totp", "0"});
}

#define CODES(session) \
    "@recovery_codes_set usr_U '' '' 100 acct_A session+" session "+1800000+43200000+300000+auditor mk c1 c2 c3"
#define RECOVER(password, codes, ticket) "@recovery_begin usr_U a pair:p,email:e, " password " " codes " " ticket " new"
#define RECOVERED(ticket) "@totp_confirm usr_U " ticket " new 5 '' 192.0.2.1 req_1 100 ''"

Test(lua, recovery_codes)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {"@recovery_codes_left usr_U", "(ok 0 0)"},
          {CODES("s1"), "(actor_unproven)"}, {"HSET t:session:s1 step_up $now", "1"}, {CODES("s1"), "(ok)"},
          {"@recovery_codes_left usr_U", "(ok 3 1*)"},
          {"@login_begin usr_U a1 '' '' '' ''", "(ok (id usr_U *) 0 0 0 0)"},
          {"@login_begin usr_U a1 '' '' '' x,c2", "(ok (id usr_U *) 0 0 1 0)"},
          {"@login_begin usr_U a1 '' '' '' c4", "(ok (id usr_U *) 0 0 0 0)"},
          {"@login_begin '' a1 '' '' '' c2", "(ok nil 0 0 0 0)"},
          /* A new set ends the old one, and a recovery that was begun with it. */
          {RECOVER("hash", "c1", "t1"), "(ok)"},
          {"@recovery_codes_set usr_U '' '' 100 acct_A session+s1+1800000+43200000+300000+auditor mk d1", "(ok)"},
          {"@totp_waiting '' t1", "(not_found)"}, {"SMEMBERS t:user:usr_U:recovery_codes", "(d1)"},
          {"EXISTS t:recovery:t1", "0"},
          /* A code that is gone replaces nothing, whatever took it away. */
          {RECOVER("hash", "d1", "t2"), "(ok)"}, {"SREM t:user:usr_U:recovery_codes d1", "1"},
          {RECOVERED("t2"), "(not_found)"}, {"HGET t:user:usr_U totp", "sealed"});
}

Test(lua, a_recovery_spends_its_code_when_it_is_confirmed)
{
    STEPS(
        ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {"HSET t:session:s1 step_up $now", "1"}, {CODES("s1"), "(ok)"},
        {RECOVER("other", "c1", "t1"), "(not_found)"}, {RECOVER("hash", "x1", "t1"), "(not_found)"},
        {"HSET t:throttle:p n 5 first $now until $now+9000", "3"}, {RECOVER("hash", "c1", "t1"), "(refused ~9s)"},
        {"HSET t:throttle:p until 0", "0"}, {"HSET t:user:usr_U locked 1 wrong_codes 3", "2"},
        {RECOVER("hash", "c1", "t1"), "(refused 0)"}, {"HDEL t:user:usr_U locked", "1"},
        {"HSET t:user:usr_U disabled 1", "1"}, {RECOVER("hash", "c1", "t1"), "(refused 0)"},
        {"HDEL t:user:usr_U disabled", "1"}, {RECOVER("hash", "x1,c1", "t1"), "(ok)"}, {"EXISTS t:throttle:p", "0"},
        {"HGET t:user:usr_U wrong_codes", "nil"}, {"PTTL t:recovery:t1", "~600000"},
        {"SCARD t:user:usr_U:recovery_codes", "3"},
        /* One at a time: the later one replaces it. */
        {RECOVER("hash", "c1", "t2"), "(ok)"}, {"@totp_waiting '' t1", "(not_found)"}, {RECOVERED("t1"), "(not_found)"},
        {"@totp_waiting '' x,t2", "(ok (id usr_U *) new t2)"}, {"EXISTS t:session:s1", "1"},
        {"HSET t:user:usr_U disabled 1", "1"}, {RECOVERED("t2"), "(not_found)"}, {"HDEL t:user:usr_U disabled", "1"},
        {RECOVERED("t2"), "(ok 1)"}, {"HMGET t:user:usr_U totp totp_step recovered", "(new 5 1*)"},
        {"EXISTS t:session:s1 t:recovery:t2", "0"}, {"SISMEMBER t:user:usr_U:recovery_codes c1", "0"},
        {"SCARD t:user:usr_U:recovery_codes", "2"},
        {"XREVRANGE t:acct:acct_A:audit + - COUNT 2",
         "((* (type session.ended *)) (* (type user.recovery_used actor usr_U target usr_U ip 192.0.2.1 request_id "
         "req_1)))"},
        {RECOVERED("t2"), "(not_found)"}, {RECOVER("hash", "c1", "t3"), "(not_found)"},
        /* It is told at the next sign-in from each browser. */
        {"ZADD t:user:usr_U:browsers XX CH $now-60000 b1", "1"},
        {CREATE("s2", "8"),
         "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 attacked 0 recovered 1* browsers ()))"},
        {CREATE("s3", "9"),
         "(ok * (last_sign_in_at 1* last_sign_in_ip 192.0.2.1 failed_sign_ins 0 attacked 0 browsers ()))"});
}

Test(lua, a_reset_ends_recoveries_and_their_codes)
{
    STEPS(ACCOUNT, USER, {CREATE("s1", "7"), "(ok *)"}, {"HSET t:session:s1 step_up $now", "1"}, {CODES("s1"), "(ok)"},
          {RECOVER("hash", "c1", "t1"), "(ok)"},
          {"@user_list acct_A 1 ''", "(ok (id usr_U account_name North account acct_A email a@b.test created 5 mac mac "
                                     "role owner password hash totp sealed recovery_codes_key mk))"},
          {"@user_reset usr_U new '' operator '' '' 100", "(ok)"},
          {"@user_list acct_A 1 ''", "(ok (id usr_U account_name North account acct_A email a@b.test created 5 mac mac "
                                     "role owner password new totp sealed))"},
          {"EXISTS t:user:usr_U:recovery_codes t:user:usr_U:new_totp t:recovery:t1", "0"},
          {RECOVERED("t1"), "(not_found)"});
}

/* Each class has its own cursor, so an entry of the same millisecond in a lower class is not passed over. */
Test(lua, audit_follow)
{
    STEPS({"@audit_follow acct_A 3 0-0 0-0 0-0 0-0", "(ok)"}, {"XADD t:acct:acct_A:audit:live 5-0 f 1", "5-0"},
          {"@audit_follow acct_A 3 0-0 0-0 0-0 0-0", "(ok (5-1073741824 (f 1)   ))"},
          {"XADD t:acct:acct_A:audit 5-0 f 2", "5-0"}, {"XADD t:acct:acct_A:audit 7-0 f 3", "7-0"},
          {"XADD t:acct:acct_A:audit:live 6-0 f 4", "6-0"},
          {"@audit_follow acct_A 9 0-0 5-0 0-0 0-0", "(ok (5-0 (f 2)   ) (6-1073741824 (f 4)   ) (7-0 (f 3)   ))"},
          {"@audit_follow acct_A 2 0-0 5-0 0-0 0-0", "(ok (5-0 (f 2)   ) (6-1073741824 (f 4)   ))"},
          {"@audit_follow acct_A 9 7-0 6-0 0-0 0-0", "(ok)"},
          {"@audit_follow acct_A 9 6-18446744073709551615 6-0 0-0 0-0", "(ok (7-0 (f 3)   ))"});
}

/* The rest of the arguments of audit_search, after its position. */
#define EVERYTHING " 250 '' '' '' '' '' '' 0 '' ''"

#define EVENT(class, entry, type, actor, target, ip)                                                         \
    {                                                                                                        \
        "XADD t:acct:acct_A:audit" class " " entry " type " type " actor " actor " target " target " ip " ip \
                                         " request_id ''",                                                   \
            entry                                                                                            \
    }
/* The times of the events in a reply of audit_search, in its order: "6 5 3". */
static void read_times(const char *reply, char *ret_times, size_t size)
{
    size_t len = 0;
    int depth = 0;

    ret_times[0] = '\0';
    for (const char *at = reply; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        if (*at == '(' && depth == 2)
            len += (size_t)snprintf(ret_times + len, size - len, "%s%d", len ? " " : "", (int)strtol(at + 1, NULL, 10));
    }
}

static void expect_found(const char *filter, const char *expected)
{
    char command[256], found[64], *reply;

    snprintf(command, sizeof command, "@audit_search acct_A 99 '' 250 %s '' ''", filter);
    reply = run(command);
    read_times(reply, found, sizeof found);
    cr_expect_eq(strncmp(reply, "(ok ", 4), 0, "%s: %s", filter, reply);
    cr_expect_str_eq(found, expected, "%s: %s", filter, reply);
    free(reply);
}

Test(lua, audit_search_filters)
{
    static const struct {
        const char *filter, *found;
    } CASES[] = {
        {"'' '' '' '' '' '' 0", "6 5 4 3 2 1"},
        {"api_key.created '' '' '' '' '' 0", "3 1"},
        {"api_key. '' '' '' '' '' 0", "3 2 1"},
        {"api_key '' '' '' '' '' 0", "3 2 1"},
        {"api '' '' '' '' '' 0", ""},
        {"api_key.create '' '' '' '' '' 0", ""},
        {"'' usr_U '' '' '' '' 0", "5 3 1"},
        {"'' usr_ '' '' '' '' 0", ""},
        {"device.denied usr_U '' '' '' '' 0", "5"},
        {"login.failed usr_U '' '' '' '' 0", ""},
        {"'' '' key_1 '' '' '' 0", "2 1"}, /* not the device that calls itself so */
        {"'' '' key_2 '' '' '' 0", "4 3"},
        {"'' '' '' '' 2 '' 0", "6 5 4 3 2"},
        {"'' '' '' '' '' 2 0", "1"},
        {"'' '' '' '' 2 4 0", "3 2"},
        {"'' '' '' '' 4 4 0", ""},
        {"'' '' '' 128+00000000000000000000ffffc0000207 '' '' 0", "1"},
        {"'' '' '' 120+00000000000000000000ffffc0000200 '' '' 0", "1"},
        {"'' '' '' 119+00000000000000000000ffffc0000200 '' '' 0", "3 1"},
        {"'' '' '' 96+00000000000000000000ffff00000000 '' '' 0", "4 3 1"},
        {"'' '' '' 128+20010db80000000f0000000000000007 '' '' 0", "2"},
        {"'' '' '' 61+20010db8000000080000000000000000 '' '' 0", "2"},
        {"'' '' '' 60+20010db8000000080000000000000000 '' '' 0", "2"},
        {"'' '' '' 62+20010db8000000080000000000000000 '' '' 0", ""},
        {"'' '' '' 0+00000000000000000000000000000000 '' '' 0", "4 3 2 1"},
        {"'' '' '' '' '' '' 1", "4 3"},
        {"'' '' '' '' 4 '' 1", "4"},
    };

    STEPS(ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+N usr_U '' '' 100 '' 0 0", "(ok)"},
          {"@key_insert d2 key_2+acct_A+test+wxyz+3+7+-+N usr_U '' '' 100 '' 0 0", "(ok)"},
          {"DEL t:acct:acct_A:audit t:acct:acct_A:audit:test", "2"},
          EVENT("", "1-0", "api_key.created", "usr_U", "key_1", "192.0.2.7"),
          EVENT(":live", "2-0", "api_key.revoked", "key_1", "key_1", "2001:db8:0:f::7"),
          EVENT(":test", "3-0", "api_key.created", "usr_U", "key_2", "192.0.3.255"),
          EVENT(":refused", "4-0", "requests.refused", "''", "key_2", "0::ffff:1.2.3.4"),
          EVENT("", "5-0", "device.denied", "usr_U", "key_1", "unix"),
          EVENT(":refused", "6-0", "login.failed", "''", "usr_U", "''"));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_found(CASES[i].filter, CASES[i].found);
    STEPS({"@audit_search acct_A 1 5-0 250 api_key '' '' '' '' '' 0 '' ''", "(ok 3-2147483648 (3-2147483648 *))"},
          {"@audit_search acct_A 1 3-2147483648 250 api_key '' '' '' '' '' 0 '' ''",
           "(ok 2-1073741824 (2-1073741824 *))"});
    /* Of the position and the end of the time asked for, the earlier counts. */
    STEPS({"@audit_search acct_A 1 3-2147483648 250 '' '' '' '' '' 6 0 '' ''", "(ok 2-1073741824 (2-1073741824 *))"},
          {"@audit_search acct_A 1 5-0 250 '' '' '' '' '' 3 0 '' ''", "(ok 2-1073741824 (2-1073741824 *))"});
}

/* Which event goes to which stream; '' is the class of people. */
Test(lua, audit_classes)
{
    STEPS(
        ACCOUNT, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+N usr_U '' '' 100 '' 0 0", "(ok)"},
        {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+N key_1 '' '' 100 '' 0 0", "(ok)"},
        {"@key_insert d3 key_3+acct_A+test+wxyz+3+7+-+N usr_U '' '' 100 '' 0 0", "(ok)"},
        {"@key_insert d4 key_4+acct_A+test+wxyz+3+7+-+N key_3 '' '' 100 '' 0 0", "(ok)"},
        {"@key_revoke 100 0 - - key_1 '' '' 0 operator '' '' ''", "(ok *)"},
        {"@key_revoke 100 1 - - key_2 '' '' 0 system '' '' ''", "(ok *)"},
        {"@key_revoke 100 0 - - key_3 '' '' 0 operator '' '' ''", "(ok *)"},
        {"XRANGE t:acct:acct_A:audit - +", "((* (*created actor usr_U target key_1 *)) (*revoked * target key_1 *)))"},
        {"XRANGE t:acct:acct_A:audit:live - +", "((* (*created actor key_1 *)) (*revoked actor system *)))"},
        {"XRANGE t:acct:acct_A:audit:test - +",
         "((*created actor usr_U *)) (*created actor key_3 *)) (*revoked actor operator *)))"},
        {"@audit_search acct_A 2 ''" EVERYTHING, "(ok * (* target key_3 *) (* target key_2 *))"});
}

Test(lua, audit_search_tells_the_names_of_its_own_account)
{
    STEPS(ACCOUNT, USER, {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+Name" BY, "(ok)"},
          {"@audit_search acct_A 1 ''" EVERYTHING,
           "(ok * (* (type api_key.created actor usr_U target key_1 ip 192.0.2.1 request_id "
           "req_1) a@b.test Name api_key))"},
          {"XADD t:acct:acct_B:audit 5-0 actor usr_U target key_1", "5-0"},
          {"@audit_search acct_B 1 ''" EVERYTHING, "(ok * (5-0 (actor usr_U target key_1)   api_key))"},
          {"XADD t:acct:acct_B:audit 6-0 actor operator target usr_gone", "6-0"},
          {"@audit_search acct_B 1 ''" EVERYTHING, "(ok * (6-0 (actor operator target usr_gone)   user))"},
          {"XADD t:acct:acct_A:audit 99999999999999-0 type device.denied target usr_U", "*"},
          {"@audit_search acct_A 1 ''" EVERYTHING, "(ok * (* (type device.denied target usr_U)   device))"},
          /* Names that devices give themselves are there too: they must not lead to other records than users'. */
          {"SADD t:user:usr_U:sessions s1", "1"}, {"XADD t:acct:acct_B:audit 7-0 target usr_U:sessions", "7-0"},
          {"@audit_search acct_B 1 ''" EVERYTHING, "(ok * (7-0 (target usr_U:sessions)   ))"});
}

Test(lua, usage_flush)
{
    STEPS(
        {"@usage_flush node 1 2026-01-31 9 0 acct_A live 1 =5:100 key_1 acct_A test 1 =2:90 key_2", "(ok)"},
        {"HGETALL t:acct:acct_A:usage", "(2026-01-31:live 5 2026-01-31:test 2)"},
        {":uses acct_A key_1 key_2", "((100 5 2026-01-31 5) (90 2 2026-01-31 2))"},
        {"ZRANGE t:acct:acct_A:usage_keys 0 -1 WITHSCORES", "(key_2 2 key_1 5)"},
        {"EXISTS t:acct:acct_A:usage:2026-01-31", "0"}, {"TTL t:usage:seq:node", "~86400s"},
        /* Sent again, and then an earlier one that is late: counted once. */
        {"@usage_flush node 1 2026-01-31 9 0 acct_A live 1 =5:100 key_1", "(ok)"},
        {":uses acct_A key_1", "((100 5 2026-01-31 5))"},
        /* The last use never goes back. A past day has its own hash. */
        {"@usage_flush node 2 2026-02-01 9 0 acct_A live 1 =1:99 key_1", "(ok)"},
        {":uses acct_A key_1", "((100 6 2026-02-01 1))"}, {"HGETALL t:acct:acct_A:usage:2026-01-31", "(key_1 5)"},
        {"TTL t:acct:acct_A:usage:2026-01-31", "~34560000s"},
        /* Late counts of that day go there too. */
        {"@usage_flush other 1 2026-01-31 9 0 acct_A live 1 =1:101 key_1", "(ok)"},
        {":uses acct_A key_1 key_2", "((101 7 2026-02-01 1) (90 2 2026-01-31 2))"},
        {"HGET t:acct:acct_A:usage 2026-01-31:live", "6"}, {"HGET t:acct:acct_A:usage:2026-01-31 key_1", "6"},
        {"ZRANGE t:acct:acct_A:usage_keys 0 -1 WITHSCORES", "(key_2 2 key_1 7)"},
        /* Several keys and another account in one batch. */
        {"@usage_flush node 4 2026-02-01 9 0 acct_A live 3 =1:200,8:50,9:60 key_1 key_3 key_4 acct_B live 1 =3:7 key_9",
         "(ok)"},
        {":uses acct_A key_1 key_3 key_4", "((200 8 2026-02-01 2) (50 8 2026-02-01 8) (60 9 2026-02-01 9))"},
        {"HGET t:acct:acct_A:usage 2026-02-01:live", "19"}, {":uses acct_B key_9 key_1", "((7 3 2026-02-01 3) nil)"},
        {"HGETALL t:acct:acct_B:usage", "(2026-02-01:live 3)"},
        {"@usage_flush node 3 2026-02-02 9 0 acct_A live 1 =1:300 key_1", "(ok)"}, {":uses acct_A key_1", "((200 *))"},
        /* The largest numbers: the most uses in one batch, and an all-time total beyond 32 bits. */
        {":use acct_A key_1 1769860800000 9007199254000 2026-02-01 8589934592", "0"},
        {"@usage_flush node 5 2026-02-01 9 0 acct_A live 1 =4294967295:281474976710655 key_1", "(ok)"},
        {":uses acct_A key_1", "((281474976710655 9011494221295 2026-02-01 12884901887))"},
        {"@usage_flush node 6 2026-02-02 9 0 acct_A live 1 =1:1 key_1", "(ok)"},
        {"HGET t:acct:acct_A:usage:2026-02-01 key_1", "12884901887"},
        {":use acct_A key_7 1 4398046511103 2026-02-01 1", "1"},
        {"@usage_flush node 7 2026-02-01 9 0 acct_A live 1 =1:1 key_7", "(ok)"},
        {"ZSCORE t:acct:acct_A:usage_keys key_7", "4398046511104"});
}

/* Otherwise it would count twice when it is sent again. */
Test(lua, usage_flush_writes_nothing_of_a_batch_that_fails)
{
    STEPS({"@usage_flush node 1 2026-01-31 9 0 acct_A live 1 =5:100 key_1", "(ok)"},
          {"HSET t:acct:acct_B:key_uses key_9 many", "1"},
          {"@usage_flush node 2 2026-02-01 9 0 acct_A live 1 =1:200 key_1 acct_B live 1 =3:7 key_9",
           "-*has 4 bytes, not 28*"},
          {"HGETALL t:acct:acct_A:usage", "(2026-01-31:live 5)"}, {":uses acct_A key_1", "((100 5 2026-01-31 5))"},
          {"EXISTS t:acct:acct_A:usage:2026-01-31 t:acct:acct_B:usage", "0"}, {"DEL t:acct:acct_B:key_uses", "1"},
          {"@usage_flush node 2 2026-02-01 9 0 acct_A live 1 =1:200 key_1 acct_B live 1 =3:7 key_9", "(ok)"},
          {"HGETALL t:acct:acct_A:usage", "(2026-01-31:live 5 2026-02-01:live 1)"});
}

/* A key moves up when its uses pass a multiple of about an eighth of themselves, so at each power of two. */
Test(lua, usage_flush_ranks_keys_now_and_then)
{
    STEPS({"@usage_flush node 1 2026-01-31 9 0 acct_A live 2 =1000:1,16:1 key_1 key_2", "(ok)"},
          {"@usage_flush node 2 2026-01-31 9 0 acct_A live 2 =23:2,1:2 key_1 key_2", "(ok)"},
          {"ZRANGE t:acct:acct_A:usage_keys 0 -1 WITHSCORES", "(key_2 16 key_1 1000)"},
          {"@usage_flush node 3 2026-01-31 9 0 acct_A live 2 =1:3,1:3 key_1 key_2", "(ok)"},
          {"ZRANGE t:acct:acct_A:usage_keys 0 -1 WITHSCORES", "(key_2 18 key_1 1024)"});
}

Test(lua, usage_flush_ranks_the_200_most_used_keys)
{
    STEPS({"EVAL for+i=101,300+do+redis.call('ZADD','t:acct:acct_A:usage_keys',i,'key_'..i)+end 0", "nil"},
          {":use acct_A key_1 1 99 2026-01-31 99", "1"}, {":use acct_A key_2 1 102 2026-01-31 102", "1"},
          /* Not more uses than the last ranked key. */
          {"@usage_flush node 1 2026-01-31 9 0 acct_A live 2 =2:1,101:1 key_1 key_3", "(ok)"},
          {"ZRANGE t:acct:acct_A:usage_keys 0 1", "(key_101 key_102)"},
          /* More: the last one makes room. key_2 was ranked with fewer uses than it has, and is not due. */
          {"@usage_flush node 2 2026-01-31 9 0 acct_A live 2 =1:1,1:1 key_1 key_2", "(ok)"},
          {"ZRANGE t:acct:acct_A:usage_keys 0 1 WITHSCORES", "(key_1 102 key_102 102)"},
          {"ZCARD t:acct:acct_A:usage_keys", "200"}, {"ZSCORE t:acct:acct_A:usage_keys key_2", "nil"},
          /* Several at once; two of them stay. */
          {"@usage_flush node 3 2026-01-31 9 0 acct_A live 3 =1:1,500:1,400:1 key_3 key_4 key_5", "(ok)"},
          {"ZREVRANGE t:acct:acct_A:usage_keys 0 2 WITHSCORES", "(key_4 500 key_5 400 key_300 300)"},
          {"ZRANGE t:acct:acct_A:usage_keys 0 0 WITHSCORES", "(key_103 103)"});
}

/* A refusal is account, key, mode, reason, date, requests, address, request id, network, time, method and route. */
#define REVOKED(day, requests) \
    "acct_A key_1 live revoked " day " " requests " 192.0.2.1 req_1 192.0.2.0/24 T1 GET+/v1/x"

Test(lua, usage_flush_counts_refusals)
{
    STEPS({"@usage_flush node 1 2026-01-31 9 2 " REVOKED(
               "2026-01-31",
               "3") " acct_A key_2 test insufficient_scope 2026-01-30 2 ip req_2 net T2 r acct_A live 1 =5:100 key_3",
           "(ok)"},
          {"HGETALL t:acct:acct_A:refused", "(2026-01-31:live 3 2026-01-30:test 2)"},
          {"HGETALL t:acct:acct_A:key_refused", "(key_1:revoked 3 key_2:insufficient_scope 2)"},
          {"HGETALL t:acct:acct_A:refused:2026-01-31", "(key_1:revoked 3)"},
          {"TTL t:acct:acct_A:refused:2026-01-31", "~34560000s"},
          {"HGETALL t:acct:acct_A:usage", "(2026-01-31:live 5)"},
          /* Sent again, it counts once. Refusals alone are a batch too. */
          {"@usage_flush node 1 2026-01-31 9 1 " REVOKED("2026-01-31", "3"), "(ok)"},
          {"@usage_flush node 2 2026-01-31 9 1 acct_A key_2 test mode_not_permitted 2026-01-31 1 ip req_3 net at r",
           "(ok)"},
          {"@usage_read acct_A 9 2 2026-01-30 2026-01-31", "(ok (nil nil nil 5) (2 nil 1 3) (key_3 5   () (0 0 0 0)))"},
          {"@usage_read acct_A 9 1 2026-01-31 key_1 key_2",
           "(ok (nil 5) (1 3) (key_1 0   (0) (3 0 0 0)) (key_2 0   (0) (0 0 1 0)))"},
          {"@usage_read acct_A 9 2 2026-01-30 2026-01-31 key_2",
           "(ok (nil nil nil 5) (2 nil 1 3) (key_2 0   (0 0) (0 2 1 0)))"});
}

#define REVOKED_ELSEWHERE "acct_A key_1 live revoked 2026-01-31 1 198.51.100.1 req_2 198.51.100.0/24 T2 POST+/v1/y"

Test(lua, usage_flush_tells_of_a_revoked_key_once_an_hour_and_network)
{
    STEPS({"@usage_flush node 1 2026-01-31 9 1 " REVOKED("2026-01-31", "3"), "(ok)"},
          {"XRANGE t:acct:acct_A:audit:refused - +",
           "((* (type api_key.used_after_revocation actor  target key_1 ip 192.0.2.1 "
           "request_id req_1 count 3 data:first T1 data:last T1 data:network 192.0.2.0/24 data:route GET /v1/x)))"},
          {"TTL t:used_after:key_1", "~86400s"},
          /* From another node too. */
          {"@usage_flush other 1 2026-01-31 9 1 " REVOKED("2026-01-31", "40"), "(ok)"},
          {"@usage_flush node 2 2026-01-31 9 2 " REVOKED("2026-01-31", "1") " " REVOKED("2026-02-01", "1"), "(ok)"},
          {"XLEN t:acct:acct_A:audit:refused", "1"}, {"HGET t:used_after:key_1 revoked+192.0.2.0/24", "* 42 T1"},
          /* Use from another network is an event of its own, although the hour is not over. */
          {"@usage_flush node 3 2026-01-31 9 1 " REVOKED_ELSEWHERE, "(ok)"},
          {"XREVRANGE t:acct:acct_A:audit:refused + - COUNT 1",
           "((* (* ip 198.51.100.1 * count 1 * data:route POST /v1/y)))"},
          {"XLEN t:acct:acct_A:audit:refused", "2"});
    /* An hour passes. */
    STEPS({"HSET t:used_after:key_1 revoked+192.0.2.0/24 1+42+T1", "0"},
          {"@usage_flush node 4 2026-01-31 9 1 " REVOKED("2026-01-31", "8"), "(ok)"},
          {"XLEN t:acct:acct_A:audit:refused", "3"}, {"HGET t:used_after:key_1 revoked+192.0.2.0/24", "* 0 "},
          {"XREVRANGE t:acct:acct_A:audit:refused + - COUNT 1", "((* (* count 50 *)))"});
}

#define LACKING(requests, ip, network, at) \
    "acct_A key_2 live insufficient_scope 2026-01-31 " requests " " ip " req_" at " " network " " at " r"

Test(lua, usage_flush_gathers_refusals)
{
    STEPS({"@usage_flush node 1 2026-01-31 9 1 " LACKING("3", "192.0.2.1", "192.0.2.0/24", "T1"), "(ok)"},
          {"XRANGE t:acct:acct_A:audit:refused - +",
           "((* (type requests.refused actor  target key_2 ip 192.0.2.1 request_id req_T1 count 3 data:first T1 "
           "data:last T1 data:network 192.0.2.0/24 data:reason insufficient_scope data:route r)))"},
          {"TTL t:refused_told:key_2", "~86400s"},
          /* The same network, reason and hour; another network; another reason. */
          {"@usage_flush node 2 2026-01-31 9 2 " LACKING("5", "192.0.2.9", "192.0.2.0/24",
                                                         "T2") " " LACKING("6", "192.0.2.9", "192.0.2.0/24", "T3"),
           "(ok)"},
          {"XLEN t:acct:acct_A:audit:refused", "1"},
          {"@usage_flush node 3 2026-01-31 9 1 " LACKING("1", "198.51.100.1", "198.51.100.0/24", "T4"), "(ok)"},
          {"XLEN t:acct:acct_A:audit:refused", "2"},
          {"@usage_flush node 4 2026-01-31 9 1 acct_A key_2 live mode_not_permitted 2026-01-31 1 192.0.2.1 req_5 "
           "192.0.2.0/24 T5 r",
           "(ok)"},
          {"XLEN t:acct:acct_A:audit:refused", "3"},
          {"HGET t:refused_told:key_2 insufficient_scope+192.0.2.0/24", "* 11 T2"});
    /* An hour passes. */
    STEPS({"HSET t:refused_told:key_2 insufficient_scope+192.0.2.0/24 1+11+T2", "0"},
          {"@usage_flush node 5 2026-01-31 9 1 " LACKING("1", "192.0.2.1", "192.0.2.0/24", "T6"), "(ok)"},
          {"XREVRANGE t:acct:acct_A:audit:refused + - COUNT 1",
           "((* (* count 12 data:first T2 data:last T6 data:network 192.0.2.0/24 *)))"},
          {"HGET t:refused_told:key_2 insufficient_scope+192.0.2.0/24", "* 0 "});
}

Test(lua, usage_flush_gathers_refusals_from_everywhere)
{
    enum { NETWORKS = 120, MOST = 101 };
    char command[256], *reply;

    for (unsigned i = 0; i < NETWORKS; i++) {
        snprintf(
            command, sizeof command,
            "@usage_flush node %u 2026-01-31 1000 1 acct_A key_2 live insufficient_scope 2026-01-31 1 10.0.%u.1 req_1 "
            "10.0.%u.0/24 T1 r",
            i + 1, i, i);
        free(run(command));
    }
    reply = run("XLEN t:acct:acct_A:audit:refused");
    cr_expect_eq(strtol(reply, NULL, 10), MOST, "%s", reply);
    free(reply);
    reply = run("HGET t:refused_told:key_2 insufficient_scope+other");
    cr_expect(strstr(reply, " 19 T1"), "%s", reply);
    free(reply);
}

/* A key whose rank is outdated is still listed in its right place. */
Test(lua, usage_read_lists_the_most_used_keys_by_their_exact_uses)
{
    STEPS({"@usage_flush node 1 2026-01-31 9 0 acct_A live 3 =1001:1,1000:1,3:1 key_1 key_2 key_3", "(ok)"},
          {"@usage_flush node 2 2026-01-31 9 0 acct_A live 1 =2:2 key_2", "(ok)"},
          {"ZREVRANGE t:acct:acct_A:usage_keys 0 -1 WITHSCORES", "(key_1 1001 key_2 1000 key_3 3)"},
          {"@usage_read acct_A 1 1 2026-01-31", "(ok (nil 2006) (nil nil) (key_2 1002   () (0 0 0 0)))"},
          {"@usage_flush node 3 2026-01-31 9 0 acct_A live 1 =1:3 key_1", "(ok)"},
          {"@usage_read acct_A 2 1 2026-01-31",
           "(ok (nil 2007) (nil nil) (key_2 1002   () (0 0 0 0)) (key_1 1002   () (0 0 0 0)))"},
          {"HSET t:acct:acct_A:key_uses key_1 many", "0"},
          {"@usage_read acct_A 2 1 2026-01-31", "*has 4 bytes, not 28*"});
}

#define BEGIN_AT(network, device) \
    "@device_begin " device " c" device " agent Ward 1024 192.0.2.9 600000 5000 mac1 " network " 3"
#define BEGIN(device, code) "@device_begin " device " " code " agent Ward 1024 192.0.2.9 600000 5000 mac1 net 100"
#define POLL(device, client) "@device_poll " device " " client
#define CLAIM_AS(device, approval, key) \
    "@device_claim " device " " approval " h" key " dev_" key "+acct_A+live+wxyz+1024+7+-+Ward 192.0.2.9 req_9 100 0"
#define CLAIM(device, key) CLAIM_AS(device, "acct_A Ward 1024 usr_U mac2", key)
#define FIND(code, account) "@device_find " code " " account
#define APPROVE_BY(device, account, mac, credential, limits) \
    "@device_approve " device " " account " Ward 1024 " mac ORIGIN " " credential " " limits
#define APPROVE(device, account) APPROVE_BY(device, account, "mac2", "''", "0 0")
#define DENY_BY(device, account, credential) "@device_deny " device " " account " Ward" ORIGIN " " credential
#define DENY(device, account) DENY_BY(device, account, "''")
#define MARK(device, status, account) "@device_mark " device " " status " " account " usr_U mac2"
/* Both steps of an approval. */
#define APPROVED(device)                            \
    {APPROVE(device, "acct_A"), "(ok usr_U mac2)"}, \
    {                                               \
        MARK(device, "approved", "acct_A"), "(ok)"  \
    }

Test(lua, device_begin)
{
    STEPS({BEGIN("d1", "c1"), "(ok)"},
          {"HMGET t:device:d1 client name scopes ip interval status account polled mac",
           "(agent Ward 1024 192.0.2.9 5000 pending nil nil mac1)"},
          {"HGET t:device:d1 created", "1????????????"}, {"PTTL t:device:d1", "~4200000"}, {"GET t:user_code:c1", "d1"},
          {"PTTL t:user_code:c1", "~4200000"}, {BEGIN("d1", "c2"), "(conflict)"}, {BEGIN("d2", "c1"), "(conflict)"},
          {"EXISTS t:device:d2 t:user_code:c2", "0"});
}

/* Whoever fills Redis with them displaces his own. */
Test(lua, enrolments_have_a_bound)
{
    STEPS({BEGIN_AT("n1", "d1"), "(ok)"}, {BEGIN_AT("n2", "d2"), "(ok)"}, {BEGIN_AT("n2", "d3"), "(ok)"},
          {"EXISTS t:device:d1 t:device:d2 t:device:d3", "3"}, {BEGIN_AT("n2", "d4"), "(ok)"},
          {"EXISTS t:device:d2 t:user_code:cd2", "0"}, {"EXISTS t:device:d1 t:device:d3 t:device:d4", "3"},
          {BEGIN_AT("n3", "d5"), "(ok)"}, {"EXISTS t:device:d3", "0"}, {BEGIN_AT("n3", "d6"), "(ok)"},
          {"EXISTS t:device:d5", "0"}, {"EXISTS t:device:d1 t:device:d4 t:device:d6", "3"},
          {"ZRANGE t:enrolment_networks 0 -1 WITHSCORES", "(n1 1 n2 1 n3 1)"}, {"ZCARD t:enrolments", "3"},
          {"PTTL t:enrolments", "~4200000"}, {"PTTL t:enrolment_networks", "~4200000"},
          /* Those that Redis has forgotten make room as others do. */
          {"DEL t:device:d4 t:user_code:cd4", "2"}, {BEGIN_AT("n2", "d7"), "(ok)"},
          {"EXISTS t:device:d1 t:device:d6 t:device:d7", "3"});
}

#define MISS_AT(network, list) "@throttle_fail '' " list ", 0 " network " 3"

/* Strangers can write counters of any number of networks: beyond the bound, whoever has written the most loses the
 * oldest. Those of requests that cost nothing displace none of sign-ins. */
Test(lua, counters_of_strangers_have_a_bound)
{
    STEPS({MISS_AT("n1", "address:a1"), "(ok 0)"}, {MISS_AT("n2", "address:a2"), "(ok 0)"},
          {MISS_AT("n2", "address:a3"), "(ok 0)"}, {MISS_AT("n2", "address:a3"), "(ok 0)"}, {"ZCARD t:addresses", "3"},
          {MISS_AT("n2", "address:a4"), "(ok 0)"}, {"EXISTS t:throttle:a2", "0"},
          {"EXISTS t:throttle:a1 t:throttle:a3 t:throttle:a4", "3"},
          {"ZRANGE t:address_networks 0 -1 WITHSCORES", "(n1 1 n2 2)"}, {"PTTL t:addresses", "~4500000"},
          {"PTTL t:address_networks", "~4500000"}, {MISS_AT("n1", "email:e,pair:p,wide:w"), "(ok 0)"},
          {"ZCARD t:throttles", "3"}, {MISS_AT("n3", "email:f"), "(ok 0)"}, {"ZCARD t:throttles", "3"},
          {"ZRANGE t:throttle_networks 0 -1 WITHSCORES", "(n3 1 n1 2)"},
          {"EXISTS t:throttle:e t:throttle:p t:throttle:w", "2"}, {"EXISTS t:throttle:f t:throttle:a1", "2"},
          /* What has expired makes room before anything else does. */
          {"DEL t:throttle:f", "1"}, {MISS_AT("n4", "email:g"), "(ok 0)"},
          {"ZRANGE t:throttle_networks 0 -1 WITHSCORES", "(n4 1 n1 2)"},
          /* A counter that goes on is known as long as it lasts. */
          {"PEXPIRE t:throttles 1000", "1"}, {MISS_AT("n4", "email:g"), "(ok 0)"}, {"PTTL t:throttles", "~4500000"},
          /* When memory runs short, some go with each call. */
          {"@throttle_fail '' email:g, 0 n4 1", "(ok 0)"}, {"ZCARD t:throttles", "1"},
          /* Those that lie with an account are the account's. */
          {MISS_AT("n5", "user:u,browser:b"), "(ok 0)"}, {"EXISTS t:throttle:u t:throttle:b", "2"},
          {"ZCARD t:throttles", "1"});
}

/* Nobody is slowed down by others at the same address: a device that keeps its interval is not counted. */
Test(lua, device_poll_keeps_to_the_interval)
{
    STEPS({BEGIN("d1", "c1"), "(ok)"}, {POLL("d9", "agent"), "(not_found)"}, {POLL("d1", "other"), "(not_found)"},
          {POLL("d1", "agent"), "(refused pending)"}, {POLL("d1", "agent"), "(refused hasty)"},
          {"HGET t:device:d1 interval", "5000"}, {"HSET t:device:d1 polled $now-2000", "0"},
          {POLL("d1", "agent"), "(refused hasty)"}, {"@device_slow_down d1", "(ok)"},
          {"HGET t:device:d1 interval", "10000"}, {POLL("d1", "agent"), "(refused hasty)"},
          {"HSET t:device:d1 polled $now-7000", "0"}, {POLL("d1", "agent"), "(refused hasty)"},
          {"HSET t:device:d1 polled $now-9001", "0"}, {POLL("d1", "agent"), "(refused pending)"},
          {"HGET t:device:d1 interval", "10000"}, {"@device_slow_down d9", "(not_found)"}, {"EXISTS t:device:d9", "0"},
          {"EXISTS t:id:dev_1 t:key:h1", "0"});
}

#define APPROVER                                \
    {                                           \
        "HSET t:user:usr_U account acct_A", "1" \
    }

/* Nodes of version 0.2 know only the enrolment, and serve stores of one partition. */
Test(lua, devices_that_older_nodes_approve_deny_and_claim)
{
    STEPS(ACCOUNT, APPROVER, {BEGIN("d1", "c1"), "(ok)"},
          {"HSET t:device:d1 status approved account acct_A user usr_U mac mac2", "2"},
          {POLL("d1", "agent"), "(ok acct_A Ward 1024 usr_U mac2)"},
          {CLAIM_AS("d1", "acct_B Ward 1024 usr_U mac2", "1"), "(not_found)"},
          {CLAIM_AS("d1", "acct_A Ward 1024 usr_U mac1", "1"), "(not_found)"},
          {APPROVE_BY("d1", "acct_A", "''", "''", "0 0"), "(ok usr_U )"}, {"EXISTS t:acct:acct_A:device:d1", "0"},
          {CLAIM("d1", "1"), "(ok North)"}, {"HGET t:device:d1 status", "claimed"}, {CLAIM("d1", "2"), "(not_found)"},
          /* What was approved here is claimed, or denied, there. */
          {BEGIN("d2", "c2"), "(ok)"}, APPROVED("d2"),
          {"HMGET t:device:d2 status account user mac", "(approved acct_A usr_U mac2)"},
          {"HSET t:device:d2 status claimed", "0"}, {CLAIM("d2", "2"), "(not_found)"}, {BEGIN("d3", "c3"), "(ok)"},
          APPROVED("d3"), {"HSET t:device:d3 status denied", "0"}, {CLAIM("d3", "2"), "(not_found)"},
          /* What was approved there is denied here. */
          {BEGIN("d4", "c4"), "(ok)"}, {"HSET t:device:d4 status approved account acct_A user usr_U mac mac2", "2"},
          {DENY("d4", "acct_A"), "(ok)"}, {CLAIM("d4", "2"), "(not_found)"}, {"EXISTS t:id:dev_2 t:key:h2", "0"});
}

Test(lua, who_is_gone_or_disabled_gives_no_device_a_key)
{
    STEPS(ACCOUNT, APPROVER, {BEGIN("d1", "c1"), "(ok)"}, APPROVED("d1"), {"HSET t:user:usr_U disabled 5", "1"},
          {CLAIM("d1", "1"), "(not_found)"}, {"DEL t:user:usr_U", "1"}, {CLAIM("d1", "1"), "(not_found)"},
          {"EXISTS t:id:dev_1", "0"}, APPROVER, {CLAIM("d1", "1"), "(ok North)"});
}

#define MAKE_AS(n, lines) "@key_insert d" n " key_" n "+acct_A+live+wxyz+3+7+-+N\nv=2" lines "\nm=mac" BY
#define MADE(n, lines)            \
    {                             \
        MAKE_AS(n, lines), "(ok)" \
    }
#define FIND_KEYS(which, mark, cursor) "@person_keys acct_A usr_U " which " " mark " " cursor " 100 1"

/* Whom a key goes back to: what its record says, else whoever is at the beginning of the keys that made one another. */
Test(lua, person_keys)
{
    STEPS(ACCOUNT, MADE("01", "\nby=usr_U"), MADE("02", "\nby=key_01"), MADE("03", "\nby=key_02"),
          MADE("04", "\nby=key_01\norigin=usr_U"), MADE("05", "\nby=usr_V\norigin=usr_U\nreplacer=usr_U"),
          MADE("06", "\nby=usr_U\norigin=usr_V\nreplacer=usr_V"), MADE("07", "\nby=key_05\norigin=usr_V"),
          MADE("08", "\nby=usr_V"), MADE("09", "\nby=key_08"), MADE("10", "\nby=key_01\norigin=-"), MADE("11", ""),
          /* Only what the MAC binds counts. */
          MADE("12", "\nm=mac\nby=usr_U"), {FIND_KEYS("all", "m1", "''"), "(ok 1 )"},
          {"GET t:acct:acct_A:leaving:usr_U", "m1"}, {"PTTL t:acct:acct_A:leaving:usr_U", "~15000"},
          {FIND_KEYS("all", "m1", "1+"), "(ok 2  (key_01 1) (key_02 1) (key_03 1) (key_04 1) (key_05 1) (key_06 1))"},
          {FIND_KEYS("made", "m1", "1+"), "(ok 2  (key_01 1) (key_02 0) (key_03 0) (key_04 0) (key_05 1) (key_06 1))"},
          {FIND_KEYS("none", "m1", "1+key_03"), "(ok 2  (key_04 0) (key_05 0) (key_06 0))"},
          {"@person_keys acct_A usr_U all m1 1+ 2", "(ok 1 key_02 (key_01 1) (key_02 1))"},
          {FIND_KEYS("all", "m1", "2+"), "(ok 3 )"}, {FIND_KEYS("all", "m1", "3+"), "(ok )"});
}

/* A later call for the same person takes over, and one that took too long begins again. */
Test(lua, person_keys_are_looked_for_by_one_call)
{
    STEPS(ACCOUNT, MADE("01", "\nby=usr_U"), {FIND_KEYS("all", "m1", "''"), "(ok 1 )"},
          {FIND_KEYS("all", "m2", "''"), "(ok 1 )"}, {FIND_KEYS("all", "m1", "1+"), "(conflict)"},
          /* A change of the role takes nothing over: it could keep its person from being removed. */
          {"@person_keys acct_A usr_U all m3 '' 100 0", "(leaving)"},
          {"@person_keys acct_A usr_U all m2 '' 100 0", "(ok 1 )"},
          {FIND_KEYS("all", "m2", "1+"), "(ok 2  (key_01 1))"},
          {"@person_keys_end acct_A usr_U key_01" ORIGIN " - - user_removed m1 1", "(conflict)"},
          {"GET t:key:d01", "* - N\nv=2*"}, {"DEL t:acct:acct_A:leaving:usr_U", "1"},
          {FIND_KEYS("all", "m2", "1+"), "(conflict)"});
}

#define LATE(n, lines)                                                           \
    "@key_insert d" n " key_" n "+acct_A+live+wxyz+3+7+-+N\nv=2" lines "\nm=mac" \
    " key_01 '' '' 100 key+d01 100 100"

/* While keys are looked for, nothing is made that would be one of them. */
Test(lua, whoever_is_leaving_makes_nothing)
{
    STEPS(ACCOUNT, USER, MADE("01", "\nby=usr_U"), MADE("02", "\nby=usr_V\norigin=usr_U"), MADE("03", "\nby=usr_V"),
          {FIND_KEYS("all", "m1", "''"), "(ok 1 )"}, {LATE("04", "\nby=key_01\norigin=usr_U"), "(leaving)"},
          {LATE("04", "\nby=key_01"), "(leaving)"}, {LATE("04", "\nby=usr_V\nreplacer=usr_U"), "(leaving)"},
          {"@key_replace d04 key_04+acct_A+live+wxyz+3+7+-+N\nv=2\nby=usr_V\norigin=usr_U\nm=mac usr_V '' '' 100 '' "
           "100 100 key_02 acct_A api_key 0 - - 0",
           "(leaving)"},
          {"EXISTS t:key:d04 t:id:key_04", "0"}, {LATE("05", "\nby=usr_V"), "(ok)"}, {BEGIN("d1", "c1"), "(ok)"},
          {APPROVE("d1", "acct_A"), "(leaving)"},
          {"@person_change usr_U acct_A mac mac2 owner '' operator '' '' 100 '' m0 0", "(conflict)"},
          {"@person_change usr_U acct_A mac mac2 owner '' operator '' '' 100 '' m1 1", "(ok 0 *)"},
          {LATE("04", "\nby=key_01\norigin=usr_U"), "(leaving)"},
          {"@person_keys_end acct_A usr_U key_02" ORIGIN " - - user_disabled m1 0", "(ok *)"},
          {LATE("04", "\nby=key_01\norigin=usr_U"), "(leaving)"},
          {"@person_keys_end acct_A usr_U key_02" ORIGIN " - - user_disabled m1 1", "(ok *)"},
          {LATE("04", "\nby=key_01\norigin=usr_U"), "(ok)"},
          /* A device that was approved before. */
          APPROVED("d1"), {FIND_KEYS("all", "m1", "''"), "(ok 1  (key_02 1))"}, {CLAIM("d1", "1"), "(conflict)"},
          /* A change that is refused leaves nothing behind. */
          {"@person_change usr_U acct_A mac mac2 auditor '' operator '' '' 100 '' m1 1", "(conflict)"},
          {"EXISTS t:acct:acct_A:leaving:usr_U", "0"}, {CLAIM("d1", "1"), "(ok North)"});
}

/* Whoever writes to Redis, or has made a chain of any length, keeps no script for long. */
#define LONG_CHAIN                                                                          \
    "EVAL for+i=1,3000+do+local+id=string.format('key_c%04d',i)+"                           \
    "redis.call('SET','t:id:'..id,'h'..id)+"                                                \
    "redis.call('SET','t:key:h'..id,id..'+acct_A+live+wxyz+3+7+1+N\\nv=2\\nby='..(i>1+and+" \
    "string.format('key_c%04d',i-1)+or+'usr_U')..'\\nm=mac')+end+return+3000 0"
Test(lua, makers_are_followed_in_bounded_steps)
{
    STEPS(ACCOUNT, {LONG_CHAIN, "3000"}, MADE("01", "\nby=key_c0900"), MADE("02", "\nby=key_c1900"),
          MADE("03", "\nby=key_c3000"), MADE("04", "\nby=key_05"), MADE("05", "\nby=key_04"),
          MADE("06", "\nby=key_c0010"), {FIND_KEYS("all", "m1", "''"), "(ok 1 )"},
          {FIND_KEYS("all", "m1", "1+"), "(ok 1 key_02 (key_01 1) (key_02 1))"},
          /* It may be this person's, so it is named. */
          {FIND_KEYS("all", "m1", "1+key_02"), "(ok 1 key_03 (key_03 0))"},
          {FIND_KEYS("all", "m1", "1+key_03"), "(ok 1 key_04 (key_04 0))"},
          {FIND_KEYS("all", "m1", "1+key_05"), "(ok 2  (key_06 1))"});
}

/* Versions without roles keep the set of users alone. */
Test(lua, people_are_found_in_what_older_versions_wrote)
{
    STEPS(ACCOUNT, USER, {"@user_create usr_V acct_A v@b.test hash sealed 5" ORIGIN " mac auditor", "(ok)"},
          {"DEL t:acct:acct_A:people t:acct:acct_A:owners", "2"},
          {"@people_list acct_A 1 ''",
           "(ok 1 (id usr_V account_name North account acct_A email v@b.test created 5 mac mac role auditor))"},
          {"@people_list acct_A 1 usr_V", "(ok 0 (id usr_U *))"}, {"SMEMBERS t:acct:acct_A:owners", "(usr_U)"},
          {"@person_change usr_U acct_A mac mac2 auditor '' operator '' '' 100 '' '' 0", "(refused)"},
          {"HGET t:user:usr_U mac", "mac"}, {"HSET t:user:usr_U role owner", "1"},
          /* Of what was read meanwhile, of another account, of nobody. */
          {"@person_change usr_V acct_A old mac2 owner '' operator '' '' 100 '' '' 0", "(conflict)"},
          {"@person_change usr_V acct_B mac mac2 owner '' operator '' '' 100 '' '' 0", "(not_found)"},
          {"@person_change usr_W acct_A mac mac2 owner '' operator '' '' 100 '' '' 0", "(not_found)"},
          {"@person_change usr_V acct_A mac mac2 owner '' operator '' '' 100 '' '' 0", "(ok 0 (id usr_V *))"},
          {"@person_change usr_U acct_A mac mac2 auditor '' operator '' '' 100 '' '' 0", "(ok 0 *)"},
          {"SMEMBERS t:acct:acct_A:owners", "(usr_V)"});
}

#define FILL_USERS                                                                    \
    "EVAL for+i=0,249+do+local+u=string.format('usr_m_%04d',i)+"                      \
    "redis.call('SADD','t:acct:acct_A:users',u)+"                                     \
    "redis.call('HSET','t:user:'..u,'account','acct_A','email',u,'created',1,'role'," \
    "'auditor')+end+return+250 0"

/* 251 users, of whom one is an owner; in an index there is one who is no user any more. */
Test(lua, a_long_index_of_people_is_made_in_parts)
{
    STEPS(ACCOUNT, USER, {FILL_USERS, "250"}, {"@people_list acct_A 1 ''", "(again)"},
          {"@user_list acct_A 1 ''", "(again)"}, {"@people_list acct_A 1 ''", "(ok 1 (id usr_m_0249 *))"},
          {"ZCARD t:acct:acct_A:people", "251"}, {"SMEMBERS t:acct:acct_A:owners", "(usr_U)"},
          {"SREM t:acct:acct_A:users usr_m_0007", "1"}, {"@people_list acct_A 1 ''", "(again)"},
          {"ZSCORE t:acct:acct_A:people usr_m_0007", "nil"},
          /* Nobody is the last owner, or is not, before all are known. */
          {"@person_change usr_U acct_A mac mac2 auditor '' operator '' '' 100 '' '' 0", "(again)"},
          {"@person_remove usr_U acct_A operator '' '' 100", "(refused)"}, {"EXISTS t:user:usr_U", "1"});
}

/* Disabled owners are not looked at one by one. */
Test(lua, owners_are_those_who_are_not_disabled)
{
    STEPS(ACCOUNT, USER, {"@user_create usr_V acct_A v@b.test hash sealed 5" ORIGIN " mac owner", "(ok)"},
          {"@person_change usr_V acct_A mac mac2 owner $now operator '' '' 100 '' '' 0", "(ok 0 *)"},
          {"SMEMBERS t:acct:acct_A:owners", "(usr_U)"}, {"DEL t:acct:acct_A:people t:acct:acct_A:owners", "2"},
          {"@people_list acct_A 1 ''", "(ok 1 *)"}, {"SMEMBERS t:acct:acct_A:owners", "(usr_U)"},
          {"@person_change usr_V acct_A mac2 mac3 owner '' operator '' '' 100 '' '' 0", "(ok 0 *)"},
          {"SCARD t:acct:acct_A:owners", "2"}, {"HSET t:user:usr_V locked 1", "1"},
          {"@person_change usr_U acct_A mac mac2 auditor '' operator '' '' 100 '' '' 0", "(refused)"},
          {"HDEL t:user:usr_V locked", "1"},
          {"@person_change usr_U acct_A mac mac2 auditor '' operator '' '' 100 '' '' 0", "(ok 0 *)"});
}

#define INVITE(digest, by) \
    "@link_create " digest " inv_" digest " acct_A n@b.test auditor $now $now+1000000 mac " by " '' '' 100 '' 0 0"
Test(lua, links_end_in_time)
{
    STEPS(ACCOUNT, USER, {INVITE("a1", "operator"), "(ok)"},
          {"@link_find a1", "(ok (digest a1 account_name North id inv_a1 account acct_A *))"},
          {"@link_list acct_A 5 ''", "(ok 0 (digest a1 *))"}, {"HSET t:link:a1 expires $now", "0"},
          {"@link_find a1", "(not_found)"}, {"EXISTS t:link:a1 t:acct:acct_A:invitations t:acct:acct_A:invited", "0"},
          /* Redis forgets the record by itself; the list finds out. */
          {INVITE("a2", "operator"), "(ok)"}, {"DEL t:link:a2", "1"}, {"@link_list acct_A 5 ''", "(again)"},
          {"@link_list acct_A 5 ''", "(ok 0)"}, {"EXISTS t:acct:acct_A:invitations t:acct:acct_A:invited", "0"},
          /* By whom they were made. */
          {INVITE("a3", "usr_U"), "(ok)"}, {"@link_find a3", "(ok *)"}, {"HSET t:user:usr_U links_ended $now+1", "1"},
          {"@link_find a3", "(not_found)"}, {INVITE("a4", "key_1"), "(ok)"}, {"@link_find a4", "(not_found)"});
}

/* Whose key made it must be known. Keys of before say it only by who made whom. */
Test(lua, links_of_keys_of_unknown_origin_end)
{
    STEPS(ACCOUNT, USER, {LONG_CHAIN, "3000"}, MADE("01", "\nby=key_c0900"), MADE("02", "\nby=key_c0100"),
          {INVITE("a1", "key_02"), "(ok)"}, {"@link_find a1", "(ok *)"}, {INVITE("a1", "key_01"), "(ok)"},
          {"@link_find a1", "(not_found)"});
}

/* Whoever has the link of a reset could undo what an operator did since. */
Test(lua, a_password_by_an_operator_ends_the_link_of_a_reset)
{
    STEPS(ACCOUNT, USER,
          {"@link_reset r1 lnk_1 usr_U '' $now+1000000 mac $now none operator '' '' 100 '' owner", "(ok 0)"},
          {"@user_reset usr_U '' sealed operator '' '' 100 0", "(ok)"},
          {"@link_find r1", "(ok (digest r1 account_name North id lnk_1 *))"},
          {"@user_reset usr_U new '' operator '' '' 100 1", "(ok)"}, {"@link_find r1", "(not_found)"},
          {"EXISTS t:link:r1", "0"}, {"HGET t:user:usr_U link", "nil"});
}

#define OWNER_SESSION                                                                                                 \
    {                                                                                                                 \
        "HSET t:session:s1 sid S user usr_U account acct_A created $now expires $now+5000000 seen $now step_up $now", \
            "7"                                                                                                       \
    }
#define INVITE_BY_SESSION(digest, people_max, changes_max)  \
    "@link_create " digest " inv_" digest " acct_A " digest \
    "@b.test auditor $now $now+1000000 mac usr_U '' '' 100 " BY_ROLE("owner") " " people_max " " changes_max

Test(lua, a_former_owner_changes_no_people)
{
    STEPS(ACCOUNT, USER, {"@user_create usr_V acct_A v@b.test hash sealed 5" ORIGIN " mac owner", "(ok)"},
          OWNER_SESSION, {INVITE_BY_SESSION("a1", "0", "0"), "(ok)"}, {"HSET t:user:usr_U role developer", "1"},
          {INVITE_BY_SESSION("a2", "0", "0"), "(actor_role)"},
          {"@link_withdraw acct_A inv_a1 usr_U '' '' 100 " BY_ROLE("owner"), "(actor_role)"},
          {"@link_reset a3 rst_1 usr_V acct_A $now+1000000 mac $now no usr_U '' '' 100 " BY_ROLE("owner") " owner",
           "(actor_role)"},
          {"@person_change usr_V acct_A mac mac2 auditor '' usr_U '' '' 100 " BY_ROLE("owner"), "(actor_role)"},
          {"EXISTS t:link:a1 t:link:a2 t:link:a3", "1"}, {"HMGET t:user:usr_V password role", "(hash nil)"});
}

Test(lua, invitations_are_limited)
{
    STEPS(ACCOUNT, USER, OWNER_SESSION, {INVITE_BY_SESSION("a1", "1", "0"), "(full)"},
          {INVITE_BY_SESSION("a1", "2", "0"), "(ok)"}, {INVITE_BY_SESSION("a2", "2", "0"), "(full)"},
          {INVITE_BY_SESSION("a3", "0", "1"), "(ok)"}, {INVITE_BY_SESSION("a4", "0", "1"), "(limited *)"},
          {"EXISTS t:link:a2 t:link:a4", "0"}, {INVITE("a5", "operator"), "(ok)"});
}

/* Nobody has to look at the list for that. */
Test(lua, invitations_that_have_ended_do_not_count)
{
    STEPS(ACCOUNT, USER, OWNER_SESSION, {INVITE_BY_SESSION("a1", "3", "0"), "(ok)"},
          {INVITE_BY_SESSION("a2", "3", "0"), "(ok)"}, {INVITE_BY_SESSION("a3", "3", "0"), "(full)"},
          {"DEL t:link:a1", "1"}, {INVITE_BY_SESSION("a3", "3", "0"), "(ok)"},
          {INVITE_BY_SESSION("a4", "3", "0"), "(full)"}, {"HSET t:link:a3 by key_gone", "0"},
          {INVITE_BY_SESSION("a4", "3", "0"), "(ok)"}, {"ZCARD t:acct:acct_A:invitations", "2"},
          {"HKEYS t:acct:acct_A:invited", "(a2@b.test a4@b.test)"});
}

/* The account is told of 20 emails, whoever asks. A free one is then refused as well, also if there is no room. */
Test(lua, an_account_is_told_of_so_many_emails_that_are_taken)
{
    STEPS(ACCOUNT, USER, OWNER_SESSION, {"@change_missed usr_U acct_A '' 600 1 1", "(ok)"},
          {"GET t:acct:acct_A:conflicts", "1"}, {"PTTL t:acct:acct_A:conflicts", "~86400000"},
          {"GET t:changes:usr_U", "1"}, {"SET t:acct:acct_A:conflicts 19", "OK"},
          {"PEXPIRE t:acct:acct_A:conflicts 59500", "1"}, {INVITE_BY_SESSION("a1", "0", "0"), "(ok)"},
          {"@change_missed key_1 acct_A live 600 1 1", "(ok)"},
          {"@change_missed key_1 acct_A live 600 1 1", "(limited ~60s)"}, {"GET t:changes:key_1", "1"},
          {INVITE_BY_SESSION("a2", "0", "0"), "(limited ~60s)"}, {INVITE_BY_SESSION("a2", "1", "0"), "(limited ~60s)"},
          {"@change_missed key_1 acct_A live 600 1 0", "(ok)"}, {INVITE("a3", "operator"), "(ok)"});
}

#define USE_LINK(mac, totp) "@link_use a1 " mac " usr_N hash sealed mac2 $now '' '' 100 acct_A n@b.test " totp
Test(lua, a_link_is_used_as_it_was_read)
{
    STEPS(ACCOUNT, USER, {INVITE("a1", "usr_U"), "(ok)"}, {USE_LINK("mac", "seed1"), "(not_found)"},
          {"@link_start a1 seed1", "(ok *)"}, {"@link_start a1 seed2", "(ok *)"}, {"HGET t:link:a1 totp", "seed2"},
          {USE_LINK("mac9", "seed2"), "(not_found)"}, {USE_LINK("mac", "seed1"), "(not_found)"},
          {"HSET t:acct:acct_A suspended 5", "1"}, {USE_LINK("mac", "seed2"), "(suspended)"},
          {"HDEL t:acct:acct_A suspended", "1"}, {"HSET t:link:a1 started $now-1800000", "0"},
          {USE_LINK("mac", "seed2"), "(not_found)"}, {"@link_start a1 seed2", "(ok *)"}, {"EXISTS t:user:usr_N", "0"},
          {USE_LINK("mac", "seed2"), "(ok)"}, {USE_LINK("mac", "seed2"), "(ok)"}, {"XLEN t:acct:acct_A:audit", "3"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type user.joined actor usr_N target usr_N * data:invitation inv_a1 data:link_by usr_U data:role *)))"},
          {"@link_use a1 mac usr_M hash sealed mac2 $now '' '' 100 acct_A n@b.test seed2", "(not_found)"},
          {"@link_start a1 seed3", "(not_found)"}, {INVITE("a2", "usr_U"), "(ok)"},
          {"@user_void usr_M n@b.test", "(ok)"},
          {"@link_use a2 mac usr_M hash sealed mac2 $now '' '' 100 acct_A n@b.test ''", "(not_found)"},
          {"EXISTS t:user:usr_M", "0"}, {"EXISTS t:link:a2", "1"});
}

#define OPEN(network) "@link_open a1 " network " Firefox '' 192.0.2.1 req_1 100"
Test(lua, openings_of_a_link_are_noted)
{
    STEPS(ACCOUNT, USER, {OPEN("n1"), "(not_found)"}, {INVITE("a1", "usr_U"), "(ok)"},
          {OPEN("n1"), "(ok (digest a1 *))"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1", "((* (type link.opened *)))"},
          {OPEN("n2"), "(ok (digest a1 *) (1* n1 Firefox))"},
          {OPEN("n3"), "(ok (digest a1 *) (1* n2 Firefox) (1* n1 Firefox))"}, {OPEN("n4"), "(ok *)"},
          {OPEN("n5"), "(ok *)"}, {OPEN("n6"), "(ok *)"},
          {OPEN("n7"),
           "(ok (digest a1 *) (1* n6 Firefox) (1* n5 Firefox) (1* n4 Firefox) (1* n3 Firefox) (1* n2 Firefox))"},
          {"XLEN t:acct:acct_A:audit", "9"}, {"HSET t:link:a1 openings 20", "0"}, {OPEN("n8"), "(ok *)"},
          {"XLEN t:acct:acct_A:audit", "9"}, {"HSET t:link:a1 expires 1", "0"}, {OPEN("n9"), "(not_found)"},
          {INVITE("a1", "usr_U"), "(ok)"}, {OPEN("''"), "(ok *)"}, {OPEN("n1"), "(ok (digest a1 *) (1*  Firefox))"});
}

Test(lua, links_end_with_what_their_maker_may)
{
    STEPS(ACCOUNT, USER, {INVITE("a1", "usr_U"), "(ok)"}, {"HSET t:user:usr_U role developer", "1"},
          {"@link_find a1", "(not_found)"}, {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Two" BY, "(ok)"},
          {INVITE("a2", "key_2"), "(ok)"}, {"@link_find a2", "(ok *)"}, {REVOKE_BY("usr_U", "''"), "(ok *)"},
          {"@link_find a2", "(not_found)"});
}

#define SEEK(credential) "@device_seek u usr_U acct_A " credential

Test(lua, a_session_that_is_over_decides_nothing)
{
    STEPS(ACCOUNT, USER, {BEGIN("d1", "c1"), "(ok)"}, {"DEL t:acct:acct_A:audit", "1"},
          {APPROVE_BY("d1", "acct_A", "mac2", BY_STEP_UP, "0 0"), "(actor_unknown)"},
          {DENY_BY("d1", "acct_A", BY_SESSION("s1")), "(actor_unknown)"},
          /* Nor can it guess codes. */
          {SEEK(BY_STEP_UP), "(actor_unknown)"},
          {"EXISTS t:throttle:u t:acct:acct_A:audit t:acct:acct_A:device:d1", "0"},
          {"HSET t:session:s1 sid S user usr_U account acct_A created $now expires $now+5000000 seen $now step_up 0",
           "7"},
          {SEEK(BY_STEP_UP), "(actor_unproven)"},
          {APPROVE_BY("d1", "acct_A", "mac2", BY_STEP_UP, "0 0"), "(actor_unproven)"},
          {APPROVE_BY("d1", "acct_A", "''", BY_STEP_UP, "0 0"), "(actor_unproven)"},
          {"EXISTS t:throttle:u t:acct:acct_A:audit t:acct:acct_A:device:d1", "0"}, {SEEK(BY_SESSION("s1")), "(ok)"},
          {DENY_BY("d1", "acct_A", BY_SESSION("s1")), "(ok)"});
}

/* Its node has given up; the device may ask again. */
Test(lua, a_claim_that_comes_behind_its_discard_claims_nothing)
{
    STEPS(ACCOUNT, APPROVER, {BEGIN("d1", "c1"), "(ok)"}, APPROVED("d1"),
          {"@key_revoke 100 1 - - dev_1 '' '' 0" FROM " ''", "(refused 0 () (not_found))"},
          {CLAIM("d1", "1"), "(conflict)"}, {"HGET t:device:d1 status", "approved"},
          {"HGET t:acct:acct_A:device:d1 status", "approved"}, {"EXISTS t:key:h1", "0"},
          {CLAIM("d1", "2"), "(ok North)"});
}

Test(lua, a_device_of_an_account_that_is_gone_gets_no_key)
{
    STEPS(APPROVER, {BEGIN("d1", "c1"), "(ok)"}, APPROVED("d1"), {CLAIM("d1", "1"), "(refused)"},
          {"EXISTS t:id:dev_1 t:key:h1", "0"});
}

Test(lua, device_is_denied)
{
    STEPS(ACCOUNT, {BEGIN("d1", "c1"), "(ok)"}, {DENY("d1", "acct_A"), "(ok)"},
          {MARK("d1", "denied", "acct_A"), "(ok)"}, {POLL("d1", "agent"), "(refused denied)"},
          {DENY("d1", "acct_A"), "(ok)"}, {MARK("d1", "denied", "acct_A"), "(ok)"},
          {MARK("d1", "approved", "acct_A"), "(not_found)"}, {FIND("c1", "acct_A"), "(ok * denied d? mac?)"},
          {"XRANGE t:acct:acct_A:audit - +",
           "((* (type device.denied actor usr_U target Ward ip 192.0.2.1 request_id req_1)))"},
          /* An approval can be denied until it is claimed. */
          {BEGIN("d2", "c2"), "(ok)"}, APPROVED("d2"), {FIND("c2", "acct_A"), "(ok * approved d? mac?)"},
          {"PTTL t:acct:acct_A:device:d2", "~7200000"}, APPROVED("d2"), {DENY("d2", "acct_A"), "(ok)"},
          {MARK("d2", "denied", "acct_A"), "(ok)"}, {POLL("d2", "agent"), "(refused denied)"},
          {"EXISTS t:id:dev_1", "0"}, {"XLEN t:acct:acct_A:audit", "3"});
}

Test(lua, an_enrolment_that_is_over)
{
    STEPS(ACCOUNT, {BEGIN("d1", "c1"), "(ok)"}, APPROVED("d1"), {"HSET t:device:d1 expires $now", "0"},
          {POLL("d1", "agent"), "(refused expired)"}, {FIND("c1", "acct_A"), "(refused)"},
          {FIND("c9", "acct_A"), "(not_found)"}, {MARK("d9", "approved", "acct_A"), "(not_found)"},
          {"EXISTS t:id:dev_1 t:device:d9", "0"});
}

#define GUESS(n)                 \
    {SEEK("''"), "(ok)"},        \
    {                            \
        "HGET t:throttle:u n", n \
    }
Test(lua, guessing_user_codes_waits)
{
    STEPS(ACCOUNT, GUESS("1"), GUESS("2"), {"@device_found u", "(ok)"}, {"HGET t:throttle:u n", "1"}, GUESS("2"),
          GUESS("3"), GUESS("4"), GUESS("5"), {SEEK("''"), "(refused ~30s)"}, {"HGET t:throttle:u n", "5"},
          /* The fifth was right, or one before it was right and the fifth is the fourth that was wrong. */
          {"@device_found u", "(ok)"}, {"HMGET t:throttle:u n until", "(4 0)"}, GUESS("5"),
          {SEEK("''"), "(refused ~30s)"}, {"@device_seek u2 usr_V acct_A ''", "(ok)"},
          {"HSET t:throttle:u until $now", "0"}, GUESS("6"), {SEEK("''"), "(refused ~60s)"},
          {"PTTL t:throttle:u", "~900000"});
}

#define LIMITED(n, mode, limits)                \
    "@key_insert d" n " key_" n "+acct_A+" mode \
    "+wxyz+3+7+-+N usr_U '' '' 100 session+s1+1000000+5000000+0+auditor " limits
#define SESSION                                                                                                        \
    {                                                                                                                  \
        "HSET t:session:s1 sid S user usr_U account acct_A created $now expires $now+5000000 seen $now step_up 0", "7" \
    }

#define CLAIM_DAILY(device, key)                                                                               \
    "@device_claim " device " acct_A Ward 1024 usr_U mac2 h" key " dev_" key "+acct_A+live+wxyz+1024+7+-+Ward" \
    " '' '' 100 9+1"

Test(lua, an_account_has_so_many_active_keys)
{
    STEPS(ACCOUNT, USER, SESSION, {LIMITED("1", "test", "2 100"), "(ok)"}, {LIMITED("2", "test", "2 100"), "(ok)"},
          {LIMITED("3", "test", "2 100"), "(full)"}, {"EXISTS t:key:d3 t:id:key_3", "0"},
          /* Test keys do not use up the room of live ones. */
          {LIMITED("4", "live", "2 100"), "(ok)"}, {LIMITED("5", "live", "2 100"), "(ok)"},
          {LIMITED("6", "live", "2 100"), "(full)"},
          /* Only active keys count; a discarded one is revoked. */
          {"@key_revoke 100 1 - - key_4 '' '' 0" FROM " ''", "(ok *)"}, {LIMITED("6", "live", "2 100"), "(ok)"},
          {LIMITED("7", "live", "2 100"), "(full)"},
          /* A refused creation does not count as a change. The command line has no limit. */
          {"GET t:changes:usr_U", "5"},
          {"@key_insert d8 key_8+acct_A+live+wxyz+3+7+-+N operator '' '' 100 '' 2 1", "(ok)"},
          {"EXISTS t:changes:operator", "0"});
}

/* What was revoked stays in Redis, so making and revoking keys has a bound, too. */
Test(lua, an_account_makes_so_many_keys_a_day)
{
    STEPS(ACCOUNT, USER, SESSION, {LIMITED("1", "test", "9+2 100"), "(ok)"}, {LIMITED("2", "test", "9+2 100"), "(ok)"},
          {"@key_revoke 100 1 - - key_2 '' '' 0" FROM " ''", "(ok *)"}, {LIMITED("3", "test", "9+2 100"), "(full)"},
          {"GET t:acct:acct_A:keys_made:ak-test", "2"}, {"PTTL t:acct:acct_A:keys_made:ak-test", "~86400000"},
          {"PEXPIRE t:acct:acct_A:keys_made:ak-test 70000000", "1"}, {LIMITED("3", "test", "9+3 100"), "(ok)"},
          {"PTTL t:acct:acct_A:keys_made:ak-test", "~70000000"},
          /* Test keys do not use up the day of live ones. A replacement is a key more. */
          {LIMITED("4", "live", "9+2 100"), "(ok)"},
          {"@key_replace d5 key_5+acct_A+live+wxyz+3+7+-+N usr_U '' '' 100 '' 9+2 100 key_4 acct_A api_key 0 - - 60000",
           "(ok *)"},
          {"@key_replace d6 key_6+acct_A+live+wxyz+3+7+-+N usr_U '' '' 100 '' 9+2 100 key_4 acct_A api_key 0 - - 60000 "
           "0 key_5",
           "(full)"},
          {LIMITED("6", "live", "9+2 100"), "(full)"}, {"DEL t:acct:acct_A:keys_made:ak-live", "1"},
          {LIMITED("6", "live", "9+2 100"), "(ok)"},
          /* The command line has no limit, and does not count. */
          {"@key_insert d8 key_8+acct_A+live+wxyz+3+7+-+N operator '' '' 100 '' 9+1 1", "(ok)"},
          {"GET t:acct:acct_A:keys_made:ak-live", "1"}, {APPROVE("d1", "acct_A"), "(ok *)"},
          {APPROVE("d2", "acct_A"), "(ok *)"}, {CLAIM_DAILY("d1", "1"), "(ok *)"}, {CLAIM_DAILY("d2", "2"), "(full)"},
          {"EXISTS t:id:dev_2 t:key:h2", "0"});
}

Test(lua, a_principal_makes_so_many_changes_a_minute)
{
    STEPS(ACCOUNT, USER, SESSION, {LIMITED("1", "live", "0 3"), "(ok)"}, {LIMITED("2", "test", "0 3"), "(ok)"},
          {LIMITED("3", "test", "0 3"), "(ok)"}, {LIMITED("4", "test", "0 3"), "(limited *)"},
          {"EXISTS t:key:d4 t:id:key_4", "0"}, {"PTTL t:changes:usr_U", "~60000"}, {"GET t:changes:acct_A:people", "3"},
          /* Others can go on; keys are counted separately from people. */
          {"@key_insert d4 key_4+acct_A+test+wxyz+3+7+-+N key_2 '' '' 100 key+d2 0 3", "(ok)"},
          {"GET t:changes:acct_A:test", "1"}, {"SET t:changes:acct_A:test 30", "OK"},
          {"PEXPIRE t:changes:acct_A:test 59500", "1"},
          {"@key_insert d5 key_5+acct_A+test+wxyz+3+7+-+N key_3 '' '' 100 key+d3 0 3", "(limited ~60s)"},
          {"@key_insert d5 key_5+acct_A+live+wxyz+3+7+-+N key_1 '' '' 100 key+d1 0 3", "(ok)"},
          /* Revoking is never limited. */
          {"@key_revoke 100 0 - - key_1 acct_A api_key 0 usr_U '' '' " BY_SESSION("s1"), "(ok *)"},
          {"GET t:changes:usr_U", "3"}, {"DEL t:changes:usr_U", "1"}, {LIMITED("6", "live", "0 3"), "(ok)"});
}

Test(lua, what_changed_nothing_counts_as_a_change)
{
    STEPS(ACCOUNT, USER, SESSION, {"@change_missed usr_U acct_A '' 3 2 0", "(ok)"}, {"GET t:changes:usr_U", "2"},
          {"PTTL t:changes:usr_U", "~60000"}, {"GET t:changes:acct_A:people", "2"},
          {"EXISTS t:acct:acct_A:conflicts", "0"}, {LIMITED("1", "live", "0 3"), "(ok)"},
          {LIMITED("2", "live", "0 3"), "(limited *)"}, {"@change_missed usr_U acct_A '' 3 1 0", "(limited ~60s)"},
          {"GET t:changes:usr_U", "3"}, {"@change_missed key_1 acct_A test 3 10000 0", "(ok)"},
          {"GET t:changes:acct_A:test", "3"}, {"@change_missed key_1 acct_A test 3 1 0", "(limited *)"},
          {"@change_missed key_3 acct_A live 3 1 0", "(ok)"}, {"@change_missed key_1 acct_A test 0 10000 0", "(ok)"},
          {"GET t:changes:key_1", "3"});
}

#define APPROVE_LIMITED(device, limits) APPROVE_BY(device, "acct_A", "mac2", BY_SESSION("s1"), limits)
Test(lua, device_keys_have_limits)
{
    STEPS(
        ACCOUNT, USER, SESSION, {APPROVE_LIMITED("d1", "1 2"), "(ok *)"}, {APPROVE_LIMITED("d1", "1 2"), "(ok *)"},
        {"GET t:changes:usr_U", "1"}, {APPROVE_LIMITED("d2", "1 2"), "(ok *)"},
        {APPROVE_LIMITED("d3", "1 2"), "(limited *)"}, {"EXISTS t:acct:acct_A:device:d3", "0"},
        {"@device_claim d1 acct_A Ward 1024 usr_U mac2 h1 dev_1+acct_A+live+wxyz+1024+7+-+Ward '' '' 100 1", "(ok *)"},
        {"@device_claim d2 acct_A Ward 1024 usr_U mac2 h2 dev_2+acct_A+live+wxyz+1024+7+-+Ward '' '' 100 1", "(full)"},
        {"EXISTS t:id:dev_2 t:key:h2", "0"}, {APPROVE_LIMITED("d3", "1 9"), "(full)"},
        {DENY_BY("d3", "acct_A", BY_SESSION("s1")), "(ok)"},
        /* API keys have limits of their own. */
        {LIMITED("1", "live", "1 9"), "(ok)"});
}

/* Without memory, only scripts run that end something, or that nodes and people need for that. */
Test(lua, what_runs_although_memory_is_full)
{
    STEPS(ACCOUNT, USER, {"@schema_claim 1", "(ok 1 * 0)"},
          {"@key_insert d1 key_1+acct_A+live+wxyz+3+7+-+One" BY, "(ok)"},
          {"@session_create usr_U 3 s1 S a pair:p, b1 '' 1000000 5000000 300000 '' '' '' '' 100 $now mac Firefox",
           "(ok *)"},
          {"@session_create usr_U 4 s2 T a pair:p, b1 '' 1000000 5000000 300000 '' '' '' '' 100 $now mac Firefox",
           "(ok *)"},
          {BEGIN("d1", "c1"), "(ok)"}, {"CONFIG SET maxmemory 1", "OK"}, {"@schema_claim 1", "(ok 1 * 1 0 0 0 0 0)"},
          {"@schema_claim 0", "(refused 1 0 )"}, {"@key_insert d2 key_2+acct_A+live+wxyz+3+7+-+Two" BY, "-OOM*"},
          {"@account_create acct_B B 1", "-OOM*"}, {BEGIN("d2", "c2"), "-OOM*"}, {APPROVE("d1", "acct_A"), "-OOM*"},
          {"@key_revoke 100 0 - - key_1 '' '' 0" FROM " ''", "(ok *)"},
          {"@node_heartbeat n1 1 1000 x 0 0 0", "(ok * 0  1 0)"}, {"@node_leave n1 '' ''", "(ok 1)"},
          {"@email_find a@b.test", "(ok usr_U *)"}, {RESERVE("a", "pair:p,"), "(ok)"},
          {"@login_begin usr_U a user:u, '' '' ''", "(ok (id usr_U *) 0 0 0 0)"},
          {"@throttle_check a pair:p, 0", "(ok)"}, {"@throttle_fail a pair:p, 0 net 100", "(ok 0)"},
          {"@login_fail usr_U a user:u, 0 '' '' 100 '' 0", "(ok 0 0)"}, {"@throttle_give_back a user:u,", "(ok)"},
          {"@throttle_succeed a pair:p,", "(ok)"}, {"@user_unlock usr_U operator '' '' 100", "(ok)"},
          {"@session_create usr_U 5 s3 V a pair:p, b1 '' 1000000 5000000 300000 '' '' '' '' 100 $now mac Firefox",
           "(ok *)"},
          {"HSET t:session:s2 seen 1", "-OOM*"}, {"@session_load s2 1000000 5000000 300000 ''", "(ok *)"},
          {"@session_step_up s2 s4 6 a session:s, 1000000 5000000 300000 '' '' 100 $now mac", "(ok *)"},
          {SEEK("''"), "(ok)"}, {SEEK("''"), "(ok)"}, {FIND("c1", "acct_A"), "(ok *)"}, {"@device_found u", "(ok)"},
          {DENY("d1", "acct_A"), "(ok)"}, {MARK("d1", "denied", "acct_A"), "(ok)"},
          {"@session_end s1 '' '' 100", "(ok)"}, {"@totp_begin s4 7 a session:s, 1000000 5000000 300000 new", "(ok)"},
          {"@totp_waiting usr_U T", "(ok *)"},
          {"@totp_confirm usr_U T new 5 s4 '' '' 100 session+s4+1000000+5000000+0+auditor", "(ok *)"},
          {"@user_password s4 s5 6 a session:s, 1000000 5000000 300000 '' '' 100 $now mac hash new", "(ok *)"},
          {"@recovery_codes_set usr_U '' '' 100 acct_A session+s5+1000000+5000000+300000+auditor mk c1", "(ok)"},
          {"@recovery_begin usr_U a pair:p, new c1 t new", "(ok)"},
          {"@session_stop usr_U '' '' operator '' '' 100 ''", "(ok *)"},
          {"@user_reset usr_U new '' operator '' '' 100", "(ok)"}, {"EXISTS t:session:s3 t:session:s4", "0"},
          /* An empty store cannot be claimed. */
          {"DEL t:schema", "1"}, {"@schema_claim 1", "-OOM*"});
}

#define LONG_REVOKED(id, digest, account, since)                                                                       \
    {"SET t:key:" digest " " id "+" account "+live+wxyz+3+7+" since "+Name", "OK"}, {"SET t:id:" id " " digest, "OK"}, \
    {                                                                                                                  \
        "ZADD t:acct:" account ":keys:ak-live:revoked 0 " id, "1"                                                      \
    }
#define HOUR_FIND "@key_burials 3600000 0"

/* A revoked key is found once it has been revoked for long enough, in each pass over all accounts. */
Test(lua, key_burials_finds_what_was_revoked_long_ago)
{
    STEPS({"ZADD t:accounts 0 acct_A 0 acct_B", "2"}, LONG_REVOKED("key_001", "d1", "acct_A", "100"),
          LONG_REVOKED("key_002", "d2", "acct_A", "9999999999990"), LONG_REVOKED("key_003", "d3", "acct_B", "200"),
          LONG_REVOKED("key_004", "d4", "acct_B", "@200"),
          /* A node of 0.3 would not know what it reads. */
          {"HSET t:nodes old 5+1000+2", "1"}, {HOUR_FIND, "(ok 0)"}, {"HDEL t:nodes old", "1"},
          {HOUR_FIND, "(ok 1 (d1 key_001 acct_A live wxyz 3 7 100 Name) (d3 key_003 acct_B live wxyz 3 7 200 Name))"},
          {"HKEYS t:burials", "(since began)"}, {HOUR_FIND, "(ok 0)"}, {"HKEYS t:burials", "(since began)"},
          {"HSET t:burials began $now-3600001", "0"}, {HOUR_FIND, "(ok 1 (d1 *) (d3 *))"},
          /* Redis' clock was set back. */
          {"HSET t:burials began $now+9999", "0"}, {HOUR_FIND, "(ok 1 (d1 *) (d3 *))"});
}

#define FILL                                                                                           \
    "EVAL for+i=100,349+do+local+id='key_00'..i+redis.call('SET','t:id:'..id,'d'..i)"                  \
    "+redis.call('SET','t:key:d'..i,id..'\\032acct_A\\032live\\032wxyz\\0323\\0327\\032100\\032Name')" \
    "+redis.call('ZADD','t:acct:acct_A:keys:ak-live:revoked',0,id)+end 0"

/* What may have made a key at a node of 0.3, which did not write whose the key was, stays: its makers are followed. */
Test(lua, key_burials_leaves_makers_of_before)
{
    STEPS({"ZADD t:accounts 0 acct_A", "1"}, {"SET t:key:d1 key_001+acct_A+live+wxyz+35+7+100+Name", "OK"},
          {"SET t:id:key_001 d1", "OK"}, {"ZADD t:acct:acct_A:keys:ak-live:revoked 0 key_001", "1"},
          {HOUR_FIND, "(ok 0)"}, {"HSET t:burials began 0 since 8", "0"}, {HOUR_FIND, "(ok 0)"},
          {"HSET t:burials began 0 since 7", "0"}, {HOUR_FIND, "(ok 1 (d1 *))"},
          /* One that comes back may make some. */
          {"HSET t:nodes old 5+1000+2", "1"}, {HOUR_FIND, "(ok 0)"}, {"HKEYS t:burials", "(began)"},
          {"HDEL t:nodes old", "1"}, {"HSET t:burials began 0", "0"}, {HOUR_FIND, "(ok 0)"},
          /* Of a closed account nobody asks. */
          {"ZADD t:burials_due 7 acct_A+1+", "1"}, {HOUR_FIND, "(ok 1 (d1 *))"});
}

/* One call looks at 100 keys and 20 accounts, and the next one goes on from there. */
Test(lua, key_burials_goes_on_where_it_stopped)
{
    STEPS({"EVAL for+i=10,49+do+redis.call('ZADD','t:accounts',0,'acct_'..i)+end 0", "nil"},
          {"ZADD t:accounts 0 acct_A", "1"}, {FILL, "nil"}, {HOUR_FIND, "(ok 0)"},
          {"HGET t:burials place", "acct_29 4 "}, {HOUR_FIND, "(ok 0)"}, {"HGET t:burials place", "acct_49 4 "},
          {HOUR_FIND, "(ok 1 (d100 *) * (d199 *))"}, {"HGET t:burials place", "acct_A 1 key_00199"},
          {HOUR_FIND, "(ok 1 (d200 *) * (d299 *))"}, {HOUR_FIND, "(ok 1 (d300 *) * (d349 *))"},
          {"HEXISTS t:burials place", "0"});
}

/* Of an account that is closed, all keys are found from a time on, before any pass goes on. */
Test(lua, key_burials_of_a_closed_account_come_first)
{
    STEPS({"ZADD t:accounts 0 acct_A", "1"}, {FILL, "nil"}, {"ZADD t:burials_due $now+5000 acct_A+1+", "1"},
          {"HSET t:burials began $now", "1"}, {HOUR_FIND, "(ok 0)"}, {"ZADD t:burials_due XX 7 acct_A+1+", "0"},
          {HOUR_FIND, "(ok 1 (d100 *) * (d199 *))"}, {"ZRANGE t:burials_due 0 -1 WITHSCORES", "(acct_A 1 key_00199 7)"},
          {HOUR_FIND, "(ok 1 (d200 *) * (d299 *))"}, {HOUR_FIND, "(ok 1 (d300 *) * (d349 *))"},
          {"EXISTS t:burials_due", "0"}, {HOUR_FIND, "(ok 0)"});
}

/* Nothing is left of a key but its tombstone. A record that has changed stays. */
Test(lua, key_bury)
{
    STEPS(LONG_REVOKED("key_001", "d1", "acct_A", "100"), LONG_REVOKED("key_002", "d2", "acct_A", "100"),
          {"HSET t:acct:acct_A:key_endings key_001 live+1-1 key_002 live+1-2", "2"},
          {"HSET t:acct:acct_A:key_refused key_001:revoked 3 key_001:insufficient_scope 1 key_002:revoked 1", "3"},
          {":use acct_A key_001 5 5 2020-01-01 5", "1"}, {"ZADD t:acct:acct_A:usage_keys 5 key_001", "1"},
          {"HSET t:used_after:key_001 a b", "1"}, {"HSET t:refused_told:key_001 a b", "1"},
          {"@key_bury d1 key_001+acct_A+live+wxyz+3+7+100+Name n1 -123 "
           "d2 key_002+acct_A+live+wxyz+3+7+99+Name n2 -124",
           "(ok 1)"},
          {"GET t:dead:n1", "-123"},
          {"EXISTS t:key:d1 t:id:key_001 t:used_after:key_001 t:refused_told:key_001 t:acct:acct_A:key_uses "
           "t:acct:acct_A:usage_keys t:dead:n2",
           "0"},
          {"ZRANGE t:acct:acct_A:keys:ak-live:revoked 0 -1", "(key_002)"},
          {"HKEYS t:acct:acct_A:key_endings", "(key_002)"}, {"HKEYS t:acct:acct_A:key_refused", "(key_002:revoked)"},
          {"@key_bury d1 key_001+acct_A+live+wxyz+3+7+100+Name n1 -125", "(ok 0)"}, {"GET t:dead:n1", "-123"},
          {"EXISTS t:key:d2 t:id:key_002", "2"});
}

/* Its keys are due a day later, when their receipts have been fetched; at once if it is erased. */
Test(lua, account_close_buries_its_keys)
{
    STEPS({"SET t:schema 2", "OK"}, ACCOUNT, {"ZADD t:accounts 0 acct_A", "1"},
          LONG_REVOKED("key_001", "d1", "acct_A", "9999999999990"), {"HSET t:burials began $now", "1"},
          {"@account_suspend acct_A operator '' '' 100 - - 1", "(ok *)"}, {STEP("close_people"), "(ok 0 1 0 ())"},
          {"HSET t:acct:acct_A:gone usr_1 a@b.test", "1"}, {"HSET t:acct:acct_A:gone_people usr_1 x", "1"},
          {"ZADD t:acct:acct_A:gone_since 1 usr_1", "1"}, {STEP("close") " 0", "(ok)"},
          {"ZRANGE t:burials_due 0 -1", "(acct_A 1 )"},
          {"EVAL "
           "return+redis.call('ZSCORE','t:burials_due','acct_A\\0321\\032')-redis.call('HGET','t:acct:acct_A','closed')"
           " 0",
           "86400000"},
          {HOUR_FIND, "(ok 0)"}, {"EXISTS t:acct:acct_A:gone", "1"}, {STEP("close") " 0", "(ok)"},
          {"XLEN t:acct:acct_A:audit", "2"}, {STEP("close") " 1", "(ok)"},
          {"EXISTS t:acct:acct_A:gone t:acct:acct_A:gone_people t:acct:acct_A:gone_since", "0"},
          {"XREVRANGE t:acct:acct_A:audit + - COUNT 1",
           "((* (type account.closed actor operator target acct_A ip  request_id  data:erased true)))"},
          {HOUR_FIND, "(ok 1 (d1 *))"}, {HOUR_FIND, "(ok 0)"}, {"EXISTS t:burials_due", "0"});
}

/* One that an earlier version has closed is found by a pass, and loses what late batches of usage have left. */
Test(lua, key_burials_of_an_account_that_was_closed_before)
{
    STEPS(ACCOUNT, {"HSET t:acct:acct_A closed $now-86400000", "1"}, {"ZADD t:accounts 0 acct_A", "1"},
          LONG_REVOKED("key_001", "d1", "acct_A", "9999999999990"), {"HSET t:acct:acct_A:key_refused k:revoked 1", "1"},
          {":use acct_A key_9 5 5 2020-01-01 5", "1"}, {"ZADD t:acct:acct_A:usage_keys 5 key_9", "1"},
          {HOUR_FIND, "(ok 1 (d1 *))"},
          {"EXISTS t:acct:acct_A:key_uses t:acct:acct_A:usage_keys t:acct:acct_A:key_refused", "0"},
          {"HSET t:acct:acct_A closed $now-86000000", "0"}, {"HDEL t:burials began", "1"}, {HOUR_FIND, "(ok 0)"});
}

#define GONE(user, since)                                                                                          \
    {"HSET t:acct:acct_A:gone " user " " user "@b.test", "1"}, {"HSET t:acct:acct_A:gone_people " user " x", "1"}, \
    {                                                                                                              \
        "ZADD t:acct:acct_A:gone_since " since " " user, "1"                                                       \
    }
#define NEXT_PASS           \
    {"DEL t:burials", "1"}, \
    {                       \
        HOUR_FIND, "(ok 0)" \
    }

/* An email goes once the oldest event of each class is younger than the removal, and no link that a key of that person
 * made can be left. */
Test(lua, emails_of_removed_people_go_with_the_trail)
{
    STEPS(ACCOUNT, {"ZADD t:accounts 0 acct_A", "1"}, GONE("usr_1", "1000"), GONE("usr_2", "2000"),
          GONE("usr_3", "$now-340000000"), {"XADD t:acct:acct_A:audit 1000-1 a b", "1000-1"},
          {"XADD t:acct:acct_A:audit:test 5000-1 a b", "5000-1"}, {"SET t:burials x", "OK"}, NEXT_PASS,
          {"HLEN t:acct:acct_A:gone", "3"}, {"XADD t:acct:acct_A:audit 1001-1 a b", "1001-1"},
          {"XTRIM t:acct:acct_A:audit MAXLEN 1", "1"}, NEXT_PASS, {"HKEYS t:acct:acct_A:gone", "(usr_2 usr_3)"},
          {"HKEYS t:acct:acct_A:gone_people", "(usr_2 usr_3)"},
          {"ZRANGE t:acct:acct_A:gone_since 0 -1", "(usr_2 usr_3)"},
          {"DEL t:acct:acct_A:audit t:acct:acct_A:audit:test", "2"}, NEXT_PASS, {"HKEYS t:acct:acct_A:gone", "(usr_3)"},
          {"ZADD t:acct:acct_A:gone_since XX 1 usr_3", "0"}, NEXT_PASS,
          {"EXISTS t:acct:acct_A:gone t:acct:acct_A:gone_people t:acct:acct_A:gone_since", "0"},
          /* A version that kept no time has removed the person. */
          {"HSET t:acct:acct_A:gone usr_4 d@b.test", "1"}, NEXT_PASS, {"HLEN t:acct:acct_A:gone", "1"},
          {"ZSCORE t:acct:acct_A:gone_since usr_4", "1????????????"});
}
