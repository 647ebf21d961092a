#include "self_test.h"
#include "history.h"

#include <stdio.h>

/* Times are in ns after the history's beginning; one key, created in 10 .. 20. */
struct scene {
    const char *name;
    struct event events[4]; /* those behind the creation, by their ends; start 0 ends them */
    size_t violations;
};

static const struct scene SCENES[] = {
    {"accepted after the revocation's answer",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 200}},
     1},
    {"accepted after it on a route",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_ROUTE, .status = 200}},
     1},
    {"a key made with it after it",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_SUCCESSOR, .status = 201}},
     1},
    {"a key made with it before it, and one refused",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 39, .end_ns = 49, .kind = EVENT_SUCCESSOR, .status = 201},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_SUCCESSOR, .status = 401, .code = CODE_REVOKED}},
     0},
    {"accepted after the first of two answers",
     {{.start_ns = 31, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 200},
      {.start_ns = 30, .end_ns = 60, .kind = EVENT_REVOKE, .status = 200}},
     1},
    {"accepted after the command's end",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_COMMAND, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 200}},
     1},
    {"accepted, begun before the answer",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 39, .end_ns = 90, .kind = EVENT_CHECK, .status = 200}},
     0},
    {"accepted after an answer of 503",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 503},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 200}},
     0},
    {"refused after the revocation",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 401, .code = CODE_REVOKED},
      {.start_ns = 42, .end_ns = 51, .kind = EVENT_CHECK, .status = 503}},
     0},
    {"a key that is lost", {{.start_ns = 30, .end_ns = 40, .kind = EVENT_CHECK, .status = 401, .code = CODE_OTHER}}, 1},
    {"a key that is lost after its revocation",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 401, .code = CODE_OTHER}},
     1},
    {"a key that its revocation does not find",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 404, .code = CODE_OTHER}},
     1},
    {"revoked by nobody",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_CHECK, .status = 401, .code = CODE_REVOKED},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_REVOKE, .status = 200}},
     1},
    {"refused while it is revoked",
     {{.start_ns = 25, .end_ns = 45, .kind = EVENT_CHECK, .status = 401, .code = CODE_REVOKED},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_REVOKE, .status = 200}},
     0},
    {"an answer that can't be", {{.start_ns = 30, .end_ns = 40, .kind = EVENT_CHECK, .status = 500}}, 1},
    {"unknown ends",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE}, {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK}},
     0},
};

static bool scene_passes(const struct scene *scene)
{
    struct history *history = history_create();
    uint32_t key = history_add_key(history, "key_self_test", "svc_sk_test_none");
    size_t checked;

    history_add(history,
                &(struct event){.start_ns = 10, .end_ns = 20, .key = key, .kind = EVENT_CREATE, .status = 201});
    /* A revocation is told when it begins, which is before the end of whatever it overlaps. */
    for (const struct event *event = scene->events; event->start_ns; event++) {
        for (const struct event *later = event; later->start_ns; later++) {
            if ((later->kind == EVENT_REVOKE || later->kind == EVENT_COMMAND) && later->start_ns < event->end_ns)
                history_revoke_begins(history, key, later->start_ns);
        }
        struct event of_key = *event;
        of_key.key = key;
        history_add(history, &of_key);
    }
    size_t online = history_violations(history), whole = history_judge(history, &checked);
    bool passes = online == scene->violations && whole == scene->violations;
    printf("%s: %s: %zu planted, %zu found on the way, %zu in the whole history\n", passes ? "ok" : "WRONG",
           scene->name, scene->violations, online, whole);
    history_destroy(history);
    return passes;
}

bool self_test_passes(void)
{
    bool passes = true;

    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES; i++)
        passes = scene_passes(&SCENES[i]) && passes;
    return passes;
}
