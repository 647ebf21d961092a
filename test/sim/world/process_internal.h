/* A process, for process.c and for what it asks of the system (system.c). */
#pragma once
#include "heap.h"
#include "image.h"
#include "process.h"
#include "schedule.h"
#include "shift.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

enum { SIM_SIGNALS = 32 };

/* Where a stack goes on. */
struct sim_place {
    ucontext_t context;
    jmp_buf jump;
    bool is_fresh; /* nothing has run on it yet: it begins with the context */
};

struct sim_process {
    struct list of_processes;
    char *name;
    char *printed; /* what it prints goes into this path and ".out" or ".err" */
    struct sim_host *host;
    char **argv, **environment;
    void (*ended)(void *arg, int code);
    void *arg;
    int number;                 /* what it is told as its id */
    void *(*thread)(void *arg); /* NULL: it has an image, a heap, and files */
    void *thread_arg;
    struct sim_image *image;
    struct sim_heap *heap;
    char *stack;
    void *fake_stack; /* of the sanitizer */
    struct sim_place place;
    struct sim_event turn;
    bool is_paused, is_late; /* late: its turn came meanwhile */
    bool has_ended;
    int code, error;  /* error: errno */
    uint32_t signals; /* that it has not heard of yet */
    void (*handlers[SIM_SIGNALS])(int number);
    struct sim_shift shift; /* without a host */
    FILE *in, *out, *err;   /* in: NULL, it reads nothing */
    struct list mappings;
};

/* NULL: none runs. */
extern struct sim_process *sim_running;

/* Ends the process that runs. */
_Noreturn void sim_process_exit(int code);
/* It must not have come to this. */
_Noreturn void sim_process_failed(const char *what);
/* The process that runs has, or has not, a descriptor. */
void sim_process_opened(int fd);
void sim_process_closed(int fd);
/* Ends what the process has mapped. */
void sim_process_unmap(struct sim_process *process);
