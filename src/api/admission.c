#include "admission_internal.h"

#include "base/clock.h"

/* A request at the gate. */
struct admission {
    struct gate_ticket ticket; /* first: the exchange points to it */
    struct exchange *exchange;
    exchange_handler *go;
    gate_done *goes_on; /* of a stream; NULL: it has not begun */
    void *arg;
};

static uint64_t now_ms(void)
{
    return clock_boot_ns() / CLOCK_NS_PER_MS;
}

static struct admission *admission_of(const struct exchange *exchange)
{
    return (struct admission *)exchange->ticket;
}

static struct gate_caller caller_of(const struct exchange *exchange)
{
    enum gate_rank rank = GATE_PERSON;

    if (exchange->key)
        rank = exchange->key->mode == MODE_LIVE ? GATE_LIVE_KEY : GATE_TEST_KEY;
    return (struct gate_caller){exchange_account(exchange), exchange_actor(exchange), rank};
}

static void refuse_limited(struct exchange *exchange, uint32_t retry_after_s)
{
    exchange_refuse_with(exchange,
                         (struct problem){.code = PROBLEM_RATE_LIMITED,
                                          .message = "This account has too much under way here. Wait, then try again.",
                                          .retry_after_s = retry_after_s});
}

static bool is_gone(void *arg)
{
    return http_request_gone(((struct admission *)arg)->exchange->request);
}

static void on_turn(void *arg, enum gate_result result)
{
    struct admission *admission = arg;
    struct exchange *exchange = admission->exchange;

    if (admission->goes_on) {
        admission->goes_on(admission->arg, result);
        return;
    }
    if (result == GATE_RUN)
        admission->go(exchange);
    else if (result == GATE_LATE)
        refuse_limited(exchange, 1);
    else
        exchange_refuse(exchange, PROBLEM_SHUTTING_DOWN);
    http_request_release(exchange->request);
}

static void on_replied(void *arg, int status)
{
    (void)status;
    gate_rest(arg, now_ms());
}

static void leave(void *arg)
{
    gate_leave(arg, now_ms());
}

bool admission_has_room(struct exchange *exchange)
{
    const enum gate_class class = exchange->match.route->class;
    const struct gate_caller caller = caller_of(exchange);

    if (gate_has_room(exchange->service->gate, class, &caller, now_ms()))
        return true;
    refuse_limited(exchange, 1);
    return false;
}

/* False: it has been refused. */
static bool enter(struct exchange *exchange)
{
    const enum gate_class class = exchange->match.route->class;
    const struct gate_caller caller = caller_of(exchange);
    struct admission *admission = http_request_alloc(exchange->request, sizeof *admission);
    uint32_t wait_s =
        gate_enter(exchange->service->gate, class, &caller, now_ms(), is_gone, on_turn, admission, &admission->ticket);

    if (wait_s > 0) {
        refuse_limited(exchange, wait_s);
        return false;
    }
    admission->exchange = exchange;
    exchange->ticket = &admission->ticket;
    http_response_on_replied(exchange->request, on_replied, exchange->ticket);
    http_request_defer(exchange->request, leave, exchange->ticket);
    return true;
}

void admission_wait(struct exchange *exchange, exchange_handler *go)
{
    if (!gate_has_places(exchange->match.route->class)) {
        go(exchange);
        return;
    }
    if (!enter(exchange))
        return;
    admission_of(exchange)->go = go;
    if (gate_wait(exchange->ticket, now_ms()))
        go(exchange);
    else
        http_request_hold(exchange->request);
}

void admission_go_on(struct exchange *exchange, gate_done *done, void *arg)
{
    struct admission *admission = admission_of(exchange);

    admission->goes_on = done;
    admission->arg = arg;
    if (gate_wait(exchange->ticket, now_ms()))
        done(arg, GATE_RUN);
}

void admission_rest(struct exchange *exchange)
{
    gate_rest(exchange->ticket, now_ms());
}
