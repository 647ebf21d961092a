#undef _FORTIFY_SOURCE /* it would refuse a longjmp() to another stack */
#include "process_internal.h"
#include "base/check.h"
#include "base/mem.h"
#include "trace.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 8 << 20, GUARD_BYTES = 4096, FDS_MAX = 1 << 16, FIRST_NUMBER = 1000, PATH_BYTES = 512 };

struct sim_process *sim_running;

static const char *image_path, *folder_path;
static struct list processes = {&processes, &processes};
static struct sim_place scheduler;
static struct sim_process caller; /* sim_processes_join(); it has a turn, and nothing else */
static bool is_caller_joined, caller_waits;
static int started;
static struct sim_process *owners[FDS_MAX];
static int fds_end;      /* behind the highest descriptor that a process ever had */
static char *free_stack; /* begins with the address of the next */

/* What the kernel asks */

void sim_process_opened(int fd)
{
    CHECK(fd < FDS_MAX);
    if (fd >= fds_end)
        fds_end = fd + 1;
    owners[fd] = sim_running && !sim_running->thread ? sim_running : NULL;
}

void sim_process_closed(int fd)
{
    if (fd >= 0 && fd < FDS_MAX)
        owners[fd] = NULL;
}

static void *current(void)
{
    return sim_running ? sim_running : is_caller_joined ? &caller : NULL;
}

static struct sim_host *host_of_running(void)
{
    return sim_running ? sim_running->host : NULL;
}

static const struct sim_clock *clock_of_running(void)
{
    if (!sim_running || sim_running->thread)
        return NULL;
    return sim_running->host ? &sim_running->host->clock : sim_shift_clock(&sim_running->shift);
}

/* Stacks, as the address sanitizer wants to know of them. */

struct stack {
    const void *bottom;
    size_t bytes;
};

static struct stack of_scheduler;

#ifdef __SANITIZE_ADDRESS__
static void stack_leave(void **ret_fake, const struct stack *to, bool is_over)
{
    __sanitizer_start_switch_fiber(is_over ? NULL : ret_fake, to->bottom, to->bytes);
}

static void stack_arrive(void *fake, struct stack *ret_from)
{
    __sanitizer_finish_switch_fiber(fake, &ret_from->bottom, &ret_from->bytes);
}

/* Functions that never returned have left marks. */
static void stack_clean(const char *stack, size_t bytes)
{
    __asan_unpoison_memory_region(stack, bytes);
}

static void go(struct sim_place *from, struct sim_place *to)
{
    CHECK(swapcontext(&from->context, &to->context) == 0);
}
#else
static void stack_leave(void **ret_fake, const struct stack *to, bool is_over)
{
    (void)ret_fake, (void)to, (void)is_over;
}

static void stack_arrive(void *fake, struct stack *ret_from)
{
    (void)fake, (void)ret_from;
}

static void stack_clean(const char *stack, size_t bytes)
{
    (void)stack, (void)bytes;
}

/* Without swapcontext(), which asks the system twice for the mask of signals. Not for the address sanitizer, to which
 * longjmp() would mean that functions have ended. */
static void go(struct sim_place *from, struct sim_place *to)
{
    if (_setjmp(from->jump) != 0)
        return;
    if (to->is_fresh)
        setcontext(&to->context);
    _longjmp(to->jump, 1);
}
#endif

static void leave(void)
{
    struct sim_process *process = sim_running;

    if (!process->thread) {
        fflush(process->out);
        fflush(process->err);
    }
    stack_leave(&process->fake_stack, &of_scheduler, process->has_ended);
    go(&process->place, &scheduler);
    stack_arrive(process->fake_stack, &of_scheduler);
}

static void end_of_callers_wait(struct sim_event *turn)
{
    (void)turn;
    caller_waits = false;
}

static void wait_until(uint64_t until_ns)
{
    struct sim_process *process = sim_running ? sim_running : &caller;

    if (until_ns == UINT64_MAX)
        sim_event_cancel(&process->turn);
    else
        sim_event_at(&process->turn, until_ns);
    if (process != &caller) {
        leave();
        return;
    }
    for (caller_waits = true; caller_waits;)
        sim_step(UINT64_MAX);
}

static void wake(void *arg)
{
    struct sim_process *process = arg;

    if (process != sim_running && !process->has_ended)
        sim_event_at(&process->turn, sim_now_ns());
}

static bool print(int fd, const struct iovec *parts, size_t count)
{
    FILE *file;

    if (!sim_running || sim_running->thread || fd == STDIN_FILENO)
        return false;
    file = fd == STDOUT_FILENO ? sim_running->out : sim_running->err;
    for (size_t i = 0; i < count; i++) {
        sim_trace_add(parts[i].iov_base, parts[i].iov_len);
        fwrite(parts[i].iov_base, 1, parts[i].iov_len, file);
    }
    return true;
}

static const struct sim_world WORLD = {.wait = wait_until,
                                       .current = current,
                                       .wake = wake,
                                       .host = host_of_running,
                                       .clock = clock_of_running,
                                       .opened = sim_process_opened,
                                       .closed = sim_process_closed,
                                       .printed = print};

void sim_processes_begin(const char *image, const char *folder)
{
    CHECK(list_empty(&processes));
    image_path = image;
    folder_path = folder;
    started = 0;
    sim_world = &WORLD;
}

void sim_processes_join(void)
{
    caller.turn.run = end_of_callers_wait;
    is_caller_joined = true;
}

/* Ending */

static void close_descriptors(const struct sim_process *process)
{
    for (int fd = 0; fd < fds_end; fd++)
        if (owners[fd] == process)
            close(fd);
}

static void stack_give_back(char *stack)
{
    stack_clean(stack + GUARD_BYTES, sizeof free_stack);
    memcpy(stack + GUARD_BYTES, &free_stack, sizeof free_stack);
    free_stack = stack;
}

/* What a thread has not. */
static void give_back(struct sim_process *process)
{
    if (process->in)
        fclose(process->in);
    fclose(process->out);
    fclose(process->err);
    sim_heap_give_back(process->heap);
    sim_image_give_back(process->image);
    sim_shift_finish(&process->shift);
    free(process->printed);
    free(process->argv);
    free(process->environment);
}

static void process_free(struct sim_process *process)
{
    sim_event_cancel(&process->turn);
    list_remove(&process->of_processes);
    close_descriptors(process);
    sim_process_unmap(process);
    stack_give_back(process->stack);
    if (!process->thread)
        give_back(process);
    free(process->name);
    free(process);
}

void sim_process_kill(struct sim_process *process)
{
    CHECK(process != sim_running);
    sim_trace(process->name, "is killed");
    process_free(process);
}

void sim_process_exit(int code)
{
    sim_running->code = code;
    sim_running->has_ended = true;
    sim_event_cancel(&sim_running->turn);
    leave();
    abort();
}

void sim_process_failed(const char *what)
{
    fflush(sim_running->out);
    fflush(sim_running->err);
    sim_trace_tell();
    dprintf(STDERR_FILENO, "%s: %s; the last line of %s.err says why\n", sim_running->name, what, sim_running->printed);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_print_stack_trace();
#endif
    _Exit(3);
}

/* Running */

static void begin(void)
{
    int count = 0;

    sim_running->place.is_fresh = false;
    stack_arrive(NULL, &of_scheduler);
    if (sim_running->thread) {
        sim_running->thread(sim_running->thread_arg);
        sim_process_exit(0);
    }
    while (sim_running->argv[count])
        count++;
    sim_process_exit(sim_image_run(sim_running->image, count, sim_running->argv));
}

struct outside {
    struct sim_process *running;
    FILE *in, *out, *err;
    char **environment;
    int error;
};

/* What belongs to a process is exchanged with it. */
static struct outside enter(struct sim_process *process)
{
    const struct outside outside = {sim_running, stdin, stdout, stderr, environ, errno};

    sim_running = process;
    if (process->in) {
        stdin = process->in;
        CHECK(dup2(fileno(stdin), STDIN_FILENO) == STDIN_FILENO);
    }
    errno = process->error;
    if (process->thread)
        return outside;
    stdout = process->out;
    stderr = process->err;
    environ = process->environment;
    sim_heap_use(process->heap);
    return outside;
}

static void go_back(const struct outside *outside)
{
    sim_running->error = errno;
    sim_running = outside->running;
    stdin = outside->in;
    stdout = outside->out;
    stderr = outside->err;
    environ = outside->environment;
    errno = outside->error;
    sim_heap_use(sim_running ? sim_running->heap : NULL);
}

static void deliver_signals(struct sim_process *process)
{
    struct outside outside;

    for (int number = 1; number < SIM_SIGNALS; number++) {
        if (!(process->signals & UINT32_C(1) << number))
            continue;
        process->signals &= ~(UINT32_C(1) << number);
        CHECK(process->handlers[number]);
        outside = enter(process);
        process->handlers[number](number);
        go_back(&outside);
    }
}

static void run(struct sim_event *turn)
{
    struct sim_process *process = LIST_ENTRY(turn, struct sim_process, turn);
    void (*ended)(void *arg, int code) = process->ended;
    void *arg = process->arg;
    struct outside outside;
    struct stack of_process;
    void *fake_stack;
    int code;

    process->is_late = process->is_paused;
    if (process->is_paused)
        return;
    outside = enter(process);
    stack_leave(&fake_stack, &(struct stack){process->stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES}, false);
    go(&scheduler, &process->place);
    stack_arrive(fake_stack, &of_process);
    go_back(&outside);
    if (!process->has_ended)
        return;
    code = process->code;
    sim_trace(process->name, "ends with %d", code);
    process_free(process);
    if (ended)
        ended(arg, code);
}

void sim_process_signal(struct sim_process *process, int number)
{
    sim_trace(process->name, "gets signal %d", number);
    process->signals |= UINT32_C(1) << number;
    if (!process->is_paused)
        deliver_signals(process);
}

bool sim_process_handles(const struct sim_process *process, int number)
{
    return process->handlers[number] != NULL;
}

void sim_process_pause(struct sim_process *process)
{
    sim_trace(process->name, "is paused");
    process->is_paused = true;
}

void sim_process_resume(struct sim_process *process)
{
    sim_trace(process->name, "goes on");
    process->is_paused = false;
    deliver_signals(process);
    if (process->is_late)
        sim_event_at(&process->turn, sim_now_ns());
}

/* Beginning */

/* In one piece: whoever reads arguments may move them. */
static char **texts_copy(const char *const *texts)
{
    size_t count = 0, bytes = 0;
    char **copy, *at;

    for (; texts[count]; count++)
        bytes += strlen(texts[count]) + 1;
    copy = mem_alloc((count + 1) * sizeof *copy + bytes);
    at = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        copy[i] = memcpy(at, texts[i], strlen(texts[i]) + 1);
        at += strlen(texts[i]) + 1;
    }
    copy[count] = NULL;
    return copy;
}

static char *stack_take(void)
{
    char *stack = free_stack;

    if (stack) {
        memcpy(&free_stack, stack + GUARD_BYTES, sizeof free_stack);
        stack_clean(stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
        return stack;
    }
    stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(stack != MAP_FAILED && mprotect(stack, GUARD_BYTES, PROT_NONE) == 0);
    return stack;
}

static char *path_printed(const struct sim_process_plan *plan)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/%s", plan->folder ? plan->folder : folder_path,
             plan->printed ? plan->printed : plan->name);
    return mem_copy_text(path, strlen(path));
}

static FILE *open_printed(const struct sim_process *process, const char *kind)
{
    char path[PATH_BYTES + 8];
    FILE *file;

    snprintf(path, sizeof path, "%s.%s", process->printed, kind);
    file = fopen(path, "ae");
    CHECK(file);
    return file;
}

/* Its turn comes next. */
static void get_ready(struct sim_process *process)
{
    process->number = FIRST_NUMBER + started++;
    process->stack = stack_take();
    list_init(&process->mappings);
    CHECK(getcontext(&process->place.context) == 0);
    process->place.context.uc_stack.ss_sp = process->stack + GUARD_BYTES;
    process->place.context.uc_stack.ss_size = STACK_BYTES - GUARD_BYTES;
    process->place.is_fresh = true;
    makecontext(&process->place.context, begin, 0);
    process->turn.run = run;
    list_append(&processes, &process->of_processes);
    sim_event_at(&process->turn, sim_now_ns());
    sim_trace(process->name, "starts");
}

struct sim_process *sim_process_start(const struct sim_process_plan *plan)
{
    struct sim_process *process = mem_alloc(sizeof *process);

    *process = (struct sim_process){.host = plan->host, .ended = plan->ended, .arg = plan->arg};
    process->name = mem_copy_text(plan->name, strlen(plan->name));
    process->argv = texts_copy(plan->argv);
    process->environment = texts_copy(plan->environment);
    if (!plan->host)
        sim_shift_init(&process->shift, process->environment);
    process->image = sim_image_take(plan->image ? plan->image : image_path);
    process->heap = sim_heap_take();
    process->in = plan->input ? fopen(plan->input, "re") : NULL;
    process->printed = path_printed(plan);
    process->out = open_printed(process, "out");
    process->err = open_printed(process, "err");
    get_ready(process);
    return process;
}

struct sim_process *sim_thread_start(void *(*run_it)(void *arg), void *run_arg, void (*ended)(void *arg, int code),
                                     void *arg)
{
    struct sim_process *process = mem_alloc(sizeof *process);

    *process = (struct sim_process){.thread = run_it, .thread_arg = run_arg, .ended = ended, .arg = arg};
    process->name = mem_copy_text("thread", strlen("thread"));
    get_ready(process);
    return process;
}
