/* The state of a scene's account, as lines of text, and how two such states differ. */
#include "deadline.h"
#include "lost_scene.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct http_answer answer, detail;

__attribute__((format(printf, 2, 3))) static void add_line(struct lost_scene *scene, const char *format, ...)
{
    va_list args;

    cr_assert_lt(scene->line_count, LOST_LINES_MAX);
    va_start(args, format);
    vsnprintf(scene->lines[scene->line_count++], LOST_LINE_BYTES, format, args);
    va_end(args);
}

int lost_get(const struct fixture *fixture, size_t node, const struct fixture_session *session, const char *target,
             struct http_answer *ret_answer)
{
    const struct http_call call = {.target = target, .cookie = session->token};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int status;

    while ((status = fixture_call(fixture, node, &call, ret_answer)) == 503 || status == 429) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s: %s", target, ret_answer->body);
        poll(NULL, 0, 20);
    }
    return status;
}

static int get_list(const struct lost_scene *scene, const struct fixture *fixture, size_t node, const char *target)
{
    cr_assert_eq(lost_get(fixture, node, &scene->owner_session, target, &answer), 200, "%s: %s", target, answer.body);
    return http_answer_json_count(&answer, "data");
}

/* Of a row of the list; "" for null. Valid until eight more are read. */
static const char *field(int row, const char *name)
{
    static char values[8][LOST_VALUE_BYTES];
    static unsigned next;
    char *value = values[next++ % 8], path[64];

    snprintf(path, sizeof path, "data.%d.%s", row, name);
    if (!http_answer_json(&answer, path, value, LOST_VALUE_BYTES) || strcmp(value, "null") == 0)
        *value = '\0';
    return value;
}

/* How a key stands that is not revoked: when it ends is told by the time that was asked for, or not at all. */
static const char *end_of(const struct lost_scene *scene, const struct fixture *fixture, size_t node, const char *id)
{
    char target[128], value[64];

    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", id);
    cr_assert_eq(lost_get(fixture, node, &scene->owner_session, target, &detail), 200, "%s", detail.body);
    if (!http_answer_json(&detail, "revoke_at", value, sizeof value) || strcmp(value, "null") == 0)
        return "active";
    return strcmp(value, scene->until) == 0 ? "ends as asked" : "ends";
}

static void read_keys(struct lost_scene *scene, const struct fixture *fixture, size_t node)
{
    int count = get_list(scene, fixture, node, "/v1/console/api_keys?limit=100");

    for (int i = 0; i < count; i++) {
        const char *scopes = field(i, "scopes");

        add_line(scene, "key %s %s %s %s", field(i, "name"), field(i, "mode"),
                 strlen(scopes) > 40 ? "many scopes" : scopes,
                 *field(i, "revoked_at") ? "revoked" : end_of(scene, fixture, node, field(i, "id")));
    }
    count = get_list(scene, fixture, node, "/v1/console/device_keys?limit=100");
    for (int i = 0; i < count; i++)
        add_line(scene, "device %s %s", field(i, "name"), *field(i, "revoked_at") ? "revoked" : "active");
}

static void read_people(struct lost_scene *scene, const struct fixture *fixture, size_t node)
{
    int count = get_list(scene, fixture, node, "/v1/console/users?limit=100");

    for (int i = 0; i < count; i++) {
        const char *email = field(i, "email");

        add_line(scene, "user %.*s %s %s", (int)strcspn(email, "@"), email, field(i, "role"), field(i, "status"));
        if (strcmp(email, scene->invited.email) == 0)
            snprintf(scene->invited.id, sizeof scene->invited.id, "%s", field(i, "id"));
    }
    count = get_list(scene, fixture, node, "/v1/console/invitations?limit=100");
    for (int i = 0; i < count; i++) {
        const char *email = field(i, "email");

        add_line(scene, "invitation %.*s %s", (int)strcspn(email, "@"), email, field(i, "role"));
    }
}

/* How many there are is told by any that lives. */
static void read_sessions(struct lost_scene *scene, const struct fixture *fixture, size_t node)
{
    const struct {
        const char *name;
        const struct fixture_user *user;
        const struct fixture_session *session;
    } WHOSE[] = {
        {"self", &scene->self, &scene->other_session},
        {"self", &scene->self, &scene->self_session},
        {"person", &scene->person, &scene->person_session},
    };
    const char *counted = "";

    for (size_t i = 0; i < sizeof WHOSE / sizeof *WHOSE; i++) {
        if (!WHOSE[i].user->id[0] || strcmp(counted, WHOSE[i].name) == 0 ||
            lost_get(fixture, node, WHOSE[i].session, "/v1/console/sessions", &answer) != 200)
            continue;
        counted = WHOSE[i].name;
        for (int n = http_answer_json_count(&answer, "data"); n > 0; n--)
            add_line(scene, "session of %s", counted);
        if (i < 2 && lost_get(fixture, node, WHOSE[i].session, "/v1/console/recovery_codes", &answer) == 200) {
            char remaining[16];

            cr_assert(http_answer_json(&answer, "remaining", remaining, sizeof remaining));
            add_line(scene, "%s recovery codes", remaining);
        }
    }
}

static bool has_line(const struct lost_scene *scene, const char *line)
{
    for (size_t i = 0; i < scene->line_count; i++)
        if (strcmp(scene->lines[i], line) == 0)
            return true;
    return false;
}

/* Each type once: how often something was told depends on how often it was asked for. Refusals are gathered, and told
 * at any time. */
static void read_trail(struct lost_scene *scene, const struct fixture *fixture, size_t node)
{
    static const char MARK[] = "\"type\":\"";
    char line[LOST_LINE_BYTES];

    get_list(scene, fixture, node, "/v1/console/audit_events?limit=100");
    for (const char *at = answer.body; (at = strstr(at, MARK)) != NULL;) {
        at += sizeof MARK - 1;
        snprintf(line, sizeof line, "event %.*s", (int)strcspn(at, "\""), at);
        if (!has_line(scene, line) && strcmp(line, "event requests.refused") != 0)
            add_line(scene, "%s", line);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

void lost_scene_read(struct lost_scene *scene, const struct fixture *fixture, size_t node)
{
    scene->line_count = 0;
    read_keys(scene, fixture, node);
    read_people(scene, fixture, node);
    read_sessions(scene, fixture, node);
    read_trail(scene, fixture, node);
    qsort(scene->lines, scene->line_count, LOST_LINE_BYTES, by_text);
}

/* Differences */

static bool is_listed(const char *const may[LOST_MAY_MAX], char sign, const char *line)
{
    for (size_t i = 0; i < LOST_MAY_MAX && may[i]; i++)
        if (may[i][0] == sign && strcmp(may[i] + 1, line) == 0)
            return true;
    return false;
}

static size_t count_line(const struct lost_scene *scene, const char *line)
{
    size_t count = 0;

    for (size_t i = 0; i < scene->line_count; i++)
        count += strcmp(scene->lines[i], line) == 0;
    return count;
}

static bool is_permitted(const struct lost_scene *scene, bool may_be_delivered, const char *line, size_t here,
                         size_t there)
{
    const char sign = here > there ? '+' : '-';
    const size_t lost = scene->sent > 0 ? scene->sent - 1 : 0;

    if (!is_listed(scene->row->undelivered, sign, line) &&
        !(may_be_delivered && is_listed(scene->row->delivered, sign, line)))
        return false;
    return (here > there ? here - there : there - here) <= lost;
}

bool lost_scene_differs(const struct lost_scene *scene, const struct lost_scene *other, bool may_be_delivered,
                        char *ret_why, size_t size)
{
    const struct lost_scene *both[2] = {scene, other};
    size_t len = 0;

    *ret_why = '\0';
    for (size_t n = 0; n < 2; n++)
        for (size_t i = 0; i < both[n]->line_count; i++) {
            const char *line = both[n]->lines[i];
            const size_t here = count_line(scene, line), there = count_line(other, line);
            const bool is_first = i == 0 || strcmp(both[n]->lines[i - 1], line) != 0;

            if (here == there || !is_first || (n == 1 && here > 0) ||
                is_permitted(scene, may_be_delivered, line, here, there) || len >= size)
                continue;
            len += (size_t)snprintf(ret_why + len, size - len, "\n  %s: %zu, not %zu", line, here, there);
        }
    return len > 0;
}
