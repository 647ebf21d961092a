/* The functions of the shared library, here built into the test. */
#include "chatelaine/library.h"
#include "deadline.h"
#include "leak_guard.h"
#include "made_table.h"
#include "table_server.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>

TestSuite(check_library, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define SECRET "sk_live_of_the_library"

static const struct chatelaine_greeting GREETING = {CHATELAINE_TABLE_MAGIC, CHATELAINE_TABLE_FORMAT, 0};
static struct made_table made;
static struct table_server server;

static void start(void)
{
    made_table_in_memfds(&made, 4);
    server = (struct table_server){
        .greeting = &GREETING, .greeting_bytes = sizeof GREETING, .fds = {made.fds[0], made.fds[1]}, .fd_count = 2};
    table_server_start(&server);
}

static void stop(void)
{
    table_server_stop(&server);
    made_table_finish(&made);
}

static void await_table(struct chatelaine_handle *handle)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!chatelaine_refresh(handle) && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 1);
    cr_assert_str_eq(chatelaine_trouble(handle), "none");
}

Test(check_library, answers)
{
    struct made_key key = {.secret = SECRET, .scopes = 0x0802, .is_live = true, .account = {1}, .principal = {2}};
    struct chatelaine_answer answer, untouched;
    struct chatelaine_handle *handle;
    uint32_t slot;

    start();
    slot = made_table_slot(&made, SECRET, 0, 0);
    made_table_put(&made, slot, &key);
    handle = chatelaine_open(server.path, MADE_TABLE_DEPLOYMENT, getuid());
    cr_assert_not(chatelaine_ask(handle, SECRET, strlen(SECRET), 0, &answer));
    await_table(handle);
    memset(&untouched, 0xaa, sizeof untouched);
    answer = untouched;
    cr_assert_eq(chatelaine_ask(handle, SECRET, strlen(SECRET), 1, &answer), 0);
    cr_assert_eq(chatelaine_ask(handle, SECRET, strlen(SECRET) - 1, 0, &answer), 0);
    cr_assert_eq(memcmp(&answer, &untouched, sizeof answer), 0);
    cr_assert_eq(chatelaine_ask(handle, SECRET, strlen(SECRET), 2, &answer), 1);
    cr_assert_str_eq(answer.account, "acct_01000000000000000000000000");
    cr_assert_str_eq(answer.principal, "key_02000000000000000000000000");
    cr_assert_eq(answer.scopes, 0x0802);
    cr_assert(answer.is_live == 1 && answer.is_device == 0 && answer.unused[0] == 0 && answer.unused[1] == 0);
    key.is_device = true;
    key.is_live = false;
    made_table_put(&made, slot, &key);
    cr_assert_eq(chatelaine_ask(handle, SECRET, strlen(SECRET), 0, &answer), 1);
    cr_assert_str_eq(answer.principal, "dev_02000000000000000000000000");
    cr_assert(answer.is_live == 0 && answer.is_device == 1);
    cr_assert_eq(made_table_uses(&made, slot), 1);
    chatelaine_close(handle);
    stop();
}

Test(check_library, keeps_copies_of_its_arguments)
{
    char path[sizeof server.path], deployment[] = MADE_TABLE_DEPLOYMENT;
    struct chatelaine_handle *handle;

    start();
    memcpy(path, server.path, sizeof path);
    handle = chatelaine_open(path, deployment, -1);
    memset(path, 'x', sizeof path);
    memset(deployment, 'x', sizeof deployment);
    await_table(handle);
    chatelaine_close(handle);
    stop();
}

static void assert_trouble(const char *path, const char *deployment, int64_t owner, const char *expected)
{
    struct chatelaine_handle *handle = chatelaine_open(path, deployment, owner);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    const char *waiting = chatelaine_trouble_text(CHATELAINE_WAITING);

    do
        cr_assert_eq(chatelaine_refresh(handle), 0);
    while (strcmp(chatelaine_trouble(handle), waiting) == 0 && deadline_left_ms(deadline) > 0);
    cr_assert_str_eq(chatelaine_trouble(handle), expected);
    chatelaine_close(handle);
}

Test(check_library, tells_its_trouble)
{
    struct chatelaine_handle *handle;

    start();
    handle = chatelaine_open("/nowhere/table.sock", NULL, -1);
    cr_assert_str_eq(chatelaine_trouble(handle), "nobody asked for the table yet");
    chatelaine_close(handle);
    assert_trouble("/nowhere/table.sock", NULL, -1, "the node's socket cannot be reached: No such file or directory");
    assert_trouble("", NULL, -1, "the node's socket cannot be reached: File name too long");
    assert_trouble(server.path, "another", -1, "the table belongs to another deployment");
    assert_trouble(server.path, NULL, (int64_t)getuid() + 1,
                   "the socket is served by a user who does not own its folder, or not by the one expected");
    chatelaine_close(NULL);
    stop();
}
