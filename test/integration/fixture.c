#include "fixture.h"
#include "auth/key_check.h"
#include "auth/password.h"
#include "auth/session_auth.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/secret.h"
#include "core/totp.h"
#include "deadline.h"
#include "redis_names.h"
#include "records/account_store.h"
#include "records/key_store.h"
#include "engine/partitions.h"
#include "records/session_store.h"
#include "records/store_parts.h"
#include "test_loop.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_ARGS_MAX = 32 };

enum { IN_USE_STEP_MS = 5 };

#define REDIS_TIMEOUT_MS "10000"
#define DRAIN_MS "400" /* a test that waits for a drain sets its own */
#define CACHE_ENTRIES \
    "20000" /* sanitizers mark memory that nobody uses, too: a node with the usual cache takes a third longer */
#define PASSWORD_COST "10" /* 2^10: see test/support/quick_password.c */

#define MASTER_KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* A store of the test's own, for the length of one verb. */
struct direct {
    uv_loop_t loop;
    struct partitions *partitions;
    struct keyring *keyring;
    bool done;
    enum store_result result;
    struct session_record session; /* as it was made last */
};

static const struct audit_source NOBODY = {.actor = {"operator", 8}};

static struct id id_read(enum id_kind kind, const char *given)
{
    struct id id;

    if (!id_parse(kind, text_of(given), &id))
        test_give_up("not an id: %s", given);
    return id;
}

bool fixture_in_cluster(void)
{
    return getenv("CHATELAINE_TEST_CLUSTER") != NULL;
}

void fixture_use_one_redis(const char *reason)
{
    if (!fixture_in_cluster())
        return;
    fprintf(stderr, "one Redis in place of a cluster: %s\n", reason);
    unsetenv("CHATELAINE_TEST_CLUSTER");
    unsetenv("CHATELAINE_UNSAFE_REDIS");
}

void fixture_use_one_partition(const char *reason)
{
    fixture_use_one_redis(reason);
    if (fixture_partitions() > 1)
        fprintf(stderr, "one partition in place of several: %s\n", reason);
    unsetenv("CHATELAINE_PARTITIONS");
}

/* Of all stores: the nodes and commands that the fixture starts read the same variable. */
unsigned fixture_partitions(void)
{
    const char *count = getenv("CHATELAINE_PARTITIONS");

    return count ? (unsigned)strtoul(count, NULL, 10) : 1;
}

unsigned fixture_partition_of(const char *account)
{
    struct id id = {0};

    snprintf(id.text, sizeof id.text, "%s", account);
    return bucket_of_account(&id) % fixture_partitions();
}

const char *fixture_name_in(unsigned partition, const char *rest)
{
    enum { NAMES = 8, NAME_BYTES = 128 };
    static char names[NAMES][NAME_BYTES];
    static unsigned next;
    char *name = names[next++ % NAMES];

    if (fixture_partitions() > 1 || fixture_in_cluster())
        snprintf(name, NAME_BYTES, "chatelaine:{%u}:%s", partition, rest);
    else
        snprintf(name, NAME_BYTES, "chatelaine:%s", rest);
    return name;
}

const char *fixture_name(const char *account, const char *rest)
{
    return fixture_name_in(account ? fixture_partition_of(account) : 0, rest);
}

long fixture_sum(const struct fixture *fixture, const char *command, const char *rest)
{
    char reply[64];
    long sum = 0;

    for (unsigned i = 0; i < fixture_partitions(); i++) {
        redis_server_ask(&fixture->redis, reply, sizeof reply, command, fixture_name_in(i, rest), NULL);
        sum += strtol(reply, NULL, 10);
    }
    return sum;
}

static bool all_ready(void *direct)
{
    const struct partitions *partitions = ((struct direct *)direct)->partitions;

    return partitions_ready(partitions) == partitions_count(partitions);
}

static void ready_changed(void *direct, struct store *store)
{
    (void)direct, (void)store;
}

static void direct_connect(struct direct *direct, const struct fixture *fixture)
{
    struct store_settings settings = {.parts = STORE_PARTS,
                                      .timeout_ms = PATIENCE_MS,
                                      .prefix = "chatelaine:",
                                      .partitions = fixture_partitions(),
                                      .min_replicas = fixture->min_replicas,
                                      .audit_max = 100000};
    uint8_t master[1][KEYRING_MASTER_BYTES];
    struct buf why;

    *direct = (struct direct){0};
    buf_init(&why, 200);
    if (!redis_target_parse(text_of(fixture->redis.url), &settings.target, &why) ||
        !keyring_parse_master(TEXT(MASTER_KEY_HEX), master[0]))
        test_give_up("%.*s", TEXT_ARG(buf_text(&why)));
    buf_finish(&why);
    uv_loop_init(&direct->loop);
    direct->keyring = settings.keyring = keyring_create((const uint8_t(*)[KEYRING_MASTER_BYTES])master, 1);
    direct->partitions = partitions_create(&direct->loop, &settings, ready_changed, direct);
}

static void direct_closed(void *direct)
{
    ((struct direct *)direct)->done = true;
}

static void direct_await_ready(struct direct *direct)
{
    if (!test_loop_until(&direct->loop, all_ready, direct, PATIENCE_MS))
        test_give_up("the store does not become ready: %s", store_trouble(partitions_at(direct->partitions, 0)));
}

/* In a cluster, whoever has just connected writes only after four seconds: the connection is kept. */
static struct direct *direct_open(struct fixture *fixture)
{
    struct direct *direct = fixture->kept;

    if (direct) {
        uv_run(&direct->loop, UV_RUN_NOWAIT); /* notices a connection that has ended meanwhile */
        direct_await_ready(direct);
        return direct;
    }
    direct = mem_alloc(sizeof *direct);
    direct_connect(direct, fixture);
    direct_await_ready(direct);
    if (fixture_in_cluster())
        fixture->kept = direct;
    return direct;
}

static void direct_finish(const struct fixture *fixture, struct direct *direct)
{
    if (direct == fixture->kept)
        return;
    direct->done = false;
    partitions_close(direct->partitions, direct_closed, direct);
    if (!test_loop_until_set(&direct->loop, &direct->done, PATIENCE_MS) || !test_loop_finish(&direct->loop))
        test_give_up("the store does not close");
    keyring_destroy(direct->keyring);
    free(direct);
}

void fixture_open_store(struct fixture *fixture)
{
    fixture->kept = direct_open(fixture);
}

void fixture_close_store(struct fixture *fixture)
{
    struct direct *direct = fixture->kept;

    fixture->kept = NULL;
    if (direct)
        direct_finish(fixture, direct);
}

static void verb_done(void *arg, enum store_result result)
{
    struct direct *direct = arg;

    direct->result = result;
    direct->done = true;
}

static void insertion_done(void *arg, enum store_result result, uint32_t retry_after_s)
{
    (void)retry_after_s;
    verb_done(arg, result);
}

static void key_verb_done(void *arg, enum store_result result, const struct key_record *key)
{
    (void)key;
    verb_done(arg, result);
}

static void session_verb_done(void *arg, enum store_result result, const struct session_record *session)
{
    if (session)
        ((struct direct *)arg)->session = *session;
    verb_done(arg, result);
}

static void direct_expect(struct direct *direct, const char *verb)
{
    if (!test_loop_until_set(&direct->loop, &direct->done, PATIENCE_MS) || direct->result != STORE_OK)
        test_give_up("%s: result %d", verb, (int)direct->result);
    direct->done = false;
}

static void add_account(struct fixture *fixture, struct id id, char ret_account[ID_TEXT_BYTES])
{
    struct direct *direct;

    direct = direct_open(fixture);
    partitions_found(direct->partitions, verb_done, direct);
    direct_expect(direct, "partitions_found");
    account_store_create(partition_of_account(direct->partitions, &id), &id, TEXT("North Clinic"), verb_done, direct);
    direct_expect(direct, "account_store_create");
    direct_finish(fixture, direct);
    snprintf(ret_account, ID_TEXT_BYTES, "%s", id.text);
}

void fixture_add_account(struct fixture *fixture, char ret_account[ID_TEXT_BYTES])
{
    add_account(fixture, id_mint(ID_ACCOUNT, clock_wall_ms()), ret_account);
}

void fixture_add_account_in(struct fixture *fixture, unsigned partition, char ret_account[ID_TEXT_BYTES])
{
    struct id id;

    do
        id = id_mint(ID_ACCOUNT, clock_wall_ms());
    while (fixture_partition_of(id.text) != partition);
    add_account(fixture, id, ret_account);
}

static uint8_t bucket_for(const struct fixture *fixture, const struct id *account)
{
    return (uint8_t)(bucket_of_account(account) + fixture->draws_elsewhere);
}

void fixture_add_key(struct fixture *fixture, const char *account, enum key_kind kind, enum key_mode mode,
                     scope_set scopes, struct fixture_key *ret_key)
{
    fixture_add_key_of(fixture, account, kind, mode, scopes, clock_wall_ms(), ret_key);
}

void fixture_add_key_of(struct fixture *fixture, const char *account, enum key_kind kind, enum key_mode mode,
                        scope_set scopes, int64_t created_ms, struct fixture_key *ret_key)
{
    struct key_record key = {.id = id_mint(key_id_kind(kind), created_ms),
                             .account = id_read(ID_ACCOUNT, account ? account : fixture->account),
                             .kind = kind,
                             .mode = mode,
                             .scopes = scopes,
                             .created_ms = created_ms};
    uint8_t digest[KEY_DIGEST_BYTES];
    struct secret secret;
    struct direct *direct;

    if (!key_set_name(&key, TEXT("fixture")))
        test_give_up("key_set_name");
    direct = direct_open(fixture);
    secret_draw(direct->keyring, bucket_for(fixture, &key.account), kind, mode, &secret, digest);
    key_set_last4(&key, secret_text(&secret));
    key_store_insert(partition_of_account(direct->partitions, &key.account), &key, digest, &NOBODY, insertion_done,
                     direct);
    direct_expect(direct, "key_store_insert");
    direct_finish(fixture, direct);
    snprintf(ret_key->id, sizeof ret_key->id, "%s", key.id.text);
    snprintf(ret_key->secret, sizeof ret_key->secret, "%s", secret.text);
}

void fixture_await_in_use(const struct fixture *fixture, const char *account, const char *key_id)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char name[256], digest[128], record[1024];

    snprintf(name, sizeof name, "id:%s", key_id);
    redis_server_ask(&fixture->redis, digest, sizeof digest, "GET", fixture_name(account, name), NULL);
    snprintf(name, sizeof name, "key:%s", digest);
    do {
        redis_server_ask(&fixture->redis, record, sizeof record, "GET", fixture_name(account, name), NULL);
        if (deadline_left_ms(deadline) <= 0)
            test_give_up("nobody noted the use of %s: %s", key_id, record);
        poll(NULL, 0, IN_USE_STEP_MS);
    } while (strstr(record, "\nconfirm="));
}

void fixture_revoke_key(struct fixture *fixture, const struct fixture_key *key)
{
    struct id id = id_read(id_kind_of(text_of(key->id)), key->id);
    struct key_view view = {.any_kind = true};
    struct direct *direct;

    direct = direct_open(fixture);
    for (unsigned i = 0; i < partitions_count(direct->partitions); i++) {
        key_store_revoke(partitions_at(direct->partitions, i), &view, &id, &NOBODY, key_verb_done, direct);
        if (!test_loop_until_set(&direct->loop, &direct->done, PATIENCE_MS))
            test_give_up("key_store_revoke");
        direct->done = direct->result == STORE_OK;
        if (direct->done)
            break;
    }
    direct_expect(direct, "key_store_revoke");
    direct_finish(fixture, direct);
}

static void begin_user(const struct fixture *fixture, const char *account, const char *email, enum role role,
                       struct user_record *ret_user)
{
    *ret_user = (struct user_record){.id = id_mint(ID_USER, clock_wall_ms()),
                                     .account = id_read(ID_ACCOUNT, account ? account : fixture->account),
                                     .role = role,
                                     .created_ms = clock_wall_ms()};
    snprintf(ret_user->email, sizeof ret_user->email, "%s", email);
}

static void add_user(struct direct *direct, const struct user_record *user, struct fixture_user *ret_user)
{
    account_store_add_user(direct->partitions, user, &NOBODY, verb_done, direct);
    direct_expect(direct, "account_store_add_user");
    *ret_user = (struct fixture_user){0};
    snprintf(ret_user->id, sizeof ret_user->id, "%s", user->id.text);
    snprintf(ret_user->account, sizeof ret_user->account, "%s", user->account.text);
    snprintf(ret_user->email, sizeof ret_user->email, "%.63s", user->email);
}

void fixture_add_person(struct fixture *fixture, const char *account, const char *email, enum role role,
                        struct fixture_user *ret_user)
{
    struct user_record user;
    struct direct *direct;

    begin_user(fixture, account, email, role, &user);
    snprintf(user.password_hash, sizeof user.password_hash,
             "scrypt$17$8$1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    direct = direct_open(fixture);
    add_user(direct, &user, ret_user);
    direct_finish(fixture, direct);
}

void fixture_add_member(struct fixture *fixture, const char *account, const char *email, enum role role,
                        struct fixture_user *ret_user)
{
    struct user_record user;
    struct totp_secret totp;
    struct direct *direct;
    struct buf uri;

    begin_user(fixture, account, email, role, &user);
    direct = direct_open(fixture);
    password_hash_now(direct->keyring, id_text(&user.id), TEXT(FIXTURE_PASSWORD), user.password_hash);
    totp_secret_mint(&totp);
    keyring_seal(direct->keyring, id_text(&user.id), totp.bytes, sizeof totp.bytes, user.totp_sealed);
    uv_update_time(&direct->loop); /* hashing has taken a while */
    add_user(direct, &user, ret_user);
    direct_finish(fixture, direct);
    buf_init_fixed(&uri, ret_user->totp_uri, sizeof ret_user->totp_uri - 1);
    totp_print_uri(&totp, TOTP_ISSUER, text_of(user.email), &uri);
    ret_user->totp_uri[uri.len] = '\0';
}

static const struct session_limits LIMITS = {.idle_ms = 1800000, .absolute_ms = 43200000, .step_up_ms = 300000};

/* Each session takes a TOTP step of its own, counted far below the present: real sign-ins stay possible. */
static int64_t next_step(void)
{
    static int64_t step = 1000;

    return step++;
}

static void begin_session(struct direct *direct, const struct fixture_user *user, const char *account,
                          const uint8_t *digest, const char *sid)
{
    struct session_start start = {.user = id_read(ID_USER, user->id),
                                  .account = id_read(ID_ACCOUNT, account),
                                  .totp_step = next_step(),
                                  .token_digest = digest,
                                  .sid = sid,
                                  .attempt = {.id = TEXT("fixture")}};

    session_store_create(direct->partitions, &start, &LIMITS, &NOBODY, session_verb_done, direct);
    direct_expect(direct, "session_store_create");
}

static void step_up(struct direct *direct, const uint8_t *old_digest, const uint8_t *new_digest)
{
    const struct session_proof proof = {
        &direct->session, old_digest, next_step(), {.id = TEXT("fixture")}, &LIMITS,
    };

    session_store_step_up(partition_of_account(direct->partitions, &direct->session.user.account), &proof, new_digest,
                          &NOBODY, session_verb_done, direct);
    direct_expect(direct, "session_store_step_up");
}

void fixture_add_session(struct fixture *fixture, const struct fixture_user *user, bool stepped_up,
                         struct fixture_session *ret_session)
{
    struct id sid = id_mint(ID_REQUEST, clock_wall_ms()), account;
    uint8_t digest[KEYRING_DIGEST_BYTES], old_digest[KEYRING_DIGEST_BYTES];
    struct token token;
    struct direct *direct;
    uint8_t bucket;

    user = user ? user : &fixture->user;
    account = id_read(ID_ACCOUNT, user->account[0] ? user->account : fixture->account);
    bucket = bucket_for(fixture, &account);
    direct = direct_open(fixture);
    token_draw(direct->keyring, bucket, KEYRING_SESSION_DIGEST, &token, digest);
    begin_session(direct, user, account.text, digest, sid.text + sizeof "req_" - 1);
    if (stepped_up) {
        memcpy(old_digest, digest, sizeof old_digest);
        token_draw(direct->keyring, bucket, KEYRING_SESSION_DIGEST, &token, digest);
        step_up(direct, old_digest, digest);
    }
    snprintf(ret_session->token, sizeof ret_session->token, "%s", token.text);
    csrf_token_print(direct->keyring, sid.text + sizeof "req_" - 1, ret_session->csrf);
    direct_finish(fixture, direct);
}

void fixture_add_node(struct fixture *fixture, const char *const *more)
{
    char name[16];

    if (fixture->node_count == FIXTURE_NODES_MAX)
        test_give_up("too many nodes");
    snprintf(name, sizeof name, "node%zu", fixture->node_count);
    fixture_start_node(fixture, fixture->node_count++, name, fixture->redis.url, more);
}

void fixture_add_node_by_clock(struct fixture *fixture, const struct clock_file *clock, const char *rate)
{
    const char *options = getenv("ASAN_OPTIONS");
    char more[512];

    snprintf(more, sizeof more, "%s%sverify_asan_link_order=0", options ? options : "", options ? ":" : "");
    setenv("ASAN_OPTIONS", more, 1);
    clock_file_begin(clock, rate);
    fixture_add_node(fixture, NULL);
    clock_file_end();
}

void fixture_add_node_with_clock(struct fixture *fixture, struct clock_file *clock, int ahead_s, const char *rate)
{
    clock_file_make(clock, ahead_s);
    fixture_add_node_by_clock(fixture, clock, rate);
}

/* Nodes are ready, and so started, once they serve some partitions. One with another internal listener than the usual
 * cannot be asked. */
static void await_rest(const struct fixture *fixture, size_t node, const char *const *more)
{
    for (; more && *more; more++)
        if (strncmp(*more, "--internal-", sizeof "--internal-" - 1) == 0)
            return;
    if (fixture_partitions() > 1)
        fixture_await_all_ready(fixture, node);
}

void fixture_start_node(struct fixture *fixture, size_t node, const char *name, const char *redis_url,
                        const char *const *more)
{
    const char *all[NODE_ARGS_MAX] = {"--redis-timeout-ms", REDIS_TIMEOUT_MS, "--drain-ms", DRAIN_MS,
                                      "--cache-entries",    CACHE_ENTRIES};
    size_t count = 6;

    for (size_t i = 0; more && more[i] && count < NODE_ARGS_MAX - 1; i++)
        all[count++] = more[i];
    node_start(&fixture->nodes[node], fixture->folder, name, redis_url, fixture->master_key_path, all);
    await_rest(fixture, node, more);
}

void fixture_await_read(const struct fixture *fixture, size_t node)
{
    struct http_answer answer;

    for (int turn = 0; turn < 3; turn++)
        if (http_call(fixture->nodes[node].internal_port, &(struct http_call){.target = "/livez"}, &answer) != 200)
            test_give_up("node %zu does not live", node);
}

void fixture_await_all_ready(const struct fixture *fixture, size_t node)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(fixture, node, "chatelaine_partitions_ready") != (long)fixture_partitions()) {
        if (deadline_left_ms(deadline) == 0)
            test_give_up("node %zu does not serve all partitions", node);
        poll(NULL, 0, 20);
    }
}

static void make_files(struct fixture *fixture)
{
    folder_make(fixture->folder);
    snprintf(fixture->master_key_path, sizeof fixture->master_key_path, "%.150s/master.key", fixture->folder);
    snprintf(fixture->password_path, sizeof fixture->password_path, "%.150s/password", fixture->folder);
    file_write(fixture->master_key_path, MASTER_KEY_HEX "\n");
    file_write(fixture->password_path, FIXTURE_PASSWORD "\n");
    /* Commands, as nodes, wait longer than by default for a Redis that a busy machine or disk holds up. */
    setenv("CHATELAINE_REDIS_TIMEOUT_MS", REDIS_TIMEOUT_MS, 0);
    setenv("CHATELAINE_TEST_PASSWORD_COST", PASSWORD_COST, 0);
}

static void fill(struct fixture *fixture)
{
    fixture_open_store(fixture);
    fixture_add_account(fixture, fixture->account);
    fixture_add_person(fixture, NULL, "nobody@clinic.test", ROLE_OWNER, &fixture->user);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &fixture->manager);
    if (!fixture_in_cluster())
        fixture_close_store(fixture);
}

static void start_redis(struct fixture *fixture)
{
    const char *primaries = getenv("CHATELAINE_TEST_CLUSTER");
    struct cluster_servers *cluster = &fixture->cluster;

    if (!primaries) {
        redis_server_start(&fixture->redis, NULL);
        return;
    }
    /* In a cluster whoever has no lease refuses: the usual second is short for a busy machine. */
    setenv("CHATELAINE_LEASE_MS", "3000", 0);
    cluster_servers_start(cluster, (unsigned)strtoul(primaries, NULL, 10), false);
    for (unsigned i = 1; i < cluster->count; i++)
        cluster->servers[i - 1].next = &cluster->servers[i];
    fixture->redis = cluster->servers[0];
    snprintf(fixture->redis.url, sizeof fixture->redis.url, "%s", cluster->url);
}

void fixture_start(struct fixture *fixture, size_t nodes, const char *const *more)
{
    *fixture = (struct fixture){0};
    make_files(fixture);
    start_redis(fixture);
    fill(fixture);
    for (size_t i = 0; i < nodes; i++)
        fixture_add_node(fixture, more);
}

void fixture_start_in_cluster(struct fixture *fixture, const char *redis_url, int64_t min_replicas)
{
    *fixture = (struct fixture){.min_replicas = min_replicas};
    make_files(fixture);
    snprintf(fixture->redis.url, sizeof fixture->redis.url, "%s", redis_url);
    fill(fixture);
}

void fixture_stop(struct fixture *fixture)
{
    fixture_close_store(fixture);
    for (size_t i = 0; i < fixture->node_count; i++) {
        if (fixture->nodes[i].process.pid != 0)
            node_stop(&fixture->nodes[i]);
    }
    if (fixture->redis.folder[0]) {
        redis_server_thaw(&fixture->redis); /* a frozen one would be asked in vain */
        if (!fixture->wrote_names)
            redis_names_judge(&fixture->redis, "chatelaine:");
        redis_server_stop(&fixture->redis);
    }
    folder_remove(fixture->folder);
}

int fixture_run(struct fixture *fixture, const char *const *args, const char *input, char **ret_out, char **ret_err)
{
    static unsigned runs;
    struct process process;
    const char *argv[32] = {node_binary()};
    size_t argc = 1;
    char name[24];
    int exit_code;

    while (*args && argc < 24)
        argv[argc++] = *args++;
    argv[argc++] = "--redis";
    argv[argc++] = fixture->redis.url;
    argv[argc++] = "--master-key-file";
    argv[argc++] = fixture->master_key_path;
    snprintf(name, sizeof name, "command%u", runs++);
    exit_code = process_run(&process, fixture->folder, name, argv, input, PATIENCE_MS);
    if (ret_out)
        *ret_out = file_read(process.out_path);
    if (ret_err)
        *ret_err = file_read(process.err_path);
    return exit_code;
}

void fixture_run_until(struct fixture *fixture, const char *const *args, const char *says)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool is_said;

    do {
        char *out;

        is_said = fixture_run(fixture, args, NULL, &out, NULL) == EXIT_SUCCESS && strstr(out, says);
        if (!is_said && deadline_left_ms(deadline) == 0)
            test_give_up("%s does not say \"%s\": %s", args[0], says, out);
        free(out);
    } while (!is_said);
}

static void copy_member(const struct json *object, const char *name, char *ret_value, size_t size)
{
    const struct json *value = json_member(object, name);

    if (!value || json_type(value) != JSON_STRING)
        test_give_up("the program's answer has no %s", name);
    snprintf(ret_value, size, "%.*s", TEXT_ARG(json_text(value)));
}

void fixture_add_user(struct fixture *fixture, const char *email, struct fixture_user *ret_user)
{
    const char *args[] = {"user",
                          "create",
                          "--account",
                          fixture->account,
                          "--email",
                          email,
                          "--password-file",
                          fixture->password_path,
                          "--json",
                          "--permanent-password",
                          NULL};
    char *out, *err;
    struct json *answer;

    if (fixture_run(fixture, args, NULL, &out, &err) != 0)
        test_give_up("user create: %s", err);
    answer = json_parse_object(text_of(out), NULL);
    if (!answer)
        test_give_up("user create printed: %s", out);
    copy_member(answer, "id", ret_user->id, sizeof ret_user->id);
    copy_member(answer, "totp_uri", ret_user->totp_uri, sizeof ret_user->totp_uri);
    snprintf(ret_user->account, sizeof ret_user->account, "%s", fixture->account);
    snprintf(ret_user->email, sizeof ret_user->email, "%s", email);
    json_free(answer);
    free(out);
    free(err);
}

void fixture_totp(const struct fixture_user *user, int steps, char ret_code[8])
{
    struct totp_secret secret;

    if (!totp_parse_uri(text_of(user->totp_uri), &secret))
        test_give_up("not an otpauth address: %s", user->totp_uri);
    totp_print(secret.bytes, sizeof secret.bytes, totp_step(clock_wall_ms()) + steps, TOTP_DIGITS, ret_code);
}

bool fixture_read_cookie_of(const struct http_answer *answer, const char *name, char ret_token[FIXTURE_TOKEN_BYTES])
{
    size_t len = strlen(name);
    char value[512];

    if (!http_answer_field(answer, "set-cookie", value, sizeof value) || strncmp(value, name, len) != 0 ||
        value[len] != '=')
        return false;
    snprintf(ret_token, FIXTURE_TOKEN_BYTES, "%.*s", (int)strcspn(value + len + 1, ";"), value + len + 1);
    return true;
}

bool fixture_read_cookie(const struct http_answer *answer, char ret_token[FIXTURE_TOKEN_BYTES])
{
    return fixture_read_cookie_of(answer, "__Host-session", ret_token);
}

int fixture_login(struct fixture *fixture, size_t node, const struct fixture_user *user, const char *password,
                  const char *code, struct fixture_session *ret_session, struct http_answer *ret_answer)
{
    char now[8], body[512];

    fixture_totp(user, 0, now);
    snprintf(body, sizeof body, "{\"email\":\"%s\",\"password\":\"%s\",\"totp\":\"%s\"}", user->email, password,
             code ? code : now);
    fixture_call(fixture, node, &(struct http_call){.method = "POST", .target = "/v1/auth/login", .json = body},
                 ret_answer);
    if (ret_answer->status == 200 && ret_session &&
        (!fixture_read_cookie(ret_answer, ret_session->token) ||
         !http_answer_json(ret_answer, "csrf_token", ret_session->csrf, sizeof ret_session->csrf)))
        test_give_up("a login without cookie or CSRF token: %s%s", ret_answer->head, ret_answer->body);
    return ret_answer->status;
}

int fixture_call(const struct fixture *fixture, size_t node, const struct http_call *call,
                 struct http_answer *ret_answer)
{
    return http_call(fixture->nodes[node].port, call, ret_answer);
}

/* Only a whole line: in "# HELP name 1 while ..." the name stands as well, with a number behind it. */
long fixture_metric(const struct fixture *fixture, size_t node, const char *sample)
{
    struct http_answer answer;
    char line[200];
    const char *at;

    snprintf(line, sizeof line, "\n%s ", sample);
    if (http_call(fixture->nodes[node].internal_port, &(struct http_call){.target = "/metrics"}, &answer) != 200)
        test_give_up("node %zu has no metrics", node);
    at = strstr(answer.body, line);
    if (!at)
        test_give_up("node %zu has no metric %s", node, sample);
    return strtol(at + strlen(line), NULL, 10);
}

int fixture_try_create_key(const struct fixture *fixture, size_t node, const char *json, struct fixture_key *ret_key)
{
    struct http_answer answer;
    struct http_call call = {
        .method = "POST", .target = "/v1/api_keys", .bearer = fixture->manager.secret, .json = json};
    int status = fixture_call(fixture, node, &call, &answer);

    if (status == 201 && !(http_answer_json(&answer, "id", ret_key->id, sizeof ret_key->id) &&
                           http_answer_json(&answer, "secret", ret_key->secret, sizeof ret_key->secret)))
        test_give_up("no key was created: %s%s", answer.head, answer.body);
    return status;
}

void fixture_create_key(const struct fixture *fixture, size_t node, const char *json, struct fixture_key *ret_key)
{
    int status = fixture_try_create_key(fixture, node, json, ret_key);

    if (status != 201)
        test_give_up("no key was created: %d", status);
}

int fixture_try_key(const struct fixture *fixture, size_t node, const char *secret)
{
    struct http_answer answer;

    return fixture_call(fixture, node, &(struct http_call){.target = "/v1/whoami", .bearer = secret}, &answer);
}

static void await_key(const struct fixture *fixture, size_t node, const char *secret, int wanted, int meanwhile)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int status;

    while ((status = fixture_try_key(fixture, node, secret)) != wanted) {
        if ((status != 503 && status != meanwhile) || deadline_left_ms(deadline) == 0)
            test_give_up("node %zu answers %d, not %d", node, status, wanted);
        poll(NULL, 0, 20);
    }
}

void fixture_await_key(const struct fixture *fixture, size_t node, const char *secret, int wanted)
{
    await_key(fixture, node, secret, wanted, 503);
}

void fixture_await_resumed(const struct fixture *fixture, size_t node, const char *secret, int wanted)
{
    await_key(fixture, node, secret, wanted, 403);
}

void fixture_end_soon(struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    char at[CLOCK_RFC3339_BYTES], json[64], target[128];
    struct fixture_session session;
    struct http_answer answer;
    int64_t ahead_ms = 1500;

    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", key->id);
    fixture_add_session(fixture, NULL, true, &session);
    struct http_call call = {
        .method = "PUT", .target = target, .cookie = session.token, .csrf = session.csrf, .json = json};
    do {
        clock_print_rfc3339(clock_wall_ms() + ahead_ms, at);
        snprintf(json, sizeof json, "{\"revoke_at\":\"%s\"}", at);
        ahead_ms *= 2;
    } while (fixture_call(fixture, node, &call, &answer) == 400 && ahead_ms < PATIENCE_MS);
    if (answer.status != 200)
        test_give_up("no end at %s: %s", at, answer.body);
}
