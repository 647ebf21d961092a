/* `master-key --write`: a file that only its owner reads, and that is never replaced. */
#include "deadline.h"
#include "leak_guard.h"
#include "node.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16];

static void make_folder(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/key", folder);
}

static void drop_folder(void)
{
    folder_remove(folder);
    leak_guard();
}

TestSuite(master_key_file, .init = make_folder, .fini = drop_folder, .timeout = TEST_WITHIN_S);

/* The exit code; what it said on standard error goes to ret_said. */
static int write_key(const char *to, char ret_said[512])
{
    const char *argv[] = {node_binary(), "master-key", "--write", to, NULL};
    struct process process;
    int code = process_run(&process, folder, "write", argv, NULL, PATIENCE_MS);
    char *out = file_read(process.out_path), *err = file_read(process.err_path);

    cr_expect_str_empty(out, "a key on standard output");
    snprintf(ret_said, 512, "%s", err);
    unlink(process.err_path);
    free(out);
    free(err);
    return code;
}

Test(master_key_file, is_made_for_its_owner_and_not_replaced)
{
    char said[512];
    struct stat about;

    cr_assert_eq(write_key(path, said), 0, "%s", said);
    cr_assert_eq(stat(path, &about), 0);
    cr_expect_eq(about.st_mode & 07777, 0400);
    char *key = file_read(path);
    cr_expect_eq(strlen(key), 65);
    cr_expect_eq(strspn(key, "0123456789abcdef"), 64, "%s", key);

    cr_expect_eq(write_key(path, said), 1);
    cr_expect_not_null(strstr(said, "exists, and was left as it is"), "%s", said);
    char *again = file_read(path);
    cr_expect_str_eq(again, key);
    free(key);
    free(again);
}

Test(master_key_file, does_not_follow_a_link)
{
    char said[512], target[PROCESS_PATH_BYTES + 16];

    snprintf(target, sizeof target, "%s/target", folder);
    cr_assert_eq(symlink(target, path), 0);
    cr_expect_eq(write_key(path, said), 1);
    cr_expect_neq(access(target, F_OK), 0);
}

Test(master_key_file, needs_a_folder)
{
    char said[512], nowhere[PROCESS_PATH_BYTES + 16];

    snprintf(nowhere, sizeof nowhere, "%s/no/key", folder);
    cr_expect_eq(write_key(nowhere, said), 1);
    cr_expect_not_null(strstr(said, "annot create"), "%s", said);
}

/* As on a full disk: only some bytes can be written. */
Test(master_key_file, is_whole_or_not_there)
{
    const struct rlimit few = {10, 10};
    const char *argv[] = {node_binary(), "master-key", "--write", path, NULL};
    struct process process;

    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &few), 0);
    cr_expect_eq(process_run(&process, folder, "write", argv, NULL, PATIENCE_MS), 1);
    cr_expect_neq(access(path, F_OK), 0, "a part of a key was left");
}
