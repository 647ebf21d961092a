/* Child processes of a test. Their output goes to files in a folder. They are killed when the test's process ends,
 * however it ends. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

enum { PROCESS_PATH_BYTES = 192 };

struct process {
    pid_t pid; /* 0 once it has been waited for */
    int pidfd;
    int status; /* from waitpid() */
    char out_path[PROCESS_PATH_BYTES];
    char err_path[PROCESS_PATH_BYTES];
    void *of_world; /* below; NULL: a process of the system */
};

/* Where a test runs in virtual time (sim/world/tested.c), some programs run there, too, as something else than a
 * process of the system. NULL: the test does not. */
struct process_world {
    /* False: the system is to start it. in_path: NULL for /dev/null. */
    bool (*start)(struct process *process, const char *folder, const char *name, const char *const *argv,
                  const char *in_path);
    /* Of one that it has started: the status is for waitpid()'s macros. */
    bool (*wait)(const struct process *process, int timeout_ms, int *ret_status);
    void (*signal)(const struct process *process, int signal_number);
};
extern const struct process_world *process_world;

/* Starts argv (NULL-terminated; argv[0] is found in PATH). Output is appended to <folder>/<name>.out and .err. Aborts
 * the test if it cannot. */
void process_start(struct process *process, const char *folder, const char *name, const char *const *argv);
/* Waits until it has ended. False: it still runs after timeout_ms. */
bool process_wait(struct process *process, int timeout_ms);
void process_signal(const struct process *process, int signal_number);
/* Sends SIGKILL and waits. Does nothing if it has ended. */
void process_kill(struct process *process);
/* -1 if a signal ended it. */
int process_exit_code(const struct process *process);

/* Runs to the end and returns its exit code; aborts after timeout_ms. input may be NULL. */
int process_run(struct process *process, const char *folder, const char *name, const char *const *argv,
                const char *input, int timeout_ms);

/* Makes a new folder under TMPDIR; removes it with everything in it. */
void folder_make(char ret_path[PROCESS_PATH_BYTES]);
void folder_remove(const char *path);
/* The whole file, NUL-terminated; the caller frees it. Empty if there is no file. */
char *file_read(const char *path);
/* Whether the file contains that text, among bytes of any kind. */
bool file_contains(const char *path, const char *text);
void file_write(const char *path, const char *content);
/* Stops the test with a message, because something that it needs is missing. */
__attribute__((noreturn, format(printf, 1, 2))) void test_give_up(const char *format, ...);
