#include "leases.h"
#include "deadline.h"

#include <poll.h>

bool leases_are_required(void)
{
    return fixture_in_cluster();
}

const char *const *leases_none(void)
{
    static const char *const NONE[] = {"--lease-ms", "0", NULL};

    return leases_are_required() ? NULL : NONE;
}

void leases_await(const struct fixture *fixture, size_t node)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(fixture, node, "\nchatelaine_lease_held ") != 1) {
        if (deadline_left_ms(deadline) == 0)
            test_give_up("node %zu gets no lease", node);
        poll(NULL, 0, 10);
    }
}

void leases_await_all(const struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->node_count; i++)
        leases_await(fixture, i);
}
