/* The kernel of test/sim is held to the system's: each test runs with the one, then with the other. */
#include "deadline.h"
#include "kernel.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

TestSuite(sim_kernel, .timeout = TEST_WITHIN_S);

static void twice(void (*test)(void))
{
    signal(SIGPIPE, SIG_IGN);
    test();
    sim_kernel_enter();
    test();
}

/* A walk over Unix sockets, on which everything happens at once */

enum { SOCKETS = 12, STEPS = 4000, TRACE_BYTES = 512 * 1024, MOST_UNREAD = 4000 };

static struct walk {
    uint64_t state;                                     /* of the generator */
    int listener, epoll, fds[SOCKETS], others[SOCKETS]; /* others: the far end's place, or -1 */
    size_t unread[SOCKETS], waiting;
    struct sockaddr_un address;
    char trace[TRACE_BYTES];
    size_t len;
} walk;

static unsigned draw(unsigned below)
{
    walk.state = walk.state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(walk.state >> 33) % below;
}

static void note(const char *what, long place, long result)
{
    int error = result < 0 ? errno : 0;

    walk.len += (size_t)snprintf(walk.trace + walk.len, sizeof walk.trace - walk.len, "%s %ld: %ld %s\n", what, place,
                                 result, error ? strerrorname_np(error) : "");
    cr_assert_lt(walk.len, sizeof walk.trace - 4096);
}

static unsigned free_place(void)
{
    for (unsigned i = 0; i < SOCKETS; i++)
        if (walk.fds[i] < 0)
            return i;
    return SOCKETS;
}

static void put(unsigned place, int fd)
{
    walk.fds[place] = fd;
}

static void step_connect(unsigned place)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    put(place, fd);
    note("connect", place, connect(fd, (struct sockaddr *)&walk.address, sizeof walk.address));
}

static void step_accept(unsigned place)
{
    int fd = accept4(walk.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    note("accept", place, fd < 0 ? fd : 0);
    if (fd >= 0)
        put(place, fd);
}

static void step_pair(unsigned place)
{
    int fds[2];
    unsigned second;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    put(place, fds[0]);
    second = free_place();
    if (second == SOCKETS)
        close(fds[1]);
    else
        put(second, fds[1]);
    note("pair", place, second);
}

static void step_send(unsigned place)
{
    static const char BYTES[100];

    note("send", place, send(walk.fds[place], BYTES, 1 + draw(sizeof BYTES), MSG_NOSIGNAL));
}

static void step_receive(unsigned place)
{
    char bytes[256];

    note("receive", place,
         draw(2) ? recv(walk.fds[place], bytes, 1 + draw(sizeof bytes), 0)
                 : read(walk.fds[place], bytes, 1 + draw(sizeof bytes)));
}

static void step_shutdown(unsigned place)
{
    static const int HOW[] = {SHUT_WR, SHUT_RD, SHUT_RDWR};

    note("shutdown", place, shutdown(walk.fds[place], HOW[draw(3)]));
}

static void step_close(unsigned place)
{
    note("close", place, close(walk.fds[place]));
    walk.fds[place] = -1;
}

static void step_watch(unsigned place)
{
    static const int OPS[] = {EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
    /* Not EPOLLOUT by edges: a Unix socket reports one whenever the peer has read a message. */
    static const uint32_t EVENTS[] = {
        EPOLLIN, EPOLLIN | EPOLLRDHUP, EPOLLOUT, EPOLLIN | EPOLLOUT, 0, EPOLLIN | EPOLLET, EPOLLRDHUP | EPOLLET,
    };
    struct epoll_event event = {.events = EVENTS[draw(7)], .data.u32 = place};
    int op = OPS[draw(4)];

    note("watch", place, epoll_ctl(walk.epoll, op, walk.fds[place], &event));
}

static void step_look(unsigned place)
{
    struct epoll_event events[SOCKETS];
    int count = epoll_wait(walk.epoll, events, SOCKETS, 0);

    note("look", place, count);
    for (int i = 0; i < count; i++)
        note("  ready", events[i].data.u32, events[i].events);
}

static void step_error(unsigned place)
{
    int error = 0;
    socklen_t len = sizeof error;

    note("error", place, getsockopt(walk.fds[place], SOL_SOCKET, SO_ERROR, &error, &len));
    note("  is", place, error);
}

static void walk_on(void)
{
    static void (*const MAKES[])(unsigned place) = {step_connect, step_accept, step_accept, step_pair};
    static void (*const USES[])(unsigned place) = {step_send,     step_send,  step_receive, step_receive,
                                                   step_shutdown, step_close, step_watch,   step_watch,
                                                   step_look,     step_look,  step_error};
    unsigned place = draw(SOCKETS);

    if (walk.fds[place] < 0)
        MAKES[draw(4)](place);
    else
        USES[draw(11)](place);
}

/* Where walk.trace then has what happened. */
static void take_walk(uint64_t seed)
{
    static unsigned walks;

    memset(&walk, 0, sizeof walk);
    walk.state = seed;
    walk.address.sun_family = AF_UNIX;
    snprintf(walk.address.sun_path, sizeof walk.address.sun_path, "/tmp/sim-kernel-%d-%u.sock", (int)getpid(), walks++);
    walk.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    cr_assert_eq(bind(walk.listener, (struct sockaddr *)&walk.address, sizeof walk.address), 0);
    cr_assert_eq(listen(walk.listener, 4), 0);
    walk.epoll = epoll_create1(0);
    for (unsigned i = 0; i < SOCKETS; i++)
        walk.fds[i] = -1;
    for (unsigned i = 0; i < STEPS; i++)
        walk_on();
    for (unsigned i = 0; i < SOCKETS; i++)
        if (walk.fds[i] >= 0)
            close(walk.fds[i]);
    close(walk.listener);
    close(walk.epoll);
    unlink(walk.address.sun_path);
}

static void compare_lines(uint64_t seed, const char *wanted, const char *got)
{
    unsigned line = 1;
    const char *begin = wanted;

    for (size_t i = 0; wanted[i] || got[i]; i++) {
        if (wanted[i] != got[i]) {
            size_t end = (size_t)(begin - wanted);
            cr_assert_fail("seed %lu, line %u: the system '%.*s', here '%.*s'; before: %.*s", (unsigned long)seed, line,
                           (int)strcspn(begin, "\n"), begin, (int)strcspn(got + end, "\n"), got + end,
                           (int)(end < 600 ? end : 600), end < 600 ? wanted : begin - 600);
        }
        if (wanted[i] == '\n') {
            line++;
            begin = wanted + i + 1;
        }
    }
}

Test(sim_kernel, walks_as_the_system_does)
{
    enum { WALKS = 25 };
    char *wanted[WALKS];

    signal(SIGPIPE, SIG_IGN);
    for (uint64_t seed = 0; seed < WALKS; seed++) {
        take_walk(seed);
        wanted[seed] = strdup(walk.trace);
    }
    sim_kernel_enter();
    for (uint64_t seed = 0; seed < WALKS; seed++) {
        take_walk(seed);
        compare_lines(seed, wanted[seed], walk.trace);
        free(wanted[seed]);
    }
}

/* Descriptors that travel */

static void send_two(int to)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {.align = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
    const int fds[] = {memfd_create("first", 0), memfd_create("second", 0)};
    char byte = 0;
    struct iovec part = {&byte, 1};

    cr_assert_eq(ftruncate(fds[0], 1), 0);
    cr_assert_eq(ftruncate(fds[1], 2), 0);
    memcpy(CMSG_DATA(&control.align), fds, sizeof fds);
    cr_assert_eq(
        sendmsg(to,
                &(struct msghdr){
                    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control},
                MSG_NOSIGNAL),
        1);
    close(fds[0]);
    close(fds[1]);
}

/* Returns how many came. */
static size_t receive_some(int from, size_t room, int ret_fds[2])
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room ? &control : NULL, .msg_controllen = room};

    cr_assert_eq(recvmsg(from, &message, 0), 1);
    cr_assert_eq(message.msg_flags & MSG_CTRUNC, room ? 0 : MSG_CTRUNC);
    if (message.msg_controllen == 0)
        return 0;
    cr_assert_eq(CMSG_FIRSTHDR(&message)->cmsg_type, SCM_RIGHTS);
    memcpy(ret_fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), 2 * sizeof *ret_fds);
    return (CMSG_FIRSTHDR(&message)->cmsg_len - CMSG_LEN(0)) / sizeof(int);
}

static off_t size_of(int fd)
{
    struct stat file;

    cr_assert_eq(fstat(fd, &file), 0);
    return file.st_size;
}

static int next_fd(void)
{
    const int fd = memfd_create("next", 0);

    close(fd);
    return fd;
}

static void descriptors_travel(void)
{
    int ends[2], got[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    send_two(ends[0]);
    cr_assert_eq(receive_some(ends[1], CMSG_SPACE(2 * sizeof(int)), got), 2);
    cr_assert_eq(size_of(got[0]), 1);
    cr_assert_eq(size_of(got[1]), 2);
    close(got[0]);
    close(got[1]);
    close(ends[0]);
    close(ends[1]);
}

Test(sim_kernel, descriptors_travel)
{
    twice(descriptors_travel);
}

static void descriptors_that_nobody_takes_are_closed(void)
{
    const int before = next_fd();
    int ends[2], got[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    send_two(ends[0]);
    cr_assert_eq(receive_some(ends[1], 0, got), 0);
    send_two(ends[0]);
    close(ends[0]);
    close(ends[1]);
    cr_assert_eq(next_fd(), before);
}

Test(sim_kernel, descriptors_that_nobody_takes_are_closed)
{
    twice(descriptors_that_nobody_takes_are_closed);
}

/* TCP, where what one side does reaches the other a moment later */

static struct tcp {
    int listener, client, server;
    struct sockaddr_in address;
} tcp;

static short events_at(int fd, short events)
{
    struct pollfd polled = {.fd = fd, .events = events};

    cr_assert_eq(poll(&polled, 1, PATIENCE_MS), 1);
    return polled.revents;
}

static int error_of(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;

    cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
    return error;
}

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    cr_assert_eq(connect(fd, (const struct sockaddr *)address, sizeof *address), -1);
    cr_assert_eq(errno, EINPROGRESS);
    return fd;
}

static void open_tcp(void)
{
    socklen_t len = sizeof tcp.address;

    tcp.address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    tcp.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    cr_assert_eq(bind(tcp.listener, (struct sockaddr *)&tcp.address, sizeof tcp.address), 0);
    cr_assert_eq(listen(tcp.listener, 8), 0);
    cr_assert_eq(getsockname(tcp.listener, (struct sockaddr *)&tcp.address, &len), 0);
    tcp.client = connect_to(&tcp.address);
    cr_assert_eq(events_at(tcp.listener, POLLIN), POLLIN);
    tcp.server = accept4(tcp.listener, NULL, NULL, SOCK_NONBLOCK);
    cr_assert_geq(tcp.server, 0);
    cr_assert_eq(events_at(tcp.client, POLLOUT), POLLOUT);
    cr_assert_eq(error_of(tcp.client), 0);
}

static void close_tcp(void)
{
    close(tcp.client);
    close(tcp.server);
    close(tcp.listener);
}

static void names_both_ends(void)
{
    struct sockaddr_in client, server, peer;
    socklen_t len = sizeof client;

    open_tcp();
    cr_assert_eq(getsockname(tcp.client, (struct sockaddr *)&client, &len), 0);
    cr_assert_eq(getpeername(tcp.server, (struct sockaddr *)&peer, &len), 0);
    cr_assert_eq(client.sin_port, peer.sin_port);
    cr_assert_eq(client.sin_addr.s_addr, peer.sin_addr.s_addr);
    cr_assert_eq(getsockname(tcp.server, (struct sockaddr *)&server, &len), 0);
    cr_assert_eq(getpeername(tcp.client, (struct sockaddr *)&peer, &len), 0);
    cr_assert_eq(server.sin_port, peer.sin_port);
    cr_assert_eq(server.sin_port, tcp.address.sin_port);
    close_tcp();
}
Test(sim_kernel, names_both_ends)
{
    twice(names_both_ends);
}

static void a_connection_to_nobody_is_refused(void)
{
    int fd;

    open_tcp();
    close(tcp.listener);
    fd = connect_to(&tcp.address);
    cr_assert(events_at(fd, POLLOUT) & POLLERR);
    cr_assert_eq(error_of(fd), ECONNREFUSED);
    close(fd);
    tcp.listener = -1;
    close_tcp();
}
Test(sim_kernel, a_connection_to_nobody_is_refused)
{
    twice(a_connection_to_nobody_is_refused);
}

static void an_end_is_told_after_what_was_sent(void)
{
    char bytes[8];

    open_tcp();
    cr_assert_eq(send(tcp.server, "last", 4, 0), 4);
    close(tcp.server);
    while (!(events_at(tcp.client, POLLIN | POLLRDHUP) & POLLRDHUP))
        ;
    cr_assert_eq(recv(tcp.client, bytes, sizeof bytes, 0), 4);
    cr_assert_eq(recv(tcp.client, bytes, sizeof bytes, 0), 0);
    /* The first bytes are taken, and answered with a reset. */
    cr_assert_eq(send(tcp.client, "a", 1, MSG_NOSIGNAL), 1);
    cr_assert(events_at(tcp.client, 0) & POLLERR);
    cr_assert_eq(send(tcp.client, "b", 1, MSG_NOSIGNAL), -1);
    cr_assert_eq(errno, EPIPE);
    tcp.server = -1;
    close_tcp();
}
Test(sim_kernel, an_end_is_told_after_what_was_sent)
{
    twice(an_end_is_told_after_what_was_sent);
}

static void half_of_a_connection_goes_on(void)
{
    char bytes[8];

    open_tcp();
    cr_assert_eq(shutdown(tcp.client, SHUT_WR), 0);
    cr_assert(events_at(tcp.server, POLLRDHUP) & POLLRDHUP);
    cr_assert_eq(recv(tcp.server, bytes, sizeof bytes, 0), 0);
    cr_assert_eq(send(tcp.server, "answer", 6, 0), 6);
    cr_assert_eq(events_at(tcp.client, POLLIN), POLLIN);
    cr_assert_eq(recv(tcp.client, bytes, sizeof bytes, 0), 6);
    cr_assert_eq(send(tcp.client, "c", 1, MSG_NOSIGNAL), -1);
    cr_assert_eq(errno, EPIPE);
    close_tcp();
}
Test(sim_kernel, half_of_a_connection_goes_on)
{
    twice(half_of_a_connection_goes_on);
}

/* lingers: with SO_LINGER 0; else something is unread. */
static void expect_reset(bool lingers)
{
    struct linger linger = {.l_onoff = 1};
    char bytes[8];

    open_tcp();
    if (lingers)
        setsockopt(tcp.server, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    cr_assert_eq(send(tcp.client, "unread", 6, 0), 6);
    cr_assert_eq(events_at(tcp.server, POLLIN), POLLIN);
    if (lingers)
        cr_assert_eq(recv(tcp.server, bytes, sizeof bytes, 0), 6);
    close(tcp.server);
    cr_assert(events_at(tcp.client, POLLIN) & POLLERR);
    cr_assert_eq(recv(tcp.client, bytes, sizeof bytes, 0), -1);
    cr_assert_eq(errno, ECONNRESET);
    cr_assert_eq(recv(tcp.client, bytes, sizeof bytes, 0), 0);
    tcp.server = -1;
    close_tcp();
}
static void who_closes_with_bytes_unread_resets(void)
{
    expect_reset(false);
}
static void who_does_not_linger_resets(void)
{
    expect_reset(true);
}
Test(sim_kernel, who_closes_with_bytes_unread_resets)
{
    twice(who_closes_with_bytes_unread_resets);
}
Test(sim_kernel, who_does_not_linger_resets)
{
    twice(who_does_not_linger_resets);
}

static void a_slow_reader_stops_the_sender(void)
{
    static char bytes[64 * 1024];
    ssize_t sent, taken;
    size_t more = 0;

    open_tcp();
    do {
        sent = send(tcp.server, bytes, sizeof bytes, 0);
        more += sent > 0 ? (size_t)sent : 0;
    } while (sent > 0 || (events_at(tcp.client, POLLIN) && poll(&(struct pollfd){tcp.server, POLLOUT, 0}, 1, 20) > 0));
    cr_assert_eq(errno, EAGAIN);
    while (more > 0) {
        events_at(tcp.client, POLLIN);
        taken = recv(tcp.client, bytes, sizeof bytes, 0);
        cr_assert_gt(taken, 0);
        more -= (size_t)taken;
    }
    cr_assert_eq(events_at(tcp.server, POLLOUT), POLLOUT);
    close_tcp();
}
Test(sim_kernel, a_slow_reader_stops_the_sender)
{
    twice(a_slow_reader_stops_the_sender);
}

/* Time */

Test(sim_kernel, a_day_takes_no_time)
{
    struct timespec began, ended;
    uint64_t day_ms = UINT64_C(24) * 3600 * 1000, before_ns, after_ns;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &began);
    sim_kernel_enter();
    before_ns = uv_hrtime();
    cr_assert_eq(poll(NULL, 0, (int)day_ms), 0);
    after_ns = uv_hrtime();
    cr_assert_geq(after_ns - before_ns, day_ms * 1000000);
    cr_assert_lt(after_ns - before_ns, day_ms * 1000000 + 1000000);
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ended);
    cr_assert_lt(ended.tv_sec - began.tv_sec, 3600);
}

struct order {
    char *at;
    uv_timer_t timers[3];
};

static void on_timer(uv_timer_t *timer)
{
    struct order *order = timer->loop->data;

    *order->at++ = (char)('a' + (timer - order->timers));
    uv_close((uv_handle_t *)timer, NULL);
}

/* Unmodified libuv, with timers of hours. */
Test(sim_kernel, carries_libuv)
{
    char fired[8] = "";
    struct order order = {.at = fired};
    uv_loop_t loop;
    uint64_t began_ms;

    sim_kernel_enter();
    uv_loop_init(&loop);
    loop.data = &order;
    began_ms = uv_now(&loop);
    for (unsigned i = 0; i < 3; i++) {
        uv_timer_init(&loop, &order.timers[i]);
        uv_timer_start(&order.timers[i], on_timer, (3 - i) * UINT64_C(3600000), 0);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert_str_eq(fired, "cba");
    cr_assert_geq(uv_now(&loop) - began_ms, 3 * UINT64_C(3600000));
    cr_assert_eq(uv_loop_close(&loop), 0);
}
