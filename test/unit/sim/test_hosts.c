/* Addresses of hosts, and processes that listen at them. */
#include "deadline.h"
#include "net.h"
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sockios.h>

TestSuite(sim_hosts, .timeout = TEST_WITHIN_S);

static int open_at(struct sim_host *host)
{
    int fd;

    net_be_at(host);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    cr_assert_geq(fd, 0);
    return fd;
}

static struct sockaddr_in address_of(const char *ip, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

    cr_assert_eq(inet_pton(AF_INET, ip, &address.sin_addr), 1);
    return address;
}

/* 0, or the error. */
static int bind_to(int fd, const char *ip, uint16_t port)
{
    const struct sockaddr_in address = address_of(ip, port);

    return bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
}

static int listen_at(struct sim_host *host, const char *ip, uint16_t port)
{
    int fd = open_at(host);

    cr_assert_eq(bind_to(fd, ip, port), 0);
    cr_assert_eq(listen(fd, 4), 0);
    return fd;
}

/* From the host. */
static int connect_to(struct sim_host *host, const char *ip, uint16_t port)
{
    const struct sockaddr_in address = address_of(ip, port);
    int fd = open_at(host);

    cr_assert_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), -1);
    cr_assert_eq(errno, EINPROGRESS);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), -1);
    cr_assert_eq(errno, EALREADY);
    return fd;
}

static short events_at(int fd, short events)
{
    struct pollfd polled = {.fd = fd, .events = events};

    cr_assert_eq(poll(&polled, 1, 1000), 1);
    return polled.revents;
}

static int error_of(int fd)
{
    int error = 0;
    socklen_t len = sizeof error;

    cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
    return error;
}

static void expect_name(int (*name)(int, __SOCKADDR_ARG, socklen_t *restrict), int fd, const char *ip, int port)
{
    struct sockaddr_in address = {0};
    socklen_t len = sizeof address;
    char text[INET_ADDRSTRLEN];

    cr_assert_eq(name(fd, (struct sockaddr *)&address, &len), 0);
    cr_assert_eq(len, sizeof address);
    cr_assert_str_eq(inet_ntop(AF_INET, &address.sin_addr, text, sizeof text), ip);
    if (port)
        cr_assert_eq(ntohs(address.sin_port), port);
    else
        cr_assert_neq(address.sin_port, 0);
}

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
    net_run_for_ms(100);
    net_end();
}

Test(sim_hosts, an_address_is_taken_once_on_each_host)
{
    int fds[5];

    net_begin(1);
    fds[0] = listen_at(net_near, "0.0.0.0", 80);
    fds[1] = listen_at(net_far, "0.0.0.0", 80);
    fds[2] = open_at(net_near);
    cr_assert_eq(bind_to(fds[2], "10.0.0.1", 80), EADDRINUSE);
    cr_assert_eq(bind_to(fds[2], "10.0.0.2", 81), EADDRNOTAVAIL);
    cr_assert_eq(bind_to(fds[2], "10.0.0.1", 81), 0);
    cr_assert_eq(bind_to(fds[2], "10.0.0.1", 82), EINVAL);
    expect_name(getsockname, fds[2], "10.0.0.1", 81);
    fds[3] = open_at(net_near);
    cr_assert_eq(bind_to(fds[3], "127.0.0.1", 0), 0);
    expect_name(getsockname, fds[3], "127.0.0.1", 0);
    close(fds[0]);
    fds[4] = open_at(net_near);
    cr_assert_eq(bind_to(fds[4], "10.0.0.1", 80), 0);
    close_all(fds + 1, 4);
}

Test(sim_hosts, both_ends_are_named_by_their_hosts)
{
    struct sockaddr_in client, peer;
    socklen_t len = sizeof client;
    int fds[3];

    net_begin(1);
    fds[0] = listen_at(net_far, "0.0.0.0", 80);
    fds[1] = connect_to(net_near, "10.0.0.2", 80);
    cr_assert_eq(events_at(fds[1], POLLOUT), POLLOUT);
    cr_assert_eq(error_of(fds[1]), 0);
    net_be_at(net_far);
    fds[2] = accept4(fds[0], NULL, NULL, SOCK_NONBLOCK);
    cr_assert_geq(fds[2], 0);
    expect_name(getpeername, fds[1], "10.0.0.2", 80);
    expect_name(getsockname, fds[2], "10.0.0.2", 80);
    expect_name(getsockname, fds[1], "10.0.0.1", 0);
    cr_assert_eq(getsockname(fds[1], (struct sockaddr *)&client, &len), 0);
    cr_assert_eq(getpeername(fds[2], (struct sockaddr *)&peer, &len), 0);
    cr_assert_eq(memcmp(&client, &peer, sizeof peer), 0);
    close_all(fds, 3);
}

/* Its own, and only by a listener that takes it. */
Test(sim_hosts, each_host_has_a_loopback_address)
{
    int fds[4];

    net_begin(1);
    fds[0] = listen_at(net_far, "127.0.0.1", 80);
    fds[1] = connect_to(net_far, "127.0.0.1", 80);
    cr_assert_eq(events_at(fds[1], POLLOUT), POLLOUT);
    cr_assert_eq(error_of(fds[1]), 0);
    fds[2] = connect_to(net_near, "127.0.0.1", 80);
    cr_assert(events_at(fds[2], POLLOUT) & POLLERR);
    cr_assert_eq(error_of(fds[2]), ECONNREFUSED);
    fds[3] = connect_to(net_near, "10.0.0.2", 80);
    cr_assert(events_at(fds[3], POLLOUT) & POLLERR);
    cr_assert_eq(error_of(fds[3]), ECONNREFUSED);
    close_all(fds, 4);
}

Test(sim_hosts, a_listener_that_closes_resets_whom_it_has_not_accepted)
{
    int fds[3];

    net_begin(1);
    fds[0] = listen_at(net_far, "10.0.0.2", 80);
    fds[1] = connect_to(net_near, "10.0.0.2", 80);
    fds[2] = connect_to(net_near, "10.0.0.2", 80);
    cr_assert_eq(events_at(fds[1], POLLOUT), POLLOUT);
    cr_assert_eq(events_at(fds[2], POLLOUT), POLLOUT);
    cr_assert_eq(error_of(fds[1]) + error_of(fds[2]), 0);
    close(fds[0]);
    for (unsigned i = 1; i < 3; i++) {
        cr_assert(events_at(fds[i], POLLIN) & POLLERR);
        cr_assert_eq(error_of(fds[i]), ECONNRESET);
    }
    close_all(fds + 1, 2);
}

/* The listener takes one more than its backlog. */
Test(sim_hosts, who_knocks_at_a_full_listener_knocks_again)
{
    enum { CLIENTS = 6 };
    int fds[1 + CLIENTS + 1];

    net_begin(1);
    fds[0] = listen_at(net_far, "10.0.0.2", 80);
    for (unsigned i = 1; i <= CLIENTS; i++) {
        fds[i] = connect_to(net_near, "10.0.0.2", 80);
        net_run_for_ms(10);
    }
    net_run_for_ms(10 * 1000);
    cr_assert_eq(events_at(fds[CLIENTS - 1], POLLOUT), POLLOUT);
    cr_assert_eq(poll(&(struct pollfd){fds[CLIENTS], POLLOUT, 0}, 1, 0), 0);
    fds[CLIENTS + 1] = accept4(fds[0], NULL, NULL, SOCK_NONBLOCK);
    cr_assert_eq(events_at(fds[CLIENTS], POLLOUT), POLLOUT);
    cr_assert_eq(error_of(fds[CLIENTS]), 0);
    close_all(fds, 1 + CLIENTS + 1);
}

/* As src/http asks: how much has not been acknowledged. */
Test(sim_hosts, a_socket_knows_what_has_not_arrived)
{
    int fds[2], left = 0;
    char bytes[8];

    net_begin(1);
    net_delay(5 * NET_MS, 5 * NET_MS);
    net_listen();
    fds[0] = connect_to(net_near, "10.0.0.2", NET_PORT);
    cr_assert_eq(events_at(fds[0], POLLOUT), POLLOUT);
    cr_assert_eq(recv(fds[0], bytes, sizeof bytes, 0), -1);
    cr_assert_eq(errno, EAGAIN);
    cr_assert_eq(send(fds[0], "hello", 5, MSG_NOSIGNAL), 5);
    cr_assert_eq(ioctl(fds[0], SIOCOUTQ, &left), 0);
    cr_assert_eq(left, 5);
    net_run_for_ms(20);
    cr_assert_eq(ioctl(fds[0], SIOCOUTQ, &left), 0);
    cr_assert_eq(left, 0);
    cr_assert_eq(net_heard.len, 5);
    close_all(fds, 1);
}
