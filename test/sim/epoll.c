/* epoll and poll. An instance is one of the system, which looks at what is none of ours. A list of what may be ready is
 * kept as Linux keeps it: in the order in which things happened, level-triggered ones again at the end. */
#include "base/check.h"
#include "base/mem.h"
#include "kernel_internal.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { NS_PER_MS = 1000 * 1000, LOOK_NS = 10 * 1000, POLL_NS = 50 * 1000, FDS_MAX = 1 << 16 };

struct sim_epoll {
    struct list watches, ready;
    unsigned system_watches;
    void *process; /* whose it is, in a world of several */
};

static struct sim_epoll *epolls[FDS_MAX];

static struct sim_epoll *epoll_of(int fd)
{
    return fd >= 0 && fd < FDS_MAX && sim_is_inside() ? epolls[fd] : NULL;
}

static int keep(int fd)
{
    if (fd < 0 || !sim_is_inside())
        return fd;
    CHECK(fd < FDS_MAX && !epolls[fd]);
    epolls[fd] = mem_alloc(sizeof *epolls[fd]);
    list_init(&epolls[fd]->watches);
    list_init(&epolls[fd]->ready);
    epolls[fd]->system_watches = 0;
    epolls[fd]->process = sim_world ? sim_world->current() : NULL;
    if (sim_world)
        sim_world->opened(fd);
    return fd;
}

int epoll_create1(int flags)
{
    return keep(SYSTEM(epoll_create1)(flags));
}

int epoll_create(int size)
{
    return keep(SYSTEM(epoll_create)(size));
}

static void watch_free(struct sim_watch *watch)
{
    list_remove(&watch->of_socket);
    list_remove(&watch->of_epoll);
    list_remove(&watch->ready);
    free(watch);
}

void sim_epoll_close(int fd)
{
    struct sim_epoll *epoll = epoll_of(fd);
    struct list *node;

    if (!epoll)
        return;
    while ((node = list_first(&epoll->watches)))
        watch_free(LIST_ENTRY(node, struct sim_watch, of_epoll));
    free(epoll);
    epolls[fd] = NULL;
}

void sim_epoll_forget(struct sim_socket *socket)
{
    struct list *node;

    while ((node = list_first(sim_socket_watches(socket))))
        watch_free(LIST_ENTRY(node, struct sim_watch, of_socket));
}

static void put_into_ready(struct sim_watch *watch)
{
    if (list_empty(&watch->ready))
        list_append(&watch->epoll->ready, &watch->ready);
    if (watch->epoll->process)
        sim_world->wake(watch->epoll->process);
}

void sim_epoll_notify(struct sim_socket *socket, uint32_t events)
{
    struct list *watches = sim_socket_watches(socket);

    for (struct list *node = watches->next; node != watches; node = node->next) {
        struct sim_watch *watch = LIST_ENTRY(node, struct sim_watch, of_socket);

        if (!events || (events & watch->event.events))
            put_into_ready(watch);
    }
}

/* Errors and hanging up are always reported. */
static uint32_t events_of(const struct sim_watch *watch)
{
    return sim_socket_events(watch->socket) & (watch->event.events | EPOLLERR | EPOLLHUP);
}

static struct sim_watch *find(struct sim_epoll *epoll, struct sim_socket *socket)
{
    for (struct list *node = epoll->watches.next; node != &epoll->watches; node = node->next)
        if (LIST_ENTRY(node, struct sim_watch, of_epoll)->socket == socket)
            return LIST_ENTRY(node, struct sim_watch, of_epoll);
    return NULL;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static struct sim_watch *watch_add(struct sim_epoll *epoll, struct sim_socket *socket)
{
    struct sim_watch *watch = mem_alloc(sizeof *watch);

    watch->socket = socket;
    watch->epoll = epoll;
    list_init(&watch->ready);
    list_append(&epoll->watches, &watch->of_epoll);
    list_append(sim_socket_watches(socket), &watch->of_socket);
    return watch;
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    struct sim_epoll *epoll = epoll_of(epfd);
    struct sim_socket *socket = epoll ? sim_socket_of(fd) : NULL;
    struct sim_watch *watch;
    int status;

    if (!socket) {
        status = SYSTEM(epoll_ctl)(epfd, op, fd, event);
        if (epoll && status == 0)
            epoll->system_watches += op == EPOLL_CTL_ADD ? 1 : op == EPOLL_CTL_DEL ? -1U : 0;
        return status;
    }
    watch = find(epoll, socket);
    if (op == EPOLL_CTL_ADD ? watch != NULL : watch == NULL)
        return fail(watch ? EEXIST : ENOENT);
    if (op == EPOLL_CTL_DEL) {
        watch_free(watch);
        return 0;
    }
    if (!watch)
        watch = watch_add(epoll, socket);
    watch->event = *event;
    if (events_of(watch))
        put_into_ready(watch);
    return 0;
}

/* Each that is in the list is looked at once. */
static int take_ready(struct sim_epoll *epoll, struct epoll_event *ret_events, int max)
{
    struct list again, *node;
    int count = 0;

    list_init(&again);
    while (count < max && (node = list_first(&epoll->ready))) {
        struct sim_watch *watch = LIST_ENTRY(node, struct sim_watch, ready);
        uint32_t events = events_of(watch);

        list_remove(node);
        if (!events)
            continue;
        ret_events[count++] = (struct epoll_event){.events = events, .data = watch->event.data};
        if (watch->event.events & EPOLLONESHOT)
            watch->event.events = 0;
        else if (!(watch->event.events & EPOLLET))
            list_append(&again, node);
    }
    while ((node = list_first(&again))) {
        list_remove(node);
        list_append(&epoll->ready, node);
    }
    return count;
}

static uint64_t end_of_wait(int timeout)
{
    return timeout < 0 ? UINT64_MAX : sim_now_ns() + sim_wait_ns((uint64_t)timeout * NS_PER_MS);
}

/* Among several processes each look lets those go on whose time has come. */
static int look_among_others(int epfd, struct epoll_event *ret_events, int max, int timeout)
{
    struct sim_epoll *epoll = epoll_of(epfd);
    const uint64_t until_ns = end_of_wait(timeout);
    int count, more;

    do {
        sim_kernel_spend_ns(LOOK_NS);
        sim_world->wait(list_empty(&epoll->ready) ? until_ns : 0);
        count = take_ready(epoll, ret_events, max);
        more = count < max && epoll->system_watches > 0
                   ? SYSTEM(epoll_pwait)(epfd, ret_events + count, max - count, 0, NULL)
                   : 0;
        count += more > 0 ? more : 0;
    } while (count == 0 && sim_now_ns() < until_ns);
    return count;
}

static int look(int epfd, struct epoll_event *ret_events, int max, int timeout, const sigset_t *mask)
{
    struct sim_epoll *epoll = epoll_of(epfd);
    int count, more;

    if (!epoll)
        return SYSTEM(epoll_pwait)(epfd, ret_events, max, timeout, mask);
    if (epoll->process)
        return look_among_others(epfd, ret_events, max, timeout);
    sim_kernel_spend_ns(LOOK_NS);
    count = take_ready(epoll, ret_events, max);
    if (count == max)
        return count;
    /* With nothing of ours to wait for, and no end to the wait, only the system can end it. */
    more = epoll->system_watches == 0
               ? 0
               : SYSTEM(epoll_pwait)(epfd, ret_events + count, max - count, count == 0 && timeout < 0 ? -1 : 0, mask);
    if (more < 0)
        return count > 0 ? count : more;
    if (count + more == 0 && timeout > 0)
        sim_kernel_spend_ns((uint64_t)timeout * NS_PER_MS - LOOK_NS);
    return count + more;
}

int epoll_pwait(int epfd, struct epoll_event *ret_events, int max, int timeout, const sigset_t *mask)
{
    return look(epfd, ret_events, max, timeout, mask);
}

int epoll_wait(int epfd, struct epoll_event *ret_events, int max, int timeout)
{
    return look(epfd, ret_events, max, timeout, NULL);
}

static uint32_t polled(short events)
{
    return (events & POLLIN ? EPOLLIN : 0) | (events & POLLOUT ? EPOLLOUT : 0) | (events & POLLRDHUP ? EPOLLRDHUP : 0) |
           EPOLLERR | EPOLLHUP;
}

static short reported(uint32_t events)
{
    return (short)((events & EPOLLIN ? POLLIN : 0) | (events & EPOLLOUT ? POLLOUT : 0) |
                   (events & EPOLLRDHUP ? POLLRDHUP : 0) | (events & EPOLLERR ? POLLERR : 0) |
                   (events & EPOLLHUP ? POLLHUP : 0));
}

static int take_polled(struct pollfd *fds, nfds_t count)
{
    int ready = 0;

    for (nfds_t i = 0; i < count; i++) {
        const struct sim_socket *socket = sim_socket_of(fds[i].fd);

        if (socket)
            fds[i].revents = reported(sim_socket_events(socket) & polled(fds[i].events));
        else if (fds[i].fd < 0)
            fds[i].revents = 0;
        else
            CHECK(SYSTEM(poll)(&fds[i], 1, 0) >= 0);
        ready += fds[i].revents != 0;
    }
    return ready;
}

/* Nothing wakes whoever polls: it looks every millisecond. Each look takes time, and lets others go on: whoever asks
 * again and again until something has happened comes to an end. */
static int poll_among_others(struct pollfd *fds, nfds_t count, int timeout)
{
    const uint64_t until_ns = end_of_wait(timeout);
    int ready;

    sim_world->wait(sim_now_ns() + POLL_NS);
    while ((ready = take_polled(fds, count)) == 0 && sim_now_ns() < until_ns)
        sim_world->wait(until_ns < sim_now_ns() + NS_PER_MS ? until_ns : sim_now_ns() + NS_PER_MS);
    return ready;
}

/* Of ours alone: a list with one that is not is the system's, with its time. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    int ready;

    if (sim_has_others())
        return poll_among_others(fds, count, timeout);
    for (nfds_t i = 0; i < count; i++)
        if (!sim_socket_of(fds[i].fd))
            return SYSTEM(poll)(fds, count, timeout);
    if (!sim_is_inside())
        return SYSTEM(poll)(fds, count, timeout);
    ready = take_polled(fds, count);
    CHECK(ready > 0 || timeout >= 0); /* it would never end */
    sim_kernel_spend_ns(ready == 0 && timeout > 0 ? (uint64_t)timeout * NS_PER_MS : LOOK_NS);
    return ready;
}
