#include "self_test.h"
#include "endings.h"
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
    {"accepted after it by a shared table",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 42, .kind = EVENT_TABLE, .status = 200}},
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
    {"accepted after its time",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_SCHEDULE, .status = 200, .later_ms = 1000},
      {.start_ns = 1000000031, .end_ns = 1000000050, .kind = EVENT_CHECK, .status = 200}},
     1},
    {"accepted before its time",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_SCHEDULE, .status = 200, .later_ms = 1000},
      {.start_ns = 1000000029, .end_ns = 1000000050, .kind = EVENT_CHECK, .status = 200}},
     0},
    {"accepted after its time and before the answer that it has one",
     {{.start_ns = 41, .end_ns = 2000000000, .kind = EVENT_CHECK, .status = 200},
      {.start_ns = 30, .end_ns = 2000000010, .kind = EVENT_SCHEDULE, .status = 200, .later_ms = 1000}},
     0},
    {"accepted after its time, which was answered with 503",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_SCHEDULE, .status = 503, .later_ms = 1000},
      {.start_ns = 1000000031, .end_ns = 1000000050, .kind = EVENT_CHECK, .status = 200}},
     0},
    {"refused 0.2 s before its time",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_SCHEDULE, .status = 200, .later_ms = 1000},
      {.start_ns = 797000020, .end_ns = 797000040, .kind = EVENT_CHECK, .status = 401, .code = CODE_REVOKED}},
     0},
    {"refused too early",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_SCHEDULE, .status = 200, .later_ms = 1000},
      {.start_ns = 797000020, .end_ns = 797000029, .kind = EVENT_CHECK, .status = 401, .code = CODE_REVOKED}},
     1},
    {"accepted after its replacement's overlap",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REPLACE, .status = 201, .later_ms = 1000},
      {.start_ns = 2000000041, .end_ns = 2000000050, .kind = EVENT_CHECK, .status = 200}},
     1},
    {"accepted while the overlap may last",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REPLACE, .status = 201, .later_ms = 1000},
      {.start_ns = 2000000039, .end_ns = 2000000050, .kind = EVENT_CHECK, .status = 200}},
     0},
    {"replaced after its revocation",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_REPLACE, .status = 201, .later_ms = 1000}},
     1},
    {"refused before the overlap is over",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REPLACE, .status = 201, .later_ms = 1000},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 401, .code = CODE_REVOKED}},
     1},
    {"ended by the use of its successor",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REPLACE, .status = 201, .later_ms = 1000},
      {.start_ns = 30, .end_ns = 30, .kind = EVENT_MAY_END},
      {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 401, .code = CODE_REVOKED}},
     0},
    {"replaced already, and its successor is used",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REPLACE, .status = 409, .code = CODE_REPLACED, .later_ms = 1000}},
     0},
    {"told to be revoked already by nobody",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_SCHEDULE, .status = 409, .later_ms = 1000}},
     1},
    {"unknown ends",
     {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE}, {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK}},
     0},
};

/* The store goes back, too: when it was copied, when the copy took its place, when it served. */
static const struct loss_scene {
    struct scene scene;
    int64_t copied_ns, struck_ns, back_ns;
} LOSS_SCENES[] = {
    {{"a key that was made after the copy to which the store goes back",
      {{.start_ns = 30, .end_ns = 40, .kind = EVENT_CHECK, .status = 401, .code = CODE_OTHER},
       {.start_ns = 41, .end_ns = 50, .kind = EVENT_REVOKE, .status = 404, .code = CODE_OTHER}},
      0},
     15,
     25,
     27},
    {{"one that is lost before the store goes back",
      {{.start_ns = 30, .end_ns = 40, .kind = EVENT_CHECK, .status = 401, .code = CODE_OTHER}},
      1},
     15,
     45,
     47},
    {{"one that was made before the copy, and is lost",
      {{.start_ns = 30, .end_ns = 40, .kind = EVENT_CHECK, .status = 401, .code = CODE_OTHER}},
      1},
     21,
     25,
     27},
    {{"one that was made after the store went back, and is lost",
      {{.start_ns = 30, .end_ns = 40, .kind = EVENT_CHECK, .status = 401, .code = CODE_OTHER}},
      1},
     1,
     5,
     9},
    {{"accepted after its revocation was answered by a store that went back before",
      {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
       {.start_ns = 41, .end_ns = 50, .kind = EVENT_CHECK, .status = 200}},
      1},
     15,
     25,
     27},
    {{"accepted after the store went back to before the revocation",
      {{.start_ns = 30, .end_ns = 40, .kind = EVENT_REVOKE, .status = 200},
       {.start_ns = 51, .end_ns = 60, .kind = EVENT_CHECK, .status = 200}},
      1},
     25,
     45,
     47},
};

static bool scene_passes(const struct scene *scene, const struct loss_scene *with_loss)
{
    struct history *history = history_create();
    uint32_t key = history_add_key(history, 0, "key_self_test", "svc_sk_test_none");
    size_t checked;

    if (with_loss) {
        size_t loss = history_loss_begins(history, with_loss->copied_ns);

        history_loss_strikes(history, loss, with_loss->struck_ns);
        history_loss_ends(history, loss, with_loss->back_ns);
    }
    history_add(history,
                &(struct event){.start_ns = 10, .end_ns = 20, .key = key, .kind = EVENT_CREATE, .status = 201});
    /* A revocation is told when it begins, which is before the end of whatever it overlaps. */
    for (const struct event *event = scene->events; event->start_ns; event++) {
        for (const struct event *later = event; later->start_ns; later++) {
            int64_t from_ns;

            if (history_ends_key(later, &from_ns) && later->start_ns < event->end_ns)
                history_revoke_begins(history, key, from_ns);
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

/* An account whose suspension began at 10, was told at 20 and may end from 50 on; and a person, likewise removed. */
static const struct ending_scene {
    const char *name;
    int64_t start_ns, end_ns;
    int status;
    enum ending_credential credential;
    bool is_violation;
    const char *body;
} ENDING_SCENES[] = {
    {"accepted while it is suspended", 21, 30, 200, OF_ACCOUNT, true, ""},
    {"accepted after the session's end", 21, 30, 200, SESSION_OF_PERSON, true, ""},
    {"accepted, begun before the suspension was told", 19, 30, 200, OF_ACCOUNT, false, ""},
    {"accepted, perhaps after it was resumed", 21, 51, 200, OF_ACCOUNT, false, ""},
    {"refused while it is suspended", 21, 30, 403, OF_ACCOUNT, false, "{\"code\":\"account_suspended\"}"},
    {"refused while it is being suspended", 8, 12, 403, OF_ACCOUNT, false, "{\"code\":\"account_suspended\"}"},
    {"suspended by nobody", 5, 9, 403, OF_ACCOUNT, true, "{\"code\":\"account_suspended\"}"},
    {"refused for another reason", 21, 30, 403, OF_ACCOUNT, true, "{\"code\":\"insufficient_scope\"}"},
    {"a key that is lost while suspended", 21, 30, 401, OF_ACCOUNT, true, "{\"code\":\"invalid_api_key\"}"},
    {"a session that is over", 21, 30, 401, SESSION_OF_PERSON, false, "{\"code\":\"invalid_session\"}"},
    {"a session that nobody ended", 5, 9, 401, SESSION_OF_PERSON, true, "{\"code\":\"invalid_session\"}"},
};

static bool ending_scene_passes(const struct ending_scene *scene)
{
    const struct ending_times times = {10, 20, 50};
    const struct exchange_answer answer = {scene->status, scene->start_ns, scene->end_ns, "", scene->body};
    bool passes = (endings_verdict(&times, scene->credential, &answer) != NULL) == scene->is_violation;

    printf("%s: %s\n", passes ? "ok" : "WRONG", scene->name);
    return passes;
}

/* A person whose removal began at 30 and was told at 40, and one key that goes back to the person. Nobody uses it
 * before it is made. */
static const struct kin_scene {
    const char *name;
    enum key_fate fate;
    bool is_made;
    int64_t made_from_ns, made_ns, start_ns, end_ns; /* of the key, and of a check */
    unsigned status;
    size_t violations;
} KIN_SCENES[] = {
    {"a key of a key, accepted after the person's removal", KEYS_ALL, false, 10, 20, 41, 50, 200, 1},
    {"one that was made meanwhile", KEYS_ALL, false, 35, 45, 46, 50, 200, 1},
    {"one that was made meanwhile, and is refused", KEYS_ALL, false, 35, 45, 46, 50, 401, 0},
    {"a key of a key, asked before the removal was told", KEYS_ALL, false, 10, 20, 39, 50, 200, 0},
    {"refused while the person is being removed", KEYS_ALL, false, 10, 20, 29, 31, 401, 0},
    {"refused, and the person is there", KEYS_ALL, false, 10, 20, 21, 29, 401, 1},
    {"one of the person's making, accepted after the removal", KEYS_MADE, true, 10, 20, 41, 50, 200, 1},
    {"one of the person's making, made meanwhile", KEYS_MADE, true, 35, 45, 46, 50, 200, 1},
    {"a key of a key, which stays", KEYS_MADE, false, 10, 20, 41, 50, 200, 0},
    {"a key of a key, which stays, and is refused", KEYS_MADE, false, 10, 20, 41, 50, 401, 1},
};

static bool kin_scene_passes(const struct kin_scene *scene)
{
    struct history *history = history_create();
    struct kinship of = {.history = history};
    const struct fixture_key key = {"key_self_test", "svc_sk_test_none"};
    struct event event = {.start_ns = scene->start_ns,
                          .end_ns = scene->end_ns,
                          .status = (uint16_t)scene->status,
                          .kind = EVENT_CHECK,
                          .code = scene->status == 401 ? CODE_REVOKED : CODE_NONE};
    struct family family;
    size_t checked;

    family_begin(&family, &of);
    if (scene->made_ns < 30)
        family_add(&family, &key, scene->is_made, scene->made_from_ns, scene->made_ns);
    family_removal_begins(&family, scene->fate, 30);
    family_removal_told(&family, scene->fate, 30, 40);
    if (scene->made_ns >= 30)
        family_add(&family, &key, scene->is_made, scene->made_from_ns, scene->made_ns);
    event.key = family.keys[0].key;
    history_add(history, &event);
    size_t online = history_violations(history), whole = history_judge(history, &checked);
    bool passes = family.count == 1 && online == scene->violations && whole == scene->violations;
    printf("%s: %s\n", passes ? "ok" : "WRONG", scene->name);
    history_destroy(history);
    return passes;
}

bool self_test_passes(void)
{
    bool passes = true;

    for (size_t i = 0; i < sizeof KIN_SCENES / sizeof *KIN_SCENES; i++)
        passes = kin_scene_passes(&KIN_SCENES[i]) && passes;

    for (size_t i = 0; i < sizeof ENDING_SCENES / sizeof *ENDING_SCENES; i++)
        passes = ending_scene_passes(&ENDING_SCENES[i]) && passes;

    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES; i++)
        passes = scene_passes(&SCENES[i], NULL) && passes;
    for (size_t i = 0; i < sizeof LOSS_SCENES / sizeof *LOSS_SCENES; i++)
        passes = scene_passes(&LOSS_SCENES[i].scene, &LOSS_SCENES[i]) && passes;
    return passes;
}
