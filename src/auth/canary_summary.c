#include "auth/canary_summary.h"

#include "base/mem.h"

#include <stdlib.h>

static void keep(struct text t, char *ret_text, size_t size)
{
    struct buf out = BUF_OVER(ret_text, size - 1);

    buf_append_printable(&out, t);
    ret_text[out.len] = '\0';
}

static void add_last_run(struct canary_summary *summary, const struct canary_state *state)
{
    bool is_first = summary->runs == 0;

    summary->runs += state->finished;
    if (is_first || state->since_finished_ms > summary->since_run_ms) {
        summary->since_run_ms = state->since_finished_ms;
        keep(state->finished_by, summary->run_by, sizeof summary->run_by);
    }
    if (is_first || state->accepted > summary->accepted ||
        (state->accepted == summary->accepted && state->silent > summary->silent)) {
        summary->refused = state->refused;
        summary->accepted = state->accepted;
        summary->silent = state->silent;
    }
    if (is_first || state->slowest_ms > summary->slowest_ms) {
        summary->slowest_ms = state->slowest_ms;
        keep(state->slowest, summary->slowest, sizeof summary->slowest);
    }
    if (is_first || state->took_us > summary->took_us)
        summary->took_us = state->took_us;
}

/* Whether the age is less than the other one; -1 is never. */
static bool is_later(int64_t since_ms, int64_t than_ms)
{
    return since_ms >= 0 && (than_ms < 0 || since_ms < than_ms);
}

static void add_troubles(struct canary_summary *summary, const struct canary_state *state)
{
    summary->unfinished += state->unfinished;
    summary->violations += state->violations;
    if (is_later(state->since_unfinished_ms, summary->since_unfinished_ms)) {
        summary->since_unfinished_ms = state->since_unfinished_ms;
        keep(state->unfinished_why, summary->unfinished_why, sizeof summary->unfinished_why);
    }
    if (is_later(state->since_violation_ms, summary->since_violation_ms)) {
        summary->since_violation_ms = state->since_violation_ms;
        keep(state->violated_by, summary->violated_by, sizeof summary->violated_by);
    }
}

void canary_summary_add(struct canary_summary *summary, const struct canary_state *state)
{
    bool has_run = state && state->finished > 0;

    if (summary->partitions++ == 0) {
        summary->has_run = true;
        summary->since_unfinished_ms = summary->since_violation_ms = -1;
    }
    summary->has_run &= has_run;
    if (has_run)
        add_last_run(summary, state);
    if (state)
        add_troubles(summary, state);
}

struct sum_call {
    struct canary_summary summary;
    unsigned due;
    enum store_result result;
    canary_summed *done;
    void *arg;
};

static void on_read(void *arg, enum store_result result, const struct canary_state *state)
{
    struct sum_call *call = arg;

    if (result == STORE_OK || result == STORE_NOT_FOUND)
        canary_summary_add(&call->summary, state);
    else
        call->result = result;
    if (--call->due > 0)
        return;
    call->done(call->arg, call->result, call->result == STORE_OK ? &call->summary : NULL);
    free(call);
}

void canary_sum(const struct partitions *partitions, canary_summed *done, void *arg)
{
    struct sum_call *call = mem_alloc(sizeof *call);

    *call = (struct sum_call){.due = partitions_count(partitions), .result = STORE_OK, .done = done, .arg = arg};
    for (unsigned i = 0; i < partitions_count(partitions); i++)
        canary_store_read(partitions_at(partitions, i), on_read, call);
}
