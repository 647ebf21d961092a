/* Leases of nodes. In a cluster another Redis may take over, so a read decides only under a lease: nodes without leases
 * are refused there, and a node that has lost its lease answers 503 until the next one. */
#pragma once
#include "fixture.h"

bool leases_are_required(void);
/* Arguments of a node that remembers nothing: without leases, or as usual where they are required. */
const char *const *leases_none(void);
/* Until the node has the leases of all partitions. */
void leases_await(const struct fixture *fixture, size_t node);
/* Until it has none: it has noticed that Redis is away, or waited long enough. */
void leases_await_end(const struct fixture *fixture, size_t node);
void leases_await_all(const struct fixture *fixture);
