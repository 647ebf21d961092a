#include "process.h"
#include "deadline.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((weak)) const struct process_world *process_world;

void test_give_up(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("test cannot go on: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static void redirect(const char *path, int flags, int to)
{
    int fd = open(path, flags, 0600);

    if (fd < 0 || dup2(fd, to) < 0)
        _exit(126);
    close(fd);
}

/* In the child. argv is not changed by execvp(), whose prototype predates const. */
static void become(const struct process *process, const char *const *argv, const char *in_path, pid_t parent)
{
    union {
        const char *const *given;
        char *const *wanted;
    } args = {.given = argv};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(125);
    redirect(in_path ? in_path : "/dev/null", O_RDONLY, STDIN_FILENO);
    redirect(process->out_path, O_WRONLY | O_CREAT | O_APPEND, STDOUT_FILENO);
    redirect(process->err_path, O_WRONLY | O_CREAT | O_APPEND, STDERR_FILENO);
    closefrom(3);
    execvp(args.wanted[0], args.wanted);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void start_with_input(struct process *process, const char *folder, const char *name, const char *const *argv,
                             const char *in_path)
{
    pid_t parent = getpid();

    snprintf(process->out_path, sizeof process->out_path, "%.150s/%.30s.out", folder, name);
    snprintf(process->err_path, sizeof process->err_path, "%.150s/%.30s.err", folder, name);
    process->status = 0;
    process->of_world = NULL;
    if (process_world && process_world->start(process, folder, name, argv, in_path))
        return;
    process->pid = fork();
    if (process->pid == 0)
        become(process, argv, in_path, parent);
    if (process->pid < 0)
        test_give_up("fork: %s", strerror(errno));
    process->pidfd = pidfd_open(process->pid, 0);
    if (process->pidfd < 0)
        test_give_up("pidfd_open: %s", strerror(errno));
}

void process_start(struct process *process, const char *folder, const char *name, const char *const *argv)
{
    start_with_input(process, folder, name, argv, NULL);
}

bool process_wait(struct process *process, int timeout_ms)
{
    struct pollfd ended = {.fd = process->pidfd, .events = POLLIN};
    struct deadline deadline = deadline_in(timeout_ms);

    if (process->pid == 0)
        return true;
    if (process->of_world) {
        if (!process_world->wait(process, timeout_ms, &process->status))
            return false;
        process->pid = 0;
        return true;
    }
    while (!process_world &&
           poll(&ended, 1, deadline_left_ms(deadline)) <= 0) { /* virtual time would not wait for it */
        if (deadline_left_ms(deadline) == 0)
            return false;
    }
    if (waitpid(process->pid, &process->status, 0) != process->pid)
        test_give_up("waitpid: %s", strerror(errno));
    close(process->pidfd);
    process->pid = 0;
    return true;
}

void process_signal(const struct process *process, int signal_number)
{
    if (process->pid != 0 && process->of_world)
        process_world->signal(process, signal_number);
    else if (process->pid != 0)
        kill(process->pid, signal_number);
}

void process_kill(struct process *process)
{
    process_signal(process, SIGKILL);
    process_wait(process, PATIENCE_MS);
}

int process_exit_code(const struct process *process)
{
    return WIFEXITED(process->status) ? WEXITSTATUS(process->status) : -1;
}

int process_run(struct process *process, const char *folder, const char *name, const char *const *argv,
                const char *input, int timeout_ms)
{
    char in_path[PROCESS_PATH_BYTES];

    if (input) {
        snprintf(in_path, sizeof in_path, "%.150s/%.30s.in", folder, name);
        file_write(in_path, input);
    }
    start_with_input(process, folder, name, argv, input ? in_path : NULL);
    if (!process_wait(process, timeout_ms)) {
        process_kill(process);
        test_give_up("%s %s did not end within %d ms", argv[0], argv[1] ? argv[1] : "", timeout_ms);
    }
    return process_exit_code(process);
}

void folder_make(char ret_path[PROCESS_PATH_BYTES])
{
    const char *base = getenv("TMPDIR");

    snprintf(ret_path, PROCESS_PATH_BYTES, "%.60s/chatelaine-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(ret_path))
        test_give_up("mkdtemp %s: %s", ret_path, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

void folder_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static char *read_whole(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "re");
    char *content = NULL;
    FILE *copy = open_memstream(&content, ret_len);
    int c;

    if (!copy)
        test_give_up("out of memory");
    while (file && (c = fgetc(file)) != EOF)
        fputc(c, copy);
    if (file)
        fclose(file);
    fclose(copy);
    return content;
}

char *file_read(const char *path)
{
    size_t len;

    return read_whole(path, &len);
}

bool file_contains(const char *path, const char *text)
{
    size_t len;
    char *content = read_whole(path, &len);
    bool found = memmem(content, len, text, strlen(text)) != NULL;

    free(content);
    return found;
}

void file_write(const char *path, const char *content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t len = strlen(content);

    if (fd < 0 || write(fd, content, len) != (ssize_t)len)
        test_give_up("write %s: %s", path, strerror(errno));
    close(fd);
}
