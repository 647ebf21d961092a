#include "redis_files_internal.h"

#include "admin/startup_gate.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secure.h"
#include "config/file_stamp.h"
#include "config/key_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AUTH_FILE_MAX_BYTES = 1024 };

struct files_access {
    struct redis_access access;
    const struct settings *settings;
    struct redis_tls *tls; /* NULL: none */
    unsigned tls_changes;
    struct redis_target place; /* the users and passwords in it are not used */
    struct file_stamp address_file, sentinel_file;
    char why[ACCESS_WHY_BYTES]; /* why one of these files is refused, a sentence; empty: none is */
};

/* Reading */

static bool read_address(const struct settings *settings, struct redis_target *ret_target, struct buf *ret_why)
{
    struct buf url CLEANUP(buf_wipe) = BUF_UP_TO(STORE_URL_MAX_BYTES);

    if (!settings->redis_file)
        return redis_target_parse(text_trim(text_of(settings->redis)), ret_target, ret_why);
    buf_append_str(ret_why, "--redis-file: ");
    if (!secret_file_read(settings->redis_file, &url, ret_why)) {
        buf_append_str(ret_why, "; OPERATIONS.md, First start, says what it holds");
        return false;
    }
    if (secret_file_is_dressed(text_trim(buf_text(&url)), settings->redis_file, ret_why))
        return false;
    buf_clear(ret_why);
    buf_printf(ret_why, "--redis-file %s: ", settings->redis_file);
    if (!redis_target_parse(text_trim(buf_text(&url)), ret_target, ret_why))
        return false;
    buf_clear(ret_why);
    return true;
}

static bool read_sentinel_auth(const char *path, struct redis_target *target, struct buf *ret_why)
{
    struct buf line CLEANUP(buf_wipe) = BUF_UP_TO(AUTH_FILE_MAX_BYTES);

    if (target->found != REDIS_BY_SENTINEL) {
        buf_append_str(ret_why, "--sentinel-auth-file is only for Sentinels: --redis names none");
        return false;
    }
    buf_printf(ret_why, "--sentinel-auth-file %s: ", path);
    if (!secret_file_read(path, &line, ret_why) || secret_file_is_dressed(text_trim(buf_text(&line)), path, ret_why) ||
        !redis_target_add_sentinel_auth(text_trim(buf_text(&line)), target, ret_why))
        return false;
    buf_clear(ret_why);
    return true;
}

bool redis_target_read(const struct settings *settings, struct redis_target *ret_target, struct buf *ret_why)
{
    return read_address(settings, ret_target, ret_why) &&
           (!settings->sentinel_auth_file || read_sentinel_auth(settings->sentinel_auth_file, ret_target, ret_why));
}

/* Reading again */

/* A file that was written just now is read at each look. */
static bool note_change(struct file_stamp *stamp, const char *path)
{
    bool may_differ = file_stamp_is_young(stamp);

    return file_stamp_renew(stamp, path) || may_differ;
}

static void refuse(struct files_access *files, struct text why)
{
    char before[sizeof files->why];

    memcpy(before, files->why, sizeof before);
    while (why.len > 0 && why.ptr[why.len - 1] == '.')
        why.len--;
    snprintf(files->why, sizeof files->why, "A file is refused, so what was read before stays in use: %.*s.",
             TEXT_ARG(why));
    if (strcmp(before, files->why) != 0)
        LOG(LOG_ERROR, "a file with a password for Redis is refused: what was read before stays in use",
            log_text("why", why));
}

static void take_login(struct files_access *files, enum redis_peer peer, const struct redis_login *read)
{
    struct redis_login *login = &files->access.now[peer];

    if (secure_equal(text_of(login->user), text_of(read->user)) &&
        secure_equal(text_of(login->password), text_of(read->password)))
        return;
    memcpy(login->user, read->user, sizeof login->user);
    memcpy(login->password, read->password, sizeof login->password);
    login->version++;
    LOG(LOG_INFO, "new user or password for Redis: connections are renewed, one after another",
        log_str("file", peer == REDIS_PEER_SERVER ? files->settings->redis_file : files->settings->sentinel_auth_file));
}

/* Another address may lead to another store, and another store knows nothing of revocations in this one. */
static void read_again(struct files_access *files)
{
    const struct settings *s = files->settings;
    struct redis_target target;
    struct buf why = BUF_FIXED(ACCESS_WHY_BYTES);

    if (s->redis_file)
        buf_printf(&why, "--redis-file %s: ", s->redis_file);
    if (!read_address(s, &target, &why)) {
        refuse(files, buf_text(&why));
        return;
    }
    if (!redis_target_same_place(&target, &files->place)) {
        buf_append_str(&why, "it names another address; a node takes a new one only when it is restarted");
        refuse(files, buf_text(&why));
    } else {
        buf_clear(&why);
        if (s->sentinel_auth_file && !read_sentinel_auth(s->sentinel_auth_file, &target, &why)) {
            refuse(files, buf_text(&why));
        } else {
            files->why[0] = '\0';
            take_login(files, REDIS_PEER_SERVER, &target.login);
            take_login(files, REDIS_PEER_SENTINEL, &target.sentinel_login);
        }
    }
    secure_wipe(&target, sizeof target);
}

static void look(struct redis_access *access)
{
    struct files_access *files = LIST_ENTRY(access, struct files_access, access);
    bool has_address_changed = note_change(&files->address_file, files->settings->redis_file);
    bool has_sentinel_changed = note_change(&files->sentinel_file, files->settings->sentinel_auth_file);
    unsigned changes = files->tls ? redis_tls_look(files->tls) : 0;

    if (has_address_changed || has_sentinel_changed)
        read_again(files);
    for (size_t i = 0; i < REDIS_PEERS && changes != files->tls_changes; i++)
        access->now[i].version++;
    files->tls_changes = changes;
    if (files->tls && redis_tls_trouble(files->tls)[0] && !files->why[0])
        snprintf(access->refused_file, sizeof access->refused_file,
                 "A certificate file is refused, so what was read before stays in use: %.400s.",
                 redis_tls_trouble(files->tls));
    else
        memcpy(access->refused_file, files->why, sizeof files->why);
}

struct redis_access *redis_access_create(const struct settings *settings, const struct redis_target *target,
                                         struct redis_tls *tls)
{
    struct files_access *files = mem_alloc(sizeof *files);

    files->settings = settings;
    files->tls = tls;
    files->place = *target;
    files->access.now[REDIS_PEER_SERVER] = target->login;
    files->access.now[REDIS_PEER_SENTINEL] = target->sentinel_login;
    (void)file_stamp_renew(&files->address_file, settings->redis_file);
    (void)file_stamp_renew(&files->sentinel_file, settings->sentinel_auth_file);
    files->access.look = look;
    redis_access_init(&files->access);
    return &files->access;
}

void redis_access_destroy(struct redis_access *access)
{
    struct files_access *files = access ? LIST_ENTRY(access, struct files_access, access) : NULL;

    if (!files)
        return;
    secure_wipe(files, sizeof *files);
    free(files);
}
