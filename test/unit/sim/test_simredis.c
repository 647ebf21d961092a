/* simredis by itself. What Redis does is found by test/sim/redis/compare; here is what was found so, and what needs
 * time, a restart or several clients. */
#include "base/text.h"
#include "simredis.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* command: words between blanks; '' is an empty one, _ a blank. reply: the bytes, with / for the end of a line; NULL:
 * any. */
struct step {
    const char *command, *reply;
};

struct peer {
    struct simredis_client *client; /* NULL: the server closed it */
    struct buf replies;
};

static struct {
    struct simredis *server;
    struct peer peers[2];
    struct buf log;
    uint64_t now_us, random;
} w;

static uint64_t unix_us(void *context)
{
    (void)context;
    return w.now_us;
}

static uint64_t random_number(void *context)
{
    (void)context;
    return w.random++;
}

static void on_send(void *client, const char *bytes, size_t length)
{
    buf_append(&((struct peer *)client)->replies, bytes, length);
}

static void on_close(void *client)
{
    ((struct peer *)client)->client = NULL;
}

static void on_log(void *context, const char *bytes, size_t length)
{
    (void)context;
    buf_append(&w.log, bytes, length);
}

static void serve(void)
{
    static const struct simredis_host HOST = {
        .unix_us = unix_us, .random = random_number, .send = on_send, .close = on_close, .log = on_log};

    w.server = simredis_new(&HOST);
    for (size_t i = 0; i < 2; i++)
        w.peers[i].client = simredis_connect(w.server, &w.peers[i]);
}

static void begin(void)
{
    w.now_us = UINT64_C(1795000000000000);
    buf_init(&w.log, SIZE_MAX / 2);
    for (size_t i = 0; i < 2; i++)
        buf_init(&w.peers[i].replies, SIZE_MAX / 2);
    serve();
}

static void end(void)
{
    simredis_free(w.server);
    buf_finish(&w.log);
    for (size_t i = 0; i < 2; i++)
        buf_finish(&w.peers[i].replies);
}

TestSuite(simredis, .init = begin, .fini = end);

/* What has come since the last call. */
static const char *take(struct peer *peer)
{
    static char text[8192];
    size_t len = 0;

    for (size_t i = 0; i < peer->replies.len && len < sizeof text - 1; i++)
        if (peer->replies.ptr[i] != '\r')
            text[len++] = peer->replies.ptr[i] == '\n' ? '/' : peer->replies.ptr[i];
    text[len] = '\0';
    buf_clear(&peer->replies);
    return text;
}

static void send(struct peer *peer, const char *command)
{
    struct text rest = text_of(command), word;
    struct buf words = BUF_UP_TO(65536), request = BUF_UP_TO(65536);
    size_t count = 0;

    for (; text_next(&rest, ' ', &word); count++) {
        bool is_empty = text_equal(word, TEXT("''"));

        buf_printf(&words, "$%zu\r\n", is_empty ? 0 : word.len);
        for (size_t i = 0; i < word.len && !is_empty; i++)
            buf_append_char(&words, word.ptr[i] == '_' ? ' ' : word.ptr[i]);
        buf_append_str(&words, "\r\n");
    }
    buf_printf(&request, "*%zu\r\n", count);
    buf_append_text(&request, buf_text(&words));
    simredis_receive(peer->client, request.ptr, request.len);
    buf_finish(&words);
    buf_finish(&request);
}

static void run(const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        send(&w.peers[0], steps[i].command);
        const char *reply = take(&w.peers[0]);
        if (steps[i].reply)
            cr_expect_str_eq(reply, steps[i].reply, "step %zu: %s\n  got  %s\n  want %s", i, steps[i].command, reply,
                             steps[i].reply);
    }
}

#define STEPS(...)                                 \
    do {                                           \
        const struct step steps[] = {__VA_ARGS__}; \
        run(steps, sizeof steps / sizeof *steps);  \
    } while (0)

static void restart(bool from_log)
{
    size_t length;
    char *saved = simredis_save(w.server, &length);

    simredis_free(w.server);
    serve();
    cr_assert(simredis_load(w.server, from_log ? w.log.ptr : saved, from_log ? w.log.len : length));
    free(saved);
}

Test(simredis, streams)
{
    STEPS({"XADD x 5-1 a b", "$3/5-1/"},
          {"XSETID x 4-0", "-ERR The ID specified in XSETID is smaller than the target "
                           "stream top item/"},
          {"XSETID x 9-0 ENTRIESADDED -2", "-ERR entries_added must be positive/"},
          {"XSETID x 9-0 ENTRIESADDED 0",
           "-ERR The entries_added specified in XSETID is smaller than the target stream length/"},
          {"XSETID x 9-0 MAXDELETEDID 9-1",
           "-ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id/"},
          {"XADD x NOMKSTREAM LIMIT 3 no no", "-ERR Invalid stream ID specified as stream command argument/"},
          {"XADD x LIMIT 3 * a b", "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy/"},
          {"XRANGE x 05 6", "*1/*2/$3/5-1/*2/$1/a/$1/b/"}, {"XDEL x 5-1", ":1/"},
          {"XSETID x 5-0", "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id/"});
}

/* They lie in a radix tree, by their names of 16 bytes. */
Test(simredis, nodes_of_streams)
{
    static const struct {
        const char *ids;  /* that the first entries of nodes have */
        const char *told; /* keys and nodes of the tree */
    } TREES[] = {{"1-0", "1/$16/radix-tree-nodes/:2/"},
                 {"1-1 1-2", "2/$16/radix-tree-nodes/:4/"},
                 {"1-1 1-300", "2/$16/radix-tree-nodes/:6/"},
                 {"1-1 2-1", "2/$16/radix-tree-nodes/:6/"},
                 {"1-1 2-1 2-2", "3/$16/radix-tree-nodes/:8/"},
                 {"1795000015278-0 1795000020586-19 1795000020586-20", "3/$16/radix-tree-nodes/:8/"},
                 {"255-1 18446744073709551615-1", "2/$16/radix-tree-nodes/:5/"}};
    char command[256], large[4200];

    memset(large, 'v', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    for (size_t i = 0; i < sizeof TREES / sizeof *TREES; i++) {
        struct text ids = text_of(TREES[i].ids), id;

        for (size_t at = 0; text_next(&ids, ' ', &id); at++) {
            char entry[sizeof large + 64]; /* fills its node */

            snprintf(entry, sizeof entry, "XADD x%zu %.*s f %s", i, TEXT_ARG(id), large);
            send(&w.peers[0], entry);
        }
        take(&w.peers[0]);
        snprintf(command, sizeof command, "XINFO STREAM x%zu", i);
        send(&w.peers[0], command);
        cr_expect(strstr(take(&w.peers[0]), TREES[i].told), "%s", TREES[i].ids);
    }
}

Test(simredis, sorted_sets)
{
    STEPS({"ZADD z 1 m4 2 aa 3 k", ":3/"}, {"ZRANGEBYLEX z - (m3", "*0/"},
          {"ZRANGEBYLEX z [b +", "*3/$2/m4/$2/aa/$1/k/"}, {"ZREVRANGEBYLEX z + [b", "*1/$1/k/"},
          {"ZADD z -0.0 zero", ":1/"}, {"ZSCORE z zero", "$1/0/"}, {"RPUSH l '' 261", ":2/"},
          {"SORT l", "*2/$0//$3/261/"}, {"SORT z ALPHA DESC LIMIT 0 2", "*2/$4/zero/$2/m4/"}, {"HSET h a 1", ":1/"},
          {"SORT h", "-WRONGTYPE Operation against a key holding the wrong kind of value/"},
          {"HRANDFIELD h 9223372036854775806", "*1/$1/a/"},
          {"HRANDFIELD h 9223372036854775806 WITHVALUES", "-ERR value is out of range/"},
          {"HRANDFIELD h -9223372036854775808",
           "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807/"});
}

Test(simredis, copies_are_copies)
{
    STEPS({"HSET h a 1", ":1/"}, {"PEXPIREAT h 1795000009000", ":1/"},
          {"COPY h h", "-ERR source and destination objects "
                       "are the same/"},
          {"COPY h other", ":1/"}, {"COPY h other", ":0/"}, {"HSET h a 2", ":0/"}, {"HGET other a", "$1/1/"},
          {"PEXPIRETIME other", ":1795000009000/"}, {"COPY h other REPLACE", ":1/"}, {"HGET other a", "$1/2/"},
          {"XADD x 1-1 a b", "$3/1-1/"}, {"COPY x y DB 1", ":1/"}, {"XDEL x 1-1", ":1/"}, {"SELECT 1", "+OK/"},
          {"XLEN y", ":1/"}, {"SELECT 01", "-ERR value is not an integer or out of range/"});
}

Test(simredis, scripts_cannot_change_what_others_see)
{
    STEPS({"EVAL redis.x=1_return_1 0", NULL}, {"EVAL KEYS=1_return_1 0", NULL}, {"EVAL string.x=1_return_1 0", NULL},
          {"EVAL return_redis.x_==_nil_and_type(KEYS)_.._type(string.x) 0", "$8/tablenil/"},
          {"EVAL x=1 0", "-ERR user_script:1: Attempt to modify a readonly table script: "
                         "7caf6056913504f0508c65faf2dc3f94ff65bcfd, on @user_script:1./"});
}

Test(simredis, scripts)
{
    STEPS({"EVAL local_a,e=pcall(redis.call,'INCR')_return_e 0",
           "$58/ERR Wrong number of args calling Redis command from "
           "script/"},
          {"EVALSHA short -1", "-NOSCRIPT No matching script. Please use EVAL./"},
          {"EVAL #!js\nreturn_1 0", "-ERR Unexpected engine in script shebang: #!js/"},
          {"EVAL #!lua_flags=no-writes\nreturn_redis.pcall('PUBLISH','c','m') 0",
           "-ERR Write commands are not allowed from read-only scripts./"},
          {"CONFIG SET maxmemory 1b", "+OK/"},
          {"EVAL #!lua\nreturn_1 0", "-OOM command not allowed when used memory > 'maxmemory'./"},
          {"EVAL #!lua_flags=allow-oom\nreturn_redis.call('SET','a',1) 0", "+OK/"}, {"EVAL return_1 0", ":1/"},
          {"CONFIG SET maxmemory 2kb", "+OK/"}, {"CONFIG GET maxmemory", "*2/$9/maxmemory/$4/2048/"},
          {"CONFIG SET maxmemory 1.5mb", NULL}, {"CONFIG GET maxmemory", "*2/$9/maxmemory/$4/2048/"});
}

Test(simredis, refusals)
{
    STEPS({"ACL DRYRUN default config x", "-ERR Command 'config' not found/"}, {"SCAN '' COUNT 5", "*2/$1/0/*0/"},
          {"CLIENT KILL ID 0x10", "-ERR client-id should be greater than 0/"}, {"WAIT 9223372036854775806 3", ":0/"},
          {"SUBSCRIBE c", "*3/$9/subscribe/$1/c/:1/"},
          {"GET a",
           "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
           "this context/"});
    send(&w.peers[1], "CONFIG SET maxmemory 1");
    STEPS({"SADD s a", "-OOM command not allowed when used memory > 'maxmemory'./"});
}

/* In the last millisecond a key is there, though nothing can be given so long to live from then on. */
Test(simredis, a_key_expires_after_its_time_and_not_at_it)
{
    STEPS({"SET a 1 PX 100", "+OK/"});
    w.now_us += 100999;
    STEPS({"GET a", "$1/1/"}, {"PTTL a", ":0/"}, {"TTL a", ":0/"}, {"KEYS *", "*1/$1/a/"}, {"DEL a", ":1/"},
          {"SET a 1", "+OK/"}, {"PEXPIREAT a 1795000000100", ":1/"}, {"EXISTS a", ":0/"});
    STEPS({"SET a 1 PX 100", "+OK/"});
    w.now_us += 100001;
    STEPS({"GET a", "$-1/"});
}

Test(simredis, keys_expire)
{
    STEPS({"SET a 1 PX 100", "+OK/"}, {"DEBUG SET-ACTIVE-EXPIRE 0", "+OK/"});
    w.now_us += 200000;
    STEPS({"DBSIZE", ":1/"}, {"KEYS *", "*0/"}, {"DBSIZE", ":1/"}, {"GET a", "$-1/"}, {"DBSIZE", ":0/"},
          {"DEBUG SET-ACTIVE-EXPIRE 1", "+OK/"}, {"SET a 1 PX 100", "+OK/"}, {"SET b 1", "+OK/"});
    w.now_us += 200000;
    STEPS({"PING", "+PONG/"}, {"PING", "+PONG/"}, {"DBSIZE", ":1/"});
}

Test(simredis, users)
{
    STEPS({"ACL SETUSER default -config", "+OK/"},
          {"CONFIG GET x", "-NOPERM this user has no permissions to run the 'config|get' command/"},
          {"ACL SETUSER default +config|get -nosuch",
           "-ERR Error in ACL SETUSER modifier '-nosuch': Unknown command or category name in ACL/"},
          {"CONFIG GET x", "-NOPERM this user has no permissions to run the 'config|get' command/"},
          {"ACL SETUSER default +config|get resetkeys %R~a* ~b*", "+OK/"}, {"CONFIG GET x", "*0/"}, {"GET a", "$-1/"},
          {"SET a 1", "-NOPERM this user has no permissions to access one of the keys used as "
                      "arguments/"},
          {"MSET b1 1 b2 2", "+OK/"},
          {"MGET b1 c", "-NOPERM this user has no permissions to access one of the keys used as "
                        "arguments/"},
          {"EVAL return_redis.pcall('GET','c') 0",
           "-ERR The user executing the script can't access at least one of the "
           "keys mentioned in the command arguments/"},
          {"ACL SETUSER app on >pw ~* +@all", "+OK/"},
          {"AUTH app no", "-WRONGPASS invalid username-password pair or user "
                          "is disabled./"},
          {"AUTH app pw", "+OK/"}, {"ACL WHOAMI", "$3/app/"},
          {"PUBLISH c m", "-NOPERM this user has no permissions to "
                          "access one of the channels used as "
                          "arguments/"},
          {"ACL DRYRUN app GET", "-ERR wrong number of arguments for 'get' command/"},
          {"ACL DRYRUN app PUBLISH c m", "$54/This user has no permissions to access the 'c' channel/"});
}

Test(simredis, what_is_dangerous)
{
    STEPS({"ACL SETUSER app on nopass ~* +@all -@dangerous +config|get", "+OK/"},
          {"ACL DRYRUN app config get x", "+OK/"},
          {"ACL DRYRUN app config set x y", "$60/This user has no permissions to run the 'config|set' command/"},
          {"ACL DRYRUN app keys *", "$54/This user has no permissions to run the 'keys' command/"},
          {"ACL DRYRUN app client list", "$61/This user has no permissions to run the 'client|list' command/"},
          {"ACL DRYRUN app client getname", "+OK/"}, {"ACL DRYRUN app acl whoami", "+OK/"},
          {"ACL DRYRUN app script exists x", "+OK/"}, {"ACL SETUSER app +@dangerous", "+OK/"},
          {"ACL DRYRUN app flushall", "+OK/"});
}

Test(simredis, a_pattern_beside_all_is_refused)
{
    STEPS({"ACL SETUSER app ~*", "+OK/"},
          {"ACL SETUSER app %R~k",
           "-ERR Error in ACL SETUSER modifier '%R~k': Adding a pattern after the * pattern (or the "
           "'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start "
           "with an empty list of patterns/"},
          {"ACL SETUSER app ~* allkeys resetkeys ~k %RW~* ~m", "+OK/"},
          {"ACL SETUSER app allchannels &c",
           "-ERR Error in ACL SETUSER modifier '&c': Adding a pattern after the * pattern "
           "(or the 'allchannels' flag) is not valid and does not have any effect. Try "
           "'resetchannels' to start with an empty list of channels/"},
          {"ACL SETUSER app &* resetchannels &c &d", "+OK/"});
}

Test(simredis, only_a_password_that_is_there_can_be_taken)
{
    STEPS({"ACL SETUSER app on >pw <pw", "+OK/"},
          {"ACL SETUSER app <pw",
           "-ERR Error in ACL SETUSER modifier '<pw': The password you are trying to remove from "
           "the user does not exist/"});
}

Test(simredis, users_go_with_their_connections)
{
    STEPS({"ACL SETUSER app on >pw ~* +@all", "+OK/"}, {"CLIENT KILL USER app", ":0/"},
          {"CLIENT KILL USER no", "-ERR No such user 'no'/"}, {"CLIENT KILL USER app SKIPME 0", "-ERR syntax error/"});
    send(&w.peers[1], "AUTH app pw");
    cr_expect_str_eq(take(&w.peers[1]), "+OK/");
    send(&w.peers[0], "CLIENT LIST");
    const char *clients = take(&w.peers[0]);
    cr_expect(strstr(clients, " user=default ") && strstr(clients, " user=app "), "%s", clients);
    STEPS({"CLIENT KILL USER app", ":1/"});
    cr_expect_null(w.peers[1].client);
    w.peers[1].client = simredis_connect(w.server, &w.peers[1]);
    send(&w.peers[1], "AUTH app pw");
    STEPS({"ACL DELUSER no app", ":1/"}, {"ACL SETUSER app", "+OK/"},
          {"ACL DELUSER app default", "-ERR The 'default' user cannot be removed/"}, {"ACL DELUSER app app", ":1/"},
          {"ACL DRYRUN app get a", "-ERR User 'app' not found/"});
    cr_expect_null(w.peers[1].client);
}

Test(simredis, a_user_who_may_no_longer_hear_is_disconnected)
{
    send(&w.peers[1], "SUBSCRIBE c");
    STEPS({"ACL SETUSER default &*", "+OK/"});
    cr_expect(w.peers[1].client);
    STEPS({"ACL SETUSER default resetchannels &d*", "+OK/"});
    cr_expect_null(w.peers[1].client);
}

Test(simredis, a_replica_refuses_writes)
{
    STEPS({"REPLICAOF 127.0.0.1 6379", "+OK/"}, {"ROLE", "*5/$5/slave/$9/127.0.0.1/:6379/$7/connect/:-1/"},
          {"SET a 1", "-READONLY You can't write against a read only replica./"},
          {"EVAL #!lua\nreturn_1 0", "-READONLY You can't write against a read only replica./"},
          {"EVAL #!lua_flags=no-writes\nreturn_1 0", ":1/"}, {"REPLICAOF NO ONE", "+OK/"}, {"SET a 1", "+OK/"});
}

Test(simredis, pauses_and_waits_end_by_its_clock)
{
    cr_expect_eq(simredis_next_us(w.server), UINT64_MAX);
    STEPS({"CLIENT PAUSE 100 WRITE", "+OK/"}, {"GET a", "$-1/"}, {"SET a 1", ""}, {"GET a", ""});
    send(&w.peers[1], "WAIT 1 50");
    cr_expect_eq(simredis_next_us(w.server), w.now_us + 50000);
    w.now_us += 50000;
    simredis_run(w.server);
    cr_expect_str_eq(take(&w.peers[1]), ":0/");
    cr_expect_str_eq(take(&w.peers[0]), "");
    w.now_us += 50000;
    simredis_run(w.server);
    cr_expect_str_eq(take(&w.peers[0]), "+OK/$1/1/");
}

Test(simredis, who_waits_for_replicas_is_told_that_it_is_none_of_a_master)
{
    send(&w.peers[1], "WAIT 1 0");
    STEPS({"REPLICAOF 127.0.0.1 6379", "+OK/"});
    cr_expect_str_eq(take(&w.peers[1]),
                     "-UNBLOCKED force unblock from blocking operation, instance state changed (master "
                     "-> replica?)/");
    cr_expect_null(w.peers[1].client);
}

/* What its log says, and what it saves, is what it holds. */
Test(simredis, restarts)
{
    for (int from_log = 0; from_log < 2; from_log++) {
        STEPS({"FLUSHALL", "+OK/"}, {"SET a 1 PX 5000", "+OK/"}, {"HSET h f v g w", ":2/"}, {"ZADD z 2.5 m", ":1/"},
              {"SADD s 3 1 2", ":3/"}, {"RPUSH l a b", ":2/"}, {"XADD x 1-1 a b", "$3/1-1/"},
              {"XADD x 2-1 a b", "$3/2-1/"}, {"XDEL x 1-1", ":1/"},
              {"EVAL redis.call('INCR','n')_redis.call('DEL','h') 0", "$-1/"}, {"HSET h f2 v", ":1/"});
        restart(from_log);
        STEPS({"PEXPIRETIME a", ":1795000005000/"}, {"HGETALL h", "*2/$2/f2/$1/v/"}, {"ZSCORE z m", "$3/2.5/"},
              {"SMEMBERS s", "*3/$1/1/$1/2/$1/3/"}, {"LRANGE l 0 -1", "*2/$1/a/$1/b/"}, {"GET n", "$1/1/"},
              {"XRANGE x - +", "*1/*2/$3/2-1/*2/$1/a/$1/b/"},
              {"XSETID x 1-0", "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id/"});
    }
}

/* A script's writes are on disk together or not at all. */
Test(simredis, a_log_that_is_cut_off_lacks_the_whole_of_its_last_script)
{
    STEPS({"SET a 1", "+OK/"}, {"EVAL redis.call('SET','a',2)_redis.call('SET','b',2) 0", "$-1/"});
    w.log.len -= 20;
    restart(true);
    STEPS({"GET a", "$1/1/"}, {"GET b", "$-1/"});
}
