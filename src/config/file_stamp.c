#include "config/file_stamp.h"

#include "base/clock.h"

enum { YOUNG_MS = 2000, MS_PER_S = 1000 };

static struct file_stamp stamp_of(const char *path)
{
    struct stat status;

    if (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return (struct file_stamp){0};
    return (struct file_stamp){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

static bool is_same(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

bool file_stamp_renew(struct file_stamp *stamp, const char *path)
{
    const struct file_stamp before = *stamp;

    *stamp = stamp_of(path);
    return !is_same(stamp, &before);
}

bool file_stamp_is_young(const struct file_stamp *stamp)
{
    int64_t age_ms = clock_wall_ms() - (int64_t)stamp->modified.tv_sec * MS_PER_S;

    return age_ms > -YOUNG_MS && age_ms < YOUNG_MS + MS_PER_S;
}
