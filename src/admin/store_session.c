#include "admin/store_session.h"

#include "base/check.h"
#include "base/secure.h"

#include <stdio.h>

/* Commands wait longer than one call of a node does: a Redis that is just starting is worth a moment. */
enum { READY_TIMEOUTS = 2, WHY_MAX_BYTES = 1024 };

void store_session_done(struct store_session *session)
{
    session->is_done = true;
}

void store_session_wait(struct store_session *session)
{
    while (!session->is_done)
        uv_run(&session->loop, UV_RUN_ONCE);
    session->is_done = false;
}

static void session_part_closed(void *session)
{
    store_session_done(session);
}

static void session_timer_fired(uv_timer_t *timer)
{
    store_session_done(timer->data);
}

static void session_readiness_changed(void *session)
{
    (void)session; /* the gate looks for itself */
}

void store_session_pause(struct store_session *session, uint64_t ms)
{
    uv_timer_start(&session->timer, session_timer_fired, ms, 0);
    store_session_wait(session);
}

void store_session_close(struct store_session *session)
{
    store_close(session->store, session_part_closed, session);
    store_session_wait(session);
    uv_close((uv_handle_t *)&session->timer, NULL);
    uv_run(&session->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&session->loop) == 0);
    secure_wipe(&session->settings, sizeof session->settings);
}

static int open_unready(struct store_session *session, const struct settings *settings, struct keyring *keyring,
                        enum store_key_use use)
{
    char storage[WHY_MAX_BYTES];
    struct buf why;

    *session = (struct store_session){0};
    buf_init_fixed(&why, storage, sizeof storage);
    if (!store_settings_read(settings, &session->settings, &why))
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    session->settings.keyring = keyring;
    session->settings.key_use = use;
    CHECK(uv_loop_init(&session->loop) == 0);
    uv_timer_init(&session->loop, &session->timer);
    session->timer.data = session;
    session->store = store_create(&session->loop, &session->settings, session_readiness_changed, session);
    return EXIT_DONE;
}

int store_session_open_to_look(struct store_session *session, const struct settings *settings, struct keyring *keyring)
{
    return open_unready(session, settings, keyring, STORE_KEY_LOOKS);
}

/* What the gate tells, kept across its closing. */
struct opening {
    struct store_session *session;
    bool is_unfit;
    char storage[WHY_MAX_BYTES];
    struct buf why;
};

static void session_gated(void *arg, enum store_gate_result result, const char *why)
{
    struct opening *opening = arg;

    opening->is_unfit = result == STORE_GATE_UNFIT;
    if (opening->is_unfit)
        buf_append_str(&opening->why, why);
    store_session_done(opening->session);
}

static int session_tell_trouble(struct store_session *session, const struct opening *opening)
{
    char storage[STORE_URL_MAX_BYTES];
    struct buf target;

    if (opening->is_unfit) {
        buf_init_fixed(&target, storage, sizeof storage);
        store_target_print(&session->settings.target, &target);
        return command_fail(EXIT_UNFIT, "%.*s: %.*s ('chatelaine doctor' tells all that is unfit)",
                            TEXT_ARG(buf_text(&target)), TEXT_ARG(buf_text(&opening->why)));
    }
    return command_fail(EXIT_FAILED, "%s (--redis says where it is; 'chatelaine doctor' looks closer)",
                        store_trouble(session->store));
}

/* A Redis that reads a large file back may take minutes, and says so. Once it has read all it gets as long as any. */
static void wait_for_gate(struct store_session *session, const struct opening *opening)
{
    bool was_loading = false, is_loading = false;

    do {
        if (is_loading && !was_loading)
            fprintf(stderr, "Redis is loading its data. Waiting until it has; Ctrl+C gives up.\n");
        was_loading = is_loading;
        store_session_pause(session, (uint64_t)session->settings.timeout_ms * READY_TIMEOUTS);
        is_loading = store_is_loading(session->store);
    } while (!store_is_ready(session->store) && !opening->is_unfit && (is_loading || was_loading));
}

static int open_ready(struct store_session *session, const struct settings *settings, struct keyring *keyring,
                      enum store_key_use use)
{
    struct opening opening = {.session = session};
    int code = open_unready(session, settings, keyring, use);

    if (code != EXIT_DONE)
        return code;
    buf_init_fixed(&opening.why, opening.storage, sizeof opening.storage);
    if (!store_settings_survive_failover(&session->settings, &opening.why)) {
        store_session_close(session);
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&opening.why)));
    }
    struct store_gate *gate =
        store_gate_create(&session->loop, session->store, session->settings.unsafe_redis, session_gated, &opening);
    wait_for_gate(session, &opening);
    uv_timer_stop(&session->timer);
    if (!store_is_ready(session->store))
        code = session_tell_trouble(session, &opening);
    store_gate_close(gate, session_part_closed, session);
    store_session_wait(session);
    if (code != EXIT_DONE)
        store_session_close(session);
    return code;
}

int store_session_open(struct store_session *session, const struct settings *settings, struct keyring *keyring)
{
    return open_ready(session, settings, keyring, STORE_KEY_FITS);
}

int store_session_open_to_rotate(struct store_session *session, const struct settings *settings,
                                 struct keyring *keyring)
{
    return open_ready(session, settings, keyring, STORE_KEY_ROTATES);
}

int store_session_explain(struct store_session *session, enum store_result result,
                          const struct store_refusals *refusals)
{
    const char *why = NULL;

    switch (result) {
    case STORE_OK:
        return EXIT_DONE;
    case STORE_NOT_FOUND:
        why = refusals->not_found;
        break;
    case STORE_CONFLICT:
        why = refusals->conflict;
        break;
    case STORE_REFUSED:
    case STORE_ACTOR_REVOKED:
    case STORE_ACTOR_UNKNOWN:
    case STORE_ACTOR_UNPROVEN:
    case STORE_FULL:
    case STORE_LIMITED:
        why = refusals->refused;
        break;
    case STORE_UNAVAILABLE:
        return command_fail(EXIT_FAILED, "not done: Redis refuses or is away (%s); try again",
                            store_trouble(session->store));
    case STORE_UNKNOWN:
        return command_fail(EXIT_FAILED, "Redis did not answer in time: it may have been done or not; look, and try "
                                         "again");
    }
    CHECK(why);
    return command_fail(EXIT_FAILED, "%s", why);
}
