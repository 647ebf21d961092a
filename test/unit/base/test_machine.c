#include "base/machine.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>

TestSuite(machine, .fini = leak_guard);

enum door { DOOR_SHUT, DOOR_OPEN, DOOR_GONE };

static const struct machine DOOR = {
    .name = "door",
    .count = DOOR_GONE + 1,
    MACHINE_ROW(DOOR_SHUT, MACHINE_TO(DOOR_OPEN) | MACHINE_TO(DOOR_GONE)),
    MACHINE_ROW(DOOR_OPEN, MACHINE_TO(DOOR_OPEN) | MACHINE_TO(DOOR_SHUT)),
    MACHINE_ROW(DOOR_GONE, 0),
};

Test(machine, makes_the_moves_of_its_table)
{
    machine_set_fatal(true);
    cr_assert(machine_allows(&DOOR, DOOR_SHUT, DOOR_OPEN));
    cr_assert(machine_allows(&DOOR, DOOR_OPEN, DOOR_OPEN));
    cr_assert(machine_allows(&DOOR, DOOR_OPEN, DOOR_SHUT));
    cr_assert(machine_allows(&DOOR, DOOR_SHUT, DOOR_GONE));
}

Test(machine, refuses_each_other_move_in_a_release_build)
{
    machine_set_fatal(false);
    cr_assert_not(machine_allows(&DOOR, DOOR_OPEN, DOOR_GONE));
    cr_assert_not(machine_allows(&DOOR, DOOR_SHUT, DOOR_SHUT));
    cr_assert_not(machine_allows(&DOOR, DOOR_GONE, DOOR_SHUT));
}

/* As this build is. */
Test(machine, ends_the_process_in_a_debug_build, .signal = SIGABRT)
{
    (void)!machine_allows(&DOOR, DOOR_GONE, DOOR_OPEN);
}
