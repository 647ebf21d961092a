/* A process that checks keys by a node's shared table, for ever, and says which acceptances break the promise. */
#pragma once

/* What such a reader has to do, and can leave out: CHATELAINE_BREAK=<name>, as for the nodes. The names are those of
 * test/model. X(id, name, what happens without it) */
#define TABLE_READER_RULES(X)                                                                                       \
    X(READER_LEASE, "table-lease", "a reader does not look at the lease")                                           \
    X(READER_ORDER, "table-order", "a reader does not look again, at entry or counter, once it has seen the lease") \
    X(READER_EPOCH, "table-epoch", "a reader does not compare the entry's epoch with its bucket's")                 \
    X(READER_CLOCK, "table-clock", "a reader reads the clock before the request comes")

/* argv: the board's path, the table's, the node's number, a seed, and whether it is "paused" between the steps of a
 * check or "quick". Ends by a signal only. */
int table_reader_run(int argc, char **argv);
