/* Files that change under a running process. */
#include "config/file_stamp.h"
#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

TestSuite(file_stamp, .fini = leak_guard);

Test(file_stamp, sees_each_way_in_which_a_file_changes)
{
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16], other[PROCESS_PATH_BYTES + 16];
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct file_stamp stamp = {0};

    folder_make(folder);
    snprintf(path, sizeof path, "%s/a", folder);
    snprintf(other, sizeof other, "%s/b", folder);
    cr_expect_not(file_stamp_renew(&stamp, NULL));
    cr_expect_not(file_stamp_renew(&stamp, path), "it is not there yet");
    file_write(path, "one");
    cr_expect(file_stamp_renew(&stamp, path));
    cr_expect(file_stamp_is_young(&stamp));
    cr_expect_not(file_stamp_renew(&stamp, path));
    cr_assert_eq(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    cr_expect(file_stamp_renew(&stamp, path), "another time");
    cr_expect_not(file_stamp_is_young(&stamp));
    file_write(other, "two");
    cr_assert_eq(utimensat(AT_FDCWD, other, long_ago, 0), 0);
    cr_assert_eq(rename(other, path), 0);
    cr_expect(file_stamp_renew(&stamp, path), "another file of the same size and time");
    cr_assert_eq(unlink(path), 0);
    cr_expect(file_stamp_renew(&stamp, path), "it is gone");
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_not(file_stamp_renew(&stamp, path), "reading a pipe again would wait for a writer");
    folder_remove(folder);
}
