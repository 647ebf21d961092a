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

static void await_held(const struct fixture *fixture, size_t node, long held)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(fixture, node, "chatelaine_lease_held") != held) {
        if (deadline_left_ms(deadline) == 0)
            test_give_up("node %zu %s", node, held ? "gets no lease" : "keeps its lease");
        poll(NULL, 0, 10);
    }
}

void leases_await(const struct fixture *fixture, size_t node)
{
    await_held(fixture, node, 1);
}

void leases_await_end(const struct fixture *fixture, size_t node)
{
    await_held(fixture, node, 0);
}

void leases_await_all(const struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->node_count; i++)
        leases_await(fixture, i);
}
