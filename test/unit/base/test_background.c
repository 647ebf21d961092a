#include "base/background.h"

#include "deadline.h"
#include "leak_guard.h"
#include "no_threads.h"
#include "test_loop.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

TestSuite(background, .fini = leak_guard);

enum { JOBS = 8, ROUNDS = 32 };

struct job {
    struct background background;
    uv_thread_t worked_on, done_on;
    unsigned worked, done;
};

static struct job *job_of(struct background *background)
{
    return (struct job *)(void *)((char *)background - offsetof(struct job, background));
}

static void work(struct background *background)
{
    struct job *job = job_of(background);

    job->worked_on = uv_thread_self();
    job->worked++;
}

static void done(struct background *background)
{
    struct job *job = job_of(background);

    job->done_on = uv_thread_self();
    job->done++;
}

static bool all_done(void *arg)
{
    const struct job *jobs = arg;

    for (size_t i = 0; i < JOBS; i++)
        if (jobs[i].done == 0)
            return false;
    return true;
}

static unsigned threads_of_this_process(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned count = 0;

    for (const struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static bool has_threads(void *arg)
{
    return threads_of_this_process() == *(const unsigned *)arg;
}

Test(background, works_on_a_thread_that_ends_and_tells_on_the_loop)
{
    unsigned threads = threads_of_this_process();
    uv_thread_t here = uv_thread_self();
    struct job jobs[JOBS] = {0};
    uv_loop_t loop;

    cr_assert_eq(uv_loop_init(&loop), 0);
    for (size_t i = 0; i < JOBS; i++)
        background_start(&jobs[i].background, &loop, work, done);
    for (size_t i = 0; i < JOBS; i++)
        cr_assert_eq(jobs[i].done, 0, "never inside the call");
    cr_assert(test_loop_until(&loop, all_done, jobs, PATIENCE_MS));
    for (size_t i = 0; i < JOBS; i++) {
        cr_assert_eq(jobs[i].worked, 1);
        cr_assert_eq(jobs[i].done, 1);
        cr_assert_eq(jobs[i].background.status, 0);
        cr_assert_not(uv_thread_equal(&jobs[i].worked_on, &here));
        cr_assert(uv_thread_equal(&jobs[i].done_on, &here));
    }
    cr_assert(test_loop_until(&loop, has_threads, &threads, PATIENCE_MS)); /* the kernel's list lags a little */
    cr_assert(test_loop_finish(&loop));
}

static size_t address_space_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    cr_assert(file && fscanf(file, "%zu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A thread that is not joined keeps its stack. */
Test(background, leaves_no_stack_behind)
{
    enum { STACK_BYTES = 8 << 20, STACKS_KEPT_FOR_USE_AGAIN = 2 * JOBS };
    size_t before = address_space_bytes();
    uv_loop_t loop;

    cr_assert_eq(uv_loop_init(&loop), 0);
    for (size_t round = 0; round < ROUNDS; round++) {
        struct job jobs[JOBS] = {0};

        for (size_t i = 0; i < JOBS; i++)
            background_start(&jobs[i].background, &loop, work, done);
        cr_assert(test_loop_until(&loop, all_done, jobs, PATIENCE_MS));
    }
    cr_assert_lt(address_space_bytes(), before + (size_t)STACKS_KEPT_FOR_USE_AGAIN * STACK_BYTES);
    cr_assert(test_loop_finish(&loop));
}

Test(background, tells_when_there_can_be_no_thread)
{
    struct job job = {0};
    struct rlimit before;
    uv_loop_t loop;

    cr_assert_eq(uv_loop_init(&loop), 0);
    no_threads_begin(&before);
    background_start(&job.background, &loop, work, done);
    no_threads_end(&before);
    cr_assert_eq(job.done, 0, "never inside the call");
    cr_assert(test_loop_finish(&loop));
    cr_assert_eq(job.done, 1);
    cr_assert_eq(job.worked, 0);
    cr_assert_lt(job.background.status, 0);
}
