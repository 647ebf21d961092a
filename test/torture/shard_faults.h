/* A Redis Cluster's primaries are lost, each in turn, while slots move: killed; stopped until its replica has taken
 * over; and, where servers are in namespaces, cut off from everybody, and from all but one node. Or a shard's data go
 * back: an older file of the primary is put back, or one of its replica, which then takes over. */
#pragma once
#include "availability.h"
#include "cluster.h"
#include "history.h"
#include "probe.h"
#include "setback.h"

enum { SHARD_FAULT_WAYS = 6 };

struct shard_faults {
    struct cluster *cluster;
    struct history *history;
    struct setbacks *setbacks;
    const struct availability *availability;
    bool only_setbacks; /* each round is one in which a shard's data go back */
    unsigned rounds, setbacks_done;
    unsigned done[SHARD_FAULT_WAYS][SHARDS];
    struct probe_times slowest;
    int64_t slowest_taken_ms, slowest_whole_ms;
    size_t watched; /* partitions whose checks were watched while another primary was lost, counted for each round */
    size_t excused, unasked;
};

/* One round: the next primary is lost, and returns when all is whole again. It is a violation if checks of a partition
 * that neither was on that shard nor was being moved from or to it were not answered once all that time, or if the
 * cluster does not become whole. */
void shard_faults_run(struct shard_faults *faults);
void shard_faults_print_counts(const struct shard_faults *faults);
