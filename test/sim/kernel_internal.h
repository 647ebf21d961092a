/* What the files of this folder share. */
#pragma once
#include "base/list.h"
#include "kernel.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <time.h>

/* The system's own function, whatever the program defines. */
#define SYSTEM(name)                                               \
    ({                                                             \
        static __typeof__(&name) function;                         \
        if (!function)                                             \
            function = (__typeof__(&name))sim_system_named(#name); \
        function;                                                  \
    })
void *sim_system_named(const char *name);

/* Whether this thread has entered. */
bool sim_is_inside(void);
uint64_t sim_now_ns(void);
/* The calendar, whatever the host or process that runs now thinks. */
struct timespec sim_real_time(void);
/* Since it entered. */
uint64_t sim_spent_ns(void);

/* How the clocks of a host go: all by pace_ppm too fast, since a moment at which they were lead_ns ahead; and the
 * calendar by off_ns more. */
struct sim_clock {
    int64_t pace_ppm, lead_ns, off_ns;
};
/* How long a wait of so many ns by the clock of the host that runs now takes. */
uint64_t sim_wait_ns(uint64_t ns);

struct sim_host;

/* Where several processes share the kernel, what it asks of them. NULL: there is one, which is the program itself. */
struct sim_world {
    /* The process that runs now waits until it is woken, or until then (UINT64_MAX: for ever). */
    void (*wait)(uint64_t until_ns);
    void *(*current)(void);
    void (*wake)(void *process);
    /* Of the process that runs now. NULL: none does. */
    struct sim_host *(*host)(void);
    const struct sim_clock *(*clock)(void);
    /* The process that runs now has opened, or closed, a descriptor. */
    void (*opened)(int fd);
    void (*closed)(int fd);
    /* Takes what it writes to its standard output or error. False: that is the program's own. */
    bool (*printed)(int fd, const struct iovec *parts, size_t count);
};
extern const struct sim_world *sim_world;
/* Whether the caller is one of several processes. */
bool sim_has_others(void);
/* They go on for a millisecond, while the caller blocks: he must have some. */
void sim_let_others(void);

struct sim_socket;

/* An epoll instance that looks at a socket. */
struct sim_watch {
    struct list of_socket, of_epoll, ready; /* ready: in the epoll's list, or a list of its own */
    struct sim_socket *socket;
    struct sim_epoll *epoll;
    struct epoll_event event;
};

/* NULL: fd is none of ours. */
struct sim_socket *sim_socket_of(int fd);
struct list *sim_socket_watches(struct sim_socket *socket);
/* What epoll would report now, all of it. */
uint32_t sim_socket_events(const struct sim_socket *socket);
/* Something has happened, which concerns those events, or (0) all: whoever watches them looks at it again. */
void sim_epoll_notify(struct sim_socket *socket, uint32_t events);
void sim_epoll_forget(struct sim_socket *socket);
/* Frees an epoll instance. Nothing if fd is none. */
void sim_epoll_close(int fd);
