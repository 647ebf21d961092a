/* A backend without a gateway asks whether a key is good (docker/gateways/asking.md). Its questions
 * are checks: the same guard, the same cache under the same lease, the same uses and refusals. They come with the
 * rights of gateways, to the internal listener alone. */
#include "entry_internal.h"
#include "handlers_internal.h"
#include "mounts_internal.h"
#include "question_internal.h"

static exchange_handler verify, batch;

/* Rows of their own: those of the route table are for the public listener, and for what gateways ask about. */
static const struct route ASKING[] = {
    {HTTP_POST, "/check/verify", verify, WHO_ANYONE, SCOPE_NONE, ROLE_AUDITOR, ROUTE_JSON | ROUTE_KEYS | ROUTE_TEXT,
     GATE_CHECK},
    {HTTP_POST, "/check/batch", batch, WHO_ANYONE, SCOPE_NONE, ROLE_AUDITOR, ROUTE_JSON | ROUTE_KEYS | ROUTE_LARGE,
     GATE_CHECK},
    {HTTP_POST, "/check/introspect", introspect, WHO_ANYONE, SCOPE_NONE, ROLE_AUDITOR,
     ROUTE_FORM | ROUTE_TEXT | ROUTE_OAUTH, GATE_CHECK},
};

void ask_enter(struct exchange *exchange)
{
    const struct route *row = ASKING;

    while (!text_equal(text_of(row->path), exchange->mount->path))
        row++;
    exchange->match = (struct route_match){row, row, {0}};
    if (exchange->service->refuses_new)
        exchange_refuse(exchange, PROBLEM_SHUTTING_DOWN);
    else if (exchange->method == HTTP_POST)
        entry_enter(exchange);
    else
        exchange_refuse_method(exchange, "POST");
}

/* POST /check/verify */

static void verified(struct key_question *question)
{
    struct exchange *asking = question->arg;

    if (!question_is_decided(question)) {
        exchange_refuse_with(asking, question->refusal);
        return;
    }
    asking->key = question->exchange.key; /* for the access log */
    question_put(exchange_answer(asking, 200), question);
    exchange_reply(asking);
}

static void verify(struct exchange *exchange)
{
    struct key_question *question = http_request_alloc(exchange->request, sizeof *question);

    if (question_read(exchange, question))
        question_ask(exchange, question, verified, exchange);
}

/* POST /check/batch. All questions are asked before any is answered, so those that miss read Redis together. */

#define CHECKS_RULE "checks must have 1 to 256 questions"
enum { CHECKS_MAX = 256 };
_Static_assert(CHECKS_MAX == 256, "see CHECKS_RULE");

struct ask_batch {
    struct exchange *asking;
    struct key_question *questions;
    size_t count, under_way;
    bool is_repeated; /* some of them have been asked again */
};

static size_t count_of(const struct json *list)
{
    size_t count = 0;

    for (const struct json *item = json_first(list); item; item = json_next(item))
        count++;
    return count;
}

static const struct json *read_list(struct exchange *exchange, size_t *ret_count)
{
    static const struct json_field FIELDS[] = {{"checks", JSON_FIELD_ARRAY, true, 0}};
    const struct json *list = NULL;

    if (!exchange_read_body(exchange, FIELDS, 1, (void *)&list))
        return NULL;
    *ret_count = count_of(list);
    if (*ret_count > 0 && *ret_count <= CHECKS_MAX)
        return list;
    exchange_refuse_value(exchange, exchange_format(exchange, CHECKS_RULE ", not %zu.", *ret_count));
    return NULL;
}

static bool read_question(struct exchange *exchange, const struct json *item, size_t at, struct key_question *question)
{
    const struct exchange_place place = {"checks", at};
    bool is_read = false;

    if (json_type(item) == JSON_OBJECT) {
        exchange->body = item;
        exchange->within = &place;
        is_read = question_read(exchange, question);
        exchange->within = NULL;
    } else {
        exchange_refuse_value(exchange,
                              exchange_format(exchange, "checks[%zu] must be an object, as in {\"key\":\"…\"}.", at));
    }
    return is_read;
}

static void one_judged(struct key_question *question);

/* While some were read from Redis, a key that had been found good may have been revoked, and that answered. So it is
 * asked about again, unless memory says that it is good now. Once: what has to be asked a third time is unknown. True:
 * some are under way. */
static bool ask_again(struct ask_batch *op)
{
    const bool is_last = op->is_repeated;

    op->is_repeated = true;
    for (size_t i = 0; i < op->count; i++) {
        struct key_question *question = &op->questions[i];

        if (question->refusal.code != PROBLEM_NONE || question_holds(question))
            continue;
        if (is_last && !question->is_repeated)
            question->refusal = problem_of(PROBLEM_STORE_UNAVAILABLE);
        question->is_repeated = true;
        op->under_way += !is_last;
    }
    if (op->under_way == 0)
        return false;
    for (size_t i = 0; i < op->count; i++)
        if (op->questions[i].is_repeated)
            question_ask(op->asking, &op->questions[i], one_judged, op);
    return true;
}

static void all_judged(const struct ask_batch *op)
{
    struct json_writer *w = exchange_answer(op->asking, 200);

    json_object_begin(w);
    json_key_array(w, "data");
    for (size_t i = 0; i < op->count; i++)
        question_put(w, &op->questions[i]);
    json_array_end(w);
    json_object_end(w);
    exchange_reply(op->asking);
}

static void one_judged(struct key_question *question)
{
    struct ask_batch *op = question->arg;

    if (--op->under_way == 0 && !ask_again(op))
        all_judged(op);
}

static void batch(struct exchange *exchange)
{
    struct ask_batch *op = http_request_alloc(exchange->request, sizeof *op);
    const struct json *list = read_list(exchange, &op->count), *item = list ? json_first(list) : NULL;

    if (!list)
        return;
    op->asking = exchange;
    op->questions = http_request_alloc(exchange->request, op->count * sizeof *op->questions);
    for (size_t i = 0; i < op->count; i++, item = json_next(item))
        if (!read_question(exchange, item, i, &op->questions[i]))
            return;
    op->under_way = op->count;
    for (size_t i = 0; i < op->count; i++)
        question_ask(exchange, &op->questions[i], one_judged, op);
}
