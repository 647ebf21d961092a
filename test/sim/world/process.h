/* Processes: each is the product's unmodified `main` in an image, a stack, a heap, descriptors, an environment and a
 * host of its own. One runs at a time, until it waits; then time goes on to whoever is next (schedule.h). What it
 * prints goes into FOLDER/NAME.out and FOLDER/NAME.err. Files are the system's. */
#pragma once
#include "network.h"

struct sim_process;

struct sim_process_plan {
    const char *name;
    const char *image, *folder;     /* NULL: that of all */
    const char *printed;            /* where what it prints is added, in place of its name; NULL: its name */
    const char *input;              /* the file that it reads; NULL: nothing */
    struct sim_host *host;          /* NULL: all of them run on one machine, the system's, without a network */
    const char *const *argv;        /* ends with NULL, as does: */
    const char *const *environment; /* NAME=value */
    /* It has ended by itself, and is gone after this call. NULL: nobody asks. */
    void (*ended)(void *arg, int code);
    void *arg;
};

/* From now on, for this thread, which has entered the kernel. image: the product's, of image.cmake. Both paths stay the
 * caller's, and valid. */
void sim_processes_begin(const char *image, const char *folder);
/* The caller is one of them, too: whenever it waits, the others go on. */
void sim_processes_join(void);
/* It begins to run with the next step. What the plan names is copied. */
struct sim_process *sim_process_start(const struct sim_process_plan *plan);
/* A thread of the program's own, in virtual time: it runs the function, on a stack of its own, and `ended` is called.
 */
struct sim_process *sim_thread_start(void *(*run)(void *arg), void *run_arg, void (*ended)(void *arg, int code),
                                     void *arg);
/* As kill -9: its sockets close, and nothing else is done. `ended` is not called. */
void sim_process_kill(struct sim_process *process);
/* Calls the handler that the process has set; there must be one. One that is paused hears of it afterwards. */
void sim_process_signal(struct sim_process *process, int number);
/* Does nothing until it goes on, while its clocks do. */
void sim_process_pause(struct sim_process *process);
void sim_process_resume(struct sim_process *process);
/* Its handler of that signal is set. */
bool sim_process_handles(const struct sim_process *process, int number);
