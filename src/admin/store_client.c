#include "admin/store_client.h"

#include "admin_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/secure.h"
#include "core/limits.h"
#include "lease/lease.h"
#include "records/revocation_effect.h"

#include <stdio.h>

/* Commands wait longer for Redis than a node's calls do, because it may just be starting. */
enum { READY_TIMEOUTS = 2 };
/* Sooner, nobody would wonder. */
enum { NOTICE_MS = 250, ROUND_UP_MS = 50, MS_PER_S = 1000 };

void store_client_done(struct store_client *client)
{
    client->is_done = true;
}

void store_client_answer(struct store_client *client, enum store_result result)
{
    client->result = result;
    store_client_done(client);
}

void store_client_answered(void *client, enum store_result result)
{
    store_client_answer(client, result);
}

static uint64_t longest_wait_ns(const struct store_client *client)
{
    uint64_t longest_ns = 0;

    for (unsigned i = 0; i < partitions_count(client->partitions); i++) {
        uint64_t left_ns = barriers_left_ns(lease_barriers(store_lease(partitions_at(client->partitions, i))));

        longest_ns = left_ns > longest_ns ? left_ns : longest_ns;
    }
    return longest_ns;
}

/* A command is no member: no node can confirm to it that it has heard, so it always waits for as long as a lease may
 * last. */
static void on_notice(uv_timer_t *notice)
{
    struct store_client *client = notice->data;
    uint64_t left_ms = longest_wait_ns(client) / CLOCK_NS_PER_MS;

    if (left_ms == 0)
        return;
    client->has_said_it_waits = true;
    uv_timer_stop(notice);
    fprintf(stderr, "%s: %.1f s at most.\n",
            client->waits_for ? client->waits_for
                              : "Stored. Waiting until every lease has ended, so that it holds on every node",
            (double)(left_ms + ROUND_UP_MS) / MS_PER_S);
}

static void run_until_done(struct store_client *client)
{
    while (!client->is_done)
        uv_run(&client->loop, UV_RUN_ONCE);
    client->is_done = false;
}

void store_client_wait(struct store_client *client)
{
    if (!client->has_said_it_waits)
        uv_timer_start(&client->notice, on_notice, NOTICE_MS, NOTICE_MS);
    run_until_done(client);
    uv_timer_stop(&client->notice);
}

enum store_result store_client_result(struct store_client *client)
{
    store_client_wait(client);
    return client->result;
}

static void on_part_closed(void *client)
{
    store_client_done(client);
}

static void on_timer(uv_timer_t *timer)
{
    store_client_done(timer->data);
}

/* The gate polls readiness itself. */
static void on_readiness(UNUSED void *client, UNUSED struct store *store)
{
}

void store_client_pause(struct store_client *client, uint64_t ms)
{
    uv_timer_start(&client->timer, on_timer, ms, 0);
    store_client_wait(client);
}

void store_client_choose(struct store_client *client, const struct id *account)
{
    client->store = partition_of_account(client->partitions, account);
}

enum store_result store_client_ask_each(struct store_client *client,
                                        enum store_result (*ask)(struct store_client *client, void *arg), void *arg)
{
    enum store_result result = STORE_NOT_FOUND, one;
    struct store *asked = client->store;

    for (unsigned i = 0; i < partitions_count(client->partitions) && result != STORE_OK; i++) {
        client->store = partitions_at(client->partitions, i);
        one = ask(client, arg);
        if (one != STORE_NOT_FOUND) {
            result = one;
            asked = client->store;
        }
    }
    client->store = asked;
    return result;
}

enum store_result store_client_tell_all(struct store_client *client,
                                        enum store_result (*tell)(struct store_client *client, void *arg), void *arg)
{
    enum store_result result = STORE_OK;

    client->told = 0;
    while (client->told < partitions_count(client->partitions) && result == STORE_OK) {
        client->store = partitions_at(client->partitions, client->told);
        result = tell(client, arg);
        client->told += result == STORE_OK;
    }
    return result;
}

void store_client_tell_done(const struct store_client *client, enum store_result result)
{
    unsigned count = partitions_count(client->partitions);

    if (result == STORE_OK)
        return;
    if (client->told == 1)
        fprintf(stderr, "Done in partition 0 of %u. Partition 1 failed:\n", count);
    else if (client->told > 1)
        fprintf(stderr, "Done in partitions 0 to %u of %u. Partition %u failed:\n", client->told - 1, count,
                client->told);
}

static void finish_notes(struct store_client *client)
{
    for (unsigned i = 0; i < partitions_count(client->partitions); i++) {
        while (revocation_effect_is_noting(partitions_at(client->partitions, i)))
            uv_run(&client->loop, UV_RUN_ONCE);
    }
}

void store_client_close(struct store_client *client)
{
    finish_notes(client);
    partitions_close(client->partitions, on_part_closed, client);
    /* Without the notice, which looks at partitions: they are freed one after the other. */
    run_until_done(client);
    uv_close((uv_handle_t *)&client->timer, NULL);
    uv_close((uv_handle_t *)&client->notice, NULL);
    uv_run(&client->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&client->loop) == 0);
    store_settings_finish(&client->settings);
    keyring_destroy(client->keyring);
}

static int open_unready(struct store_client *client, const struct settings *settings, struct keyring *keyring,
                        enum store_key_use use, bool may_lie_beside)
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    *client = (struct store_client){0};
    if (!store_settings_read(settings, &client->settings, &why)) {
        store_settings_finish(&client->settings);
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    }
    /* A command does not know the nodes' --audit-max. It keeps all events; the nodes drop old ones. */
    client->settings.audit_max = AUDIT_EVENTS_MOST;
    client->settings.keyring = keyring;
    client->settings.key_use = use;
    client->settings.may_lie_beside = may_lie_beside;
    CHECK(uv_loop_init(&client->loop) == 0);
    uv_timer_init(&client->loop, &client->timer);
    uv_timer_init(&client->loop, &client->notice);
    client->timer.data = client->notice.data = client;
    client->partitions = partitions_create(&client->loop, &client->settings, on_readiness, client);
    client->store = partitions_at(client->partitions, 0);
    return EXIT_DONE;
}

int store_client_open_to_look(struct store_client *client, const struct settings *settings, struct keyring *keyring)
{
    return open_unready(client, settings, keyring, STORE_KEY_LOOKS, false);
}

int store_client_open_to_copy(struct store_client *client, const struct settings *settings)
{
    return open_unready(client, settings, NULL, STORE_KEY_LOOKS, true);
}

/* The gate's result, kept after it closes. */
struct opening {
    struct store_client *client;
    bool is_open, is_unfit, is_elsewhere; /* by the gate's result */
    struct buf why;
};

static void on_gate(void *arg, enum startup_gate_result result, const char *why)
{
    struct opening *opening = arg;

    opening->is_open = result == STARTUP_GATE_OPEN;
    opening->is_unfit = result != STARTUP_GATE_OPEN;
    opening->is_elsewhere = result == STARTUP_GATE_ELSEWHERE;
    if (opening->is_unfit)
        buf_append_str(&opening->why, why);
    store_client_done(opening->client);
}

static int explain_trouble(struct store_client *client, const struct opening *opening)
{
    struct buf target = BUF_FIXED(STORE_URL_MAX_BYTES);

    if (opening->is_unfit) {
        store_target_print(&client->settings.target, &target);
        return command_fail(EXIT_UNFIT, "%.*s: %.*s 'chatelaine doctor' lists every problem",
                            TEXT_ARG(buf_text(&target)), TEXT_ARG(buf_text(&opening->why)));
    }
    partitions_trouble(client->partitions, &target);
    return command_fail(EXIT_FAILED, "%.*s Check --redis; 'chatelaine doctor' shows more", TEXT_ARG(buf_text(&target)));
}

/* Loading a large file may take Redis minutes, and it says so. Once it is loaded, it gets the usual time to become
 * ready. If some partitions are ready, the gate opens soon. */
static void wait_for_gate(struct store_client *client, const struct opening *opening)
{
    bool was_loading = false, is_loading = false;

    do {
        if (is_loading && !was_loading)
            fprintf(stderr, "Redis is loading its data. Waiting until it is done; Ctrl+C cancels.\n");
        was_loading = is_loading;
        store_client_pause(client, (uint64_t)client->settings.timeout_ms * READY_TIMEOUTS);
        is_loading = store_is_loading(client->store);
    } while (!opening->is_open && !opening->is_unfit &&
             (partitions_ready(client->partitions) > 0 || is_loading || was_loading));
}

static int open_ready(struct store_client *client, const struct settings *settings, struct keyring *keyring,
                      enum store_key_use use)
{
    struct opening opening = {.client = client, .why = BUF_FIXED(ADMIN_WHY_MAX_BYTES)};
    int code = open_unready(client, settings, keyring, use, false);

    if (code != EXIT_DONE)
        return code;
    if (!store_settings_survive_failover(&client->settings, &opening.why)) {
        store_client_close(client);
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&opening.why)));
    }
    struct startup_gate *gate =
        startup_gate_create(&client->loop, client->partitions, client->settings.unsafe_redis, on_gate, &opening);
    wait_for_gate(client, &opening);
    uv_timer_stop(&client->timer);
    if (partitions_ready(client->partitions) == 0 || opening.is_elsewhere)
        code = explain_trouble(client, &opening);
    startup_gate_close(gate, on_part_closed, client);
    store_client_wait(client);
    if (code != EXIT_DONE)
        store_client_close(client);
    return code;
}

int store_client_open(struct store_client *client, const struct settings *settings, struct keyring *keyring)
{
    return open_ready(client, settings, keyring, STORE_KEY_FITS);
}

int store_client_open_to_rotate(struct store_client *client, const struct settings *settings, struct keyring *keyring)
{
    return open_ready(client, settings, keyring, STORE_KEY_ROTATES);
}

/* Each command warns about a key file that every user can read, and goes on: ending something must not wait for a
 * chmod. */
static void warn_of_keys(const struct settings *settings)
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    struct keyring *keyring = settings->master_key_file ? key_file_load(settings, &why) : NULL;
    if (why.len > 0)
        fprintf(stderr, "chatelaine: %.*s. This command needs no master key, and goes on.\n", TEXT_ARG(buf_text(&why)));
    keyring_destroy(keyring);
}

int command_open(const struct command_line *line, struct store_client *client, struct keyring *keyring)
{
    enum command_keys needs = line->command->keys;
    struct keyring *loaded = NULL;
    int code = EXIT_DONE;

    CHECK(needs != COMMAND_KEYS_UNSAID && needs != COMMAND_KEYS_JUDGED);
    if (!keyring && needs == COMMAND_KEYS_ANY)
        warn_of_keys(&line->settings);
    if (!keyring && needs != COMMAND_KEYS_ANY)
        keyring = loaded = command_keyring(line, &code);
    if (code == EXIT_DONE)
        code = needs == COMMAND_KEYS_ROTATE ? store_client_open_to_rotate(client, &line->settings, keyring)
                                            : store_client_open(client, &line->settings, keyring);
    if (code == EXIT_DONE)
        client->keyring = loaded;
    else
        keyring_destroy(loaded);
    return code;
}

/* The trouble of every partition that has some: an operation may need others than the chosen one. */
static int explain_not_done(const struct store_client *client)
{
    struct buf trouble = BUF_FIXED(STORE_URL_MAX_BYTES);

    partitions_trouble(client->partitions, &trouble);
    if (trouble.len > 0)
        return command_fail(EXIT_FAILED, "not done. %.*s Then try again", TEXT_ARG(buf_text(&trouble)));
    return command_fail(EXIT_FAILED, "not done: Redis refused, or sent something unexpected. Try again");
}

int store_client_explain(struct store_client *client, enum store_result result, const struct store_refusals *refusals)
{
    static const struct store_refusals NONE;
    const char *why = NULL;

    refusals = refusals ? refusals : &NONE;
    switch (result) {
    case STORE_OK:
        return EXIT_DONE;
    case STORE_NOT_FOUND:
        why = refusals->not_found;
        break;
    case STORE_CONFLICT:
        why = refusals->conflict;
        break;
    case STORE_LEAVING:
        why =
            "a person whom this concerns is just being removed, disabled or given another role: repeat it in a second";
        break;
    case STORE_UNAVAILABLE:
        return explain_not_done(client);
    case STORE_UNKNOWN:
        return command_fail(
            EXIT_FAILED,
            "Redis did not answer in time: the change may or may not have been made. Check, then try again");
    default:
        why = refusals->refused;
    }
    return command_fail(EXIT_FAILED, "%s", why ? why : "unexpected answer from the store");
}

int store_client_finish(struct store_client *client, const struct store_refusals *refusals)
{
    return store_client_explain(client, store_client_result(client), refusals);
}

int store_client_change_all(struct store_client *client,
                            enum store_result (*tell)(struct store_client *client, void *arg), void *arg,
                            const struct store_refusals *refusals)
{
    enum store_result result = store_client_tell_all(client, tell, arg);

    store_client_tell_done(client, result);
    return store_client_explain(client, result, refusals);
}
