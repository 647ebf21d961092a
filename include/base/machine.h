/* States that may only change as a table says. Beside the enum of its states, a machine has a table of moves, and its
 * owner has one function that moves it.
 *
 * A move that the table lacks ends the process in debug, sanitizer and simulation builds. In release builds it is
 * logged, and the owner ends what the machine concerns: a connection, a lease, a barrier; never the process. */
#pragma once
#include "base/attr.h"
#include "base/check.h"
#include <stdbool.h>
#include <stdint.h>

enum { MACHINE_STATES_MAX = 16 };

struct machine {
    const char *name;
    unsigned count; /* of states; they are numbered from 0, where it begins */
    const char *states[MACHINE_STATES_MAX];
    uint32_t next[MACHINE_STATES_MAX]; /* of each state, those that may follow: MACHINE_TO() of each */
};

#define MACHINE_TO(state) (UINT32_C(1) << (state))
/* A row of the table; followers may be 0. */
#define MACHINE_ROW(state, followers) .states[state] = #state, .next[state] = (followers)

/* Whether the table has the move. */
static inline bool machine_has(const struct machine *machine, unsigned from, unsigned to)
{
    ALL_REQUIRE(from < machine->count && to < machine->count);
    return __builtin_expect(machine->next[from] >> to & 1, 1);
}

/* False: it was logged that there is no such move. */
MUST_CHECK bool machine_refuse(const struct machine *machine, unsigned from, unsigned to);
/* Whether the move is made; otherwise the state stays, and the caller ends what it concerns. */
MUST_CHECK static inline bool machine_allows(const struct machine *machine, unsigned from, unsigned to)
{
    return machine_has(machine, from, to) || machine_refuse(machine, from, to);
}

/* For tests: whether a move that is not in the table ends the process. */
void machine_set_fatal(bool is_fatal);
