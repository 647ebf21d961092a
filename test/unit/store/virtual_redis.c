#include "virtual_redis.h"

#include "base/mem.h"
#include "kernel.h"
#include "process.h"
#include "redis_program.h"
#include "schedule.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, NS_PER_MS = 1000 * 1000 };
/* The system has no process of such a number. */
enum { PID = 1 << 23 };

struct started {
    struct sim_server *server; /* NULL: it has ended */
    int status;
};

static bool start(struct process *process, const char *folder, const char *name, const char *const *argv,
                  const char *in_path)
{
    struct started *started;

    (void)folder, (void)name, (void)in_path;
    if (strcmp(argv[0], "redis-server") != 0)
        return false;
    started = mem_alloc(sizeof *started);
    *started = (struct started){.server = redis_program_start(argv)};
    process->of_world = started;
    process->pid = PID;
    process->pidfd = -1;
    return true;
}

/* Frees what has ended: nobody asks again. */
static bool wait_for(const struct process *process, int timeout_ms, int *ret_status)
{
    struct started *started = process->of_world;

    if (started->server) {
        sim_kernel_spend_ns((uint64_t)timeout_ms * NS_PER_MS);
        return false;
    }
    *ret_status = started->status;
    free(started);
    return true;
}

static void signal_one(const struct process *process, int signal_number)
{
    struct started *started = process->of_world;

    if (signal_number == SIGSTOP || signal_number == SIGCONT) {
        sim_server_freeze(started->server, signal_number == SIGSTOP);
        return;
    }
    sim_server_end(started->server);
    started->server = NULL;
    started->status = signal_number;
}

void virtual_redis_begin(void)
{
    static const struct process_world WORLD = {.start = start, .wait = wait_for, .signal = signal_one};

    process_world = &WORLD;
    sim_kernel_enter();
    sim_schedule_begin(SEED);
}
