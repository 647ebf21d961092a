#include "auth/password.h"
#include "auth/password_hash_internal.h"
#include "base/histogram.h"
#include "base/metrics.h"

#include "deadline.h"
#include "leak_guard.h"
#include "no_threads.h"
#include "test_loop.h"

#include <criterion/criterion.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

TestSuite(password, .fini = leak_guard);

enum { JOBS_MAX = 16 };

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {
    {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
    {9},
};
static const uint8_t ROTATED[2][KEYRING_MASTER_BYTES] = {
    {9},
    {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
};

/* A hash of "lantern over grey water" under the first master key, made by another program; N = 2^10. */
#define KNOWN_HASH "scrypt$10$8$1$dfe33130$AAECAwQFBgcICQoLDA0ODw$neU9H2Aiy0POJgIh_Q8Pw88g-2tYCqh8kz6w--oApxA"
#define KNOWN_PASSWORD TEXT("lantern over grey water")
#define USER TEXT("usr_01jd0000000000000000000001")
#define OTHER_USER TEXT("usr_01jd0000000000000000000002")

static const struct password_turn STRANGER = {PASSWORD_STRANGER, 1};

struct answer {
    int count;
    int place; /* its place in the order of answers */
    enum password_result result;
};

static void on_verified(void *arg, enum password_result result)
{
    struct answer *answer = arg;
    static int answered;
    answer->place = ++answered;
    answer->count++;
    answer->result = result;
}

struct fixture {
    uv_loop_t loop;
    struct keyring *keyring;
    struct password_pool *pool;
    struct answer answers[JOBS_MAX];
    size_t started;
    bool closed;
};

static void set_up(struct fixture *f, const uint8_t (*masters)[KEYRING_MASTER_BYTES], size_t generations,
                   unsigned parallel, unsigned queue)
{
    memset(f, 0, sizeof *f);
    metric_values[METRIC_PASSWORD_QUEUE] = metric_values[METRIC_PASSWORD_OVERLOADED] = 0;
    cr_assert_eq(uv_loop_init(&f->loop), 0);
    f->keyring = keyring_create(masters, generations);
    f->pool = password_pool_create(&f->loop, f->keyring, parallel, queue);
}

static void on_closed(void *arg)
{
    struct fixture *f = arg;
    for (size_t i = 0; i < f->started; i++)
        cr_assert_eq(f->answers[i].count, 1, "every job has completed, once");
    f->closed = true;
}

static void tear_down(struct fixture *f)
{
    password_pool_close(f->pool, on_closed, f);
    cr_assert_not(f->closed);
    cr_assert(test_loop_until_set(&f->loop, &f->closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&f->loop));
    keyring_destroy(f->keyring);
    cr_assert_eq(metric_values[METRIC_PASSWORD_QUEUE], 0);
}

static struct answer *verify_in_turn(struct fixture *f, enum password_part part, uint64_t source)
{
    struct answer *answer = &f->answers[f->started++];
    cr_assert(f->started <= JOBS_MAX);
    password_verify(f->pool, &(struct password_turn){part, source}, KNOWN_PASSWORD, USER, KNOWN_HASH, on_verified,
                    answer);
    return answer;
}

static struct answer *verify(struct fixture *f, struct text password, const char *hash)
{
    struct answer *answer = &f->answers[f->started++];
    password_verify(f->pool, &STRANGER, password, USER, hash, on_verified, answer);
    cr_assert_eq(answer->count, 0, "never inside the call");
    return answer;
}

static bool all_answered(void *arg)
{
    struct fixture *f = arg;
    for (size_t i = 0; i < f->started; i++)
        if (f->answers[i].count == 0)
            return false;
    return true;
}

static enum password_result verify_now(struct fixture *f, struct text password, const char *hash)
{
    struct answer *answer = verify(f, password, hash);
    cr_assert(test_loop_until(&f->loop, all_answered, f, PATIENCE_MS));
    cr_assert_eq(answer->count, 1);
    return answer->result;
}

Test(password, verifies_a_known_hash)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 2, 4);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_MATCHES);
    cr_assert_eq(verify_now(&f, TEXT("lantern over grey wateR"), KNOWN_HASH), PASSWORD_DIFFERS);
    cr_assert_eq(verify_now(&f, TEXT("lantern over grey water "), KNOWN_HASH), PASSWORD_DIFFERS);
    cr_assert_eq(verify_now(&f, TEXT(""), KNOWN_HASH), PASSWORD_DIFFERS);
    tear_down(&f);
}

Test(password, is_overloaded_when_there_can_be_no_thread)
{
    struct fixture f;
    struct rlimit before;
    set_up(&f, MASTERS, 1, 2, 4);
    no_threads_begin(&before);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_OVERLOADED);
    no_threads_end(&before);
    cr_assert_eq(metric_values[METRIC_PASSWORD_OVERLOADED], 0, "nothing waits");
    cr_assert_eq(metric_values[METRIC_PASSWORD_FAILED], 1);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_MATCHES);
    tear_down(&f);
}

/* The linker's names: what the hash asks of the library comes here. */
int scrypt_here(const char *password, size_t password_len, const unsigned char *salt, size_t salt_len, uint64_t n,
                uint64_t r, uint64_t p, uint64_t memory_max, unsigned char *ret_key,
                size_t key_len) __asm__("__wrap_EVP_PBE_scrypt");
int true_scrypt(const char *password, size_t password_len, const unsigned char *salt, size_t salt_len, uint64_t n,
                uint64_t r, uint64_t p, uint64_t memory_max, unsigned char *ret_key,
                size_t key_len) __asm__("__real_EVP_PBE_scrypt");

static atomic_bool has_no_memory;

int scrypt_here(const char *password, size_t password_len, const unsigned char *salt, size_t salt_len, uint64_t n,
                uint64_t r, uint64_t p, uint64_t memory_max, unsigned char *ret_key, size_t key_len)
{
    if (atomic_load(&has_no_memory))
        return 0;
    return true_scrypt(password, password_len, salt, salt_len, n, r, p, memory_max, ret_key, key_len);
}

/* Each is counted; the first is told. */
Test(password, that_finds_no_memory_is_not_load)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 2, 4);
    atomic_store(&has_no_memory, true);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_OVERLOADED);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_OVERLOADED);
    cr_assert_eq(metric_values[METRIC_PASSWORD_OVERLOADED], 0);
    cr_assert_eq(metric_values[METRIC_PASSWORD_FAILED], 2);
    atomic_store(&has_no_memory, false);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_MATCHES);
    tear_down(&f);
}

Test(password, long_passwords_count_whole)
{
    struct fixture f;
    char long_one[1024], hash_text[PASSWORD_HASH_BYTES];
    struct password_hash hash = {.cost = 10};
    uint8_t peppered[KEYRING_DIGEST_BYTES];
    memset(long_one, 'x', sizeof long_one);
    set_up(&f, MASTERS, 1, 2, 4);
    keyring_digest(f.keyring, KEYRING_PASSWORD, 0, (struct text){long_one, sizeof long_one}, peppered);
    password_pepper_name(f.keyring, 0, hash.pepper_name);
    cr_assert(password_hash_derive(&hash, peppered, hash.derived));
    password_hash_print(&hash, hash_text);
    cr_assert_eq(verify_now(&f, (struct text){long_one, sizeof long_one}, hash_text), PASSWORD_MATCHES);
    long_one[1023] = 'y';
    cr_assert_eq(verify_now(&f, (struct text){long_one, sizeof long_one}, hash_text), PASSWORD_DIFFERS);
    tear_down(&f);
}

Test(password, a_retired_master_still_verifies)
{
    struct fixture f;
    set_up(&f, ROTATED, 2, 2, 4);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_MATCHES);
    cr_assert_eq(verify_now(&f, TEXT("something else"), KNOWN_HASH), PASSWORD_DIFFERS);
    tear_down(&f);
}

Test(password, a_forgotten_master_does_not)
{
    struct fixture f;
    set_up(&f, ROTATED, 1, 2, 4);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_DIFFERS);
    tear_down(&f);
}

Test(password, an_unknown_user_differs)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 2, 4);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, NULL), PASSWORD_DIFFERS);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, "no hash at all"), PASSWORD_DIFFERS);
    tear_down(&f);
}

Test(password, new_hashes_verify_and_differ)
{
    struct fixture f;
    char a[PASSWORD_HASH_BYTES], b[PASSWORD_HASH_BYTES];
    set_up(&f, MASTERS, 2, 2, 4);
    password_hash_now(f.keyring, USER, KNOWN_PASSWORD, a);
    password_hash_now(f.keyring, USER, KNOWN_PASSWORD, b);
    cr_assert(text_starts_with(text_of(a), TEXT("scrypt-id$17$8$1$")));
    cr_assert_str_neq(a, b);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, a), PASSWORD_MATCHES);
    tear_down(&f);
}

/* The second waits while the first is hashed. */
Test(password, measures_waiting_and_hashing)
{
    struct fixture f;

    set_up(&f, MASTERS, 1, 1, 2);
    for (int i = 0; i < 2; i++)
        verify(&f, KNOWN_PASSWORD, KNOWN_HASH);
    cr_assert(test_loop_until(&f.loop, all_answered, &f, PATIENCE_MS));
    cr_assert_eq(histogram_count(HISTOGRAM_PASSWORD_QUEUE), 2);
    cr_assert_eq(histogram_count(HISTOGRAM_PASSWORD_HASH), 2);
    cr_assert_gt(histograms[HISTOGRAM_PASSWORD_QUEUE].sum_ns, 0);
    cr_assert_gt(histograms[HISTOGRAM_PASSWORD_HASH].sum_ns, 0);
    tear_down(&f);
}

Test(password, beyond_the_queue_is_overload)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 1, 2);
    for (int i = 0; i < 5; i++)
        verify(&f, KNOWN_PASSWORD, KNOWN_HASH);
    cr_assert_eq(metric_values[METRIC_PASSWORD_QUEUE], 3);
    cr_assert_eq(metric_values[METRIC_PASSWORD_OVERLOADED], 2);
    cr_assert(test_loop_until(&f.loop, all_answered, &f, PATIENCE_MS));
    for (int i = 0; i < 5; i++)
        cr_assert_eq(f.answers[i].result, i < 3 ? PASSWORD_MATCHES : PASSWORD_OVERLOADED, "job %d", i);
    cr_assert_eq(verify_now(&f, KNOWN_PASSWORD, KNOWN_HASH), PASSWORD_MATCHES);
    tear_down(&f);
}

/* One network fills the queue; another one comes last and is hashed second. */
Test(password, sources_take_turns)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 1, 4);
    struct answer *flood[6], *lone;
    for (int i = 0; i < 5; i++)
        flood[i] = verify_in_turn(&f, PASSWORD_STRANGER, 1);
    lone = verify_in_turn(&f, PASSWORD_STRANGER, 2);
    flood[5] = verify_in_turn(&f, PASSWORD_STRANGER, 1);
    cr_assert(test_loop_until(&f.loop, all_answered, &f, PATIENCE_MS));
    cr_assert_eq(lone->result, PASSWORD_MATCHES);
    cr_assert_eq(flood[4]->result, PASSWORD_OVERLOADED, "its last one gives way");
    cr_assert_eq(flood[5]->result, PASSWORD_OVERLOADED);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(flood[i]->result, PASSWORD_MATCHES);
    cr_assert(lone->place < flood[2]->place && flood[1]->place < lone->place, "one round, in order of arrival");
    tear_down(&f);
}

/* Strangers from any number of networks fill only their own part. */
Test(password, known_people_have_a_part_of_their_own)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 1, 3);
    struct answer *strangers[5], *known[4];
    for (int i = 0; i < 5; i++)
        strangers[i] = verify_in_turn(&f, PASSWORD_STRANGER, (uint64_t)i);
    for (int i = 0; i < 4; i++)
        known[i] = verify_in_turn(&f, PASSWORD_KNOWN, (uint64_t)i);
    cr_assert(test_loop_until(&f.loop, all_answered, &f, PATIENCE_MS));
    cr_assert_eq(strangers[4]->result, PASSWORD_OVERLOADED);
    cr_assert_eq(known[3]->result, PASSWORD_OVERLOADED, "their part is bounded too");
    for (int i = 0; i < 3; i++)
        cr_assert_eq(known[i]->result, PASSWORD_MATCHES);
    cr_assert(known[0]->place < strangers[1]->place, "at once behind the one that ran");
    cr_assert(strangers[1]->place < known[1]->place && known[1]->place < strangers[2]->place, "in turns");
    tear_down(&f);
}

Test(password, tells_how_long_the_line_is)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 1, 12);
    cr_assert_eq(password_pool_retry_after_s(f.pool), 1);
    for (int i = 0; i < 13; i++)
        verify_in_turn(&f, PASSWORD_STRANGER, 1);
    cr_assert_geq(password_pool_retry_after_s(f.pool), 3); /* 13 hashes of 0.3 s each, before any was measured */
    cr_assert(test_loop_until(&f.loop, all_answered, &f, PATIENCE_MS));
    cr_assert_leq(password_pool_retry_after_s(f.pool), 2);
    tear_down(&f);
}

/* on_closed() asserts that each has completed once. */
Test(password, closing_ends_all_jobs)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 2, 4);
    for (int i = 0; i < 8; i++)
        verify(&f, KNOWN_PASSWORD, KNOWN_HASH);
    tear_down(&f);
    for (int i = 2; i < 6; i++)
        cr_assert_eq(f.answers[i].result, PASSWORD_CANCELLED, "job %d waited", i);
    for (int i = 6; i < 8; i++)
        cr_assert_eq(f.answers[i].result, PASSWORD_OVERLOADED, "job %d", i);
    for (int i = 0; i < 2; i++)
        cr_assert(f.answers[i].result == PASSWORD_MATCHES || f.answers[i].result == PASSWORD_CANCELLED);
}

struct retry {
    struct fixture *f;
    struct answer answer;
};

static void verify_again(void *arg, enum password_result result)
{
    struct retry *retry = arg;
    cr_assert_eq(result, PASSWORD_CANCELLED);
    password_verify(retry->f->pool, &STRANGER, KNOWN_PASSWORD, USER, KNOWN_HASH, on_verified, &retry->answer);
    cr_assert_eq(retry->answer.count, 0);
}

Test(password, a_job_begun_while_closing_is_cancelled)
{
    struct fixture f;
    set_up(&f, MASTERS, 1, 1, 1);
    struct retry retry = {.f = &f};
    verify(&f, KNOWN_PASSWORD, KNOWN_HASH);
    password_verify(f.pool, &STRANGER, KNOWN_PASSWORD, USER, KNOWN_HASH, verify_again, &retry);
    tear_down(&f);
    cr_assert_eq(retry.answer.count, 1);
    cr_assert_eq(retry.answer.result, PASSWORD_CANCELLED);
}

Test(password, knows_its_own_form)
{
    static const struct {
        const char *hash;
        bool valid;
    } CASES[] = {
        {KNOWN_HASH, true},
        {"scrypt$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", true},
        {"scrypt$18$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$3$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$017$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$17$16$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$17$8$2$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$17$8$1$0000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$17$8$1$zzzzzzzz$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA$", false},
        {"scrypt$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt-id$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", true},
        {"scrypt-me$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"bcrypt$17$8$1$00000000$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", false},
        {"scrypt", false},
        {"", false},
    };
    struct password_hash parsed;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(password_hash_parse(text_of(CASES[i].hash), &parsed), CASES[i].valid, "%s", CASES[i].hash);
}

static void hash_cheaply(struct keyring *keyring, struct text password, char ret_hash[PASSWORD_HASH_BYTES])
{
    struct password_hash hash = {.cost = 10};
    uint8_t peppered[KEYRING_DIGEST_BYTES];
    keyring_digest(keyring, KEYRING_PASSWORD, 0, password, peppered);
    password_pepper_name(keyring, 0, hash.pepper_name);
    cr_assert(password_hash_derive(&hash, peppered, hash.derived));
    password_hash_print(&hash, ret_hash);
}

#define COMPOSED "gr\xc3\xbc\xc3\x9f mir die Ann"
#define DECOMPOSED "gru\xcc\x88\xc3\x9f mir die Ann"

/* One keyboard sends a letter with its diaeresis, another sends the two separately. */
Test(password, the_form_of_letters_makes_no_difference)
{
    struct fixture f;
    char hash[PASSWORD_HASH_BYTES];
    set_up(&f, MASTERS, 1, 2, 4);
    password_hash_now(f.keyring, USER, TEXT(DECOMPOSED), hash);
    cr_assert_eq(verify_now(&f, TEXT(COMPOSED), hash), PASSWORD_MATCHES);
    cr_assert_eq(verify_now(&f, TEXT(DECOMPOSED), hash), PASSWORD_MATCHES);
    cr_assert_eq(verify_now(&f, TEXT("gru\xc3\x9f mir die Ann"), hash), PASSWORD_DIFFERS);
    tear_down(&f);
}

/* Older hashes were made of the password as typed. */
Test(password, hashes_of_what_was_typed_still_verify)
{
    struct fixture f;
    char hash[PASSWORD_HASH_BYTES];
    set_up(&f, MASTERS, 1, 2, 4);
    hash_cheaply(f.keyring, TEXT(DECOMPOSED), hash);
    cr_assert_eq(verify_now(&f, TEXT(DECOMPOSED), hash), PASSWORD_MATCHES);
    cr_assert_eq(verify_now(&f, TEXT(DECOMPOSED "e"), hash), PASSWORD_DIFFERS);
    cr_assert_eq(verify_now(&f, TEXT(DECOMPOSED), NULL), PASSWORD_DIFFERS);
    tear_down(&f);
}

/* Somebody who can write to Redis copies their own hash to another user. */
Test(password, a_hash_is_of_one_user)
{
    struct fixture f;
    char hash[PASSWORD_HASH_BYTES], older[PASSWORD_HASH_BYTES];
    set_up(&f, MASTERS, 1, 2, 4);
    password_hash_now(f.keyring, OTHER_USER, KNOWN_PASSWORD, hash);
    cr_expect_eq(verify_now(&f, KNOWN_PASSWORD, hash), PASSWORD_DIFFERS);
    cr_assert(password_hash_bind_older(f.keyring, USER, KNOWN_HASH, older));
    cr_expect(password_hash_is_bound(older) && !password_hash_is_bound(KNOWN_HASH));
    cr_expect_eq(verify_now(&f, KNOWN_PASSWORD, older), PASSWORD_MATCHES);
    cr_expect_eq(verify_now(&f, TEXT("another password"), older), PASSWORD_DIFFERS);
    cr_assert(password_hash_bind_older(f.keyring, OTHER_USER, KNOWN_HASH, older));
    cr_expect_eq(verify_now(&f, KNOWN_PASSWORD, older), PASSWORD_DIFFERS);
    cr_expect_not(password_hash_bind_older(f.keyring, USER, older, hash), "it is bound already");
    tear_down(&f);
}

static void on_rehashed(void *arg, const char *hash)
{
    char **kept = arg;
    cr_assert(hash);
    *kept = strdup(hash);
}

static bool is_rehashed(void *arg)
{
    return *(char **)arg != NULL;
}

/* After a rotation. */
Test(password, is_hashed_again_under_the_current_master_key)
{
    struct fixture f;
    char *hash = NULL;
    size_t generation;
    set_up(&f, ROTATED, 2, 2, 4);
    cr_assert(password_hash_generation(f.keyring, KNOWN_HASH, &generation) && generation == 1);
    password_rehash(f.pool, &STRANGER, KNOWN_PASSWORD, USER, on_rehashed, &hash);
    cr_assert_null(hash, "never inside the call");
    cr_assert(test_loop_until(&f.loop, is_rehashed, &hash, PATIENCE_MS));
    cr_assert(password_hash_generation(f.keyring, hash, &generation) && generation == 0);
    cr_expect(password_hash_is_bound(hash));
    cr_expect_eq(verify_now(&f, KNOWN_PASSWORD, hash), PASSWORD_MATCHES);
    cr_expect_eq(verify_now(&f, TEXT("another password"), hash), PASSWORD_DIFFERS);
    free(hash);
    tear_down(&f);
}
