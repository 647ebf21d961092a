/* What this node knows of the store's time (store_ms() in prelude.lua), which it is told with each heartbeat. Its own
 * clock may run 10 % fast or slow meanwhile; whether it is right does not matter. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Zero: it was told nothing. */
struct store_time {
    int64_t told_ms;
    uint64_t sent_ns, read_ns; /* clock_boot_ns() before the question was sent, and when the answer was read */
};

/* What the store's time is at least and at most, at now_ns; 0: nobody knows. */
int64_t store_time_least(const struct store_time *time, uint64_t now_ns);
int64_t store_time_most(const struct store_time *time, uint64_t now_ns);
/* Notes an answer. Returns whether the store's time is much later than it can be: its clock was set. */
bool store_time_told(struct store_time *time, int64_t told_ms, uint64_t sent_ns, uint64_t read_ns);
