/* A server of ours in the place of a redis-server that a test starts. */
#pragma once
#include "server.h"

/* At the Unix socket and the port that it was to have, with its file of changes, as its arguments say. Aborts the test
 * if they ask for more than it can. */
struct sim_server *redis_program_start(const char *const *argv);
