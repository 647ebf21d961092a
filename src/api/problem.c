#include "problem_internal.h"
#include "auth/bearer.h"
#include "base/check.h"
#include "base/json.h"
#include "core/secret.h"
#include "views_internal.h"

#include <string.h>

/* Longer values are not repeated: all of our secrets are longer. */
enum { VALUE_SHOWN_BYTES = 32, RUN_SHOWN_CHARS = 20 };
_Static_assert((int)VALUE_SHOWN_BYTES < (int)SECRET_MIN_CHARS, "no secret is shown");

struct problem_row {
    int status;
    const char *code;
    const char *message;
};

static const struct problem_row ROWS[PROBLEM_COUNT] = {
#define PROBLEM_ROW(id, status, code, message) [id] = {status, code, message},
    PROBLEM_TABLE(PROBLEM_ROW)
#undef PROBLEM_ROW
};

static const struct problem_row *row_of(enum problem_code code)
{
    CHECK(code > PROBLEM_NONE && code < PROBLEM_COUNT);
    return &ROWS[code];
}

struct problem problem_of(enum problem_code code)
{
    return (struct problem){.code = code};
}

enum problem_code problem_code_of(enum http_error error)
{
    switch (error) {
    case HTTP_ERROR_NONE:
        return PROBLEM_NONE;
    case HTTP_ERROR_BAD_REQUEST:
        return PROBLEM_BAD_REQUEST;
    case HTTP_ERROR_NOT_FOUND:
        return PROBLEM_NOT_FOUND;
    case HTTP_ERROR_METHOD_NOT_ALLOWED:
        return PROBLEM_METHOD_NOT_ALLOWED;
    case HTTP_ERROR_REQUEST_TIMEOUT:
        return PROBLEM_REQUEST_TIMEOUT;
    case HTTP_ERROR_BODY_TOO_LARGE:
        return PROBLEM_BODY_TOO_LARGE;
    case HTTP_ERROR_URI_TOO_LONG:
        return PROBLEM_URI_TOO_LONG;
    case HTTP_ERROR_EXPECTATION_FAILED:
        return PROBLEM_EXPECTATION_FAILED;
    case HTTP_ERROR_HEADERS_TOO_LARGE:
        return PROBLEM_HEADERS_TOO_LARGE;
    case HTTP_ERROR_INTERNAL:
        return PROBLEM_INTERNAL_ERROR;
    case HTTP_ERROR_NOT_IMPLEMENTED:
        return PROBLEM_NOT_IMPLEMENTED;
    case HTTP_ERROR_OVERLOADED:
        return PROBLEM_OVERLOADED;
    case HTTP_ERROR_VERSION:
        return PROBLEM_HTTP_VERSION;
    case HTTP_ERROR_TLS_REQUIRED:
        return PROBLEM_TLS_REQUIRED;
    }
    UNREACHABLE();
}

enum problem_code problem_of_verdict(enum key_verdict verdict, enum key_kind kind)
{
    static const enum problem_code CODES[] = {
        [KEY_REVOKED] = PROBLEM_API_KEY_REVOKED,
        [KEY_SUSPENDED] = PROBLEM_ACCOUNT_SUSPENDED,
        [KEY_INVALID] = PROBLEM_INVALID_API_KEY,
        [KEY_UNDECIDED] = PROBLEM_STORE_UNAVAILABLE,
    };

    return verdict == KEY_REVOKED && kind == KEY_DEVICE ? PROBLEM_DEVICE_KEY_REVOKED : CODES[verdict];
}

struct problem problem_param(enum problem_code code, struct text param)
{
    struct problem p = problem_of(code);

    if (secret_begins_within(param))
        return p;
    const size_t len = param.len < PROBLEM_PARAM_BYTES - 1 ? param.len : PROBLEM_PARAM_BYTES - 1;
    if (len)
        memcpy(p.param, param.ptr, len);
    p.has_param = true;
    return p;
}

struct problem problem_missing(const struct param_rule *rule, struct text param)
{
    struct problem p = problem_param(PROBLEM_PARAMETER_MISSING, param);

    p.rule = p.has_param ? rule : NULL;
    return p;
}

/* More than 20 letters and digits in a row may be a secret without its beginning. Ids have 26. */
static bool may_be_cut_secret(struct text value)
{
    size_t run = 0, longest = 0;

    for (size_t i = 0; i < value.len; i++) {
        const char c = value.ptr[i];
        const bool is_base62 = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

        run = is_base62 ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest > RUN_SHOWN_CHARS && id_kind_of(value) == ID_NONE;
}

bool problem_may_repeat(struct text value)
{
    return value.ptr && value.len <= VALUE_SHOWN_BYTES && !text_has_control(value) && !secret_begins_within(value) &&
           !may_be_cut_secret(value);
}

static const char *nearest_word(const struct param_rule *rule, struct text value)
{
    struct text_guess guess = {.written = value};

    for (const char *const *word = rule->words; word && *word; word++)
        text_guess_try(&guess, *word);
    return guess.found;
}

struct problem problem_value(const struct param_rule *rule, struct text param, struct text value)
{
    struct problem p = problem_param(PROBLEM_PARAMETER_INVALID, param);

    if (!rule || !p.has_param)
        return p;
    p.rule = rule;
    if (rule->is_secret || !problem_may_repeat(value))
        return p;
    p.value = value;
    p.meant = nearest_word(rule, value);
    return p;
}

static const char *kind_of(const struct json *value)
{
    static const char *const KINDS[] = {
        [JSON_NULL] = "null",      [JSON_NUMBER] = "a number",  [JSON_STRING] = "a string",
        [JSON_ARRAY] = "an array", [JSON_OBJECT] = "an object",
    };
    enum json_type type = json_type(value);

    return type == JSON_BOOL ? (json_bool(value) ? "true" : "false") : KINDS[type];
}

static const char *kind_of_number(const struct param_rule *rule, const struct json *value)
{
    int64_t number;

    if (!json_integer(value, &number))
        return "a fraction, or a number that is too large";
    return number > rule->most ? "more" : "less";
}

struct problem problem_value_json(const struct param_rule *rule, struct text param, const struct json *value,
                                  bool is_wrong_type)
{
    bool is_string = value && json_type(value) == JSON_STRING;
    struct problem p = problem_value(rule, param, is_string && !is_wrong_type ? json_text(value) : (struct text){0});

    if (p.rule && value && json_type(value) == JSON_NUMBER && rule->most > 0)
        p.value_kind = kind_of_number(rule, value);
    else if (p.rule && value && is_wrong_type)
        p.value_kind = kind_of(value);
    return p;
}

void problem_blame_authorization(struct problem *problem, struct http_request *request)
{
    size_t count;
    struct text header = http_request_header(request, TEXT("Authorization"), &count), token;
    struct buf why = BUF_FIXED(BEARER_WHY_BYTES);

    if (count > 1) {
        problem->message = "Authorization was sent more than once.";
    } else if (count == 1 && bearer_read(header, &token) == BEARER_MALFORMED) {
        bearer_explain(header, &why);
        problem->message = http_request_copy(request, buf_text(&why)).ptr;
    }
}

int problem_status(enum problem_code code)
{
    return row_of(code)->status;
}

bool problem_is_verdict(enum problem_code code)
{
    return problem_status(code) != 500 && problem_status(code) != 503;
}

const char *problem_code_text(enum problem_code code)
{
    return row_of(code)->code;
}

const char *problem_type(enum problem_code code)
{
    const int status = problem_status(code);
    if (status >= 500)
        return "api_error";
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 429:
        return "rate_limit_error";
    default:
        return "invalid_request_error";
    }
}

const char *problem_message(const struct problem *p)
{
    return p->message ? p->message : row_of(p->code)->message;
}

enum { MESSAGE_MAX_BYTES = 512 };

static void print_rule(const struct problem *p, struct buf *out)
{
    if (p->code == PROBLEM_PARAMETER_MISSING) {
        buf_printf(out, "Missing parameter: %s (%s).", p->param, p->rule->must);
        return;
    }
    buf_printf(out, "%s must be %s", p->param, p->rule->must);
    if (p->value_kind)
        buf_printf(out, ", not %s", p->value_kind);
    else if (p->value.ptr)
        buf_printf(out, ", not \"%.*s\"", TEXT_ARG(p->value));
    buf_append_char(out, '.');
}

static void print_sentence(const struct problem *p, struct buf *out)
{
    bool is_named = p->param[0] && !p->message;

    if (p->rule && is_named)
        print_rule(p, out);
    else if (p->code == PROBLEM_PARAMETER_UNKNOWN && is_named)
        buf_printf(out, "Unknown parameter: %s.", p->param);
    else if (p->code == PROBLEM_PARAMETER_MISSING && is_named)
        buf_printf(out, "Missing parameter: %s.", p->param);
    else
        buf_append_str(out, problem_message(p));
}

/* With what may help. Only insufficient_scope has the member required_scopes, so for scope_not_grantable the message
 * names the missing scopes. */
static void print_text(const struct problem *p, struct buf *out)
{
    if (p->within)
        buf_printf(out, "In %s: ", p->within);
    print_sentence(p, out);
    if (p->instead)
        buf_printf(out, " %s", p->instead);
    else if (p->meant)
        buf_printf(out, " Did you mean %s?", p->meant);
    if (p->code == PROBLEM_SCOPE_NOT_GRANTABLE && p->required_scopes) {
        buf_append_str(out, " Missing: ");
        scope_print(p->required_scopes, ' ', out);
        buf_append_char(out, '.');
    }
}

static void print_message(const struct problem *p, struct json_writer *w)
{
    struct buf text = BUF_FIXED(MESSAGE_MAX_BYTES);

    print_text(p, &text);
    json_put_member(w, "message", buf_text(&text));
}

static void print_documentation(const struct problem *p, struct text origin, struct json_writer *w)
{
    struct buf text = BUF_FIXED(MESSAGE_MAX_BYTES);

    buf_printf(&text, "%.*s/docs/errors#%s", TEXT_ARG(origin), problem_code_text(p->code));
    json_put_member(w, "doc_url", buf_text(&text));
}

static void print_param(const struct problem *p, struct json_writer *w)
{
    struct buf text = BUF_FIXED(2 * PROBLEM_PARAM_BYTES);

    if (!p->has_param)
        return;
    buf_printf(&text, "%s%s%s", p->within ? p->within : "", p->within ? "." : "", p->param);
    json_put_member(w, "param", buf_text(&text));
}

static void print_scopes(const struct problem *p, struct json_writer *w)
{
    if (p->code != PROBLEM_INSUFFICIENT_SCOPE || !p->has_required_scopes)
        return;
    json_key(w, "required_scopes");
    json_array_begin(w);
    for (unsigned n = 0; n < SCOPE_COUNT; n++)
        if (p->required_scopes >> n & 1)
            json_put_text(w, scope_name(n));
    json_array_end(w);
}

void problem_print(const struct problem *p, struct text request_id, struct text origin, struct buf *out)
{
    struct json_writer w = {.out = out};
    json_object_begin(&w);
    json_key(&w, "error");
    json_object_begin(&w);
    json_put_member(&w, "type", text_of(problem_type(p->code)));
    json_put_member(&w, "code", text_of(problem_code_text(p->code)));
    print_message(p, &w);
    print_param(p, &w);
    print_scopes(p, &w);
    print_documentation(p, origin, &w);
    json_put_member(&w, "request_id", request_id);
    json_object_end(&w);
    json_object_end(&w);
}

void problem_print_challenge(const struct problem *p, struct buf *out)
{
    if (problem_status(p->code) == 401 && p->session_realm) {
        buf_append_str(out, "Session realm=\"console\"");
        return;
    }
    if (problem_status(p->code) == 401) {
        buf_append_str(out, "Bearer realm=\"api\"");
        if (p->code != PROBLEM_MISSING_CREDENTIALS)
            buf_append_str(out, ", error=\"invalid_token\"");
        return;
    }
    /* A session has no scopes, so it gets no challenge that names any. */
    if (p->code != PROBLEM_INSUFFICIENT_SCOPE || p->session_realm)
        return;
    buf_append_str(out, "Bearer realm=\"api\", error=\"insufficient_scope\"");
    /* RFC 6750 allows no empty scope attribute. */
    if (p->required_scopes) {
        buf_append_str(out, ", scope=\"");
        scope_print(p->required_scopes, ' ', out);
        buf_append_char(out, '"');
    }
}

void problem_put_refusal(const struct problem *p, struct json_writer *w)
{
    struct buf challenge = BUF_FIXED(PROBLEM_CHALLENGE_BYTES);

    JSON_PUT_WORD(w, "code", text_of(problem_code_text(p->code)));
    json_put_number(w, "status", problem_status(p->code));
    print_message(p, w);
    print_scopes(p, w);
    problem_print_challenge(p, &challenge);
    if (challenge.len > 0)
        json_put_member(w, "www_authenticate", buf_text(&challenge));
}

int problem_print_oauth(struct http_request *request, const struct problem *problem, struct buf *out)
{
    static const struct {
        enum problem_code code;
        const char *error;
        int status;
    } ERRORS[] = {
        {PROBLEM_RATE_LIMITED, "slow_down", 400},
        {PROBLEM_ACCOUNT_SUSPENDED, "access_denied", 400},
        {PROBLEM_KEY_LIMIT_REACHED, "access_denied", 400},
        {PROBLEM_INTERNAL_ERROR, "server_error", 500},
        {PROBLEM_STORE_UNAVAILABLE, "temporarily_unavailable", 503},
        {PROBLEM_OVERLOADED, "temporarily_unavailable", 503},
        {PROBLEM_SHUTTING_DOWN, "temporarily_unavailable", 503},
    };
    const char *error = "invalid_request";
    struct buf description = BUF_FIXED(OAUTH_DESCRIPTION_BYTES);
    const size_t last = OAUTH_DESCRIPTION_BYTES - 1;
    int status = problem_status(problem->code);

    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].code == problem->code) {
            error = ERRORS[i].error;
            status = ERRORS[i].status;
        }
    print_text(problem, &description);
    description.ptr[description.len < last ? description.len : last] = '\0';
    http_response_header(request, TEXT("Pragma"), TEXT("no-cache"));
    view_oauth_error(&(struct json_writer){.out = out}, error, description.ptr);
    return status;
}
