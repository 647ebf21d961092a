/* The bus of a cluster: each server's connections to the others' bus ports. What is said while there is none yet is
 * lost, and said again sooner or later by whoever says it. */
#pragma once
#include "network.h"

enum { SIM_BUS_PORT = 16379 };

struct sim_bus;

/* heard: a whole message of another one. */
struct sim_bus *sim_bus_start(struct sim_host *host, void (*heard)(void *arg, const char *bytes, size_t length),
                              void *arg);
void sim_bus_tell(struct sim_bus *bus, struct in_addr to, const char *bytes, size_t length);
/* Its connections end. */
void sim_bus_stop(struct sim_bus *bus);
