#include "judge.h"
#include "kernel_internal.h"
#include "schedule.h"
#include "trace.h"
#include <stdarg.h>
#include <stdio.h>

enum { TEXT_BYTES = 260, ACCEPTED = 200, REFUSED = 401, UNAVAILABLE = 503 };

#define NS_PER_S 1e9
/* Faults last 3 s, and a store that goes back is settled within a few more. */
#define SILENCE_S 120

struct sim_counts sim_counts;

static const char *broken;
static uint64_t calm_from_ns, calm_until_ns;
static struct sim_event look;
static uint64_t accepted_before;

/* Whoever has lost what nobody else knows refuses for ever: no fault need end for that to be seen. */
static void on_look(struct sim_event *event)
{
    if (sim_counts.accepted == accepted_before)
        sim_judge_violation("nothing was accepted for %d s", SILENCE_S);
    accepted_before = sim_counts.accepted;
    sim_event_in(event, SILENCE_S * UINT64_C(1000000000));
}

void sim_judge_begin(const char *broken_rule)
{
    sim_counts = (struct sim_counts){0};
    broken = broken_rule;
    sim_judge_calm(UINT64_MAX, UINT64_MAX);
    accepted_before = 0;
    look = (struct sim_event){.run = on_look};
    sim_event_in(&look, SILENCE_S * UINT64_C(1000000000));
}

void sim_judge_violation(const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    sim_counts.violations++;
    sim_trace("judge", "VIOLATION: %s%s%s", text, broken ? "; what is broken: " : "", broken ? broken : "");
}

void sim_judge_calm(uint64_t from_ns, uint64_t until_ns)
{
    calm_from_ns = from_ns;
    calm_until_ns = until_ns;
}

bool sim_judge_is_calm(uint64_t ns)
{
    return ns >= calm_from_ns && ns < calm_until_ns;
}

void sim_judge_answer(const char *what, const char *node, uint64_t asked_ns, int status)
{
    if ((status == 0 || status == UNAVAILABLE) && sim_judge_is_calm(asked_ns))
        sim_judge_violation("%s at %s is answered %d although nothing is wrong", what, node, status);
}

void sim_judge_use(const struct sim_verdict *of, const char *key, const char *node, uint64_t begun_ns, bool is_done)
{
    if (is_done && of->revoked_ns > 0 && begun_ns > of->revoked_ns)
        sim_judge_violation("%s accepts %s %.6f s after its end, which counts from %.6f; the check began at %.6f, and "
                            "was answered at %.6f",
                            node, key, (double)(begun_ns - of->revoked_ns) / NS_PER_S, sim_trace_s(of->revoked_ns),
                            sim_trace_s(begun_ns), sim_trace_s(sim_now_ns()));
}

void sim_judge_check(const struct sim_verdict *of, const char *key, const char *node, uint64_t begun_ns, int status)
{
    sim_counts.accepted += status == ACCEPTED;
    sim_counts.refused += status == REFUSED;
    sim_counts.unavailable += status == UNAVAILABLE;
    sim_counts.unknown += status == 0;
    sim_judge_use(of, key, node, begun_ns, status == ACCEPTED);
    if (status == REFUSED && !of->is_tried)
        sim_judge_violation("%s refuses %s, which lives", node, key);
    if (status != ACCEPTED && status != REFUSED && status != UNAVAILABLE && status != 0)
        sim_judge_violation("%s answers a check of %s with %d", node, key, status);
}

void sim_judge_revoked(struct sim_verdict *of, uint64_t asked_ns, uint64_t answered_ns, uint64_t from_ns)
{
    const uint64_t took_ns = answered_ns - asked_ns;

    if (of->revoked_ns == 0 || from_ns < of->revoked_ns)
        of->revoked_ns = from_ns;
    sim_counts.revoked++;
    sim_counts.revoke_ns_sum += took_ns;
    if (took_ns > sim_counts.revoke_ns_max)
        sim_counts.revoke_ns_max = took_ns;
}
