/* Tells a file that was changed from the one that was read: both a rename and a rewrite change its stamp. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

struct file_stamp { /* zeroed: of a file that is not there */
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified;
};

/* Notes the file as it is now. False: it is as it was. path: NULL is a file that is not there, and so is a pipe, which
 * can be read only once. */
bool file_stamp_renew(struct file_stamp *stamp, const char *path);
/* It was written within the last two seconds: a second write might leave the same stamp. */
bool file_stamp_is_young(const struct file_stamp *stamp);
