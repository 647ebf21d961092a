/* What is told to systemd, of a node that the test makes up. */
#include "app/notifier.h"

#include "deadline.h"
#include "leak_guard.h"
#include "notify_socket.h"
#include "process.h"
#include "test_loop.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct fixture {
    uv_loop_t loop;
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES];
    struct notify_socket socket;
    struct notifier *notifier;
    struct notifier_view view;
    unsigned looks;
    bool is_closed;
    char message[NOTIFY_MESSAGE_BYTES];
} fixture;

static void look(void *arg, struct notifier_view *ret_view)
{
    struct fixture *f = arg;

    f->looks++;
    *ret_view = f->view;
}

static void closed(void *arg)
{
    struct fixture *f = arg;

    f->is_closed = true;
}

static void make_loop(void)
{
    cr_assert_eq(uv_loop_init(&fixture.loop), 0);
    folder_make(fixture.folder);
    snprintf(fixture.path, sizeof fixture.path, "%.80s/notify", fixture.folder);
}

static void end_loop(void)
{
    notifier_close(fixture.notifier, closed, &fixture);
    cr_expect(test_loop_until_set(&fixture.loop, &fixture.is_closed, PATIENCE_MS));
    cr_expect(test_loop_finish(&fixture.loop));
    folder_remove(fixture.folder);
    leak_guard();
}

TestSuite(notifier, .init = make_loop, .fini = end_loop, .timeout = TEST_WITHIN_S);

static void open_notifier(uint64_t patience_ms)
{
    uv_update_time(&fixture.loop); /* patience is counted from the loop's time, which may be long ago */
    fixture.notifier = notifier_open(&fixture.loop, patience_ms, look, &fixture);
}

static bool has_message(void *arg)
{
    struct fixture *f = arg;

    return notify_socket_read(&f->socket, 0, f->message);
}

static const char *next_message(void)
{
    cr_assert(test_loop_until(&fixture.loop, has_message, &fixture, PATIENCE_MS));
    return fixture.message;
}

Test(notifier, asks_nothing_where_nobody_listens)
{
    static const char *const NAMES[] = {NULL, "", "/", "@", "relative", "vsock:2:1234"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (NAMES[i])
            setenv("NOTIFY_SOCKET", NAMES[i], 1);
        fixture.is_closed = false;
        open_notifier(0);
        notifier_look(fixture.notifier);
        notifier_reload_begins(fixture.notifier);
        notifier_reload_ended(fixture.notifier);
        cr_expect_eq(fixture.looks, 0, "%s", NAMES[i] ? NAMES[i] : "unset");
        if (i + 1 < sizeof NAMES / sizeof *NAMES) {
            notifier_close(fixture.notifier, closed, &fixture);
            cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_closed, PATIENCE_MS));
        }
    }
}

Test(notifier, tells_each_thing_once)
{
    notify_socket_open(&fixture.socket, fixture.path);
    fixture.view = (struct notifier_view){.is_ready = true, .status = "serves"};
    open_notifier(60000);
    cr_expect_str_eq(next_message(), "READY=1\nSTATUS=serves\n");
    notifier_look(fixture.notifier);
    cr_expect_not(has_message(&fixture), "%s", fixture.message);
    snprintf(fixture.view.status, sizeof fixture.view.status, "answers 503");
    notifier_look(fixture.notifier);
    cr_expect_str_eq(next_message(), "STATUS=answers 503\n");
    notify_socket_close(&fixture.socket);
}

Test(notifier, speaks_to_an_abstract_socket)
{
    char name[64];

    snprintf(name, sizeof name, "@chatelaine-test-%d", (int)getpid());
    notify_socket_open(&fixture.socket, name);
    fixture.view.is_ready = true;
    open_notifier(60000);
    cr_expect_str_eq(next_message(), "READY=1\n");
    notify_socket_close(&fixture.socket);
}

Test(notifier, is_ready_when_patience_ends)
{
    notify_socket_open(&fixture.socket, fixture.path);
    snprintf(fixture.view.status, sizeof fixture.view.status, "waits");
    open_notifier(2000);
    cr_expect_str_eq(next_message(), "STATUS=waits\n");
    cr_expect_str_eq(next_message(), "READY=1\n");
    notify_socket_close(&fixture.socket);
}

Test(notifier, says_again_what_could_not_be_said)
{
    notify_socket_open(&fixture.socket, fixture.path);
    notify_socket_close(&fixture.socket);
    setenv("NOTIFY_SOCKET", fixture.path, 1);
    fixture.view = (struct notifier_view){.is_ready = true, .status = "serves"};
    open_notifier(60000);
    notifier_look(fixture.notifier);
    notify_socket_open(&fixture.socket, fixture.path);
    cr_expect_str_eq(next_message(), "READY=1\nSTATUS=serves\n");
    notify_socket_close(&fixture.socket);
}

Test(notifier, beats_for_its_own_watchdog_only)
{
    char pid[32];

    notify_socket_open(&fixture.socket, fixture.path);
    setenv("WATCHDOG_USEC", "60000", 1);
    snprintf(pid, sizeof pid, "%d", (int)getpid() + 1);
    setenv("WATCHDOG_PID", pid, 1);
    fixture.view.is_ready = true;
    open_notifier(60000);
    cr_expect_str_eq(next_message(), "READY=1\n");
    notifier_close(fixture.notifier, closed, &fixture);
    cr_assert(test_loop_until_set(&fixture.loop, &fixture.is_closed, PATIENCE_MS));

    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    open_notifier(60000);
    cr_expect_str_eq(next_message(), "READY=1\nWATCHDOG=1\n");
    for (unsigned i = 0; i < 3; i++)
        cr_expect_str_eq(next_message(), "WATCHDOG=1\n");
    notify_socket_close(&fixture.socket);
}

Test(notifier, a_reload_ends_with_ready_whatever_the_state)
{
    notify_socket_open(&fixture.socket, fixture.path);
    open_notifier(60000);
    notifier_look(fixture.notifier);
    notifier_reload_begins(fixture.notifier);
    notifier_reload_ended(fixture.notifier);
    cr_expect_not(has_message(&fixture), "a start that goes on: %s", fixture.message);
    fixture.view.is_ready = true;
    notifier_look(fixture.notifier);
    cr_expect_str_eq(next_message(), "READY=1\n");
    fixture.view.is_ready = false;
    notifier_reload_begins(fixture.notifier);
    cr_expect_eq(strncmp(next_message(), "RELOADING=1\nMONOTONIC_USEC=", 27), 0, "%s", fixture.message);
    notifier_reload_ended(fixture.notifier);
    cr_expect_str_eq(next_message(), "READY=1\n");
    notify_socket_close(&fixture.socket);
}

Test(notifier, a_stop_asks_for_time_and_never_says_ready)
{
    notify_socket_open(&fixture.socket, fixture.path);
    fixture.view.is_ready = fixture.view.is_stopping = true;
    open_notifier(0);
    cr_expect_str_eq(next_message(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=15000000\n");
    cr_expect_str_eq(next_message(), "EXTEND_TIMEOUT_USEC=15000000\n");
    notify_socket_close(&fixture.socket);
}
