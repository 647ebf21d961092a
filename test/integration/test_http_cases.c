/* Runs the case files of test/http against a real node; their format is told in the README.md there. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET_FOR_MS = 60, LINE_BYTES = 4096, NAMES_MAX = 20, OUT_BYTES = 512 * 1024 };

struct name_value {
    const char *name;
    const char *value;
};

struct conversation {
    const struct fixture *fixture;
    struct name_value names[NAMES_MAX];
    const char *file;
    unsigned line;
    char title[200];
    bool single_bytes;
    bool skipping;
    bool has_answer;
    struct http_client client;
    struct http_answer answer;
    char out[OUT_BYTES]; /* not yet sent */
    size_t out_len;
    unsigned repeat_number;
};

TestSuite(http_cases, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static void complain(const struct conversation *c, const char *what, const char *wanted)
{
    cr_expect_fail("%s:%u: %s%s: %s %s\n%s%s", c->file, c->line, c->title, c->single_bytes ? " (single bytes)" : "",
                   what, wanted, c->has_answer ? c->answer.head : "", c->has_answer ? c->answer.body : "");
}

static void put(struct conversation *c, char byte)
{
    if (c->out_len == sizeof c->out)
        test_give_up("%s:%u: a case sends too much", c->file, c->line);
    c->out[c->out_len++] = byte;
}

static const char *lookup(const struct conversation *c, const char *name, size_t len)
{
    static char number[16];

    if (len == 1 && *name == 'N') {
        snprintf(number, sizeof number, "%u", c->repeat_number);
        return number;
    }
    for (size_t i = 0; i < NAMES_MAX && c->names[i].name; i++) {
        if (strlen(c->names[i].name) == len && memcmp(c->names[i].name, name, len) == 0)
            return c->names[i].value;
    }
    test_give_up("%s:%u: no such name: %.*s", c->file, c->line, (int)len, name);
}

/* Replaces ${NAME}. */
static void expand(const struct conversation *c, const char *line, char ret_line[LINE_BYTES])
{
    FILE *out = fmemopen(ret_line, LINE_BYTES, "w");

    while (*line) {
        size_t len = strncmp(line, "${", 2) == 0 ? strcspn(line, "}") : 0;

        if (len > 0 && line[len] == '}') {
            fputs(lookup(c, line + 2, len - 2), out);
            line += len + 1;
        } else {
            fputc(*line++, out);
        }
    }
    fputc('\0', out);
    fclose(out);
}

static char unescape(const char **at)
{
    static const char NAMED[] = "r\rn\nt\t0\0\\\\";
    char hex[3] = {0};
    char letter = *(*at)++;

    if (letter == 'x') {
        memcpy(hex, *at, 2);
        *at += 2;
        return (char)strtoul(hex, NULL, 16);
    }
    for (size_t i = 0; i + 1 < sizeof NAMED; i += 2) {
        if (NAMED[i] == letter)
            return NAMED[i + 1];
    }
    test_give_up("unknown escape: \\%c", letter);
}

static void put_escaped(struct conversation *c, const char *line)
{
    while (*line) {
        char byte = *line++;

        put(c, byte == '\\' ? unescape(&line) : byte);
    }
}

static void put_line(struct conversation *c, const char *line)
{
    put_escaped(c, line);
    put_escaped(c, "\\r\\n");
}

static void flush(struct conversation *c)
{
    size_t step = c->single_bytes ? 1 : c->out_len;

    for (size_t at = 0; at < c->out_len; at += step) {
        if (!http_client_send(&c->client, c->out + at, step))
            break; /* refused already: the answer tells */
    }
    c->out_len = 0;
}

static void put_body(struct conversation *c, const char *type_line, const char *body)
{
    size_t before = c->out_len, len;
    char length_line[64];
    char *bytes;

    put_escaped(c, body);
    len = c->out_len - before;
    bytes = malloc(len + 1);
    cr_assert_not_null(bytes);
    memcpy(bytes, c->out + before, len);
    c->out_len = before;
    snprintf(length_line, sizeof length_line, "Content-Length: %zu\\r\\n\\r\\n", len);
    put_escaped(c, type_line);
    put_escaped(c, length_line);
    for (size_t i = 0; i < len; i++)
        put(c, bytes[i]);
    free(bytes);
}

static void talk_to(struct conversation *c, uint16_t port)
{
    http_client_close(&c->client);
    http_client_connect(&c->client, port);
}

static void directive(struct conversation *c, const char *line)
{
    char *rest;
    unsigned long count;

    if (strncmp(line, "json ", 5) == 0) {
        put_body(c, "Content-Type: application/json\\r\\n", line + 5);
    } else if (strncmp(line, "body ", 5) == 0) {
        put_body(c, "", line + 5);
    } else if (strncmp(line, "fill ", 5) == 0) {
        for (count = strtoul(line + 5, &rest, 10); count > 0; count--)
            put(c, rest[1]);
    } else if (strncmp(line, "repeat ", 7) == 0) {
        count = strtoul(line + 7, &rest, 10);
        for (c->repeat_number = 1; c->repeat_number <= count; c->repeat_number++) {
            char expanded[LINE_BYTES];

            expand(c, rest + 1, expanded);
            put_line(c, expanded);
        }
    } else if (strncmp(line, "wait ", 5) == 0) {
        flush(c);
        poll(NULL, 0, (int)strtol(line + 5, NULL, 10));
    } else if (strcmp(line, "half-close") == 0) {
        flush(c);
        http_client_half_close(&c->client);
    } else if (strcmp(line, "internal") == 0) {
        talk_to(c, c->fixture->nodes[0].internal_port);
    } else if (strcmp(line, "policy") == 0) {
        talk_to(c, c->fixture->nodes[1].port);
    } else if (strcmp(line, "internal policy") == 0) {
        talk_to(c, c->fixture->nodes[1].internal_port);
    } else if (strcmp(line, "hasty") == 0) {
        talk_to(c, c->fixture->nodes[2].port);
    } else if (strcmp(line, "once") == 0) {
        c->skipping = c->single_bytes;
        c->out_len = 0;
    } else {
        test_give_up("%s:%u: unknown directive: %s", c->file, c->line, line);
    }
}

static void read_answer(struct conversation *c, const char *line)
{
    const char *no_body = strstr(line, " (no body)");
    size_t len = no_body ? (size_t)(no_body - line) : strlen(line);

    flush(c);
    c->has_answer = false;
    switch (http_client_read(&c->client, no_body != NULL, PATIENCE_MS, &c->answer)) {
    case HTTP_CLIENT_ANSWER:
        c->has_answer = true;
        break;
    case HTTP_CLIENT_CLOSED:
        complain(c, "the connection was closed instead of", line);
        c->skipping = true;
        return;
    case HTTP_CLIENT_TIMEOUT:
        complain(c, "no answer came instead of", line);
        c->skipping = true;
        return;
    }
    if (strncmp(c->answer.head, line, len) != 0)
        complain(c, "wanted", line);
}

static void expect_field(struct conversation *c, const char *line, bool wanted)
{
    size_t name_len = strcspn(line, ":");
    const char *value = line[name_len] ? line + name_len + 1 : "";
    char name[64], got[2048];
    bool found;

    value += strspn(value, " ");
    snprintf(name, sizeof name, "%.*s", (int)name_len, line);
    found = http_answer_field(&c->answer, name, got, sizeof got);
    if (found != wanted || (wanted && !strstr(got, value)))
        complain(c, wanted ? "wanted the field" : "unexpected field", line);
}

static void expect_end(struct conversation *c, const char *line)
{
    flush(c);
    if (strcmp(line, "close") == 0) {
        if (!http_client_ended(&c->client, PATIENCE_MS))
            complain(c, "the server did not close, or sent more", "");
    } else if (strcmp(line, "open") == 0) {
        enum http_client_result result = http_client_read(&c->client, true, QUIET_FOR_MS, &c->answer);

        if (result != HTTP_CLIENT_TIMEOUT)
            complain(c, "the connection is not open and quiet", "");
    } else if (strcmp(line, "quiet") == 0) {
        if (http_client_read(&c->client, true, QUIET_FOR_MS, &c->answer) == HTTP_CLIENT_ANSWER)
            complain(c, "the server sent more", "");
    } else if (strcmp(line, "empty") == 0) {
        if (c->answer.body_len != 0)
            complain(c, "the body is not empty", "");
    } else {
        test_give_up("%s:%u: unknown expectation: %s", c->file, c->line, line);
    }
}

static void begin_case(struct conversation *c, const char *title)
{
    http_client_close(&c->client);
    http_client_connect(&c->client, c->fixture->nodes[0].port);
    snprintf(c->title, sizeof c->title, "%.190s", title);
    c->out_len = 0;
    c->has_answer = false;
    c->skipping = false;
}

/* What stands behind a mark, without the one blank between. */
static const char *behind(const char *line, size_t mark)
{
    return line + mark + (line[mark] == ' ');
}

static void run_line(struct conversation *c, const char *raw)
{
    char line[LINE_BYTES];

    if (strncmp(raw, "* repeat", 8) == 0)
        snprintf(line, sizeof line, "%s", raw);
    else
        expand(c, raw, line);
    if (line[0] == '>' && line[1] == '>')
        put_escaped(c, behind(line, 2));
    else if (line[0] == '>')
        put_line(c, behind(line, 1));
    else if (line[0] == '*')
        directive(c, behind(line, 1));
    else if (strncmp(line, "< HTTP/", 7) == 0)
        read_answer(c, behind(line, 1));
    else if (strncmp(line, "<!", 2) == 0)
        expect_field(c, behind(line, 2), false);
    else if (line[0] == '<')
        expect_field(c, behind(line, 1), true);
    else if (line[0] == '~' && !strstr(c->answer.body, behind(line, 1)))
        complain(c, "the body lacks", behind(line, 1));
    else if (strncmp(line, "!~", 2) == 0 && strstr(c->answer.body, behind(line, 2)))
        complain(c, "the body contains", behind(line, 2));
    else if (line[0] == '!' && line[1] == ' ')
        expect_end(c, behind(line, 1));
}

static void run_file(struct conversation *c, const char *path)
{
    FILE *file = fopen(path, "re");
    char line[LINE_BYTES];

    cr_assert_not_null(file, "%s", path);
    c->file = strrchr(path, '/') + 1;
    c->line = 0;
    c->skipping = true;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        c->line++;
        if (strncmp(line, "== ", 3) == 0)
            begin_case(c, line + 3);
        else if (line[0] != '#' && line[0] != '\0' && !c->skipping)
            run_line(c, line);
    }
    fclose(file);
}

struct credentials {
    char host[32];
    struct fixture_key test, read, device, revoked, revoked_device, foreign, suspended;
    struct fixture_session session, stepped;
    char foreign_account[ID_TEXT_BYTES], suspended_account[ID_TEXT_BYTES];
};

static void make_credentials(struct fixture *fixture, struct credentials *made)
{
    fixture_add_key(fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &made->test);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &made->read);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &made->device);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &made->revoked);
    fixture_revoke_key(fixture, &made->revoked);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &made->revoked_device);
    fixture_revoke_key(fixture, &made->revoked_device);
    fixture_add_account(fixture, made->foreign_account);
    fixture_add_key(fixture, made->foreign_account, KEY_API, MODE_LIVE, SCOPE_ALL, &made->foreign);
    fixture_add_account(fixture, made->suspended_account);
    fixture_add_key(fixture, made->suspended_account, KEY_API, MODE_LIVE, SCOPE_ALL, &made->suspended);
    const char *const suspend[] = {"account", "suspend", made->suspended_account, NULL};
    cr_assert_eq(fixture_run(fixture, suspend, NULL, NULL, NULL), 0);
    fixture_add_session(fixture, NULL, false, &made->session);
    fixture_add_session(fixture, NULL, true, &made->stepped);
    snprintf(made->host, sizeof made->host, "127.0.0.1:%u", fixture->nodes[0].port);
}

static void name_credentials(struct conversation *c, const struct credentials *made)
{
    const struct name_value names[] = {
        {"LIVE_KEY", c->fixture->manager.secret},
        {"LIVE_KEY_ID", c->fixture->manager.id},
        {"TEST_KEY", made->test.secret},
        {"TEST_KEY_ID", made->test.id},
        {"READ_KEY", made->read.secret},
        {"DEVICE_KEY", made->device.secret},
        {"DEVICE_KEY_ID", made->device.id},
        {"REVOKED_KEY", made->revoked.secret},
        {"REVOKED_DEVICE_KEY", made->revoked_device.secret},
        {"FOREIGN_KEY_ID", made->foreign.id},
        {"SUSPENDED_KEY", made->suspended.secret},
        {"SESSION", made->session.token},
        {"CSRF", made->session.csrf},
        {"STEPPED_SESSION", made->stepped.token},
        {"STEPPED_CSRF", made->stepped.csrf},
        {"ORIGIN", NODE_ORIGIN},
        {"HOST", made->host},
    };

    cr_assert_leq(sizeof names / sizeof *names, NAMES_MAX);
    memcpy(c->names, names, sizeof names);
}

/* The cases know of no run yet. */
#define CANARY_LATER "--canary-interval-ms", "1h"

Test(http_cases, every_file_whole_and_in_single_bytes)
{
    static const char *const PATIENT[] = {CANARY_LATER, "--head-timeout-ms",       "600000", "--body-timeout-ms",
                                          "600000",     "--body-total-timeout-ms", "600000", NULL};
    static const char *const HASTY[] = {CANARY_LATER, "--head-timeout-ms", "3000", "--body-timeout-ms", "3000", NULL};
    const char *source = getenv("CHATELAINE_SOURCE");
    char policy[512];
    const char *const with_policy[] = {CANARY_LATER, "--policy-file", policy, "--check-status", "strict401", NULL};
    struct conversation *c = calloc(1, sizeof *c);
    struct credentials made;
    struct fixture fixture;
    char pattern[512];
    glob_t found;

    cr_assert(source && c);
    snprintf(policy, sizeof policy, "%s/test/http/policy.json", source);
    fixture_start(&fixture, 1, PATIENT);
    fixture_add_node(&fixture, with_policy);
    fixture_add_node(&fixture, HASTY);
    make_credentials(&fixture, &made);
    c->fixture = &fixture;
    c->client.fd = -1;
    name_credentials(c, &made);
    snprintf(pattern, sizeof pattern, "%s/test/http/*.case", source);
    cr_assert(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0, "no files: %s", pattern);
    for (int pass = 0; pass < 2; pass++) {
        c->single_bytes = pass == 1;
        for (size_t i = 0; i < found.gl_pathc; i++)
            run_file(c, found.gl_pathv[i]);
    }
    globfree(&found);
    http_client_close(&c->client);
    free(c);
    fixture_stop(&fixture);
}
