#include "core/audit_line.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/random.h"
#include "base/secure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Each byte may become an escape of six. */
enum { TEXT_MAX_BYTES = 1000, NAME_MAX_BYTES = 64, ESCAPE_BYTES = 6, TEXTS = 8, FIXED_BYTES = 700 };

_Static_assert(ESCAPE_BYTES *(TEXTS *TEXT_MAX_BYTES + AUDIT_LINE_DATA_MAX * (TEXT_MAX_BYTES + NAME_MAX_BYTES)) +
                       FIXED_BYTES <=
                   AUDIT_LINE_MAX_BYTES,
               "the longest line fits");

#define MAC_OPENING ",\"mac\":\""
static const struct text MAC_BEGINS = {MAC_OPENING, sizeof MAC_OPENING - 1};
static const struct text MAC_ENDS = {"\"}", 2};

/* Kinds */

static struct text kind_of_id(struct text id)
{
    switch (id_kind_of(id)) {
    case ID_KEY:
        return TEXT("api_key");
    case ID_DEVICE:
        return TEXT("device_key");
    case ID_USER:
        return TEXT("user");
    default:
        return TEXT("");
    }
}

struct text audit_actor_kind(struct text actor)
{
    if (text_equal(actor, TEXT("operator")) || text_equal(actor, TEXT("system")) || text_equal(actor, TEXT("holder")))
        return actor;
    return kind_of_id(actor);
}

struct text audit_target_kind(struct text type, struct text target)
{
    if (text_starts_with(type, TEXT("device.")))
        return TEXT("device");
    return id_kind_of(target) == ID_ACCOUNT ? TEXT("account") : kind_of_id(target);
}

/* Making */

void audit_head_begin(struct audit_head *ret_head)
{
    *ret_head = (struct audit_head){.mac = AUDIT_NO_MAC};
    random_hex(ret_head->chain, sizeof ret_head->chain);
}

static struct text cut(struct text t, size_t most)
{
    return (struct text){t.ptr, t.len < most ? t.len : most};
}

static void put(struct json_writer *w, const char *name, struct text value)
{
    json_key(w, name);
    if (value.len > 0)
        json_put_text(w, cut(value, TEXT_MAX_BYTES));
    else
        json_put_null(w);
}

static void put_data(struct json_writer *w, const struct audit_line *line)
{
    json_key(w, "data");
    json_object_begin(w);
    for (size_t i = 0; i < line->data_count; i++)
        json_put_named(w, cut(line->data[i].name, NAME_MAX_BYTES), cut(line->data[i].value, TEXT_MAX_BYTES));
    json_object_end(w);
}

void audit_body_print(const struct audit_line *line, struct buf *out)
{
    struct json_writer w = {.out = out, .need_comma = true};
    char time[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(line->time_ms, time);
    json_put_member(&w, "time", text_of(time));
    put(&w, "node", cut(line->node, AUDIT_NODE_BYTES - 1));
    put(&w, "id", line->id);
    put(&w, "account", line->account);
    put(&w, "type", line->type);
    put(&w, "actor", line->actor);
    put(&w, "actor_kind", audit_actor_kind(line->actor));
    put(&w, "target", line->target);
    put(&w, "target_kind", audit_target_kind(line->type, line->target));
    put(&w, "ip", line->ip);
    put(&w, "request_id", line->request_id);
    put_data(&w, line);
}

static void make_mac(struct keyring *keyring, size_t generation, struct text bound, char ret_mac[AUDIT_MAC_CHARS + 1])
{
    uint8_t digest[KEYRING_DIGEST_BYTES];

    keyring_digest(keyring, KEYRING_AUDIT_LOG, generation, bound, digest);
    encode_base64url_text(ret_mac, AUDIT_MAC_CHARS + 1, digest, sizeof digest);
}

/* Whether one of the master keys made the MAC. */
static bool is_mac_ours(struct keyring *keyring, struct text bound, struct text mac)
{
    char expected[AUDIT_MAC_CHARS + 1];

    for (size_t i = 0; i < keyring_generations(keyring); i++) {
        make_mac(keyring, i, bound, expected);
        if (secure_equal(mac, text_of(expected)))
            return true;
    }
    return false;
}

void audit_line_print(struct keyring *keyring, struct text body, struct audit_head *head, struct buf *out)
{
    size_t from = out->len;

    head->seq++;
    buf_printf(out, "{\"chain\":\"%s\",\"seq\":", head->chain);
    buf_append_u64(out, head->seq);
    buf_append_text(out, body);
    buf_printf(out, ",\"prev\":\"%s\"", head->mac);
    if (out->failed)
        return;
    make_mac(keyring, 0, (struct text){out->ptr + from, out->len - from}, head->mac);
    buf_append_text(out, MAC_BEGINS);
    buf_append_str(out, head->mac);
    buf_append_text(out, MAC_ENDS);
    buf_append_char(out, '\n');
}

void audit_line_print_own(struct keyring *keyring, struct text node, const char *type, struct audit_number first,
                          struct audit_number second, struct audit_head *head, struct buf *out)
{
    const struct audit_number numbers[] = {first, second};
    struct audit_line line = {.time_ms = clock_wall_ms(), .node = node, .type = text_of(type)};
    char digits[sizeof numbers / sizeof *numbers][24];
    struct buf body CLEANUP(buf_finish) = {0};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && numbers[i].name; i++) {
        snprintf(digits[i], sizeof digits[i], "%" PRIu64, numbers[i].value);
        line.data[line.data_count++] = (struct audit_line_datum){text_of(numbers[i].name), text_of(digits[i])};
    }
    buf_init(&body, AUDIT_LINE_MAX_BYTES);
    audit_body_print(&line, &body);
    audit_line_print(keyring, buf_text(&body), head, out);
}

/* Reading */

/* A member's text, with a NUL behind it. False: it is missing, is no text, has a NUL in it, or is too long. */
static bool take(const struct json *object, const char *name, char *ret_chars, size_t size)
{
    const struct json *value = json_member(object, name);
    struct text t;

    if (!value || json_type(value) != JSON_STRING)
        return false;
    t = json_text(value);
    if (t.len >= size || memchr(t.ptr, '\0', t.len))
        return false;
    memcpy(ret_chars, t.ptr, t.len);
    ret_chars[t.len] = '\0';
    return true;
}

static bool is_mac(const char *mac)
{
    return strlen(mac) == AUDIT_MAC_CHARS;
}

static bool take_number(const struct json *data, const char *name, uint64_t *ret_number)
{
    char digits[24];

    return data && json_type(data) == JSON_OBJECT && take(data, name, digits, sizeof digits) &&
           text_to_u64(text_of(digits), UINT64_MAX, ret_number);
}

static bool take_other(const struct json *data, struct audit_line_read *ret_line)
{
    struct audit_head *other = &ret_line->other;

    return take_number(data, "seq", &other->seq) && take(data, "chain", other->chain, sizeof other->chain) &&
           take(data, "mac", other->mac, sizeof other->mac) && is_mac(other->mac) &&
           take(data, "node", ret_line->other_node, sizeof ret_line->other_node);
}

static bool take_line(const struct json *object, struct audit_line_read *ret_line)
{
    const struct json *seq = json_member(object, "seq");
    int64_t number;

    if (!seq || json_type(seq) != JSON_NUMBER || !json_integer(seq, &number) || number < 1)
        return false;
    ret_line->head.seq = (uint64_t)number;
    if (!take(object, "chain", ret_line->head.chain, sizeof ret_line->head.chain) ||
        strlen(ret_line->head.chain) != AUDIT_CHAIN_CHARS ||
        !take(object, "mac", ret_line->head.mac, sizeof ret_line->head.mac) ||
        !take(object, "prev", ret_line->prev, sizeof ret_line->prev) || !is_mac(ret_line->prev) ||
        !take(object, "type", ret_line->type, sizeof ret_line->type) ||
        !take(object, "node", ret_line->node, sizeof ret_line->node) ||
        !take(object, "time", ret_line->time, sizeof ret_line->time))
        return false;
    if (strcmp(ret_line->type, AUDIT_LINE_REOPENED) == 0)
        return take_number(json_member(object, "data"), "lost_from", &ret_line->lost_from);
    return strcmp(ret_line->type, AUDIT_LINE_HEAD) != 0 || take_other(json_member(object, "data"), ret_line);
}

/* Splits off the MAC, which stands at the end in one form. */
static bool split_mac(struct text line, struct text *ret_bound, struct text *ret_mac)
{
    size_t tail = MAC_BEGINS.len + AUDIT_MAC_CHARS + MAC_ENDS.len;

    if (!line.ptr || line.len <= tail)
        return false;
    *ret_bound = (struct text){line.ptr, line.len - tail};
    struct text rest = text_skip(line, ret_bound->len);
    *ret_mac = (struct text){rest.ptr + MAC_BEGINS.len, AUDIT_MAC_CHARS};
    return text_starts_with(rest, MAC_BEGINS) && text_equal(text_skip(rest, tail - MAC_ENDS.len), MAC_ENDS);
}

enum audit_line_state audit_line_read(struct keyring *keyring, struct text line, struct audit_line_read *ret_line)
{
    struct text bound, mac;
    struct json *object;
    bool is_line;

    *ret_line = (struct audit_line_read){0};
    if (line.len > AUDIT_LINE_MAX_BYTES || !split_mac(line, &bound, &mac))
        return AUDIT_LINE_UNREADABLE;
    object = json_parse_object(line, NULL);
    is_line = object && take_line(object, ret_line) && text_equal(mac, text_of(ret_line->head.mac));
    json_free(object);
    if (!is_line) {
        *ret_line = (struct audit_line_read){0};
        return AUDIT_LINE_UNREADABLE;
    }
    return keyring && is_mac_ours(keyring, bound, mac) ? AUDIT_LINE_GENUINE : AUDIT_LINE_ALTERED;
}

bool audit_line_find_last(struct keyring *keyring, struct text end, struct audit_line_read *ret_line, size_t *ret_after)
{
    size_t line_end = end.len;

    while (line_end > 0) {
        const char *newline = memrchr(end.ptr, '\n', line_end);
        size_t from = newline ? (size_t)(newline - end.ptr) + 1 : 0;
        struct text line = {end.ptr + from, line_end - from};

        if (line.len > 0 && audit_line_read(keyring, line, ret_line) == AUDIT_LINE_GENUINE) {
            *ret_after = end.len - line_end - (line_end < end.len);
            return true;
        }
        line_end = from > 0 ? from - 1 : 0;
    }
    return false;
}

#define KEY_ENDED "_key.revoked"

bool audit_line_may_end_key(struct text line)
{
    return memmem(line.ptr, line.len, KEY_ENDED "\"", sizeof KEY_ENDED);
}

static bool take_key_end(const struct json *object, struct audit_key_end *ret_end)
{
    char type[40], time[CLOCK_RFC3339_BYTES], key[ID_TEXT_BYTES], account[ID_TEXT_BYTES];

    return take(object, "type", type, sizeof type) &&
           (strcmp(type, "api" KEY_ENDED) == 0 || strcmp(type, "device" KEY_ENDED) == 0) &&
           take(object, "target", key, sizeof key) && take(object, "account", account, sizeof account) &&
           take(object, "time", time, sizeof time) &&
           (id_parse(ID_KEY, text_of(key), &ret_end->key) || id_parse(ID_DEVICE, text_of(key), &ret_end->key)) &&
           id_parse(ID_ACCOUNT, text_of(account), &ret_end->account) &&
           clock_read_rfc3339(text_of(time), &ret_end->at_ms);
}

bool audit_line_read_key_end(struct keyring *keyring, struct text line, struct audit_key_end *ret_end)
{
    struct text bound, mac;
    struct json *object;
    bool is_end;

    if (line.len > AUDIT_LINE_MAX_BYTES || !split_mac(line, &bound, &mac) || !is_mac_ours(keyring, bound, mac))
        return false;
    object = json_parse_object(line, NULL);
    is_end = object && take_key_end(object, ret_end);
    json_free(object);
    return is_end;
}

/* Heads */

/* Begins unlike any line, so that no tag passes as a line's MAC. */
static void print_bound(const char *chain, struct text claims, struct text node, struct buf *out)
{
    buf_printf(out, "head %s %.*s %.*s", chain, TEXT_ARG(claims), TEXT_ARG(node));
}

void audit_published_print(struct keyring *keyring, const struct audit_published *published, struct buf *out)
{
    char tag[AUDIT_MAC_CHARS + 1];
    struct buf claims = BUF_FIXED(128), bound = BUF_FIXED(512);

    buf_append_u64(&claims, (uint64_t)published->time_ms);
    buf_append_char(&claims, ' ');
    buf_append_u64(&claims, published->head.seq);
    buf_printf(&claims, " %s ", published->head.mac);
    buf_append_u64(&claims, published->event_seq);
    print_bound(published->head.chain, buf_text(&claims), text_of(published->node), &bound);
    CHECK(!bound.failed && !claims.failed);
    make_mac(keyring, 0, buf_text(&bound), tag);
    buf_append_text(out, buf_text(&claims));
    buf_printf(out, " %s %s", tag, published->node);
}

static bool read_claims(struct text claims, struct audit_published *ret_published)
{
    struct text time, seq, mac, event_seq;
    uint64_t ms;

    if (!text_next(&claims, ' ', &time) || !text_next(&claims, ' ', &seq) || !text_next(&claims, ' ', &mac) ||
        !text_next(&claims, ' ', &event_seq) || claims.ptr || mac.len != AUDIT_MAC_CHARS ||
        !text_to_u64(time, INT64_MAX, &ms) || !text_to_u64(seq, INT64_MAX, &ret_published->head.seq) ||
        !text_to_u64(event_seq, INT64_MAX, &ret_published->event_seq))
        return false;
    ret_published->time_ms = (int64_t)ms;
    memcpy(ret_published->head.mac, mac.ptr, AUDIT_MAC_CHARS);
    return true;
}

bool audit_published_read(struct keyring *keyring, struct text chain, struct text value,
                          struct audit_published *ret_published)
{
    struct text rest = value, part = {0};
    struct buf bound = BUF_FIXED(512);

    *ret_published = (struct audit_published){0};
    if (chain.len != AUDIT_CHAIN_CHARS)
        return false;
    memcpy(ret_published->head.chain, chain.ptr, chain.len);
    for (size_t i = 0; i < 4; i++)
        if (!text_next(&rest, ' ', &part))
            return false;
    struct text claims = {value.ptr, (size_t)(part.ptr + part.len - value.ptr)}, tag;
    if (!text_next(&rest, ' ', &tag) || !rest.ptr || rest.len >= sizeof ret_published->node ||
        memchr(rest.ptr, '\0', rest.len))
        return false;
    memcpy(ret_published->node, rest.ptr, rest.len);
    print_bound(ret_published->head.chain, claims, rest, &bound);
    return !bound.failed && is_mac_ours(keyring, buf_text(&bound), tag) && read_claims(claims, ret_published);
}
