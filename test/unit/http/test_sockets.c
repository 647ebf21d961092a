/* Unix sockets beside a server's other addresses: their files, and what is spoken on them. */
#include "http_client.h"
#include "leak_guard.h"
#include "one_peer.h"
#include "tls_peer.h"

#include "base/metrics.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MODE = 0660, PATH_BYTES = 64 };

static char folder[] = "/tmp/http-test-XXXXXX", path[PATH_BYTES];

static void make_folder(void)
{
    fixture_needs_system = true;
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
}

static void remove_folder(void)
{
    unlink(path);
    cr_assert_eq(rmdir(folder), 0);
    leak_guard();
}

TestSuite(http_sockets, .init = make_folder, .fini = remove_folder, .timeout = TEST_WITHIN_S);

/* Binds the path, whose file stays; a descriptor that does not listen. */
static int take_path(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void start_server(void)
{
    struct http_settings settings = fixture_settings();

    fixture_start(&fixture, &settings, "127.0.0.1:0");
}

static void listen_in_form(bool is_address)
{
    char address[PATH_BYTES + sizeof "unix:"], bound[HTTP_ADDRESS_BYTES];

    snprintf(address, sizeof address, "unix:%s", path);
    cr_assert_eq(is_address ? http_server_listen(fixture.server, address, false, bound)
                            : http_server_listen_socket(fixture.server, path),
                 0);
}

/* Whether the process' umask would grant more or less. And the umask stays. */
Test(http_sockets, have_their_mode_whatever_the_umask)
{
    static const mode_t MASKS[] = {0, 022, 077};
    struct stat file;

    for (size_t i = 0; i < 2 * sizeof MASKS / sizeof *MASKS; i++) {
        umask(MASKS[i / 2]);
        start_server();
        listen_in_form(i % 2);
        cr_assert_eq(lstat(path, &file), 0);
        cr_expect_eq(file.st_mode, (mode_t)(S_IFSOCK | MODE), "%o with umask %o", file.st_mode, MASKS[i / 2]);
        cr_expect_eq(umask(022), MASKS[i / 2]);
        fixture_finish(&fixture);
        cr_expect_eq(lstat(path, &file), -1, "the file stays");
    }
}

static void expect_answer_at_path(void)
{
    snprintf(fixture.address, sizeof fixture.address, "unix:%s", path);
    peer_connect_plainly(&peer, &fixture);
    peer_send_str(&peer, HELLO);
    cr_expect(peer_gets(&peer, "\r\n\r\nhi"));
    peer_close(&peer);
}

static void remove_file(void)
{
    cr_assert_eq(unlink(path), 0);
}

static void replace_by_stale_socket(void)
{
    remove_file();
    close(take_path());
}

static void rename_file(void)
{
    char other[PATH_BYTES + 2];

    snprintf(other, sizeof other, "%s2", path);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(unlink(other), 0);
}

Test(http_sockets, are_made_again_when_their_file_is_gone)
{
    static void (*const HARMS[])(void) = {remove_file, replace_by_stale_socket, rename_file};
    struct stat file;

    start_server();
    cr_assert_eq(http_server_listen_socket(fixture.server, path), 0);
    for (size_t i = 0; i < sizeof HARMS / sizeof *HARMS; i++) {
        http_server_look(fixture.server);
        cr_expect_eq(metric_values[METRIC_SOCKETS_LOST], (int64_t)i, "nothing was lost");
        HARMS[i]();
        http_server_look(fixture.server);
        cr_expect_eq(metric_values[METRIC_SOCKETS_LOST], (int64_t)i + 1);
        expect_answer_at_path();
        cr_expect(lstat(path, &file) == 0 && file.st_mode == (S_IFSOCK | MODE));
    }
    fixture_finish(&fixture);
    cr_expect_eq(lstat(path, &file), -1, "the file stays");
}

/* Also when the server ends. The loss is told once, and a look goes on as soon as it can. */
Test(http_sockets, leave_the_file_that_replaced_theirs)
{
    struct stat other, file;
    int fd;

    start_server();
    cr_assert_eq(http_server_listen_socket(fixture.server, path), 0);
    remove_file();
    fd = take_path();
    cr_assert_eq(listen(fd, 1), 0);
    cr_assert_eq(lstat(path, &other), 0);
    for (int i = 0; i < 3; i++)
        http_server_look(fixture.server);
    cr_expect_eq(metric_values[METRIC_SOCKETS_LOST], 1);
    fixture_finish(&fixture);
    cr_expect(lstat(path, &file) == 0 && file.st_ino == other.st_ino);

    start_server();
    close(fd);
    cr_assert_eq(http_server_listen_socket(fixture.server, path), 0);
    remove_file();
    fd = take_path();
    cr_assert_eq(listen(fd, 1), 0);
    http_server_look(fixture.server);
    close(fd);
    http_server_look(fixture.server);
    expect_answer_at_path();
    cr_expect_eq(metric_values[METRIC_SOCKETS_LOST], 2);
    fixture_finish(&fixture);
}

/* Also if the server's other address speaks TLS: the suite runs in both ways. */
Test(http_sockets, are_plain_beside_another_address)
{
    start_server();
    close(take_path());
    cr_assert_eq(http_server_listen_socket(fixture.server, path), 0, "a file that nobody listens on is replaced");
    peer_connect(&peer, &fixture);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    peer_close(&peer);
    snprintf(fixture.address, sizeof fixture.address, "unix:%s", path);
    peer_connect_plainly(&peer, &fixture);
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    peer_close(&peer);
    fixture_finish(&fixture);
}

/* Only http_server_listen_socket() makes an exception: an address of this form is one of the server's addresses. */
Test(http_sockets, an_address_that_is_one_speaks_what_the_others_speak)
{
    char address[PATH_BYTES + sizeof "unix:"], bound[HTTP_ADDRESS_BYTES];

    start_server();
    snprintf(address, sizeof address, "unix:%s", path);
    cr_assert_eq(http_server_listen(fixture.server, address, false, bound), 0);
    snprintf(fixture.address, sizeof fixture.address, "%s", address);
    peer_connect_plainly(&peer, &fixture);
    peer_send_str(&peer, HELLO);
    cr_expect_eq(peer_gets(&peer, "\r\n\r\nhi"), !tls_peer_is_on());
    peer_close(&peer);
    fixture_finish(&fixture);
}

Test(http_sockets, leave_others_files_alone)
{
    struct stat file;
    int fd = take_path();

    cr_assert_eq(listen(fd, 1), 0);
    start_server();
    cr_expect_eq(http_server_listen_socket(fixture.server, path), UV_EADDRINUSE);
    close(fd);
    cr_assert_eq(unlink(path), 0);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(fd >= 0);
    close(fd);
    cr_expect_eq(http_server_listen_socket(fixture.server, path), UV_EADDRINUSE, "no socket");
    cr_expect(lstat(path, &file) == 0 && S_ISREG(file.st_mode));
    fixture_finish(&fixture);
}

/* Another process, whose exit status is 0 if the path is in use. */
static pid_t start_another(int lock)
{
    pid_t child = fork();

    if (child == 0) {
        close(lock); /* or it would stay locked when this process' parent closes it */
        start_server();
        _exit(http_server_listen_socket(fixture.server, path) == UV_EADDRINUSE ? 0 : 1);
    }
    return child;
}

static bool waits_for_lock(pid_t child)
{
    char line[256], waiter[64];
    FILE *locks = fopen("/proc/locks", "re");
    bool is_found = false;

    snprintf(waiter, sizeof waiter, "-> FLOCK  ADVISORY  WRITE %ld ", (long)child);
    while (locks && fgets(line, sizeof line, locks))
        is_found = is_found || strstr(line, waiter);
    fclose(locks);
    return is_found;
}

/* Both find a file that nobody listens on; the second must not remove the first one's. */
Test(http_sockets, two_that_start_at_once_do_not_replace_each_other)
{
    int fd, status, lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pid_t child, ended = 0;

    close(take_path());
    cr_assert_eq(flock(lock, LOCK_EX), 0);
    child = start_another(lock);
    while (!waits_for_lock(child) && (ended = waitpid(child, &status, WNOHANG)) == 0)
        poll(NULL, 0, 5);
    cr_assert_eq(ended, 0, "it does not wait for whoever looks at the file");
    unlink(path);
    fd = take_path();
    cr_assert_eq(listen(fd, 1), 0);
    close(lock);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it has taken a path that somebody listens on");
    close(fd);
}
