#include "redis_files_internal.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/file_stamp.h"
#include "config/tls_files.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILES = 3, WHY_MAX_BYTES = 512 };

struct files_tls {
    struct redis_tls tls;
    struct tls_file_option ca, certificate, key;
    struct tls_context *context;     /* the last one that could be made */
    struct file_stamp stamps[FILES]; /* of the files when one was last made, or could not be made */
    unsigned changes;
    char trouble[WHY_MAX_BYTES]; /* why the files cannot be used; empty: they can */
};

/* Notes the files as they are now. False: they are as they were. */
static bool note_change(struct files_tls *files)
{
    const char *const paths[FILES] = {files->ca.paths, files->certificate.paths, files->key.paths};
    bool has_changed = false;

    for (size_t i = 0; i < FILES; i++)
        has_changed |= file_stamp_renew(&files->stamps[i], paths[i]);
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
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);

    struct tls_context *renewed = open_context(files, &why);
    snprintf(files->trouble, sizeof files->trouble, "%.*s", TEXT_ARG(buf_text(&why)));
    if (!renewed) {
        LOG(LOG_ERROR, "certificates for Redis not reloaded: the old ones stay in use",
            log_text("why", buf_text(&why)));
        return;
    }
    tls_context_release(files->context);
    files->context = renewed;
    files->changes++;
    files->trouble[0] = '\0';
    LOG(LOG_INFO, "certificates for Redis reloaded", log_str("ca", files->ca.paths ? files->ca.paths : "the system's"));
}

unsigned redis_tls_look(struct redis_tls *tls)
{
    struct files_tls *files = LIST_ENTRY(tls, struct files_tls, tls);

    if (note_change(files))
        renew(files);
    return files->changes;
}

const char *redis_tls_trouble(const struct redis_tls *tls)
{
    return LIST_ENTRY(tls, const struct files_tls, tls)->trouble;
}

static struct tls_context *context_now(struct redis_tls *tls)
{
    (void)redis_tls_look(tls);
    return tls_context_hold(LIST_ENTRY(tls, struct files_tls, tls)->context);
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
