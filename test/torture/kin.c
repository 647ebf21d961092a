#include "kin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPEN_MAX = 3,
    CHECK_WITHIN_MS = 3000,
    CHANGE_WITHIN_MS = 8000,
    OVERLAP_S = 30 * 24 * 60 * 60, /* what is replaced lives on */
    MS_PER_S = 1000,
    NS_PER_MS = 1000000
};

static unsigned below(struct kinship *of, unsigned bound)
{
    return (unsigned)rand_r(&of->seed) % bound;
}

/* A random time between hundredths of the unit. */
static int64_t span_ns(struct kinship *of, unsigned from, unsigned to)
{
    return (int64_t)(from * 1000 + below(of, (to - from) * 1000)) * of->unit_ms * (NS_PER_MS / 100000);
}

static void note(struct kinship *of, const struct event *event)
{
    of->found |= !history_add(of->history, event);
}

void family_begin(struct family *family, struct kinship *of)
{
    const struct kin_removal none = {HISTORY_NEVER, HISTORY_NEVER, HISTORY_NEVER};

    *family = (struct family){.of = of, .removals = {none, none, none}};
}

static bool goes_with(const struct kin *kin, enum key_fate fate)
{
    return fate == KEYS_ALL || kin->is_made;
}

/* From the first attempt on. */
static void note_may_go(struct family *family, const struct kin *kin, enum key_fate fate)
{
    int64_t tried_ns = family->removals[fate].tried_ns;

    if (tried_ns != HISTORY_NEVER && goes_with(kin, fate))
        note(family->of,
             &(struct event){.start_ns = tried_ns, .end_ns = tried_ns, .key = kin->key, .kind = EVENT_MAY_END});
}

static void note_gone(struct family *family, const struct kin *kin, enum key_fate fate)
{
    const struct kin_removal *removal = &family->removals[fate];
    struct kinship *of = family->of;

    if (removal->told_ns == HISTORY_NEVER || !goes_with(kin, fate))
        return;
    of->gone += history_times(of->history, kin->key)->revoked_ns == HISTORY_NEVER;
    note(of, &(struct event){.start_ns = removal->asked_ns,
                             .end_ns = removal->told_ns,
                             .key = kin->key,
                             .status = 200,
                             .node = CLUSTER_NODES,
                             .kind = EVENT_REVOKE});
    if (of->board)
        board_refuse(of->board, kin->number);
}

/* Readers check the keys that were made last. */
static void show(struct kinship *of, struct kin *kin, const struct fixture_key *key)
{
    if (!of->board)
        return;
    kin->number = board_add(of->board, key->id, key->secret, SCOPE_KEYS_MANAGE | SCOPE_PATIENTS_READ, kin->key);
    board_show_end(of->board, of->board_place + kin->number % (BOARD_PLACES_OF_ENDS - of->board_place), kin->number);
}

void family_add(struct family *family, const struct fixture_key *key, bool is_made, int64_t asked_ns,
                int64_t answered_ns)
{
    struct kinship *of = family->of;
    uint32_t number = history_add_key(of->history, HISTORY_NO_ACCOUNT, key->id, key->secret);

    if (number == HISTORY_NO_KEY)
        return;
    struct kin *kin = &family->keys[family->count++];
    *kin = (struct kin){.key = number, .is_made = is_made};
    note(of, &(struct event){
                 .start_ns = asked_ns, .end_ns = answered_ns, .key = number, .status = 201, .kind = EVENT_CREATE});
    show(of, kin, key);
    of->made++;
    for (enum key_fate fate = KEYS_MADE; fate <= KEYS_ALL; fate++) {
        note_may_go(family, kin, fate);
        note_gone(family, kin, fate);
    }
}

void family_removal_begins(struct family *family, enum key_fate fate, int64_t at_ns)
{
    struct kin_removal *removal = &family->removals[fate];

    family->make_at_ns = at_ns;
    if (removal->tried_ns != HISTORY_NEVER)
        return;
    removal->tried_ns = at_ns;
    for (size_t i = 0; i < family->count; i++)
        note_may_go(family, &family->keys[i], fate);
}

void family_removal_told(struct family *family, enum key_fate fate, int64_t asked_ns, int64_t told_ns)
{
    struct kin_removal *removal = &family->removals[fate];

    if (removal->told_ns != HISTORY_NEVER)
        return;
    removal->asked_ns = asked_ns;
    removal->told_ns = told_ns;
    for (size_t i = 0; i < family->count; i++) {
        note_gone(family, &family->keys[i], fate);
        /* The moment that the promise speaks of. */
        for (unsigned node = 0; node < CLUSTER_NODES; node++)
            family->keys[i].check_at_ns[node] = told_ns;
    }
}

/* Whether somebody asks for it, and was not answered. */
static bool is_being_removed(const struct family *family)
{
    for (enum key_fate fate = KEYS_MADE; fate <= KEYS_ALL; fate++)
        if (family->removals[fate].tried_ns != HISTORY_NEVER && family->removals[fate].told_ns == HISTORY_NEVER)
            return true;
    return false;
}

/* Requests */

struct asking {
    struct family *family;
    struct kin *kin; /* that is checked, or makes a key */
    unsigned node;
    bool is_check, replaces;
};

static bool send_asking(const struct asking *asking, struct exchange *exchange, const char *bytes, int len,
                        exchange_done *done)
{
    struct asking *copy = malloc(sizeof *copy);

    if (!copy)
        abort();
    *copy = *asking;
    const struct exchange_request request = {.node = asking->node,
                                             .bytes = bytes,
                                             .len = (size_t)len,
                                             .timeout_ms = asking->is_check ? CHECK_WITHIN_MS : CHANGE_WITHIN_MS,
                                             .done = done,
                                             .arg = copy};
    bool is_sent = exchange_send(exchange, &request);
    if (!is_sent)
        free(copy);
    return is_sent;
}

/* While its person is being removed, a key makes none: 429. The mark of a node that died stays for a while. */
static int status_of(const struct asking *asking, const struct exchange_answer *answer)
{
    bool may_leave = asking->family->removals[KEYS_MADE].tried_ns < answer->end_ns ||
                     asking->family->removals[KEYS_ALL].tried_ns < answer->end_ns;

    return answer->status == 429 && !asking->is_check && may_leave ? 503 : answer->status;
}

static struct event event_of(const struct asking *asking, const struct exchange_answer *answer, enum event_kind kind)
{
    int status = status_of(asking, answer);

    return (struct event){.start_ns = answer->start_ns,
                          .end_ns = answer->end_ns,
                          .key = asking->kin->key,
                          .status = (uint16_t)status,
                          .node = (uint8_t)asking->node,
                          .kind = (uint8_t)kind,
                          .code = (uint8_t)history_code(status, answer->body)};
}

static void check_done(void *arg, const struct exchange_answer *answer)
{
    const struct asking asking = *(struct asking *)arg;
    const struct event event = event_of(&asking, answer, EVENT_CHECK);

    free(arg);
    note(asking.family->of, &event);
}

static void check(struct family *family, struct kin *kin, unsigned node, struct exchange *exchange)
{
    const struct asking asking = {.family = family, .kin = kin, .node = node, .is_check = true};
    char bytes[EXCHANGE_REQUEST_BYTES];
    int len =
        snprintf(bytes, sizeof bytes, "GET /v1/whoami HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n\r\n",
                 history_secret(family->of->history, kin->key));

    (void)send_asking(&asking, exchange, bytes, len, check_done);
}

static void make_done(void *arg, const struct exchange_answer *answer)
{
    const struct asking asking = *(struct asking *)arg;
    struct family *family = asking.family;
    struct event use = event_of(&asking, answer, EVENT_SUCCESSOR), end = event_of(&asking, answer, EVENT_REPLACE);
    struct fixture_key key;

    free(arg);
    family->open--;
    cluster_other_ends(family->of->cluster);
    note(family->of, &use);
    if (answer->status != 201)
        return;
    end.later_ms = (uint32_t)OVERLAP_S * MS_PER_S;
    if (asking.replaces)
        note(family->of, &end);
    if (exchange_copy_after(answer->body, "\"id\":\"", key.id, sizeof key.id) &&
        exchange_copy_after(answer->body, "\"secret\":\"", key.secret, sizeof key.secret))
        family_add(family, &key, asking.replaces && asking.kin->is_made, answer->start_ns, answer->end_ns);
    else
        history_violation(family->of->history, "a creation without id or secret", answer->body);
}

/* With a key, another one, or one in its place. */
static void make(struct family *family, struct exchange *exchange)
{
    static const char CREATE[] = "{\"name\":\"kin\",\"mode\":\"live\",\"scopes\":[\"keys:manage\",\"patients:read\"]}";
    struct kinship *of = family->of;
    struct kin *kin = &family->keys[below(of, (unsigned)family->count)];
    const struct asking asking = {.family = family,
                                  .kin = kin,
                                  .node = below(of, CLUSTER_NODES),
                                  .replaces = !kin->is_replaced && below(of, 3) == 0};
    char bytes[EXCHANGE_REQUEST_BYTES], replace[48], target[HISTORY_ID_BYTES + 16] = "";

    if (!cluster_other_begins(of->cluster))
        return;
    snprintf(replace, sizeof replace, "{\"overlap_seconds\":%d}", OVERLAP_S);
    if (asking.replaces)
        snprintf(target, sizeof target, "/%s/replacement", history_id(of->history, kin->key));
    const char *body = asking.replaces ? replace : CREATE;
    int len = snprintf(bytes, sizeof bytes,
                       "POST /v1/api_keys%s HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       target, history_secret(of->history, kin->key), strlen(body), body);
    if (!send_asking(&asking, exchange, bytes, len, make_done)) {
        cluster_other_ends(of->cluster);
        return;
    }
    family->open++;
    kin->is_replaced |= asking.replaces;
}

/* Slowly, so that there is room for what is made while the person is being removed. */
static int64_t next_make_ns(struct family *family, int64_t now_ns)
{
    const struct kin_removal *all = &family->removals[KEYS_ALL];

    if (all->told_ns != HISTORY_NEVER && now_ns - all->told_ns > span_ns(family->of, 100, 101))
        return HISTORY_NEVER;
    return now_ns + (is_being_removed(family) ? span_ns(family->of, 0, 3) : span_ns(family->of, 60, 300));
}

/* Now and then, so that caches hold it, very often around its end, and rarely when that is long ago. */
static int64_t next_check_ns(const struct family *family, const struct kin *kin, int64_t now_ns)
{
    struct kinship *of = family->of;
    int64_t revoked_ns = history_times(of->history, kin->key)->revoked_ns;
    int64_t told_ns = family->removals[KEYS_MADE].told_ns;

    if (family->removals[KEYS_ALL].told_ns < told_ns)
        told_ns = family->removals[KEYS_ALL].told_ns;
    if (told_ns != HISTORY_NEVER && now_ns - told_ns > span_ns(of, 1000, 1001))
        return now_ns + span_ns(of, 2000, 6000);
    if (revoked_ns < now_ns && now_ns - revoked_ns < span_ns(of, 20, 21))
        return now_ns + span_ns(of, 1, 3);
    return now_ns + (is_being_removed(family) ? span_ns(of, 1, 12) : span_ns(of, 15, 120));
}

void family_turn(struct family *family, struct exchange *exchange)
{
    int64_t now_ns = history_now_ns();

    if (family->make_at_ns <= now_ns) {
        if (family->count > 0 && family->count + family->open < KIN_MAX && family->open < OPEN_MAX)
            make(family, exchange);
        family->make_at_ns = next_make_ns(family, now_ns);
    }
    for (size_t i = 0; i < family->count; i++) {
        struct kin *kin = &family->keys[i];

        for (unsigned node = 0; node < CLUSTER_NODES; node++) {
            if (kin->check_at_ns[node] > now_ns)
                continue;
            check(family, kin, node, exchange);
            kin->check_at_ns[node] = next_check_ns(family, kin, now_ns);
        }
    }
}
