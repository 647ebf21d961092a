/* store settle-time: an operator says that Redis' clock is right. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "base/clock.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>

/* CLOCK_APART_MAX_MS: further apart, Redis' clock and this machine's cannot both be right. DUE_*: nodes write down what
 * is due within a second. */
enum { CLOCK_APART_MAX_MS = 2000, DUE_PAUSE_MS = 200, DUE_TRIES = 50 };

static const struct option_row ROWS[] = {
    ROW_FLAG("dry-run", dry_run, "Only print how far the two are apart, and what would end."),
    ROW_FLAG("trust-clock", trust_clock, "Redis' clock is right, although this machine's differs by more than 2 s."),
    ROW_YES,
    ROW_JSON,
};

const struct option_group STORE_SETTLE_TIME_OPTIONS[] = ADMIN_OPTIONS(ROWS);

static const struct store_refusals REFUSALS = {.not_found = "the store is empty: there is nothing to settle"};

struct settling {
    struct store_client client;
    bool looks;
    struct store_settlement found; /* by the last call */
    /* Of all partitions: */
    bool is_other;
    int64_t ahead_ms;       /* the largest difference */
    int64_t ending;         /* all that end at once */
    int64_t clock_ms;       /* of the first one */
    int64_t clock_ahead_ms; /* the largest difference between Redis' clock and this machine's */
};

static int64_t larger(int64_t a, int64_t b)
{
    return llabs(b) > llabs(a) ? b : a;
}

static void settled(void *arg, enum store_result result, const struct store_settlement *found)
{
    struct settling *settling = arg;

    settling->found = *found;
    store_client_answer(&settling->client, result);
}

static enum store_result settle_here(struct store_client *client, void *arg)
{
    struct settling *settling = arg;
    const struct store_settlement *found = &settling->found;

    store_settle_time(client->store, settling->looks, settled, settling);
    if (store_client_result(client) != STORE_OK || !settling->looks)
        return client->result;
    settling->is_other |= found->is_other;
    settling->ahead_ms = larger(settling->ahead_ms, found->ahead_ms);
    settling->ending += found->ending;
    settling->clock_ms = settling->clock_ms ? settling->clock_ms : found->clock_ms;
    settling->clock_ahead_ms = larger(settling->clock_ahead_ms, found->clock_ms - clock_wall_ms());
    return STORE_OK;
}

static void describe(const struct settling *settling, struct buf *out)
{
    char clock[CLOCK_RFC3339_BYTES], apart[APART_BYTES];

    clock_print_rfc3339(settling->clock_ms, clock);
    apart_print(settling->ahead_ms, apart);
    buf_printf(out, "Scheduled revocations go by a time that is %s Redis' clock, which says %s.", apart, clock);
    if (settling->ahead_ms < 0)
        buf_printf(out, " If that is right, %" PRId64 " of them take effect at once.", settling->ending);
    else
        buf_append_str(out, " If that is right, they take effect that much later.");
}

static int print(const struct command_line *line, const struct settling *settling)
{
    struct buf out = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    struct json_writer w = {.out = &out};

    if (line->json) {
        json_object_begin(&w);
        json_put_flag(&w, "settled", settling->is_other && !line->dry_run);
        json_put_number(&w, "ahead_ms", settling->ahead_ms);
        json_put_number(&w, "ending", settling->ending);
        json_object_end(&w);
    } else if (!settling->is_other) {
        buf_append_str(&out, "Scheduled revocations go by Redis' clock; nothing was changed.");
    } else if (line->dry_run) {
        describe(settling, &out);
    } else {
        buf_append_str(&out, "Settled. Scheduled revocations go by Redis' clock; nodes follow within 4 s.");
    }
    buf_append_char(&out, '\n');
    return command_print(buf_text(&out));
}

static int refuse_clock(const struct command_line *line, const struct settling *settling)
{
    char apart[APART_BYTES];

    if (line->trust_clock || llabs(settling->clock_ahead_ms) <= CLOCK_APART_MAX_MS)
        return EXIT_DONE;
    apart_print(settling->clock_ahead_ms, apart);
    return command_fail(EXIT_FAILED,
                        "Redis' clock is %s this machine's, so one of the two is wrong. Set both by NTP. If Redis' "
                        "clock is right, pass --trust-clock",
                        apart);
}

/* The time must not go back over revocations that are due and not written down: they would be undone. */
static int settle(struct settling *settling)
{
    enum store_result result = STORE_CONFLICT;

    settling->looks = false;
    for (unsigned tries = 0; tries < DUE_TRIES && result == STORE_CONFLICT; tries++) {
        if (tries > 0)
            store_client_pause(&settling->client, DUE_PAUSE_MS);
        result = store_client_tell_all(&settling->client, settle_here, settling);
    }
    store_client_tell_done(&settling->client, result);
    if (result == STORE_CONFLICT)
        return command_fail(EXIT_FAILED,
                            "%" PRId64 " scheduled revocations have taken effect, and no node has written them down: "
                            "start a node, then try again",
                            settling->found.due);
    return store_client_explain(&settling->client, result, &REFUSALS);
}

static int ask_and_settle(const struct command_line *line, struct settling *settling)
{
    struct buf question = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    int code = store_client_explain(&settling->client, store_client_tell_all(&settling->client, settle_here, settling),
                                    &REFUSALS);

    if (code != EXIT_DONE || !settling->is_other || line->dry_run)
        return code;
    code = refuse_clock(line, settling);
    if (code != EXIT_DONE)
        return code;
    describe(settling, &question);
    buf_append_char(&question, '\0');
    code = command_confirm(line, question.ptr);
    return code == EXIT_DONE ? settle(settling) : code;
}

int store_settle_time_run(const struct command_line *line)
{
    struct settling settling = {.looks = true};
    int code = command_open(line, &settling.client, NULL);

    if (code != EXIT_DONE)
        return code;
    code = ask_and_settle(line, &settling);
    store_client_close(&settling.client);
    return code == EXIT_DONE ? print(line, &settling) : code;
}
