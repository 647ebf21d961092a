#include "base/machine.h"

#include "base/check.h"
#include "base/log.h"

static bool is_fatal_now = CLAIMS_ALL;

void machine_set_fatal(bool is_fatal)
{
    is_fatal_now = is_fatal;
}

bool machine_refuse(const struct machine *machine, unsigned from, unsigned to)
{
    LOG(LOG_ERROR, "forbidden change of state: its connection, lease or request ends, please report this",
        log_str("machine", machine->name), log_str("from", machine->states[from]), log_str("to", machine->states[to]));
    if (is_fatal_now)
        check_failed("machine", machine->name, machine->states[to]);
    return false;
}
