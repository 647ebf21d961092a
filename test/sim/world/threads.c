/* Threads of a test, as processes of the world: one runs at a time, until it waits. The linker sends the test's calls
 * here
 * (--wrap); those of libraries are the system's. Locks stay the system's: nobody waits while he has one. */
#include "base/check.h"
#include "base/mem.h"
#include "kernel_internal.h"
#include "process.h"
#include <pthread.h>
#include <stdlib.h>

struct thread {
    bool has_ended;
};

/* In the place of a pthread_barrier_t. */
struct barrier {
    unsigned count, came, turn;
};

/* The linker's names. */
int thread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *arg),
                  void *arg) __asm__("__wrap_pthread_create");
int thread_join(pthread_t joined, void **ret_value) __asm__("__wrap_pthread_join");
int barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes,
                 unsigned count) __asm__("__wrap_pthread_barrier_init");
int barrier_wait(pthread_barrier_t *barrier) __asm__("__wrap_pthread_barrier_wait");
int barrier_destroy(pthread_barrier_t *barrier) __asm__("__wrap_pthread_barrier_destroy");

static void ended(void *arg, int code)
{
    (void)code;
    ((struct thread *)arg)->has_ended = true;
}

int thread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *arg), void *arg)
{
    struct thread *thread = mem_alloc(sizeof *thread);

    CHECK(sim_has_others() && !attributes);
    thread->has_ended = false;
    *ret_thread = (pthread_t)(uintptr_t)thread;
    sim_thread_start(run, arg, ended, thread);
    return 0;
}

int thread_join(pthread_t joined, void **ret_value)
{
    struct thread *thread = (struct thread *)(uintptr_t)joined;

    CHECK(!ret_value);
    while (!thread->has_ended)
        sim_let_others();
    free(thread);
    return 0;
}

int barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned count)
{
    (void)attributes;
    *(struct barrier *)barrier = (struct barrier){.count = count};
    return 0;
}

int barrier_wait(pthread_barrier_t *barrier)
{
    struct barrier *all = (struct barrier *)barrier;
    const unsigned turn = all->turn;

    if (++all->came == all->count) {
        all->came = 0;
        all->turn++;
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (all->turn == turn)
        sim_let_others();
    return 0;
}

int barrier_destroy(pthread_barrier_t *barrier)
{
    (void)barrier;
    return 0;
}
