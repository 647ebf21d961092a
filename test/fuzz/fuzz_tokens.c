/* The small languages: times and sizes, ids, secrets, scopes, cookies, paths, addresses, queries, one-time codes and
 * their addresses, user codes, encodings. What is accepted prints to itself; what was brought to its one form stays as
 * it is. */
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "core/address.h"
#include "core/device.h"
#include "core/id.h"
#include "core/path.h"
#include "core/scope.h"
#include "core/secret.h"
#include "core/totp.h"
#include "core/trace_context.h"
#include "http/cookie.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void try_id(struct text t)
{
    enum id_kind kind = id_kind_of(t);
    uint8_t ulid[ULID_BYTES];
    struct id id, again;

    if (kind == ID_NONE || !id_parse(kind, t, &id))
        return;
    CHECK(text_equal(id_text(&id), t));
    id_to_bytes(&id, ulid);
    id_from_bytes(kind, ulid, &again);
    CHECK(id_equal(&id, &again));
}

static void try_secret(struct text t)
{
    enum key_kind kind;
    enum key_mode mode;

    if (secret_parse(t, &kind, &mode))
        CHECK(t.len <= SECRET_MAX_CHARS);
}

static void try_quantity_of(enum quantity_kind kind, struct text t)
{
    char storage[64];
    int64_t value, again;
    struct buf out;

    if (!quantity_parse(kind, t, &value))
        return;
    CHECK(value >= 0);
    buf_init_fixed(&out, storage, sizeof storage);
    quantity_print(kind, value, &out);
    CHECK(!out.failed && quantity_parse(kind, buf_text(&out), &again) && again == value);
}

static void try_quantity(struct text t)
{
    try_quantity_of(QUANTITY_TIME, t);
    try_quantity_of(QUANTITY_SIZE, t);
}

static void try_scope(struct text t)
{
    scope_set scopes = scope_parse(t);
    struct buf out;

    if (scopes == SCOPE_NONE)
        return;
    buf_init(&out, 256);
    scope_print(scopes, ' ', &out);
    CHECK(text_equal(buf_text(&out), t));
    buf_finish(&out);
}

static size_t count_slashes(struct text t)
{
    struct text part;
    size_t count = 0;

    while (text_next(&t, '/', &part))
        count++;
    return count;
}

static void try_path(struct text t)
{
    char *once = mem_alloc(t.len + 1), *twice = mem_alloc(t.len + 1);
    size_t once_bytes, twice_bytes;

    if (path_normalise(t, once, &once_bytes)) {
        CHECK(once_bytes <= t.len && once[0] == '/');
        CHECK(path_normalise((struct text){once, once_bytes}, twice, &twice_bytes));
        CHECK(text_equal((struct text){once, once_bytes}, (struct text){twice, twice_bytes}));
        CHECK(!memmem(once, once_bytes, "//", 2) && !memmem(once, once_bytes, "/../", 4));
        if (path_is_unambiguous(t)) {
            CHECK(path_is_unambiguous((struct text){once, once_bytes}));
            CHECK(count_slashes(t) == count_slashes((struct text){once, once_bytes}));
        }
    }
    free(once);
    free(twice);
}

static void try_address(struct text t)
{
    char storage[ADDRESS_TEXT_BYTES], why_storage[256];
    struct address address, again;
    struct address_ranges *ranges;
    struct buf out, why;

    if (address_parse(t, &address)) {
        buf_init_fixed(&out, storage, sizeof storage);
        address_print(&address, &out);
        CHECK(address_parse(buf_text(&out), &again) && memcmp(&address, &again, sizeof address) == 0);
    }
    buf_init_fixed(&why, why_storage, sizeof why_storage);
    ranges = address_ranges_parse(t, &why);
    if (ranges)
        (void)address_walk_back(ranges, t, &address);
    address_ranges_destroy(ranges);
}

static void try_time(struct text t)
{
    char printed[CLOCK_RFC3339_BYTES];
    int64_t ms, again;

    if (!clock_read_rfc3339(t, &ms) || ms < 0)
        return;
    clock_print_rfc3339(ms, printed);
    CHECK(clock_read_rfc3339(text_of(printed), &again) && again == ms);
    printed[CLOCK_DATE_BYTES - 1] = '\0';
    CHECK(clock_read_date(text_of(printed), &again) && again <= ms && ms - again < 86400000);
}

static void try_block(struct text t)
{
    char storage[ADDRESS_TEXT_BYTES];
    struct address first, again;
    unsigned bits;
    struct buf out;

    if (!address_parse_block(t, &first, &bits))
        return;
    CHECK(bits <= IPV6_BITS);
    buf_init_fixed(&out, storage, sizeof storage);
    address_print(&first, &out);
    CHECK(address_parse(buf_text(&out), &again) && memcmp(&first, &again, sizeof first) == 0);
}

static void try_query(struct text t)
{
    char *memory = mem_alloc(t.len + 1), *storage = memory;
    struct text name, value;

    while (path_next_parameter(&t, &storage, &name, &value) == PATH_QUERY_ITEM)
        ;
    free(memory);
}

/* What goes into log lines and headers consists of hex digits and hyphens, whatever came in. */
static void try_traceparent(struct text t)
{
    char storage[TRACEPARENT_CHARS];
    struct trace_context context, again;
    struct buf out;

    if (!trace_context_parse(t, &context))
        return;
    buf_init_fixed(&out, storage, sizeof storage);
    trace_context_print(&context, &out);
    CHECK(out.len == TRACEPARENT_CHARS && !out.failed);
    for (size_t i = 0; i < out.len; i++)
        CHECK(strchr("0123456789abcdef-", out.ptr[i]));
    CHECK(trace_context_parse(buf_text(&out), &again));
    CHECK(text_equal(again.trace_id, context.trace_id) && text_equal(again.span_id, context.span_id));
    CHECK(again.is_sampled == context.is_sampled);
}

static void try_cookie(struct text t)
{
    struct text value = {NULL, 0};

    if (cookie_find(t, TEXT("s"), &value) == COOKIE_ONE)
        CHECK(value.ptr >= t.ptr + 2 && value.ptr + value.len <= t.ptr + t.len && !memchr(value.ptr, ';', value.len));
}

static void try_user_code(struct text t)
{
    struct user_code code, again;

    if (user_code_parse(t, &code))
        CHECK(user_code_parse(text_of(code.text), &again) && strcmp(code.text, again.text) == 0);
    if (device_clients_valid(t))
        CHECK(!device_clients_include(t, TEXT("")));
}

static void try_totp(struct text t)
{
    struct totp_secret secret = {0};
    int64_t step;

    if (totp_parse_uri(t, &secret) && totp_verify(&secret, t, 0, &step))
        UNREACHABLE(); /* a code is no address */
}

static void try_encodings(struct text t)
{
    uint8_t decoded[32];
    struct buf out;

    buf_init(&out, 256);
    if (decode_base64url(t, decoded, sizeof decoded)) {
        encode_base64url(&out, decoded, sizeof decoded);
        CHECK(text_equal(buf_text(&out), t));
    }
    buf_clear(&out);
    if (decode_hex(t, decoded, sizeof decoded)) {
        encode_hex(&out, decoded, sizeof decoded);
        CHECK(text_equal_nocase(buf_text(&out), t));
    }
    if (decode_base64(t, decoded, sizeof decoded))
        CHECK(t.len == 44);
    buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static void (*const TRIES[])(struct text t) = {try_quantity,    try_id,   try_secret,    try_scope,    try_path,
                                                   try_address,     try_time, try_block,     try_query,    try_cookie,
                                                   try_traceparent, try_totp, try_user_code, try_encodings};
    char *copy = mem_alloc(count + 1);
    size_t characters;

    if (count > 0)
        memcpy(copy, bytes, count);
    for (size_t i = 0; i < sizeof TRIES / sizeof TRIES[0]; i++)
        TRIES[i]((struct text){copy, count});
    if (text_count_utf8((struct text){copy, count}, &characters))
        CHECK(characters <= count);
    free(copy);
    return 0;
}
