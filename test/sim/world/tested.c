/* Integration tests in virtual time: what they start (support/process.h) runs here. The product is a process of the
 * world, which the test itself is, too; redis-server is a server of ours on the sockets that it was to have; any other
 * program is the system's, and time stands still until it has ended. */
#include "base/check.h"
#include "base/mem.h"
#include "kernel_internal.h"
#include "process.h"
#include "redis_program.h"
#include "schedule.h"
#include "support/deadline.h"
#include "support/process.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEED = 1, STARTED_MAX = 4096, NS_PER_MS = 1000 * 1000 };
/* The system has no process of such a number. */
enum { FIRST_PID = 1 << 23 };

struct started {
    struct sim_process *process; /* NULL, as is: */
    struct sim_server *server;   /* it has ended */
    int status;
};

static struct started *started[STARTED_MAX];
static size_t started_count;

static void begin(void)
{
    static bool has_begun;
    int nothing;

    if (has_begun)
        return;
    has_begun = true;
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO);
    signal(SIGPIPE, SIG_IGN);
    sim_kernel_enter();
    sim_schedule_begin(SEED);
    sim_processes_begin(IMAGE, ".");
    sim_processes_join();
}

static struct started *add(struct process *process)
{
    struct started *added = mem_alloc(sizeof *added);

    CHECK(started_count < STARTED_MAX);
    *added = (struct started){0};
    started[started_count++] = added;
    process->of_world = added;
    process->pid = FIRST_PID + (pid_t)started_count;
    process->pidfd = -1;
    return added;
}

/* Nodes and commands */

static void ended(void *arg, int code)
{
    struct started *process = arg;

    process->process = NULL;
    process->status = code << 8;
    sim_world->wake(sim_world->current());
}

static void start_product(struct process *process, const char *folder, const char *name, const char *const *argv,
                          const char *in_path)
{
    struct started *added = add(process);
    union {
        char **given;
        const char *const *wanted;
    } environment = {.given = environ};
    const struct sim_process_plan plan = {.name = name,
                                          .folder = folder,
                                          .input = in_path ? in_path : "/dev/null",
                                          .argv = argv,
                                          .environment = environment.wanted,
                                          .ended = ended,
                                          .arg = added};

    added->process = sim_process_start(&plan);
}

/* Redis */

static void start_redis(struct process *process, const char *const *argv)
{
    add(process)->server = redis_program_start(argv);
}

static void end_redis(struct started *server, int signal_number)
{
    sim_server_end(server->server);
    server->server = NULL;
    server->status = signal_number;
}

/* What a test asks */

static bool start(struct process *process, const char *folder, const char *name, const char *const *argv,
                  const char *in_path)
{
    const char *product = getenv("CHATELAINE_BINARY");
    const bool is_redis = strcmp(argv[0], "redis-server") == 0;

    begin();
    if (is_redis)
        start_redis(process, argv);
    else if (product && strcmp(argv[0], product) == 0)
        start_product(process, folder, name, argv, in_path);
    return process->of_world != NULL;
}

static bool wait_for(const struct process *process, int timeout_ms, int *ret_status)
{
    const struct started *waited = process->of_world;
    const uint64_t until_ns = sim_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;

    while ((waited->process || waited->server) && sim_now_ns() < until_ns)
        sim_world->wait(until_ns);
    *ret_status = waited->status;
    return !waited->process && !waited->server;
}

static void signal_redis(struct started *server, int signal_number)
{
    if (signal_number == SIGSTOP || signal_number == SIGCONT)
        sim_server_freeze(server->server, signal_number == SIGSTOP);
    else
        end_redis(server, signal_number);
}

static void tell(struct started *told, int signal_number)
{
    if (told->server) {
        signal_redis(told, signal_number);
    } else if (told->process && signal_number == SIGSTOP) {
        sim_process_pause(told->process);
    } else if (told->process && signal_number == SIGCONT) {
        sim_process_resume(told->process);
    } else if (told->process && signal_number != SIGKILL && sim_process_handles(told->process, signal_number)) {
        sim_process_signal(told->process, signal_number);
    } else if (told->process && signal_number != 0) {
        sim_process_kill(told->process);
        told->process = NULL;
        told->status = signal_number;
    }
}

static void signal_one(const struct process *process, int signal_number)
{
    tell(process->of_world, signal_number);
}

/* Of a test that does without process_signal(). */
int kill(pid_t pid, int signal_number)
{
    if (pid <= FIRST_PID || pid > FIRST_PID + (pid_t)started_count)
        return SYSTEM(kill)(pid, signal_number);
    tell(started[pid - FIRST_PID - 1], signal_number);
    return 0;
}

static const struct process_world WORLD = {.start = start, .wait = wait_for, .signal = signal_one};
const struct process_world *process_world = &WORLD;
