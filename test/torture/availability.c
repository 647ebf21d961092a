#include "availability.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { NS_PER_MS = 1000000 };

struct partition {
    atomic_size_t checks, answered;
    size_t unavailable;         /* 503 */
    size_t calm, calm_answered; /* those while nothing was done to its primary or its slot */
    int64_t answered_ns;        /* the last answer; 0: none */
    bool has_missed;            /* something since then was not answered */
    int64_t gap_ns;             /* the longest time without an answer in which some were missed */
};

struct availability {
    const struct shards *shards;
    struct partition partitions[SHARDS_PARTITIONS];
};

struct availability *availability_create(const struct shards *shards)
{
    struct availability *availability = calloc(1, sizeof *availability);

    if (!availability)
        abort();
    availability->shards = shards;
    return availability;
}

void availability_destroy(struct availability *availability)
{
    free(availability);
}

static void note_answer(struct partition *p, int64_t end_ns)
{
    if (p->has_missed && p->answered_ns > 0 && end_ns - p->answered_ns > p->gap_ns)
        p->gap_ns = end_ns - p->answered_ns;
    p->answered_ns = end_ns;
    p->has_missed = false;
    atomic_fetch_add(&p->answered, 1);
}

void availability_note(struct availability *availability, unsigned partition, int status, int64_t end_ns)
{
    struct partition *p = &availability->partitions[partition];
    bool is_answer = status != 0 && status != 503, is_calm = !shards_excuse(availability->shards, partition);

    atomic_fetch_add(&p->checks, 1);
    p->unavailable += status == 503;
    p->calm += is_calm;
    p->calm_answered += is_calm && is_answer;
    if (is_answer)
        note_answer(p, end_ns);
    else
        p->has_missed = true;
}

struct availability_count availability_count(const struct availability *availability, unsigned partition)
{
    const struct partition *p = &availability->partitions[partition];

    return (struct availability_count){atomic_load(&p->checks), atomic_load(&p->answered)};
}

static double share(size_t part, size_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

void availability_print(const struct availability *availability)
{
    printf("partition   checks      503  without answer  longest run  not answered while undisturbed\n");
    for (unsigned i = 0; i < SHARDS_PARTITIONS; i++) {
        const struct partition *p = &availability->partitions[i];
        size_t checks = atomic_load(&p->checks), answered = atomic_load(&p->answered);

        printf("%9u %8zu  %6.2f %%        %6.2f %%   %7.1f s  %6.2f %% of %zu\n", i, checks,
               share(p->unavailable, checks), share(checks - answered - p->unavailable, checks),
               (double)p->gap_ns / NS_PER_MS / 1000, share(p->calm - p->calm_answered, p->calm), p->calm);
    }
}
