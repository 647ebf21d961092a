/* What a process asks of the system beyond clocks and sockets. Outside of processes each function is the system's. */
#include "base/check.h"
#include "base/mem.h"
#include "process_internal.h"
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FILES_MAX = 128 * 1024, QUICK_COST = 16 };

/* Chance */

int RAND_bytes(unsigned char *ret_bytes, int count)
{
    sim_draw_bytes(ret_bytes, (size_t)count);
    return 1;
}

int RAND_priv_bytes(unsigned char *ret_bytes, int count)
{
    return RAND_bytes(ret_bytes, count);
}

ssize_t getrandom(void *ret_bytes, size_t count, unsigned flags)
{
    if (!sim_running)
        return SYSTEM(getrandom)(ret_bytes, count, flags);
    sim_draw_bytes(ret_bytes, count);
    return (ssize_t)count;
}

/* Who it is */

pid_t getpid(void)
{
    return sim_running ? sim_running->number : SYSTEM(getpid)();
}

int gethostname(char *ret_name, size_t size)
{
    if (!sim_running || !sim_running->host)
        return SYSTEM(gethostname)(ret_name, size);
    snprintf(ret_name, size, "%s", sim_running->host->name);
    return 0;
}

/* Files */

static int opened(int fd)
{
    if (fd >= 0 && sim_running)
        sim_process_opened(fd);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list values;
    mode_t mode;

    va_start(values, flags);
    mode = va_arg(values, mode_t);
    va_end(values);
    return opened(SYSTEM(open)(path, flags, mode));
}

int open64(const char *path, int flags, ...)
{
    va_list values;
    mode_t mode;

    va_start(values, flags);
    mode = va_arg(values, mode_t);
    va_end(values);
    return opened(SYSTEM(open64)(path, flags, mode));
}

int memfd_create(const char *name, unsigned flags)
{
    return opened(SYSTEM(memfd_create)(name, flags));
}

/* No process loses what it has written: machines do not fail here. */
int fsync(int fd)
{
    return sim_running ? 0 : SYSTEM(fsync)(fd);
}

int fdatasync(int fd)
{
    return sim_running ? 0 : SYSTEM(fdatasync)(fd);
}

/* Memory */

struct mapping {
    struct list of_process;
    void *at;
    size_t bytes;
};

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off64_t from)
{
    void *mapped = SYSTEM(mmap64)(at, bytes, protection, flags, fd, from);
    struct mapping *mapping;

    if (mapped == MAP_FAILED || !sim_running)
        return mapped;
    mapping = mem_alloc(sizeof *mapping);
    *mapping = (struct mapping){.at = mapped, .bytes = bytes};
    list_append(&sim_running->mappings, &mapping->of_process);
    return mapped;
}

static void forget(struct mapping *mapping)
{
    list_remove(&mapping->of_process);
    free(mapping);
}

int munmap(void *at, size_t bytes)
{
    for (struct list *node = sim_running ? sim_running->mappings.next : NULL; node && node != &sim_running->mappings;
         node = node->next) {
        struct mapping *mapping = LIST_ENTRY(node, struct mapping, of_process);

        if (mapping->at != at)
            continue;
        CHECK(mapping->bytes == bytes);
        forget(mapping);
        break;
    }
    return SYSTEM(munmap)(at, bytes);
}

void sim_process_unmap(struct sim_process *process)
{
    struct list *node;

    while ((node = list_first(&process->mappings))) {
        struct mapping *mapping = LIST_ENTRY(node, struct mapping, of_process);

        CHECK(SYSTEM(munmap)(mapping->at, mapping->bytes) == 0);
        forget(mapping);
    }
}

/* Signals, limits, ends */

int sigaction(int number, const struct sigaction *action, struct sigaction *ret_before)
{
    if (!sim_running)
        return SYSTEM(sigaction)(number, action, ret_before);
    CHECK(number < SIM_SIGNALS);
    if (ret_before)
        *ret_before = (struct sigaction){.sa_handler = sim_running->handlers[number]};
    if (action)
        sim_running->handlers[number] = action->sa_handler;
    return 0;
}

/* SIGPIPE is ignored by the program (simulate.c), the others do not come. */
void (*signal(int number, void (*handler)(int)))(int)
{
    return sim_running ? SIG_DFL : SYSTEM(signal)(number, handler);
}

/* Nobody else calls it. */
int prctl(int option, ...)
{
    (void)option;
    return 0;
}

int setrlimit64(enum __rlimit_resource kind, const struct rlimit64 *limit)
{
    return sim_running ? 0 : SYSTEM(setrlimit64)(kind, limit);
}

int setrlimit(enum __rlimit_resource kind, const struct rlimit *limit)
{
    return sim_running ? 0 : SYSTEM(setrlimit)(kind, limit);
}

int getrlimit64(enum __rlimit_resource kind, struct rlimit64 *ret_limit)
{
    if (!sim_running || kind != RLIMIT_NOFILE)
        return SYSTEM(getrlimit64)(kind, ret_limit);
    *ret_limit = (struct rlimit64){.rlim_cur = FILES_MAX, .rlim_max = FILES_MAX};
    return 0;
}

int getrlimit(enum __rlimit_resource kind, struct rlimit *ret_limit)
{
    if (!sim_running || kind != RLIMIT_NOFILE)
        return SYSTEM(getrlimit)(kind, ret_limit);
    *ret_limit = (struct rlimit){.rlim_cur = FILES_MAX, .rlim_max = FILES_MAX};
    return 0;
}

void _exit(int code)
{
    if (sim_running)
        sim_process_exit(code);
    _Exit(code);
}

void abort(void)
{
    if (sim_running)
        sim_process_failed("it has aborted");
    SYSTEM(abort)();
    __builtin_unreachable();
}

/* Passwords are hashed quickly, with the cost that they are said to have: how hard they are to guess is not asked here.
 */
int EVP_PBE_scrypt(const char *password, size_t password_len, const unsigned char *salt, size_t salt_len, uint64_t n,
                   uint64_t r, uint64_t p, uint64_t memory_max, unsigned char *ret_key, size_t key_len)
{
    return SYSTEM(EVP_PBE_scrypt)(password, password_len, salt, salt_len, n < QUICK_COST ? n : QUICK_COST, r, p,
                                  memory_max, ret_key, key_len);
}
