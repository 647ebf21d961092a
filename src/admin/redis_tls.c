#include "redis_tls_internal.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/tls_files.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { FILES = 3, WHY_MAX_BYTES = 1024 };

/* Tells a renewed file from the one that was read: both a rename and a rewrite change it. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified;
};

struct files_tls {
    struct redis_tls tls;
    struct tls_file_option ca, certificate, key;
    struct tls_context *context; /* the last one that could be made */
    struct stamp stamps[FILES];  /* of the files when one was last made, or could not be made */
};

static struct stamp stamp_of(const char *path)
{
    struct stat status;

    if (!path || stat(path, &status) != 0)
        return (struct stamp){0};
    return (struct stamp){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

/* Notes the files as they are now. False: they are as they were. */
static bool note_change(struct files_tls *files)
{
    const char *const paths[FILES] = {files->ca.paths, files->certificate.paths, files->key.paths};
    bool has_changed = false;

    for (size_t i = 0; i < FILES; i++) {
        struct stamp stamp = stamp_of(paths[i]);

        has_changed |= !is_same(&stamp, &files->stamps[i]);
        files->stamps[i] = stamp;
    }
    return has_changed;
}

static struct tls_context *open_context(const struct files_tls *files, struct buf *ret_why)
{
    return tls_files_open_client(files->ca, files->certificate, files->key, ret_why);
}

/* Files that cannot be used are told of once. The files are written one after the other, so certificate and key may not
 * fit each other for a moment: the next connection reads them again, because the second one has changed by then. */
static void renew(struct files_tls *files)
{
    char storage[WHY_MAX_BYTES];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    struct tls_context *renewed = open_context(files, &why);
    if (!renewed) {
        LOG(LOG_ERROR, "certificates for Redis not reloaded: the old ones stay in use",
            log_text("why", buf_text(&why)));
        return;
    }
    tls_context_release(files->context);
    files->context = renewed;
    LOG(LOG_INFO, "certificates for Redis reloaded", log_str("ca", files->ca.paths ? files->ca.paths : "the system's"));
}

static struct tls_context *context_now(struct redis_tls *tls)
{
    struct files_tls *files = LIST_ENTRY(tls, struct files_tls, tls);

    if (note_change(files))
        renew(files);
    return tls_context_hold(files->context);
}

struct redis_tls *redis_tls_create(const struct settings *settings, struct buf *ret_why)
{
    struct files_tls *files = mem_alloc(sizeof *files);

    *files = (struct files_tls){.tls = {context_now},
                                .ca = {"--redis-ca", settings->redis_ca},
                                .certificate = {"--redis-cert", settings->redis_cert},
                                .key = {"--redis-key", settings->redis_key}};
    (void)note_change(files);
    files->context = open_context(files, ret_why);
    if (files->context)
        return &files->tls;
    free(files);
    return NULL;
}

void redis_tls_destroy(struct redis_tls *tls)
{
    struct files_tls *files = tls ? LIST_ENTRY(tls, struct files_tls, tls) : NULL;

    if (!files)
        return;
    tls_context_release(files->context);
    free(files);
}
