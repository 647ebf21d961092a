#include "people.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/totp.h"
#include "http.h"
#include "judge.h"
#include "load.h"
#include "schedule.h"
#include "setback.h"
#include "trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DONE = 200,
    NOTHING_TO_SAY = 204,
    REFUSED = 401,
    LIMITED = 429,
    UNAVAILABLE = 503,
    WITHIN_MS = 8000,
    AGAIN_MOST_MS = 400,
    LOOKS_MOST_MS = 1400,
    STAYS_MOST_MS = 8000,
    AFTERLIFE_MS = 1500,
    CLOCK_MOST_MS = 15000, /* that a node's calendar may be wrong */
    CODE_BYTES = 8,
    FIELDS_BYTES = 320,
    BODY_BYTES = 256,
    REQUEST_BYTES = 1024,
};

#define NS_PER_MS UINT64_C(1000000)

/* Nobody waits for an answer: it is SIGNED_OUT or SIGNED_IN, and what comes next is due. */
enum state { SIGNED_OUT, SIGNED_IN, GONE /* signed out, and still looking */ };

struct person {
    char name[16];
    enum state state;
    char fields[FIELDS_BYTES]; /* of requests in the session */
    uint64_t step;             /* of the last code */
    uint64_t number;           /* of the session */
    uint64_t since_ns, ended_ns;
    bool is_tried, may_be_lost;
    struct sim_event turn, look;
};

/* A request under way. */
struct request {
    struct person *person;
    struct sim_node *node;
    uint64_t session;
    bool is_free;
};

enum { REQUESTS_MAX = SIM_PEOPLE * 64 };

static struct sim_deployment *of;
static struct person people[SIM_PEOPLE];
static struct request requests[REQUESTS_MAX];

static void ask(struct person *person, const char *method, const char *target, const char *fields, const char *body,
                void (*answered)(void *arg, const struct sim_answer *answer))
{
    struct request *request = requests;
    char bytes[REQUEST_BYTES];
    int len;

    while (!request->is_free)
        CHECK(++request < requests + REQUESTS_MAX);
    *request = (struct request){person, &of->nodes[sim_draw_below(of->node_count)], person->number, false};
    len = snprintf(bytes, sizeof bytes,
                   "%s %s HTTP/1.1\r\nHost: console.test\r\nOrigin: " SIM_ORIGIN "\r\n%s"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                   method, target, fields, strlen(body), body);
    CHECK((size_t)len < sizeof bytes);
    sim_http_ask(&(struct sim_request){.from = of->clients,
                                       .to = request->node->host,
                                       .port = SIM_PORT,
                                       .bytes = bytes,
                                       .len = (size_t)len,
                                       .within_ns = WITHIN_MS * NS_PER_MS,
                                       .answered = answered,
                                       .arg = request});
}

static struct request take(struct request *request)
{
    const struct request taken = *request;

    request->is_free = true;
    return taken;
}

static void after(struct sim_event *event, uint64_t most_ms)
{
    sim_event_in(event, sim_draw_between(1, most_ms) * NS_PER_MS);
}

/* Signing in */

static void begin(struct person *person, const struct sim_answer *answer)
{
    char csrf[SIM_SECRET_BYTES];
    const char *cookie = strstr(answer->head, "__Host-session=");

    CHECK(cookie && sim_http_copy_after(answer->body, "\"csrf_token\":\"", csrf, sizeof csrf));
    snprintf(person->fields, sizeof person->fields, "Cookie: %.*s\r\nX-CSRF-Token: %s\r\n", (int)strcspn(cookie, ";\r"),
             cookie, csrf);
    person->state = SIGNED_IN;
    person->number++;
    person->since_ns = answer->answered_ns;
    person->ended_ns = 0;
    person->is_tried = false;
    person->may_be_lost = sim_load_may_be_lost(answer->asked_ns, answer->answered_ns);
    sim_trace("clients", "%s signs in", person->name);
    after(&person->look, LOOKS_MOST_MS);
    after(&person->turn, STAYS_MOST_MS);
}

/* Codes are those of a half-minute, and one before and after it is good, too. */
static bool has_the_time(const struct sim_node *node)
{
    return llabs(sim_host_calendar(node->host)) < CLOCK_MOST_MS * (int64_t)NS_PER_MS;
}

static void login_answered(void *arg, const struct sim_answer *answer)
{
    const struct request request = take(arg);
    struct person *person = request.person;

    sim_judge_answer("a sign-in", request.node->host->name, answer->asked_ns, answer->status);
    if (answer->status == DONE) {
        begin(person, answer);
        return;
    }
    if (answer->status != 0 && answer->status != UNAVAILABLE && answer->status != LIMITED && has_the_time(request.node))
        sim_judge_violation("%s answers %d to %s, who signs in: %.80s", request.node->host->name, answer->status,
                            person->name, answer->body);
    after(&person->turn, AGAIN_MOST_MS);
}

/* With a code that was never sent before. */
static void sign_in(struct person *person)
{
    const struct sim_person *who = &of->people[person - people];
    const uint64_t step = (uint64_t)totp_step(clock_wall_ms());
    char code[CODE_BYTES], body[BODY_BYTES];
    struct totp_secret secret;

    if (step <= person->step) {
        after(&person->turn, AGAIN_MOST_MS);
        return;
    }
    person->step = step;
    CHECK(totp_parse_uri(text_of(who->totp_uri), &secret));
    totp_print(secret.bytes, sizeof secret.bytes, (int64_t)step, TOTP_DIGITS, code);
    snprintf(body, sizeof body, "{\"email\":\"%s\",\"password\":\"" SIM_PASSWORD "\",\"totp\":\"%s\"}", who->email,
             code);
    ask(person, "POST", "/v1/auth/login", "", body, login_answered);
}

/* Signing out */

static void logout_answered(void *arg, const struct sim_answer *answer)
{
    const struct request request = take(arg);
    struct person *person = request.person;

    sim_judge_answer("a sign-out", request.node->host->name, answer->asked_ns, answer->status);
    if (answer->status == NOTHING_TO_SAY || answer->status == REFUSED) {
        sim_trace("clients", "%s signs out", person->name);
        person->ended_ns = answer->status == NOTHING_TO_SAY ? answer->answered_ns : 0;
        person->state = GONE;
        sim_event_in(&person->turn, AFTERLIFE_MS * NS_PER_MS);
        return;
    }
    after(&person->turn, AGAIN_MOST_MS);
}

/* If Redis lost that, nobody could repeat it, and all nodes would wait for an operator. */
static void sign_out(struct person *person)
{
    if (sim_setback_is_on()) {
        after(&person->turn, AGAIN_MOST_MS);
        return;
    }
    person->is_tried = true;
    ask(person, "POST", "/v1/auth/logout", person->fields, "", logout_answered);
}

/* Looking */

static void look_answered(void *arg, const struct sim_answer *answer)
{
    const struct request request = take(arg);
    const struct person *person = request.person;
    const char *node = request.node->host->name;

    sim_judge_answer("a page of the console", node, answer->asked_ns, answer->status);
    if (request.session != person->number)
        return;
    if (answer->status == DONE && person->ended_ns > 0 && answer->begun_ns > person->ended_ns)
        sim_judge_violation("%s shows %s a page %.6f s after the sign-out was answered", node, person->name,
                            (double)(answer->begun_ns - person->ended_ns) / 1e9);
    if (answer->status == REFUSED && !person->is_tried && !person->may_be_lost)
        sim_judge_violation("%s does not know the session of %s", node, person->name);
}

static void on_look(struct sim_event *event)
{
    struct person *person = LIST_ENTRY(event, struct person, look);

    if (sim_load_is_stopped() || person->state == SIGNED_OUT)
        return;
    ask(person, "GET", "/v1/console/sessions", person->fields, "", look_answered);
    after(&person->look, LOOKS_MOST_MS);
}

static void on_turn(struct sim_event *event)
{
    struct person *person = LIST_ENTRY(event, struct person, turn);

    if (sim_load_is_stopped())
        return;
    if (person->state == SIGNED_OUT) {
        sign_in(person);
    } else if (person->state == SIGNED_IN) {
        sign_out(person);
    } else {
        person->state = SIGNED_OUT;
        after(&person->turn, AGAIN_MOST_MS);
    }
}

void sim_people_lost(uint64_t from_ns)
{
    for (struct person *person = people; person < people + SIM_PEOPLE; person++)
        person->may_be_lost |= person->since_ns >= from_ns;
}

void sim_people_start(struct sim_deployment *deployment)
{
    of = deployment;
    for (struct request *request = requests; request < requests + REQUESTS_MAX; request++)
        *request = (struct request){.is_free = true};
    for (struct person *person = people; person < people + SIM_PEOPLE; person++) {
        *person = (struct person){.turn.run = on_turn, .look.run = on_look};
        snprintf(person->name, sizeof person->name, "person %u", (unsigned)(person - people) + 1);
        after(&person->turn, STAYS_MOST_MS);
    }
}
