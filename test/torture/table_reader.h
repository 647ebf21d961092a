/* A process that checks keys by a node's shared table, for ever, and says which acceptances break the promise. */
#pragma once

/* argv: the board's path, the table's, the node's number, a seed, and whether it is "paused" between the steps of a
 * check or "quick". Ends by a signal only. */
int table_reader_run(int argc, char **argv);
