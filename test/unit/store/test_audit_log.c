#include "audit/audit_log.h"

#include "base/append_file.h"
#include "base/background.h"
#include "base/machine.h"
#include "deadline.h"
#include "leak_guard.h"
#include "process.h"
#include "slow_disk.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_MAX = 64 * 1024 };

/* The library's fdatasync(2) is this one. */
atomic_bool disk_hangs;

int fdatasync(int fd)
{
    while (atomic_load(&disk_hangs))
        poll(NULL, 0, 1);
    return (int)syscall(SYS_fdatasync, fd);
}

static uv_loop_t loop;
static struct keyring *keyring;
static char folder[] = "/tmp/chatelaine-audit-XXXXXX", path[64];

static void begin(void)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{7}};

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.log", folder);
    cr_assert_eq(uv_loop_init(&loop), 0);
    keyring = keyring_create(MASTER, 1);
    signal(SIGXFSZ, SIG_IGN);
}

static void end(void)
{
    cr_assert_eq(uv_loop_close(&loop), 0, "a handle is left");
    keyring_destroy(keyring);
    folder_remove(folder);
    leak_guard();
}

TestSuite(audit_log_file, .init = begin, .fini = end);

static struct audit_log *open_log_that_waits(uint32_t ms)
{
    const struct audit_log_settings settings = {.path = path, .keyring = keyring, .write_within_ms = ms};
    char why_storage[256];
    struct buf why;

    buf_init_fixed(&why, why_storage, sizeof why_storage);
    struct audit_log *log = audit_log_open(&loop, &settings, &why);
    cr_assert(log, "%.*s", TEXT_ARG(buf_text(&why)));
    audit_log_name(log, "n1");
    audit_log_hold(log, NULL);
    return log;
}

static struct audit_log *open_log(void)
{
    return open_log_that_waits(AUDIT_LOG_WRITE_WITHIN_MS);
}

static void close_log(struct audit_log *log)
{
    audit_log_close(log, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static unsigned synced, failed;

static void on_logged(void *arg, bool is_synced)
{
    (void)arg;
    synced += is_synced;
    failed += !is_synced;
}

static void append(struct audit_log *log, const char *type)
{
    audit_log_append(log, &(struct audit_line){.time_ms = 1, .type = text_of(type)}, on_logged, NULL);
}

static void append_now(struct audit_log *log, const char *type)
{
    append(log, type);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static size_t read_file(const char *name, char *ret_content)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, ret_content, FILE_MAX - 1);

    ret_content[got] = '\0';
    if (fd >= 0)
        close(fd);
    return (size_t)got;
}

static void write_file(const char *name, const char *content, size_t len)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    cr_assert_eq(write(fd, content, len), (ssize_t)len);
    close(fd);
}

/* The types of the file's lines, each followed by a blank; what is no genuine line is "?". All must be one chain. */
static void expect_types(const char *name, uint64_t first, const char *expected)
{
    static char content[FILE_MAX];
    char types[1024] = "", chain[AUDIT_CHAIN_CHARS + 1] = "", mac[AUDIT_MAC_CHARS + 1] = "";
    struct text rest = {content, read_file(name, content)}, line;

    while (text_next(&rest, '\n', &line) && rest.ptr) {
        struct audit_line_read read;
        bool is_genuine = audit_line_read(keyring, line, &read) == AUDIT_LINE_GENUINE;

        snprintf(types + strlen(types), sizeof types - strlen(types), "%s ", is_genuine ? read.type : "?");
        if (!is_genuine)
            continue;
        cr_expect_eq(read.head.seq, first++, "%s", read.type);
        cr_expect(chain[0] == '\0' || strcmp(chain, read.head.chain) == 0);
        cr_expect(mac[0] == '\0' || strcmp(mac, read.prev) == 0);
        memcpy(chain, read.head.chain, sizeof chain);
        memcpy(mac, read.head.mac, sizeof mac);
    }
    cr_expect_str_eq(types, expected);
}

Test(audit_log_file, lines_of_one_turn_share_a_sync)
{
    struct audit_log *log = open_log();
    struct audit_published head;

    for (size_t i = 0; i < 5; i++)
        append(log, "x");
    cr_expect_eq(synced, 0, "later");
    uv_run(&loop, UV_RUN_DEFAULT);
    cr_expect_eq(synced, 5);
    append_now(log, "log.ended");
    audit_log_head(log, &head);
    cr_expect_eq(head.head.seq, 7);
    cr_expect_eq(head.event_seq, 6, "a line about chains is no event");
    cr_expect_str_eq(head.node, "n1");
    close_log(log);
    expect_types(path, 1, "log.began x x x x x log.ended ");
}

Test(audit_log_file, goes_on_where_the_file_ends)
{
    struct audit_log *log = open_log();
    struct stat about;

    append_now(log, "x");
    close_log(log);
    log = open_log();
    append_now(log, "y");
    close_log(log);
    expect_types(path, 1, "log.began x y ");
    cr_assert_eq(stat(path, &about), 0);
    cr_expect_eq(about.st_mode & 0777, 0600);
}

/* Cut at any byte of its last line: what is whole before stays, and what is not is told. */
Test(audit_log_file, a_torn_line_is_told)
{
    static char content[FILE_MAX];
    struct audit_log *log = open_log();
    size_t len, last;

    append_now(log, "x");
    append_now(log, "y");
    close_log(log);
    len = read_file(path, content);
    last = (size_t)((char *)memrchr(content, '\n', len - 1) - content) + 1;
    for (size_t cut = last; cut < len; cut += cut == last || cut + 2 >= len ? 1 : 37) {
        write_file(path, content, cut);
        log = open_log();
        append_now(log, "z");
        close_log(log);
        expect_types(path, 1,
                     cut == last      ? "log.began x z "
                     : cut == len - 1 ? "log.began x y z "
                                      : "log.began x ? log.torn z ");
    }
}

Test(audit_log_file, a_foreign_end_begins_a_chain)
{
    struct audit_log *log;

    write_file(path, "something else\n", 15);
    log = open_log();
    append_now(log, "x");
    close_log(log);
    expect_types(path, 1, "? log.began x ");
}

static void look(struct audit_log *log)
{
    audit_log_look(log);
    uv_run(&loop, UV_RUN_DEFAULT);
}

Test(audit_log_file, goes_on_in_a_new_file)
{
    struct audit_log *log = open_log();
    struct audit_published head;
    char moved[80];

    append_now(log, "x");
    look(log);
    append_now(log, "y");
    snprintf(moved, sizeof moved, "%s.1", path);
    cr_assert_eq(rename(path, moved), 0);
    append(log, "z");
    look(log);
    append_now(log, "z");
    audit_log_head(log, &head);
    cr_expect_eq(head.head.seq, 6);
    close_log(log);
    expect_types(moved, 1, "log.began x y ");
    expect_types(path, 4, "log.continued z z ");
}

/* A look writes nothing by itself, and ends no trouble. */
Test(audit_log_file, a_look_at_what_is_well_changes_nothing)
{
    struct audit_log *log = open_log();

    look(log);
    expect_types(path, 1, "");
    append_now(log, "x");
    look(log);
    close_log(log);
    expect_types(path, 1, "log.began x ");
}

Test(audit_log_file, tells_what_is_lost)
{
    struct audit_log *log = open_log();
    char moved[80];

    append_now(log, "x");
    cr_assert_eq(unlink(path), 0);
    look(log);
    expect_types(path, 3, "log.reopened ");
    append_now(log, "y");
    cr_assert_eq(truncate(path, 0), 0);
    append_now(log, "z");
    expect_types(path, 5, "log.reopened z ");
    snprintf(moved, sizeof moved, "%s.1", path);
    cr_assert_eq(rename(path, moved), 0);
    look(log);
    cr_assert_eq(unlink(path), 0);
    append_now(log, "z");
    close_log(log);
    expect_types(path, 7, "log.continued z ");
}

/* Whoever edits a file writes another one and renames it. */
Test(audit_log_file, a_whole_copy_loses_nothing)
{
    static char content[FILE_MAX];
    struct audit_log *log = open_log();
    char copy[80];

    append_now(log, "x");
    snprintf(copy, sizeof copy, "%s.new", path);
    write_file(copy, content, read_file(path, content));
    cr_assert_eq(rename(copy, path), 0);
    append_now(log, "y");
    close_log(log);
    expect_types(path, 1, "log.began x y ");
}

static unsigned waiting_for_folder;

static void on_trouble(void *arg)
{
    waiting_for_folder += audit_log_trouble(arg) != NULL;
}

Test(audit_log_file, fails_while_there_is_no_file)
{
    struct audit_log *log = open_log();

    append_now(log, "x");
    audit_log_watch(log, on_trouble, log);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    look(log);
    cr_expect_eq(waiting_for_folder, 1, "without a line");
    append_now(log, "y");
    cr_expect_eq(failed, 1);
    cr_assert_eq(rmdir(path), 0);
    append_now(log, "z");
    cr_expect_null(audit_log_trouble(log));
    close_log(log);
    expect_types(path, 3, "log.reopened z ");
}

Test(audit_log_file, is_locked)
{
    struct audit_log *log = open_log();
    char why_storage[256];
    struct buf why;

    buf_init_fixed(&why, why_storage, sizeof why_storage);
    cr_expect_null(audit_log_open(&loop, &(struct audit_log_settings){.path = path, .keyring = keyring}, &why));
    cr_expect(memmem(why.ptr, why.len, "in use by another node", 22), "%.*s", TEXT_ARG(buf_text(&why)));
    close_log(log);
    close_log(open_log());
}

/* A disk that is full at any byte, and has room again. */
Test(audit_log_file, a_full_disk_is_told_and_got_over)
{
    struct audit_log *log = open_log();
    struct stat about;

    append_now(log, "x");
    cr_assert_eq(stat(path, &about), 0);
    struct rlimit limit = {(rlim_t)about.st_size + 20, RLIM_INFINITY};
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    append(log, "y");
    append_now(log, "y");
    cr_expect_eq(failed, 2);
    cr_expect_not_null(audit_log_trouble(log));
    append_now(log, "y");
    cr_expect_eq(failed, 3);
    limit.rlim_cur = RLIM_INFINITY;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    append_now(log, "z");
    cr_expect_eq(synced, 2);
    cr_expect_null(audit_log_trouble(log));
    close_log(log);
    expect_types(path, 1, "log.began x ? log.torn z ");
}

static void run_until_failed(unsigned count)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (failed < count && deadline_left_ms(deadline) > 0) {
        uv_run(&loop, UV_RUN_NOWAIT);
        poll(NULL, 0, 1);
    }
    cr_assert_eq(failed, count);
}

/* Nobody waits for a disk that hangs, and the chain goes on behind what it wrote at last. */
Test(audit_log_file, a_disk_that_hangs_is_told_and_got_over)
{
    struct audit_log *log = open_log_that_waits(2000); /* enough for a busy machine's disk */

    atomic_store(&disk_hangs, true);
    append(log, "x");
    run_until_failed(1);
    cr_assert_not_null(audit_log_trouble(log));
    cr_expect_not_null(strstr(audit_log_trouble(log), "the disk does not answer"), "%s", audit_log_trouble(log));
    append(log, "y");
    append(log, "y");
    run_until_failed(3);
    cr_expect_eq(synced, 0);
    atomic_store(&disk_hangs, false);
    uv_run(&loop, UV_RUN_DEFAULT);
    cr_expect_null(audit_log_trouble(log));
    append_now(log, "z");
    cr_expect_eq(synced, 1);
    close_log(log);
    expect_types(path, 1, "log.began x z ");
}

/* The loop ends once the disk has answered, and not before: the thread uses the log. */
Test(audit_log_file, is_closed_while_its_disk_hangs)
{
    struct audit_log *log = open_log_that_waits(20);

    atomic_store(&disk_hangs, true);
    append(log, "x");
    run_until_failed(1);
    audit_log_close(log, NULL, NULL);
    for (unsigned turn = 0; turn < 10; turn++)
        cr_expect_neq(uv_run(&loop, UV_RUN_NOWAIT), 0);
    atomic_store(&disk_hangs, false);
    uv_run(&loop, UV_RUN_DEFAULT);
    expect_types(path, 1, "log.began x ");
}

static void close_this(void *arg, bool is_synced)
{
    cr_expect(is_synced);
    audit_log_close(arg, NULL, NULL);
}

Test(audit_log_file, the_callback_of_a_line_may_close_it)
{
    struct audit_log *log = open_log();

    audit_log_append(log, &(struct audit_line){.time_ms = 1, .type = TEXT("x")}, close_this, log);
    uv_run(&loop, UV_RUN_DEFAULT);
    expect_types(path, 1, "log.began x ");
}

/* A file that somebody cut goes on where the node knows it was, so that the gap shows. */
Test(audit_log_file, a_cut_while_it_is_open_leaves_a_gap)
{
    static char content[FILE_MAX];
    struct audit_log *log = open_log();

    append_now(log, "x");
    append_now(log, "y");
    cr_assert_eq(truncate(path, 0), 0);
    append_now(log, "z");
    close_log(log);
    read_file(path, content);
    cr_expect_not_null(strstr(content, "\"seq\":4,"), "%s", content);
}

Test(audit_log_file, one_with_lines_waits_until_it_may_write)
{
    struct audit_log *log = open_log();

    append_now(log, "a");
    close_log(log);
    log = open_log();
    audit_log_hold(log, "");
    append_now(log, "b");
    cr_expect_eq(synced + failed, 1, "it waits");
    cr_expect_null(audit_log_trouble(log));
    audit_log_hold(log, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    cr_expect_eq(synced, 2);
    audit_log_hold(log, "somebody else writes it");
    append_now(log, "c");
    cr_expect_eq(failed, 1);
    cr_expect(strstr(audit_log_trouble(log), "somebody else writes it"));
    audit_log_look(log);
    uv_run(&loop, UV_RUN_DEFAULT);
    audit_log_hold(log, NULL);
    append_now(log, "d");
    cr_expect_null(audit_log_trouble(log));
    close_log(log);
    expect_types(path, 1, "log.began a b d ");
}

Test(audit_log_file, has_a_place_that_a_copy_has_not)
{
    char places[4][512], other[sizeof path + 8];
    struct buf place;

    snprintf(other, sizeof other, "%s.copy", path);
    for (size_t i = 0; i < 4; i++) {
        buf_init_fixed(&place, places[i], sizeof places[i] - 1);
        if (i == 1)
            write_file(path, "", 0); /* a new file at the path, as after a rotation */
        append_file_place(i == 2 ? other : i == 3 ? "/tmp/x" : path, &place);
        places[i][place.len] = '\0';
    }
    cr_expect_str_eq(places[0], places[1]);
    cr_expect_str_neq(places[0], places[2]);
    cr_expect_str_neq(strchr(places[0], ' '), strchr(places[3], ' '));
}

/* Forbidden moves */

static struct background *begin_written(void)
{
    struct audit_log *log = open_log();

    append_now(log, "x");
    cr_assert_eq(synced, 1);
    return (struct background *)log;
}

Test(audit_log_file, a_write_that_ends_twice_ends_the_process, .signal = SIGABRT)
{
    struct background *written = begin_written();

    written->done(written);
}

Test(audit_log_file, in_a_release_a_write_that_ends_twice_confirms_nothing)
{
    struct background *written = begin_written();
    struct audit_log *log = (struct audit_log *)written;

    machine_set_fatal(false);
    append(log, "y");
    written->done(written);
    cr_expect_eq(failed, 1);
    append_now(log, "z");
    cr_expect_eq(synced, 2);
    close_log(log);
    expect_types(path, 1, "log.began x z ");
}
