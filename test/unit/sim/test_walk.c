/* A random walk over connections between hosts, with faults. */
#include "deadline.h"
#include "kernel.h"
#include "walk.h"
#include <criterion/criterion.h>
#include <signal.h>

TestSuite(sim_walk, .timeout = TEST_WITHIN_S);

enum { STEPS = 600, HOSTS = 3, OPEN_MAX = 40, GIVEN_UP_MS = 1000 * 1000 };

static struct sim_host *hosts[HOSTS];
static struct sim_socket *listeners[HOSTS];
static uv_tcp_t listener;
static const char *const IPS[] = {"10.0.0.1", "10.0.0.2", "10.0.0.4"};

static void begin(uint64_t seed)
{
    signal(SIGPIPE, SIG_IGN);
    walk_digest = 0;
    net_begin(seed);
    hosts[0] = net_near;
    hosts[1] = net_far;
    hosts[2] = sim_host_new("third", IPS[2]);
    for (unsigned i = 0; i < HOSTS; i++)
        for (unsigned j = 0; j < HOSTS; j++)
            sim_link_delay(hosts[i], hosts[j], sim_draw_below(2) * NET_MS, (2 + sim_draw_below(20)) * NET_MS);
    for (unsigned i = 1; i < HOSTS; i++)
        listeners[i] = walk_listen(hosts[i]);
    walk_listen_here(&listener);
}

static struct walk_end *draw_end(void)
{
    struct walk_end *open[WALK_ENDS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < walk_end_count; i++)
        if (walk_ends[i]->is_open)
            open[count++] = walk_ends[i];
    return count > 0 ? open[sim_draw_below(count)] : NULL;
}

static struct sim_host *draw_host(void)
{
    return hosts[sim_draw_below(HOSTS)];
}

static void step_connect(void)
{
    struct sim_host *from = draw_host();

    if (net_open < OPEN_MAX && !from->is_off)
        walk_connect(from == net_near ? NULL : from, IPS[sim_draw_below(HOSTS)]);
}

static void step_send(void)
{
    struct walk_end *end = draw_end();

    if (end)
        walk_send(end, 1 + (size_t)sim_draw_below(sim_draw_below(4) ? 2000 : 60000));
}

/* More than there is room for. */
static void step_fill(void)
{
    struct walk_end *end = draw_end();

    for (unsigned i = 0; end && end->is_open && i < 6; i++)
        walk_send(end, 60000);
}

static void step_hold(void)
{
    struct walk_end *end = draw_end();

    if (end)
        walk_hold(end, !end->holds);
}

static void step_say_end(void)
{
    struct walk_end *end = draw_end();

    if (end)
        walk_say_end(end);
}

static void step_close(void)
{
    struct walk_end *end = draw_end();

    if (end)
        walk_close(end, sim_draw_below(2));
}

static void step_cut(void)
{
    const struct sim_host *from = draw_host(), *to = draw_host();

    sim_link_cut(from, to, from != to && sim_draw_below(2));
}

/* Not of the process' host: it would have to end. */
static void step_power(void)
{
    struct sim_host *host = hosts[1 + sim_draw_below(HOSTS - 1)];

    sim_host_power(host, host->is_off);
}

static void step_break(void)
{
    sim_connections_reset(draw_host(), draw_host());
}

static void step_wait(void)
{
    net_run_for_ms(sim_draw_below(30));
}

static void step_wait_long(void)
{
    net_run_for_ms(sim_draw_below(sim_draw_below(4) ? 1000 : GIVEN_UP_MS));
}

static void walk_on(void)
{
    static void (*const OFTEN[])(void) = {step_connect, step_connect, step_send, step_send, step_send,
                                          step_send,    step_send,    step_wait, step_wait, step_wait};
    static void (*const SELDOM[])(void) = {step_hold, step_hold,  step_say_end,   step_close, step_close,
                                           step_cut,  step_power, step_wait_long, step_fill};

    if (sim_draw_below(200) == 0)
        step_break();
    else if (sim_draw_below(8) > 0)
        OFTEN[sim_draw_below(10)]();
    else
        SELDOM[sim_draw_below(9)]();
}

static void heal(void)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        for (unsigned j = 0; j < HOSTS; j++)
            sim_link_cut(hosts[i], hosts[j], false);
        sim_host_power(hosts[i], true);
    }
    for (unsigned i = 0; i < walk_end_count; i++)
        if (walk_ends[i]->is_open)
            walk_hold(walk_ends[i], false);
}

/* As programs do: whose connection has ended in one direction closes it; all others ask the peer. */
static void tidy(void)
{
    for (unsigned i = 0; i < walk_end_count; i++) {
        struct walk_end *end = walk_ends[i];

        if (end->is_open && (end->has_ended || end->knows_of_end || !end->pair))
            walk_close(end, false);
        else if (end->is_open)
            walk_send(end, 1);
    }
}

static void stop_faults(void)
{
    enum { ROUNDS = 3, ROUND_MS = 1500 };

    heal();
    for (unsigned i = 0; i < ROUNDS; i++) {
        net_run_for_ms(ROUND_MS);
        tidy();
    }
    net_run_for_ms(ROUND_MS);
}

/* Either both sides have it, and all bytes; or it has ended for both. */
static void judge(uint64_t seed)
{
    for (unsigned i = 0; i < walk_end_count; i++) {
        const struct walk_end *end = walk_ends[i], *other = end->pair ? end->pair->ends[!end->side] : NULL;

        if (!end->is_open)
            continue;
        cr_assert(end->is_connected && other && other->is_open, "seed %lu, end %u of %s: %s", (unsigned long)seed, i,
                  end->is_actor ? "an actor" : "the process",
                  !end->is_connected ? "still connects" : "the other one has ended");
        cr_assert_eq(end->heard, other->sent, "seed %lu, end %u", (unsigned long)seed, i);
        cr_assert_eq(other->heard, end->sent, "seed %lu, end %u", (unsigned long)seed, i);
    }
}

static void end(void)
{
    for (unsigned i = 0; i < walk_end_count; i++)
        if (walk_ends[i]->is_open)
            walk_close(walk_ends[i], false);
    for (unsigned i = 1; i < HOSTS; i++)
        sim_actor_close(listeners[i]);
    uv_close((uv_handle_t *)&listener, NULL);
    net_run_for_ms(1000);
    walk_forget();
    net_end();
}

static uint64_t take_walk(uint64_t seed)
{
    begin(seed);
    for (unsigned i = 0; i < STEPS; i++)
        walk_on();
    stop_faults();
    judge(seed);
    end();
    return walk_digest;
}

Test(sim_walk, keeps_what_a_network_promises)
{
    enum { WALKS = 60 };

    for (uint64_t seed = 0; seed < WALKS; seed++)
        take_walk(seed);
    /* And it has met everything. */
    cr_assert_gt(walk_counts.opened, 20 * WALKS);
    cr_assert_gt(walk_counts.welcomed, 10 * WALKS);
    cr_assert_gt(walk_counts.pieces, 100 * WALKS);
    cr_assert_gt(walk_counts.ends, WALKS);
    cr_assert_gt(walk_counts.resets, WALKS);
    cr_assert_gt(walk_counts.timeouts, WALKS / 4);
    cr_assert_gt(walk_counts.full, WALKS / 4);
}

Test(sim_walk, a_seed_repeats_a_walk)
{
    const uint64_t first = take_walk(7);

    cr_assert_eq(take_walk(7), first);
    cr_assert_neq(take_walk(8), first);
}
