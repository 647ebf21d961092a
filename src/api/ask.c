/* A backend without a gateway asks whether a key is good (docker/gateways/README.md#asking-about-a-key). Its questions
 * are checks: the same guard, the same cache under the same lease, the same uses and refusals. They come with the
 * rights of gateways, to the internal listener alone. */
#include "entry_internal.h"
#include "handlers_internal.h"
#include "mounts_internal.h"
#include "question_internal.h"

static exchange_handler verify;

/* Rows of their own: those of the route table are for the public listener, and for what gateways ask about. */
static const struct route ASKING[] = {
    {HTTP_POST, "/check/verify", verify, WHO_ANYONE, SCOPE_NONE, ROLE_AUDITOR, ROUTE_JSON | ROUTE_KEYS | ROUTE_TEXT,
     GATE_CHECK},
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

static void verified(struct question *question)
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
    struct question *question = http_request_alloc(exchange->request, sizeof *question);

    if (question_read(exchange, question))
        question_ask(exchange, question, verified, exchange);
}
