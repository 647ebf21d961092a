#include "route_guess_internal.h"
#include "api/routes.h"

enum { WORD_BYTES = 32, WORD_LEAST = 4, COST_NONE = 100 };

/* Paths that other services have, and how to do the same here. */
static const struct {
    enum http_method method;
    const char *path, *say;
} ELSEWHERE[] = {
    {HTTP_POST, "/v1/api_keys/{id}/revoke", "To revoke one key: DELETE /v1/api_keys/{id}."},
    {HTTP_POST, "/v1/api_keys/{id}/revocation", "To revoke one key: DELETE /v1/api_keys/{id}."},
    {HTTP_DELETE, "/v1/api_keys/{id}/revoke", "To revoke one key: DELETE /v1/api_keys/{id}."},
    {HTTP_POST, "/v1/api_keys/{id}/rotate", "To replace a key: POST /v1/api_keys/{id}/replacement."},
    {HTTP_POST, "/v1/api_keys/{id}/roll", "To replace a key: POST /v1/api_keys/{id}/replacement."},
    {HTTP_POST, "/v1/api_keys/{id}/regenerate", "To replace a key: POST /v1/api_keys/{id}/replacement."},
    {HTTP_GET, "/v1/me", "Who a key is: GET /v1/whoami."},
    {HTTP_GET, "/v1/events", "The audit trail: GET /v1/audit."},
    {HTTP_GET, "/v1/audit_logs", "The audit trail: GET /v1/audit."},
    {HTTP_POST, "/v1/api_keys/verify", "To ask about a key: POST /check/verify, at a node's internal listener."},
    {HTTP_POST, "/v1/verify", "To ask about a key: POST /check/verify, at a node's internal listener."},
};

/* Letters and digits in lower case: "API-Keys" is "apikeys". word: of at most WORD_BYTES. */
static struct text bare(struct text word, char *storage)
{
    struct text plain = {storage, 0};

    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            storage[plain.len++] = c;
    }
    return plain;
}

static bool ends_with(struct text text, struct text end)
{
    return end.len >= WORD_LEAST && text.len >= end.len && text_equal(text_skip(text, text.len - end.len), end);
}

/* 0: the same; COST_NONE: another word. */
static unsigned word_cost(struct text written, struct text word)
{
    char storage[2][WORD_BYTES], name[WORD_BYTES + 1];
    struct text a, b;
    struct text_guess guess;

    if (text_equal(written, word))
        return 0;
    if (written.len > WORD_BYTES || word.len > WORD_BYTES) /* a stranger's words must not cost more */
        return COST_NONE;
    a = bare(written, storage[0]);
    b = bare(word, storage[1]);
    if (text_equal(a, b))
        return 1;
    if (ends_with(a, b) || ends_with(b, a))
        return 2;
    guess = (struct text_guess){.written = a};
    memcpy(name, b.ptr, b.len);
    name[b.len] = '\0';
    text_guess_try(&guess, name);
    return guess.found ? 1 + (unsigned)guess.distance : COST_NONE;
}

static unsigned segment_cost(struct text written, struct text segment)
{
    if (text_equal(segment, TEXT("{id}")))
        return written.len > 0 ? 0 : COST_NONE;
    return word_cost(written, segment);
}

static unsigned path_cost(struct text written, struct text pattern)
{
    struct text a, b;
    unsigned cost = 0;

    while (cost < COST_NONE) {
        bool has_a = text_next(&written, '/', &a), has_b = text_next(&pattern, '/', &b);

        if (!has_a && !has_b)
            return cost;
        cost += has_a && has_b ? segment_cost(a, b) : (unsigned)COST_NONE;
    }
    return COST_NONE;
}

/* Without what some put before and behind it: "/api/v1/x/" is "v1/x". */
static struct text plain(struct text path)
{
    if (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (text_starts_with(path, TEXT("/api/")))
        path = text_skip(path, strlen("/api"));
    if (text_starts_with(path, TEXT("/v1/")))
        path = text_skip(path, strlen("/v1"));
    return path;
}

/* Whoever asks for a path of the console means one of the console. */
static bool is_console(struct text path)
{
    return text_starts_with(path, TEXT("/console/"));
}

static const char *nearest_path(enum http_method method, struct text written)
{
    const char *found = NULL;
    unsigned least = COST_NONE;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct text row = plain(text_of(ROUTES[i].path));
        unsigned cost;

        if (is_console(row) != is_console(written))
            continue;
        cost = 2 * path_cost(written, row) + (ROUTES[i].method != method);
        if (cost < least) {
            least = cost;
            found = ROUTES[i].path;
        }
    }
    return found;
}

static const char *elsewhere(enum http_method method, struct text written)
{
    for (size_t i = 0; i < sizeof ELSEWHERE / sizeof *ELSEWHERE; i++)
        if (ELSEWHERE[i].method == method && path_cost(written, plain(text_of(ELSEWHERE[i].path))) == 0)
            return ELSEWHERE[i].say;
    return NULL;
}

struct problem route_guess(enum http_method method, struct text path)
{
    const struct text written = plain(path);
    struct problem problem = problem_of(PROBLEM_NOT_FOUND);

    problem.instead = elsewhere(method, written);
    if (!problem.instead)
        problem.meant = nearest_path(method, written);
    return problem;
}
