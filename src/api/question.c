#include "question_internal.h"
#include "base/metrics.h"
#include "guard_internal.h"
#include "key_json_internal.h"
#include "problem_internal.h"
#include "views_internal.h"

struct question_input {
    struct text key, method, path, network;
    const struct json *scopes;
};

/* rule: begins with the parameter's name. */
static bool refuse_value(struct exchange *asking, const char *rule, struct text value)
{
    exchange_refuse_value(asking, problem_may_repeat(value)
                                      ? exchange_format(asking, "%s, not \"%.*s\".", rule, TEXT_ARG(value))
                                      : exchange_format(asking, "%s.", rule));
    return false;
}

static bool is_method(struct text method)
{
    for (size_t i = 0; i < method.len; i++)
        if ((method.ptr[i] < 'A' || method.ptr[i] > 'Z') && method.ptr[i] != '-')
            return false;
    return method.len > 0;
}

static bool accept_input(struct exchange *asking, const struct question_input *input, struct key_question *question)
{
    question->key = input->key;
    question->method = input->method;
    question->path = input->path;
    if (input->path.ptr && (input->path.len == 0 || input->path.ptr[0] != '/'))
        return refuse_value(asking, "path must begin with /, as in /v1/patients/42", input->path);
    if (!is_method(input->method))
        return refuse_value(asking, "method must be one of HTTP, in capitals, as in GET", input->method);
    question->has_network = input->network.ptr != NULL;
    if (question->has_network && !address_parse(input->network, &question->network))
        return refuse_value(asking, "network must be one IPv4 or IPv6 address, as in 203.0.113.7", input->network);
    return !input->scopes || key_json_read_scopes(asking, input->scopes, &question->scopes);
}

bool question_read(struct exchange *asking, struct key_question *question)
{
    static const struct json_field FIELDS[] = {
        {"key", JSON_FIELD_TEXT, true, offsetof(struct question_input, key)},
        {"method", JSON_FIELD_TEXT, false, offsetof(struct question_input, method)},
        {"path", JSON_FIELD_TEXT, false, offsetof(struct question_input, path)},
        {"scopes", JSON_FIELD_ARRAY, false, offsetof(struct question_input, scopes)},
        {"network", JSON_FIELD_TEXT, false, offsetof(struct question_input, network)},
    };
    struct question_input input = {.method = TEXT("GET")};

    return exchange_read_body(asking, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input) &&
           accept_input(asking, &input, question);
}

static struct key_question *question_of(struct exchange *exchange)
{
    return (struct key_question *)(void *)exchange;
}

static void admit(struct exchange *exchange)
{
    struct key_question *question = question_of(exchange);

    question->judged(question);
}

static void refuse(struct exchange *exchange, struct problem *problem)
{
    struct key_question *question = question_of(exchange);

    question->refusal = *problem;
    if (question_is_decided(question)) /* if not, by whoever answers that */
        metric_count_label(METRICS_REFUSALS, problem->code);
    question->judged(question);
}

void question_ask(struct exchange *asking, struct key_question *question, void (*judged)(struct key_question *question),
                  void *arg)
{
    struct exchange *exchange = &question->exchange;

    if (question->is_repeated)
        *exchange = (struct exchange){0};
    question->judged = judged;
    question->arg = arg;
    exchange->request = asking->request; /* the rest is zero; it is large */
    exchange->service = asking->service;
    exchange->method = asking->method;
    exchange->path = asking->path;
    exchange->mount = asking->mount;
    exchange->is_internal = asking->is_internal;
    exchange->admit = admit;
    exchange->reply_refusal = refuse;
    exchange->question = question;
    check_question(exchange);
}

bool question_holds(struct key_question *question)
{
    return key_check_holds(&question->exchange.check);
}

bool question_is_decided(const struct key_question *question)
{
    return question->refusal.code == PROBLEM_NONE || problem_is_verdict(question->refusal.code);
}

static void put_key(struct json_writer *w, const struct key_principal *key)
{
    JSON_PUT_WORD(w, "code", TEXT("ok"));
    JSON_PUT_WORD(w, "kind", key_kind_text(key->kind));
    JSON_PUT_WORD(w, "id", id_text(&key->id));
    JSON_PUT_WORD(w, "account_id", id_text(&key->account));
    JSON_PUT_WORD(w, "mode", key_mode_text(key->mode));
    view_put_scopes(w, key->scopes);
    json_put_flag(w, "billable", key->mode == MODE_LIVE);
    view_put_time_or_null(w, "ends_at", key->ends_ms);
}

void question_put(struct json_writer *w, const struct key_question *question)
{
    const struct problem *refusal = &question->refusal;

    json_object_begin(w);
    json_key(w, "valid");
    if (!question_is_decided(question)) {
        metric_count_label(METRICS_REFUSALS, refusal->code);
        json_put_null(w);
        JSON_PUT_WORD(w, "code", text_of(problem_code_text(refusal->code)));
    } else {
        json_put_bool(w, refusal->code == PROBLEM_NONE);
        if (refusal->code == PROBLEM_NONE)
            put_key(w, question->exchange.key);
        else
            problem_put_refusal(refusal, w);
    }
    json_object_end(w);
}
