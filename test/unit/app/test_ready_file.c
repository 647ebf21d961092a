#include "app/ready_file.h"

#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(ready_file, .fini = leak_guard);

Test(ready_file, tells_process_and_addresses_and_leaves_nothing_else)
{
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 8], expected[256], storage[256];
    struct buf why;
    int entries = 0;

    folder_make(folder);
    snprintf(path, sizeof path, "%s/ready", folder);
    file_write(path, "what was there before, and longer than what comes now, so that a rest of it would be seen; "
                     "what was there before, and longer than what comes now, so that a rest of it would be seen");
    buf_init_fixed(&why, storage, sizeof storage);
    cr_assert(ready_file_write(path, "127.0.0.1:1", "[::1]:2", &why));
    snprintf(expected, sizeof expected, "{\"pid\":%ld,\"listen\":\"127.0.0.1:1\",\"internal_listen\":\"[::1]:2\"}\n",
             (long)getpid());
    char *content = file_read(path);
    cr_expect_str_eq(content, expected);
    free(content);

    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing));)
        entries += entry->d_name[0] != '.';
    closedir(listing);
    cr_expect_eq(entries, 1);
    folder_remove(folder);
}

Test(ready_file, says_why_it_cannot_be_written)
{
    char storage[256] = "";
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage - 1);
    cr_expect_not(ready_file_write("/nonexistent/ready", "a", "b", &why));
    cr_expect(strstr(storage, "/nonexistent/ready: No such file"), "%s", storage);
}
