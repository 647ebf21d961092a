/* How the reader gets its table: from a node, and from anybody else, of whom it takes none. */
#include "deadline.h"
#include "leak_guard.h"
#include "made_table.h"
#include "table_server.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static struct made_table made;
static struct table_server server;
static struct chatelaine_table reader;
static struct chatelaine_greeting greeting;
static size_t fds_before, mappings_before;

static size_t count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    cr_assert(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Of memfds. */
static size_t count_mappings(void)
{
    char *maps = file_read("/proc/self/maps"), *at = maps;
    size_t count = 0;

    while ((at = strstr(at, "/memfd:"))) {
        at++;
        count++;
    }
    free(maps);
    return count;
}

static void assert_keeps_nothing(void)
{
    cr_assert_eq(count_fds(), fds_before);
    cr_assert_eq(count_mappings(), mappings_before);
}

/* A server that sends what a node sends. Tests change that before they start it. */
static void prepare(void)
{
    made_table_in_memfds(&made, 4);
    greeting = (struct chatelaine_greeting){.magic = CHATELAINE_TABLE_MAGIC, .format = CHATELAINE_TABLE_FORMAT};
    server = (struct table_server){
        .greeting = &greeting, .greeting_bytes = sizeof greeting, .fds = {made.fds[0], made.fds[1]}, .fd_count = 2};
}

static void clear_away(void)
{
    made_table_finish(&made);
    leak_guard();
}

TestSuite(check_refresh, .init = prepare, .fini = clear_away, .timeout = TEST_WITHIN_S);

static void start(void)
{
    table_server_start(&server);
    fds_before = count_fds();
    mappings_before = count_mappings();
    chatelaine_table_init(&reader, server.path, MADE_TABLE_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
}

static void await_peers(size_t count)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (atomic_load(&server.peer_count) < count && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 1);
    cr_assert_eq(atomic_load(&server.peer_count), count);
}

/* Refreshes until something is known: a table, or why there is none. */
static bool refresh_until_known(void)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!chatelaine_table_refresh(&reader)) {
        if (reader.trouble != CHATELAINE_WAITING || deadline_left_ms(deadline) == 0)
            return false;
        poll(NULL, 0, 1);
    }
    return true;
}

static void assert_accepts_nothing(void)
{
    struct chatelaine_principal who;

    cr_assert_null(reader.header);
    cr_assert_null(reader.uses_header);
    cr_assert_not(chatelaine_check(&reader, "x", 1, 0, &who));
}

/* Of what the server sends, no table is made, and neither descriptors nor memory are kept. */
static void expect_trouble(enum chatelaine_trouble trouble, int error)
{
    start();
    for (size_t times = 1; times <= 3; times++) {
        cr_assert_not(refresh_until_known());
        cr_assert_eq(reader.trouble, trouble, "%s", chatelaine_trouble_text(reader.trouble));
        cr_assert_eq(reader.error, error, "%s", strerror(reader.error));
        assert_accepts_nothing();
        await_peers(times);
        table_server_close_peers(&server);
        assert_keeps_nothing();
    }
    chatelaine_table_finish(&reader);
    table_server_stop(&server);
}

static void put_key(const char *secret)
{
    made_table_put(&made, made_table_slot(&made, secret, 0, 0), &(struct made_key){.secret = secret});
}

Test(check_refresh, gets_the_table_of_a_node)
{
    struct chatelaine_principal who;

    put_key("sk_live_one");
    start();
    cr_assert(refresh_until_known());
    cr_assert_eq(reader.trouble, CHATELAINE_FINE);
    cr_assert(chatelaine_check(&reader, "sk_live_one", 11, 0, &who));
    cr_assert_eq(made_table_uses(&made, made_table_slot(&made, "sk_live_one", 0, 0)), 1);
    cr_assert_not(chatelaine_check(&reader, "sk_live_two", 11, 0, &who));
    put_key("sk_live_two");
    cr_assert(chatelaine_check(&reader, "sk_live_two", 11, 0, &who));
    cr_assert(chatelaine_table_refresh(&reader));
    await_peers(1); /* on the same connection */
    cr_assert_eq(count_fds(), fds_before + 2, "a connection, at both ends");
    cr_assert_eq(count_mappings(), mappings_before + 2);
    chatelaine_table_finish(&reader);
    assert_accepts_nothing();
    table_server_close_peers(&server);
    assert_keeps_nothing();
    table_server_stop(&server);
}

Test(check_refresh, a_trouble_that_is_over_leaves_no_error)
{
    start();
    cr_assert(chatelaine_connect(&reader));
    await_peers(1);
    reader.error = ENOENT; /* as if nobody had been there yet */
    cr_assert(chatelaine_table_refresh(&reader));
    cr_assert_eq(reader.trouble, CHATELAINE_FINE);
    cr_assert_eq(reader.error, 0);
    chatelaine_table_finish(&reader);
    table_server_stop(&server);
}

Test(check_refresh, any_deployment_will_do_if_the_caller_says_so)
{
    start();
    reader.deployment = CHATELAINE_ANY_DEPLOYMENT;
    cr_assert(refresh_until_known());
    chatelaine_table_finish(&reader);
    table_server_stop(&server);
}

Test(check_refresh, forgets_the_table_of_a_node_that_has_ended_and_gets_the_next_one)
{
    start();
    cr_assert(refresh_until_known());
    await_peers(1);
    table_server_close_peers(&server);
    cr_assert(refresh_until_known());
    await_peers(2);
    table_server_stop(&server);
    cr_assert_not(chatelaine_table_refresh(&reader));
    cr_assert_eq(reader.trouble, CHATELAINE_UNREACHABLE);
    cr_assert_eq(reader.error, ENOENT);
    assert_accepts_nothing();
}

/* Nothing comes after the greeting, so this is no node either; and what comes must not hide the end. */
Test(check_refresh, forgets_the_table_if_more_is_sent)
{
    start();
    cr_assert(refresh_until_known());
    await_peers(1);
    cr_assert_eq(write(server.peers[0], "x", 1), 1);
    cr_assert(refresh_until_known());
    await_peers(2);
    chatelaine_table_finish(&reader);
    table_server_stop(&server);
}

Test(check_refresh, waits_for_somebody_who_never_answers_and_does_not_block)
{
    server.greeting_bytes = 0;
    start();
    for (int i = 0; i < 100; i++) {
        cr_assert_not(chatelaine_table_refresh(&reader));
        cr_assert_eq(reader.trouble, CHATELAINE_WAITING);
        assert_accepts_nothing();
    }
    await_peers(1);
    cr_assert_eq(count_fds(), fds_before + 2);
    chatelaine_table_finish(&reader);
    table_server_close_peers(&server);
    assert_keeps_nothing();
    table_server_stop(&server);
}

Test(check_refresh, says_that_nobody_is_there)
{
    start();
    table_server_stop(&server);
    cr_assert_not(chatelaine_table_refresh(&reader));
    cr_assert_eq(reader.trouble, CHATELAINE_UNREACHABLE);
    cr_assert_eq(reader.error, ENOENT);
}

/* Whoever connects to no name connects to a name of zeros, which anybody may take. */
static void expect_no_path(const char *path)
{
    size_t fds = count_fds();

    chatelaine_table_init(&reader, path, CHATELAINE_ANY_DEPLOYMENT, getuid());
    cr_assert_not(refresh_until_known());
    cr_assert_eq(reader.trouble, CHATELAINE_UNREACHABLE, "%s", chatelaine_trouble_text(reader.trouble));
    cr_assert_eq(reader.error, ENAMETOOLONG);
    assert_accepts_nothing();
    cr_assert_eq(count_fds(), fds);
}

Test(check_refresh, takes_no_table_without_a_path_or_by_one_that_is_too_long)
{
    struct sockaddr_un nameless = {.sun_family = AF_UNIX};
    char path[sizeof nameless.sun_path + 1];
    int squatter = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(bind(squatter, (const struct sockaddr *)&nameless, sizeof nameless), 0);
    cr_assert_eq(listen(squatter, 8), 0);
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    expect_no_path(path);
    expect_no_path("");
    close(squatter);
}

Test(check_refresh, does_not_block_where_too_many_wait)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int idle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fillers[4], filled = 0;

    start();
    memcpy(address.sun_path, server.path, strlen(server.path) - 1); /* beside it */
    cr_assert_eq(bind(idle, (const struct sockaddr *)&address, sizeof address), 0);
    cr_assert_eq(listen(idle, 0), 0);
    do
        fillers[filled] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    while (connect(fillers[filled++], (const struct sockaddr *)&address, sizeof address) == 0 && filled < 4);
    fds_before = count_fds();
    chatelaine_table_init(&reader, address.sun_path, CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    cr_assert_not(chatelaine_table_refresh(&reader));
    cr_assert_eq(reader.trouble, CHATELAINE_UNREACHABLE);
    cr_assert_eq(reader.error, EAGAIN);
    cr_assert_eq(count_fds(), fds_before);
    while (filled > 0)
        close(fillers[--filled]);
    close(idle);
    table_server_stop(&server);
}

Test(check_refresh, takes_no_table_of_another_user)
{
    start();
    reader.owner = getuid() + 1;
    cr_assert_not(refresh_until_known());
    cr_assert_eq(reader.trouble, CHATELAINE_WRONG_OWNER);
    assert_accepts_nothing();
    reader.owner = getuid();
    cr_assert(refresh_until_known());
    chatelaine_table_finish(&reader);
    if (getuid() == 0) { /* only root can give a folder away */
        cr_assert_eq(chown(server.folder, 12345, 12345), 0);
        reader.owner = CHATELAINE_OWNER_OF_FOLDER;
        cr_assert_not(refresh_until_known());
        cr_assert_eq(reader.trouble, CHATELAINE_WRONG_OWNER);
    }
    table_server_stop(&server);
}

Test(check_refresh, closed_at_once)
{
    server.greeting_bytes = 0;
    server.closes = true;
    expect_trouble(CHATELAINE_UNREACHABLE, ECONNRESET);
}

Test(check_refresh, a_node_may_close_after_its_greeting)
{
    server.closes = true;
    start();
    cr_assert(refresh_until_known());
    await_peers(1);
    cr_assert(refresh_until_known()); /* of the next connection */
    await_peers(2);
    chatelaine_table_finish(&reader);
    table_server_stop(&server);
}

Test(check_refresh, text)
{
    server.greeting = "HTTP/1.1 400 Bad Request\r\n\r\n";
    server.greeting_bytes = strlen(server.greeting);
    server.fd_count = 0;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, text_with_descriptors)
{
    server.greeting = "x";
    server.greeting_bytes = 1;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, a_greeting_of_another_kind)
{
    greeting.magic++;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, a_greeting_of_another_version)
{
    greeting.format++;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, a_part_of_a_greeting)
{
    server.greeting_bytes = sizeof greeting - 1;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, a_greeting_without_descriptors)
{
    server.fd_count = 0;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, one_descriptor)
{
    server.fd_count = 1;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, five_descriptors)
{
    for (server.fd_count = 2; server.fd_count < 5; server.fd_count++)
        server.fds[server.fd_count] = made.fds[0];
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, the_descriptors_in_the_wrong_order)
{
    server.fds[0] = made.fds[1];
    server.fds[1] = made.fds[0];
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, descriptors_of_other_things)
{
    int pipes[2];

    cr_assert_eq(pipe(pipes), 0);
    server.fds[0] = pipes[0];
    server.fds[1] = pipes[1];
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
    close(pipes[0]);
    close(pipes[1]);
}

/* Whoever could shrink it could end its readers by SIGBUS. */
static void expect_no_use_of_memory(int which, bool is_sealed, off_t bytes)
{
    int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    off_t whole_bytes = (off_t)(which == 0 ? made.table_bytes : made.uses_bytes);
    void *whole = which == 0 ? (void *)made.header : (void *)made.uses_header;

    cr_assert_eq(write(fd, whole, (size_t)whole_bytes), whole_bytes);
    cr_assert_eq(ftruncate(fd, bytes), 0);
    if (is_sealed)
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    server.fds[which] = fd;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
    server.fds[which] = made.fds[which];
    close(fd);
}

Test(check_refresh, memory_without_seals)
{
    expect_no_use_of_memory(0, false, (off_t)made.table_bytes);
    expect_no_use_of_memory(1, false, (off_t)made.uses_bytes);
}

Test(check_refresh, memory_smaller_than_its_header_says)
{
    off_t sizes[] = {0, 1, CHATELAINE_HEADER_BYTES - 1, CHATELAINE_HEADER_BYTES};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        expect_no_use_of_memory(0, true, sizes[i]);
        expect_no_use_of_memory(1, true, sizes[i]);
    }
    expect_no_use_of_memory(0, true, (off_t)made.table_bytes - 1);
    expect_no_use_of_memory(1, true, (off_t)made.uses_bytes - 1);
}

Test(check_refresh, memory_that_is_too_large_to_map)
{
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert_eq(ftruncate(fd, (off_t)1 << 62), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    server.fds[0] = fd;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
    close(fd);
}

Test(check_refresh, wrong_numbers_of_sets)
{
    static const uint32_t COUNTS[] = {0, 3, 5, 8, UINT32_MAX, UINT32_C(1) << 31};

    for (size_t i = 0; i < sizeof COUNTS / sizeof COUNTS[0]; i++) {
        made.header->set_count = COUNTS[i];
        expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
    }
}

Test(check_refresh, wrong_numbers_of_partitions)
{
    static const uint32_t COUNTS[] = {0, 3, 512, UINT32_MAX};

    for (size_t i = 0; i < sizeof COUNTS / sizeof COUNTS[0]; i++) {
        made.header->partitions = COUNTS[i];
        expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
    }
}

Test(check_refresh, wrong_magic_numbers_and_versions)
{
    made.header->magic++;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
    made.header->magic--;
    made.header->format++;
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

/* Another reader can write there. */
Test(check_refresh, a_header_of_the_uses_that_somebody_spoiled)
{
    struct chatelaine_principal who;

    put_key("known");
    memset(made.uses_header, 0xff, CHATELAINE_HEADER_BYTES);
    start();
    cr_assert(refresh_until_known(), "%s", chatelaine_trouble_text(reader.trouble));
    cr_expect(chatelaine_check(&reader, "known", 5, 0, &who));
    chatelaine_table_finish(&reader);
    table_server_stop(&server);
}

Test(check_refresh, a_deployment_without_an_end)
{
    memset(made.header->deployment, 'x', sizeof made.header->deployment);
    expect_trouble(CHATELAINE_WRONG_FORMAT, 0);
}

Test(check_refresh, another_deployment)
{
    made.header->deployment[0]++;
    expect_trouble(CHATELAINE_WRONG_DEPLOYMENT, 0);
}

Test(check_refresh, another_time_namespace)
{
    made.header->time_namespace[1]++;
    expect_trouble(CHATELAINE_WRONG_CLOCK, 0);
    made.header->time_namespace[1]--;
    made.header->time_namespace[0]++;
    expect_trouble(CHATELAINE_WRONG_CLOCK, 0);
}

Test(check_refresh, every_trouble_has_a_text_of_its_own)
{
    for (int i = CHATELAINE_FINE; i <= CHATELAINE_SYSTEM_ERROR; i++)
        for (int j = CHATELAINE_FINE; j < i; j++)
            cr_assert_str_neq(chatelaine_trouble_text((enum chatelaine_trouble)i),
                              chatelaine_trouble_text((enum chatelaine_trouble)j));
}
