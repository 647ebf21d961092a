#include "http/stream.h"
#include "fake_world.h"
#include "trail/audit_keeper.h"
#include "records/seal_store.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "console/console.h"
#include "core/path.h"
#include "core/secret.h"
#include "leak_guard.h"
#include "engine/alias.h"
#include "records/revocation_effect.h"
#include "trail/audit_store.h"
#include "records/change_missed.h"
#include "records/usage_store.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

struct world world;

/* Completions */

enum { QUEUE_MAX = 128 };
static struct completion queue[QUEUE_MAX];
static size_t queue_length;

void world_complete(struct completion completion)
{
    CHECK(queue_length < QUEUE_MAX);
    queue[queue_length++] = completion;
}

COMPLETION(run_later, void(void *arg))

void world_later(void (*run)(void *arg), void *arg)
{
    ANSWER_LATER(run_later, run, arg);
}

/* Requests */

enum { HEADERS_MAX = 16 };

struct http_request {
    struct arena arena;
    char first[2048];
    enum http_method method;
    struct text path, query, body;
    struct text names[HEADERS_MAX], values[HEADERS_MAX];
    size_t header_count;
    bool has_body, gone, closes, is_stream;
    unsigned holds;
    int status;
    struct buf answer, headers;
    struct problem problem;
    void (*delivered)(void *arg, bool delivered);
    void *delivered_arg;
    void (*replied)(void *arg, int status);
    void *replied_arg;
};

static void add_header(struct http_request *request, struct text line)
{
    struct text name;
    char csrf[CSRF_TOKEN_CHARS + 1];

    CHECK(request->header_count < HEADERS_MAX && text_next(&line, ':', &name));
    line = text_trim(line);
    if (text_equal(line, TEXT("$CSRF"))) {
        csrf_token_print(world.service.keyring, world.session.sid, csrf);
        line = arena_copy(&request->arena, text_of(csrf));
    }
    request->names[request->header_count] = name;
    request->values[request->header_count++] = line;
}

static struct http_request *request_make(enum http_method method, const char *target, const char *headers,
                                         const char *body)
{
    struct http_request *request = mem_alloc(sizeof *request);
    struct text lines = text_of(headers), line;

    arena_init(&request->arena, request->first, sizeof request->first);
    buf_init(&request->answer, 1 << 20);
    buf_init(&request->headers, 1 << 16);
    request->method = method;
    http_target_split(text_of(target), &request->path, &request->query);
    request->has_body = body != NULL;
    request->body = body ? text_of(body) : (struct text){0};
    while (text_next(&lines, '\n', &line))
        if (line.len)
            add_header(request, line);
    return request;
}

static void run_queue(void)
{
    while (queue_length) {
        struct completion first = queue[0];

        memmove(queue, queue + 1, --queue_length * sizeof *queue);
        first.run(&first);
    }
}

static bool must_turn;

static void gate_wake(void *arg, uint64_t in_ms)
{
    must_turn = in_ms == 0;
}

static void gate_spent(void *arg)
{
}

void world_run(void)
{
    do {
        run_queue();
        if (must_turn) {
            must_turn = false;
            gate_turn(world.service.gate, clock_boot_ns() / CLOCK_NS_PER_MS);
        }
    } while (queue_length || must_turn);
}

static struct http_request *dispatch(struct http_request *request,
                                     void (*handler)(struct http_request *request, void *service), bool leaves)
{
    handler(request, &world.service);
    cr_assert(request->status || request->holds || queue_length, "the handler neither answered nor waits");
    request->gone = leaves;
    world_run();
    cr_assert(request->holds == 0 || (request->is_stream && world.stream == STREAM_UNENDED), "%u holds are left",
              request->holds);
    cr_assert(request->status || request->gone, "there was no answer");
    return request;
}

struct http_request *request_send(enum http_method method, const char *target, const char *headers, const char *body)
{
    return dispatch(request_make(method, target, headers, body), api_handle_public, false);
}

struct http_request *request_send_and_leave(enum http_method method, const char *target, const char *headers,
                                            const char *body)
{
    return dispatch(request_make(method, target, headers, body), api_handle_public, true);
}

struct http_request *request_send_internal(enum http_method method, const char *target)
{
    return request_check(method, target, "", NULL);
}

struct http_request *request_check(enum http_method method, const char *target, const char *headers, const char *body)
{
    return dispatch(request_make(method, target, headers, body), api_handle_internal, false);
}

bool answer_closes(const struct http_request *request)
{
    return request->closes;
}

int answer_status(const struct http_request *request)
{
    return request->status;
}

const char *answer_body(const struct http_request *request)
{
    return request->answer.ptr ? request->answer.ptr : "";
}

const char *answer_headers(const struct http_request *request)
{
    return request->headers.ptr ? request->headers.ptr : "";
}

const struct problem *answer_problem(const struct http_request *request)
{
    return &request->problem;
}

void request_leave(struct http_request *request)
{
    request->gone = true;
}

void request_forget(struct http_request *request)
{
    cr_assert_eq(request->holds, 0, "%u holds are left", request->holds);
    arena_finish(&request->arena);
    buf_finish(&request->answer);
    buf_finish(&request->headers);
    free(request);
}

enum http_method http_request_method(const struct http_request *request)
{
    return request->method;
}

struct text http_request_path(const struct http_request *request)
{
    return request->path;
}

struct text http_request_query(const struct http_request *request)
{
    return request->query;
}

struct text http_request_header(const struct http_request *request, struct text name, size_t *ret_count)
{
    struct text value = {0};

    *ret_count = 0;
    for (size_t i = 0; i < request->header_count; i++)
        if (text_equal_nocase(request->names[i], name) && (*ret_count)++ == 0)
            value = request->values[i];
    return value;
}

struct text http_request_header_at(const struct http_request *request, struct text name, size_t n)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (text_equal_nocase(request->names[i], name) && n-- == 0)
            return request->values[i];
    return (struct text){0};
}

struct text http_request_id(const struct http_request *request)
{
    return TEXT("req_01jd0000000000000000000001");
}

int64_t http_request_wall_ms(const struct http_request *request)
{
    return clock_wall_ms();
}

struct text http_request_peer(const struct http_request *request)
{
    return text_of(world.peer);
}

bool http_request_has_client_certificate(const struct http_request *request)
{
    return world.has_client_certificate;
}

struct text http_request_client_name(const struct http_request *request)
{
    return text_of(world.client_name ? world.client_name : "");
}

bool http_request_has_body(const struct http_request *request)
{
    return request->has_body;
}

void http_request_raise_body(struct http_request *request, size_t max_bytes)
{
    world.body_raised_to = max_bytes;
}

bool http_request_limit_body(struct http_request *request, size_t max_bytes)
{
    return request->body.len <= max_bytes;
}

void *http_request_alloc(struct http_request *request, size_t bytes)
{
    return arena_alloc(&request->arena, bytes);
}

struct text http_request_copy(struct http_request *request, struct text t)
{
    return arena_copy(&request->arena, t);
}

void http_request_defer(struct http_request *request, void (*fn)(void *arg), void *arg)
{
    world.wipes += fn == secret_wipe || fn == token_wipe;
    arena_defer(&request->arena, fn, arg);
}

uint64_t http_request_age_ns(const struct http_request *request)
{
    return world.age_ns;
}

void http_request_hold(struct http_request *request)
{
    request->holds++;
}

void http_request_release(struct http_request *request)
{
    CHECK(request->holds > 0);
    request->holds--;
    cr_assert(request->holds || request->status || request->gone, "the last hold was released without an answer");
}

bool http_request_gone(const struct http_request *request)
{
    return request->gone;
}

bool http_request_given_up(const struct http_request *request)
{
    return request->gone;
}

static void run_body(const struct completion *completion)
{
    struct http_request *request = completion->request;

    ((http_body_done *)completion->done)(completion->arg, HTTP_BODY_OK, request->body);
    http_request_release(request);
}

void http_request_read_body(struct http_request *request, http_body_done *done, void *arg)
{
    http_request_hold(request);
    world_complete((struct completion){run_body, (void (*)(void))done, arg, .request = request});
}

void http_response_header(struct http_request *request, struct text name, struct text value)
{
    buf_printf(&request->headers, "%.*s: %.*s\n", TEXT_ARG(name), TEXT_ARG(value));
}

COMPLETION(run_delivery, void(void *arg, bool delivered), world.delivered)

void http_reply(struct http_request *request, int status, struct text content_type, struct text body)
{
    cr_assert(request->status == 0, "a second answer");
    if (request->gone)
        return;
    request->status = status;
    if (request->replied)
        request->replied(request->replied_arg, status);
    buf_append_text(&request->answer, body);
    buf_append_char(&request->answer, '\0');
    buf_append_char(&request->headers, '\0');
    if (request->delivered)
        ANSWER_LATER(run_delivery, request->delivered, request->delivered_arg);
}

void console_answer(const struct console *console, struct http_request *request)
{
    http_reply(request, 200, TEXT("text/html"), TEXT("a page"));
}

void http_reply_json(struct http_request *request, int status, const struct buf *json)
{
    cr_assert_not(json->failed);
    http_reply(request, status, TEXT("application/json"), buf_text(json));
}

void problem_reply(struct http_request *request, struct text origin, const struct problem *problem)
{
    struct buf out CLEANUP(buf_finish);

    int status = problem->status ? problem->status : problem_status(problem->code);

    buf_init(&out, 4096);
    request->problem = *problem;
    if (problem->is_oauth)
        status = problem_print_oauth(request, problem, &out);
    else
        problem_print(problem, http_request_id(request), origin, &out);
    http_reply(request, status, TEXT("application/json"), buf_text(&out));
}

void http_response_fixed_headers(struct http_request *request, struct text lines)
{
    buf_append_text(&request->headers, lines);
}

void http_response_close(struct http_request *request)
{
    request->closes = true;
}

void http_response_on_replied(struct http_request *request, void (*replied)(void *arg, int status), void *arg)
{
    cr_assert_not(request->replied, "no test here samples requests");
    request->replied = replied;
    request->replied_arg = arg;
}

void http_response_on_delivered(struct http_request *request, void (*done)(void *arg, bool delivered), void *arg)
{
    cr_assert_eq(request->status, 0, "too late to ask about delivery");
    request->delivered = done;
    request->delivered_arg = arg;
}

/* Changes that changed nothing */

COMPLETION(run_missed, store_limited, world.missed_result, world.missed_result == STORE_LIMITED ? 7 : 0)

void change_missed(struct store *store, const struct missed_change *missed, store_limited *done, void *arg)
{
    world.missed += missed->count;
    world.misses_email = missed->is_email_taken;
    ANSWER_LATER(run_missed, done, arg);
}

/* Keys */

static void run_check(const struct completion *completion)
{
    const struct key_principal key = key_principal_of(&world.key);

    ((key_checked *)completion->done)(completion->arg, (enum key_verdict)completion->result, &key);
}

void key_check_begin(struct key_checker *checker, struct key_check *check, struct text token, key_checked *done,
                     void *arg)
{
    const struct key_principal key = key_principal_of(&world.key);
    enum key_verdict verdict = KEY_INVALID;

    if (text_equal(token, TEXT("good")))
        verdict = KEY_ACCEPTED;
    else if (text_equal(token, TEXT("revoked")))
        verdict = KEY_REVOKED;
    else if (text_equal(token, TEXT("away")))
        verdict = KEY_UNDECIDED;
    if (world.checks_at_once)
        done(arg, verdict, &key);
    else
        ANSWER_WITH(run_check, done, arg, verdict);
    if (world.policy_later)
        world.service.policy = world.policy_later;
}

bool key_check_holds(struct key_check *check)
{
    return false; /* there is no memory */
}

void key_check_digest(const struct key_check *check, uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    memset(ret_digest, 9, KEY_DIGEST_BYTES);
}

/* Each change carries the credential that it was requested with. */
void world_expect_credential(const struct audit_source *source, bool by_key)
{
    uint8_t digest[KEY_DIGEST_BYTES];

    cr_assert_eq(source->credential.kind, by_key ? CREDENTIAL_KEY : CREDENTIAL_SESSION);
    if (by_key)
        memset(digest, 9, sizeof digest);
    else
        CHECK(token_digest(world.service.keyring, KEYRING_SESSION_DIGEST,
                           TEXT("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), digest));
    cr_assert_arr_eq(source->credential.digest, digest, sizeof digest);
    cr_assert(by_key || source->credential.limits == &world.service.session_limits);
    world.needs_step_up = source->credential.needs_step_up;
}

/* Anything found by its digest alone lies in the bucket of its account. */
void world_expect_bucket(const uint8_t digest[KEYRING_DIGEST_BYTES], const struct id *account)
{
    cr_assert_eq(bucket_of_digest(digest), bucket_of_account(account));
}

void usage_count(struct usage *usage, const struct key_principal *key, uint32_t uses, int64_t wall_ms)
{
    cr_assert(id_equal(&key->id, &world.key.id));
    world.uses += uses;
}

struct usage_refusal *usage_refuse(struct usage *usage, const struct key_principal *key, enum usage_reason reason,
                                   int64_t wall_ms)
{
    world.refusals[reason]++;
    return world.refusals[reason] == 1 ? &world.refusal : NULL;
}

/* One partition, and the verbs here need nothing of it. */

struct store *partition_of_account(const struct partitions *partitions, const struct id *account)
{
    return NULL;
}

bool store_has_aliases(const struct store *store)
{
    return false;
}

void alias_find(struct store *store, const uint8_t digest[KEYRING_DIGEST_BYTES], alias_found *done, void *arg)
{
    cr_assert_fail("there are no aliases");
}

struct store *partition_of_bucket(const struct partitions *partitions, unsigned bucket)
{
    return partitions_at(partitions, 0);
}

struct store *partition_of_digest(const struct partitions *partitions, const uint8_t digest[KEYRING_DIGEST_BYTES])
{
    return NULL;
}

struct store *partitions_at(const struct partitions *partitions, unsigned number)
{
    return NULL;
}

unsigned partitions_count(const struct partitions *partitions)
{
    return 1;
}

unsigned partitions_ready(const struct partitions *partitions)
{
    return world.session_result == STORE_OK;
}

void partitions_trouble(const struct partitions *partitions, struct buf *out)
{
    buf_append_str(out, partitions_ready(partitions) > 0 ? world.store_trouble : "Redis is away.");
}

const char *partitions_refusal(const struct partitions *partitions, enum store_result result)
{
    return result == STORE_UNAVAILABLE ? world.store_refusal : NULL;
}

bool partitions_are_empty(const struct partitions *partitions)
{
    return false;
}

COMPLETION(run_inserted, store_limited, world.insert_result, world.insert_result == STORE_LIMITED ? 17 : 0)

void key_store_insert(struct store *store, const struct key_record *key, const uint8_t digest[KEY_DIGEST_BYTES],
                      const struct audit_source *source, store_limited *done, void *arg)
{
    world_expect_bucket(digest, &key->account);
    world_expect_credential(source, text_equal(source->actor, id_text(&world.key.id)));
    world.inserts++;
    key_copy(&world.inserted, key);
    ANSWER_LATER(run_inserted, done, arg);
}

COMPLETION(run_scheduled, key_scheduled, world.revoke_result, world.revoke_result == STORE_OK ? &world.key : NULL, 0,
           world.revoke_result == STORE_REFUSED ? KEY_SCHEDULE_LATER : 0, world.revoke_result == STORE_LIMITED ? 17 : 0)

void key_store_schedule(struct store *store, const struct key_view *view, const struct id *id, int64_t ends_ms,
                        bool may_delay, const struct audit_source *source, key_scheduled *done, void *arg)
{
    world_expect_credential(source, text_equal(source->actor, id_text(&world.key.id)));
    world.view = *view;
    world.ends_ms = ends_ms;
    world.may_delay = may_delay;
    ANSWER_LATER(run_scheduled, done, arg);
}

COMPLETION(run_renamed, key_renamed, world.insert_result, world.insert_result == STORE_OK ? &world.key : NULL,
           world.insert_result == STORE_LIMITED ? 17 : 0)

void key_store_rename(struct store *store, const struct key_view *view, const struct id *id, struct text name,
                      const struct audit_source *source, key_renamed *done, void *arg)
{
    world_expect_credential(source, text_equal(source->actor, id_text(&world.key.id)));
    world.view = *view;
    cr_assert(key_set_name(&world.key, name));
    ANSWER_LATER(run_renamed, done, arg);
}

COMPLETION(run_replaced, key_replaced, world.insert_result, world.insert_result == STORE_OK ? &world.key : NULL, 0,
           (struct text){0}, world.insert_result == STORE_LIMITED ? 17 : 0)

void key_store_replace(struct store *store, const struct key_replacement *replacement,
                       const struct audit_source *source, key_replaced *done, void *arg)
{
    world_expect_bucket(replacement->digest, &replacement->key->account);
    world_expect_credential(source, text_equal(source->actor, id_text(&world.key.id)));
    world.inserts++;
    key_copy(&world.inserted, replacement->key);
    ANSWER_LATER(run_replaced, done, arg);
}

void key_store_discard(struct store *store, const struct id *id, const struct audit_source *source)
{
    cr_assert(id_equal(id, &world.inserted.id) && text_equal(source->actor, TEXT("system")));
    cr_assert_eq(source->credential.kind, CREDENTIAL_NONE);
    world.discards++;
}

COMPLETION(run_key, key_found, (enum store_result)completion->result, &world.key)

void key_store_get(struct store *store, const struct key_view *view, const struct id *id, key_found *done, void *arg)
{
    world.view = *view;
    ANSWER_WITH(run_key, done, arg, STORE_OK);
}

COMPLETION(run_keys, keys_listed, STORE_OK, &world.key, 1, false)

void key_store_list(struct store *store, const struct key_query *query, keys_listed *done, void *arg)
{
    world.view = query->view;
    ANSWER_LATER(run_keys, done, arg);
}

void key_store_revoke(struct store *store, const struct key_view *view, const struct id *id,
                      const struct audit_source *source, key_found *done, void *arg)
{
    world_expect_credential(source, text_equal(source->actor, id_text(&world.key.id)));
    world.revokes++;
    world.view = *view;
    ANSWER_WITH(run_key, done, arg, world.revoke_result);
}

/* The last character of an id decides: 1: the key is revoked now; 2: it was revoked before; else: not found. */
struct fake_list {
    struct keys_observer observer;
    size_t count;
    struct key_of_list keys[];
};

static void list_revoked(void *arg)
{
    struct fake_list *list = arg;

    for (size_t i = 0; i < list->count; i++)
        if (world.revoke_result == STORE_OK && list->keys[i].outcome != KEY_WAS_NOT_FOUND)
            list->observer.revoked(list->observer.arg, &world.key);
    list->observer.done(list->observer.arg, world.revoke_result, world.revoke_result == STORE_OK ? list->keys : NULL,
                        list->count);
    free(list);
}

void key_store_revoke_list(struct store *store, const struct key_view *view, const struct id *ids, size_t count,
                           const struct audit_source *source, const struct keys_observer *observer)
{
    struct fake_list *list = mem_alloc(sizeof *list + count * sizeof list->keys[0]);

    world_expect_credential(source, text_equal(source->actor, id_text(&world.key.id)));
    *list = (struct fake_list){.observer = *observer, .count = count};
    for (size_t i = 0; i < count; i++) {
        struct text id = id_text(&ids[i]);
        char last = id.ptr[id.len - 1];

        list->keys[i] = (struct key_of_list){.id = ids[i],
                                             .outcome = last == '1'   ? KEY_WAS_REVOKED
                                                        : last == '2' ? KEY_WAS_REVOKED_BEFORE
                                                                      : KEY_WAS_NOT_FOUND};
    }
    world.list_count = count;
    world.list_first = ids[0];
    world.view = *view;
    world_later(list_revoked, list);
}

void key_store_revocation(struct store *store, const struct key_view *view, const struct id *id,
                          const struct audit_source *source, revocation_effect_found *done, void *arg)
{
    world.view = *view;
    done(arg, STORE_NOT_FOUND, NULL);
}

/* No key of this world has been revoked. */
void revocation_effect_certify(const struct revocation_effect *revocation, struct text issuer,
                               const struct keyring *keyring, struct buf *out)
{
    cr_assert(false);
}

/* Sessions and passwords */

COMPLETION(run_session, session_found, world.session_result, &world.session)

void session_store_load(struct store *store, const uint8_t token_digest[32], const struct session_limits *limits,
                        struct text ip, session_found *done, void *arg)
{
    snprintf(world.client_ip, sizeof world.client_ip, "%.*s", TEXT_ARG(ip));
    ANSWER_LATER(run_session, done, arg);
}

/* The attempt that the store has reserved last. */
static struct login_attempt begun;
enum { FORGIVEN_MS = 12345 };

COMPLETION(run_attempt, login_begun, world.attempt_result,
           &(struct login_begin){.user = world.user_known ? &world.session.user : NULL,
                                 .attempt = begun,
                                 .browser_is_known = world.browser_known,
                                 .is_locked = world.user_locked,
                                 .recovery_code_fits = world.recovery_code_fits,
                                 .retry_after_s = 30})

static void count_attempt(const struct login_attempt *attempt, struct text counters, login_begun *done, void *arg)
{
    begun = *attempt;
    begun.counters = counters;
    begun.forgiven_ms = FORGIVEN_MS;
    ANSWER_LATER(run_attempt, done, arg);
}

/* What ends must be what the store has reserved. */
static void expect_begun(const struct login_attempt *attempt)
{
    cr_assert(text_equal(attempt->id, begun.id) && text_equal(attempt->counters, begun.counters));
    cr_assert_eq(attempt->forgiven_ms, FORGIVEN_MS);
}

static void note_attempt(const struct login_attempt *attempt)
{
    cr_assert(attempt->id.len > 0);
    snprintf(world.counters, sizeof world.counters, "%.*s", TEXT_ARG(attempt->counters));
}

void session_store_begin_login(const struct partitions *partitions, struct text email,
                               const struct login_attempt *attempt, const struct login_browser *browser,
                               const struct token_digests *recovery_code, login_begun *done, void *arg)
{
    snprintf(world.attempted, sizeof world.attempted, "%.*s", TEXT_ARG(email));
    world.had_recovery_code = recovery_code != NULL;
    note_attempt(attempt);
    snprintf(world.browser_digest, sizeof world.browser_digest, "%.*s", TEXT_ARG(browser->digest));
    count_attempt(attempt, world.browser_known ? browser->counters : attempt->counters, done, arg);
}

void session_store_begin_step_up(struct store *store, const struct id *user, const struct login_attempt *attempt,
                                 login_begun *done, void *arg)
{
    cr_assert(id_equal(user, &world.session.user.id));
    note_attempt(attempt);
    count_attempt(attempt, attempt->counters, done, arg);
}

bool password_hash_generation(struct keyring *keyring, const char *hash, size_t *ret_generation)
{
    *ret_generation = 0;
    return true;
}

void seal_store_put_user(struct store *store, const struct user_record *was, const struct user_record *is,
                         store_done *done, void *arg)
{
    cr_assert_fail("no master key has retired");
}

struct text store_id(const struct store *store)
{
    return TEXT("5707e5707e5707e5707e5707e5707e57");
}

bool store_takes_unsealed(const struct store *store)
{
    return false;
}

bool password_hash_is_bound(const char *hash)
{
    return true;
}

COMPLETION(run_password, password_verified, world.password_result)

void password_verify(struct password_pool *pool, const struct password_turn *turn, struct text password,
                     struct text user, const char *hash, password_verified *done, void *arg)
{
    world.proofs++;
    world.turn = *turn;
    world.had_hash = hash != NULL;
    world.password_bytes = password.len;
    world.wall_ms += world.password_takes_ms;
    ANSWER_LATER(run_password, done, arg);
}

uint32_t password_pool_retry_after_s(const struct password_pool *pool)
{
    return 7;
}

void session_store_create(const struct partitions *partitions, const struct session_start *start,
                          const struct session_limits *limits, const struct audit_source *source, session_found *done,
                          void *arg)
{
    cr_assert(start->sid[0] && start->totp_step > 0 && start->verified);
    world_expect_bucket(start->token_digest, &start->account);
    note_attempt(&start->attempt);
    snprintf(world.browser_digest, sizeof world.browser_digest, "%.*s", TEXT_ARG(start->browser_digest));
    snprintf(world.browser, sizeof world.browser, "%s", start->browser);
    world.presented = start->presented_digest != NULL;
    world_create_later(done, arg);
}

const struct session_record *world_refused_session(void)
{
    world.session.retry_after_s = world.retry_after_s;
    world.session.notices = &world.notices;
    return &world.session;
}

COMPLETION(run_created, session_found, world.create_result, world_refused_session())

void world_create_later(session_found *done, void *arg)
{
    world.creations++;
    ANSWER_LATER(run_created, done, arg);
}

void store_know_clock(struct store *store, void (*then)(void *arg), void *arg)
{
    then(arg);
}

void session_store_step_up(struct store *store, const struct session_proof *proof, const uint8_t new_digest[32],
                           const struct audit_source *source, session_found *done, void *arg)
{
    note_attempt(&proof->attempt);
    cr_assert(id_equal(&proof->session->user.id, &world.session.user.id));
    cr_assert(proof->totp_step > 0 && memcmp(proof->digest, new_digest, 32) != 0);
    world_expect_bucket(new_digest, &world.session.user.account);
    world_create_later(done, arg);
}

COMPLETION(run_failed, login_failed, world.fail_result, &world.failure)

void session_store_fail_login(const struct partitions *partitions, const struct id *user,
                              const struct login_attempt *attempt, bool only_code_wrong,
                              const struct audit_source *source, login_failed *done, void *arg)
{
    cr_assert_eq(user != NULL, world.user_known);
    expect_begun(attempt);
    note_attempt(attempt);
    world.only_code_wrong = only_code_wrong;
    world.failures++;
    ANSWER_LATER(run_failed, done, arg);
}

void session_store_give_back(const struct partitions *partitions, const struct login_attempt *attempt)
{
    cr_assert(attempt->id.len > 0);
    expect_begun(attempt);
    world.given_back++;
}

COMPLETION(run_ended, store_done, world.end_result)

void session_store_end(struct store *store, const uint8_t token_digest[32], const struct audit_source *source,
                       store_done *done, void *arg)
{
    ANSWER_LATER(run_ended, done, arg);
}

/* Streams */

bool http_stream_begin(struct http_request *request, int status, struct text content_type)
{
    cr_assert(request->status == 0, "a second answer");
    if (request->gone)
        return false;
    request->status = status;
    if (request->replied)
        request->replied(request->replied_arg, status);
    request->is_stream = true;
    return request->method != HTTP_HEAD;
}

void http_stream_send(struct http_request *request, struct text piece, void (*drained)(void *arg), void *arg)
{
    cr_assert(request->gone || (request->status == 200 && world.stream == STREAM_UNENDED && piece.len > 0));
    world.pieces++;
    snprintf(world.piece, sizeof world.piece, "%.*s", TEXT_ARG(piece));
    world.age_ns += world.piece_takes_ns;
    world_later(drained, arg);
}

void http_stream_end(struct http_request *request)
{
    cr_assert_eq(world.stream, STREAM_UNENDED);
    world.stream = STREAM_WHOLE;
}

void http_stream_break(struct http_request *request)
{
    cr_assert_eq(world.stream, STREAM_UNENDED);
    world.stream = STREAM_BROKEN;
}

/* Other reads */

static struct {
    audit_found *done;
    void *arg;
} search; /* there is one at a time */

static void run_search(void *arg)
{
    const struct audit_event event = {.type = TEXT("user.created")};
    const struct audit_page page = {
        .events = &event, .count = 1, .has_more = ++world.searches < world.trail_pages, .next = world.key.id};
    audit_found *done = search.done;

    search.done = NULL;
    if (world.searches == world.search_fails_at)
        done(search.arg, STORE_UNAVAILABLE, &(struct audit_page){0});
    else
        done(search.arg, STORE_OK, &page);
}

void audit_store_search(struct store *store, const struct id *account, const struct audit_filter *filter,
                        unsigned limit, const struct id *starting_after, audit_found *done, void *arg)
{
    cr_assert_null(search.done);
    cr_assert_eq(starting_after->text[0] == '\0', world.searches == 0);
    search.done = done;
    search.arg = arg;
    world_later(run_search, NULL);
}

void audit_heads_read(struct store *store, audit_heads_found *done, void *arg)
{
    cr_assert_fail("no case reads heads");
}

void usage_store_read(struct store *store, const struct id *account, const struct usage_wanted *wanted,
                      usage_read *done, void *arg)
{
    cr_assert_fail("no case reads usage");
}

bool store_asserts_durability(const struct store *store)
{
    return world.asserts_durability;
}

/* The world */

static const struct totp_secret TOTP_SECRET = {"12345678901234567890"};
static struct route_policy *policy;

static int64_t world_wall_ms(void)
{
    return world.wall_ms;
}

static struct id make_id(enum id_kind kind, const char *text)
{
    struct id id;

    CHECK(id_parse(kind, text_of(text), &id));
    return id;
}

void world_begin(void)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{1}};
    struct user_record *user = &world.session.user;

    clock_replace_wall_for_test(world_wall_ms);
    log_threshold = LOG_ERROR;
    policy = route_policy_built_in();

    world = (struct world){
        .wall_ms = 1234567890000, /* a time in appendix B of RFC 6238 */
        .service = {.keyring = keyring_create(MASTER, 1),
                    .gate = gate_create(
                        &(struct gate_settings){.work_per_account = 4, .wake = gate_wake, .spent = gate_spent}),
                    .policy = policy,
                    .public_origin = TEXT("https://console.test"),
                    .device_clients = TEXT("desktop-agent"),
                    .target_max_bytes = 8000},
        .key = {.id = make_id(ID_KEY, "key_01jd0000000000000000000001"),
                .account = make_id(ID_ACCOUNT, "acct_01jd0000000000000000000001"),
                .mode = MODE_LIVE,
                .scopes = SCOPE_ALL,
                .created_ms = 1},
        .peer = "192.0.2.1",
        .checks_at_once = true,
        .session = {.sid = "AAAAAAAAAAAAAAAAAAAAAA",
                    .user = {.id = make_id(ID_USER, "usr_01jd0000000000000000000001"),
                             .account = make_id(ID_ACCOUNT, "acct_01jd0000000000000000000001"),
                             .email = "a@b.test",
                             .role = ROLE_OWNER},
                    .expires_ms = 1,
                    .step_up_expires_ms = 1},
        .poll = {.account = make_id(ID_ACCOUNT, "acct_01jd0000000000000000000001")},
        .user_known = true,
        .delivered = true,
        .store_trouble = "",
    };
    CHECK(key_set_name(&world.key, TEXT("Ward")));
    keyring_seal(world.service.keyring, id_text(&user->id), TOTP_SECRET.bytes, sizeof TOTP_SECRET.bytes,
                 user->totp_sealed);
}

void world_end(void)
{
    gate_destroy(world.service.gate);
    keyring_destroy(world.service.keyring);
    route_policy_destroy(policy);
    leak_guard();
}
