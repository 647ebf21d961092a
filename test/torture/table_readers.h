/* Readers of the nodes' shared tables, a few processes for each node, that are killed, paused and started again at
 * random. What they find is held against the history. */
#pragma once
#include "cluster.h"
#include "table_board.h"

struct table_readers_plan {
    const struct cluster *cluster;
    struct board *board;
    const char *board_path;
    struct history *history;
    const char *folder; /* for their output */
    unsigned seed;
};

struct table_readers;

struct table_readers *table_readers_start(const struct table_readers_plan *plan);
/* Of the thread that writes the history: notes what was found since. False: something was. */
bool table_readers_turn(struct table_readers *readers);
/* Ends all of them. NULL is fine, here and below. */
void table_readers_stop(struct table_readers *readers);
/* After table_readers_stop() and a last turn. */
void table_readers_print_counts(const struct table_readers *readers);
void table_readers_destroy(struct table_readers *readers);
