/* Child processes of a test. Their output goes to files in a folder, and they are killed when the test's process ends,
 * however it ends. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

enum { PROCESS_PATH_BYTES = 192 };

struct process {
    pid_t pid; /* 0 once it has been waited for */
    int pidfd;
    int status; /* as waitpid() tells it */
    char out_path[PROCESS_PATH_BYTES];
    char err_path[PROCESS_PATH_BYTES];
};

/* Starts argv (NULL-terminated, argv[0] found in PATH); output goes to <folder>/<name>.out and .err, appended. Aborts
 * the test when it cannot. */
void process_start(struct process *process, const char *folder, const char *name, const char *const *argv);
/* Waits until it has ended; false when it still runs after timeout_ms. */
bool process_wait(struct process *process, int timeout_ms);
void process_signal(const struct process *process, int signal_number);
/* SIGKILL and wait. Fine for one that has ended. */
void process_kill(struct process *process);
/* -1 when it was ended by a signal. */
int process_exit_code(const struct process *process);

/* Runs to the end and returns its exit code; aborts after timeout_ms. input may be NULL. */
int process_run(struct process *process, const char *folder, const char *name, const char *const *argv,
                const char *input, int timeout_ms);

/* A new folder under TMPDIR; and away with it and all it holds. */
void folder_make(char ret_path[PROCESS_PATH_BYTES]);
void folder_remove(const char *path);
/* The whole file, NUL-terminated; the caller frees. Empty when there is none. */
char *file_read(const char *path);
/* Whether the file holds that text, behind bytes of any kind. */
bool file_contains(const char *path, const char *text);
void file_write(const char *path, const char *content);
/* Stops the test with a message: for what a test needs and cannot have. */
__attribute__((noreturn, format(printf, 1, 2))) void test_give_up(const char *format, ...);
