#include "core/secret.h"
#include "base/check.h"
#include "base/crc32.h"
#include "base/random.h"
#include "base/secure.h"

#include <string.h>

enum { BASE = 62, RANDOM_BATCH_BYTES = 48 };

static const char ALPHABET[BASE + 1] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* By byte: whether it is in the alphabet. */
static const uint8_t BASE62[256] = {['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1};

struct shape {
    struct text prefix;
    enum key_kind kind;
    enum key_mode mode;
};

/* A device key acts in live mode. */
static const struct shape SHAPES[] = {
    {{"svc_sk_live_", 12}, KEY_API, MODE_LIVE},
    {{"svc_sk_test_", 12}, KEY_API, MODE_TEST},
    {{"svc_dk_", 7}, KEY_DEVICE, MODE_LIVE},
};
enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };

static const struct shape *shape_for(enum key_kind kind, enum key_mode mode)
{
    for (size_t i = 0; i < SHAPE_COUNT - 1; i++)
        if (SHAPES[i].kind == kind && SHAPES[i].mode == mode)
            return &SHAPES[i];
    return &SHAPES[SHAPE_COUNT - 1];
}

/* Discards bytes of the last, incomplete cycle through the alphabet, so that each character is equally likely. Returns
 * how many characters it printed, at most `most`. */
static size_t print_base62(const uint8_t *bytes, size_t count, char *ret_chars, size_t most)
{
    size_t printed = 0;
    for (size_t i = 0; i < count && printed < most; i++)
        if (bytes[i] < 256 / BASE * BASE)
            ret_chars[printed++] = ALPHABET[bytes[i] % BASE];
    return printed;
}

static void draw_base62(struct random_ahead *random, char *ret_chars, size_t count)
{
    uint8_t bytes[RANDOM_BATCH_BYTES];
    size_t drawn = 0;
    while (drawn < count) {
        random_ahead_take(random, bytes, sizeof bytes);
        drawn += print_base62(bytes, sizeof bytes, ret_chars + drawn, count - drawn);
    }
    secure_wipe(bytes, sizeof bytes);
}

static void print_checksum(struct text covered, char ret_chars[SECRET_CHECKSUM_CHARS])
{
    uint32_t crc = crc32_of(covered);
    for (size_t i = SECRET_CHECKSUM_CHARS; i-- > 0; crc /= BASE)
        ret_chars[i] = ALPHABET[crc % BASE];
}

/* Writes a secret except its random characters and checksum; returns where the former go. */
static char *begin(enum key_kind kind, enum key_mode mode, struct secret *ret_secret)
{
    const struct text prefix = shape_for(kind, mode)->prefix;
    memset(ret_secret, 0, sizeof *ret_secret);
    memcpy(ret_secret->text, prefix.ptr, prefix.len);
    return ret_secret->text + prefix.len;
}

/* random: as begin() returned it. */
static void end(struct secret *secret, char *random)
{
    char *covered_end = random + SECRET_RANDOM_CHARS;
    print_checksum((struct text){secret->text, (size_t)(covered_end - secret->text)}, covered_end);
}

static void mint_from(struct random_ahead *random, enum key_kind kind, enum key_mode mode, struct secret *ret_secret)
{
    char *chars = begin(kind, mode, ret_secret);
    draw_base62(random, chars, SECRET_RANDOM_CHARS);
    end(ret_secret, chars);
}

bool secret_from_bytes(enum key_kind kind, enum key_mode mode, const uint8_t bytes[SECRET_BYTES],
                       struct secret *ret_secret)
{
    char *chars = begin(kind, mode, ret_secret);
    if (print_base62(bytes, SECRET_BYTES, chars, SECRET_RANDOM_CHARS) < SECRET_RANDOM_CHARS) {
        secret_wipe(ret_secret);
        return false;
    }
    end(ret_secret, chars);
    return true;
}

void secret_mint(enum key_kind kind, enum key_mode mode, struct secret *ret_secret)
{
    struct random_ahead random = {0};
    mint_from(&random, kind, mode, ret_secret);
    random_ahead_wipe(&random);
}

void secret_draw(struct keyring *keyring, uint8_t bucket, enum key_kind kind, enum key_mode mode,
                 struct secret *ret_secret, uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    struct random_ahead random = {0};
    int draws = 0;
    do {
        CHECK(draws++ < BUCKET_DRAWS_MAX);
        mint_from(&random, kind, mode, ret_secret);
        keyring_digest(keyring, KEYRING_KEY_DIGEST, 0, secret_text(ret_secret), ret_digest);
    } while (bucket_of_digest(ret_digest) != bucket);
    random_ahead_wipe(&random);
}

void secret_wipe(void *secret)
{
    secure_wipe(secret, sizeof(struct secret));
}

struct text secret_text(const struct secret *secret)
{
    return (struct text){secret->text, strnlen(secret->text, SECRET_MAX_CHARS)};
}

static const struct shape *shape_of(struct text t)
{
    for (size_t i = 0; i < SHAPE_COUNT; i++)
        if (t.len == SHAPES[i].prefix.len + SECRET_RANDOM_CHARS + SECRET_CHECKSUM_CHARS &&
            text_starts_with(t, SHAPES[i].prefix))
            return &SHAPES[i];
    return NULL;
}

bool secret_has_shape(struct text t)
{
    return shape_of(t);
}

bool secret_parse(struct text t, enum key_kind *ret_kind, enum key_mode *ret_mode)
{
    const struct shape *shape = shape_of(t);
    if (!shape)
        return false;
    const bool is_base62 = text_classes(text_skip(t, shape->prefix.len), BASE62) & 1;
    char checksum[SECRET_CHECKSUM_CHARS];
    const size_t covered = t.len - SECRET_CHECKSUM_CHARS;
    print_checksum((struct text){t.ptr, covered}, checksum);
    if (!is_base62 || !secure_equal((struct text){checksum, sizeof checksum}, text_skip(t, covered)))
        return false;
    *ret_kind = shape->kind;
    *ret_mode = shape->mode;
    return true;
}

/* What every secret begins with; the rest of the prefix may be what was cut. */
static const struct text BEGINNINGS[] = {TEXT("svc_sk_"), TEXT("svc_dk_")};

static bool begins(struct text t)
{
    return text_starts_with(t, BEGINNINGS[0]) || text_starts_with(t, BEGINNINGS[1]);
}

/* The length of the whole secret at the beginning of t; 0: there is none. */
static size_t whole_length(struct text t)
{
    enum key_kind kind;
    enum key_mode mode;

    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        const size_t len = SHAPES[i].prefix.len + SECRET_RANDOM_CHARS + SECRET_CHECKSUM_CHARS;
        if (t.len >= len && secret_parse((struct text){t.ptr, len}, &kind, &mode))
            return len;
    }
    return 0;
}

enum secret_found secret_find(struct text *rest, struct text *ret_secret)
{
    const char *at;
    while (rest->len && (at = memmem(rest->ptr, rest->len, "svc_", 4))) {
        const struct text here = text_skip(*rest, (size_t)(at - rest->ptr));
        const size_t whole = whole_length(here);
        if (whole || begins(here)) {
            *ret_secret = (struct text){here.ptr, whole ? whole : BEGINNINGS[0].len};
            *rest = text_skip(here, ret_secret->len);
            return whole ? SECRET_WHOLE : SECRET_BROKEN;
        }
        *rest = text_skip(here, 4);
    }
    *rest = (struct text){0};
    return SECRET_NONE;
}

bool secret_within(struct text t)
{
    enum secret_found found;
    struct text secret;
    while ((found = secret_find(&t, &secret)) == SECRET_BROKEN)
        continue;
    return found == SECRET_WHOLE;
}

bool secret_begins_within(struct text t)
{
    struct text secret;

    return secret_find(&t, &secret) != SECRET_NONE;
}
