/* What the files of this folder share. */
#pragma once
#include "base/list.h"
#include "kernel.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

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
