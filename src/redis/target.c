#include "base/encode.h"
#include "base/secure.h"
#include "redis/target.h"
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum {
    REDIS_PORT = 6379,
    SENTINEL_PORT = 26379,
    REDIS_DB_MAX = 65535,
    SOCKET_PATH_MAX_BYTES = sizeof(((struct sockaddr_un *)0)->sun_path) - 1
};

static bool refuse(struct buf *ret_why, const char *sentence)
{
    buf_append_str(ret_why, sentence);
    return false;
}

/* Decodes percent escapes into a NUL-terminated field. False: too long, a NUL byte, or a broken escape. */
static bool decode_into(struct text t, char *ret_field, size_t field_bytes)
{
    size_t used = 0;

    for (size_t i = 0; i < t.len; i++) {
        uint8_t byte = (uint8_t)t.ptr[i];

        if (byte == '%') {
            if (t.len - i < 3 || !decode_hex((struct text){t.ptr + i + 1, 2}, &byte, 1))
                return false;
            i += 2;
        }
        if (byte == 0 || used + 1 >= field_bytes)
            return false;
        ret_field[used++] = (char)byte;
    }
    ret_field[used] = '\0';
    return true;
}

static bool parse_db(struct text t, unsigned *ret_db)
{
    uint64_t db;

    if (!text_to_u64(t, REDIS_DB_MAX, &db))
        return false;
    *ret_db = (unsigned)db;
    return true;
}

/* Takes [user:password@] off *rest. The last '@' ends it, because a password may contain one. */
static bool parse_user(struct text *rest, struct redis_target *target, struct buf *ret_why)
{
    const char *at = rest->len ? memrchr(rest->ptr, '@', rest->len) : NULL;
    struct text password, user;

    if (!at)
        return true;
    password = (struct text){rest->ptr, (size_t)(at - rest->ptr)};
    *rest = text_skip(*rest, password.len + 1);
    if (!text_next(&password, ':', &user) || !password.ptr)
        return refuse(ret_why, "The Redis address has a user without a password: write redis://user:password@host, or "
                               "redis://:password@host.");
    if (!decode_into(user, target->login.user, sizeof target->login.user) ||
        !decode_into(password, target->login.password, sizeof target->login.password))
        return refuse(ret_why,
                      "The user or password in the Redis address is too long or not percent-encoded correctly.");
    return true;
}

/* host or [IPv6 address], optionally with :port */
static bool parse_host(struct text authority, uint16_t default_port, char ret_host[REDIS_HOST_BYTES],
                       uint16_t *ret_port, struct buf *ret_why)
{
    struct text host, port = {NULL, 0};
    uint64_t number = default_port;

    if (text_starts_with(authority, TEXT("["))) {
        struct text rest = text_skip(authority, 1);

        if (!text_next(&rest, ']', &host) || !rest.ptr || (rest.len && rest.ptr[0] != ':'))
            return refuse(ret_why, "The IPv6 address in the Redis address lacks its closing bracket.");
        port = rest.len ? text_skip(rest, 1) : port;
    } else {
        port = authority;
        if (!text_next(&port, ':', &host))
            host = authority;
    }
    if (host.len == 0 || !decode_into(host, ret_host, REDIS_HOST_BYTES))
        return refuse(ret_why, "The Redis address has no valid host: write redis://host:port/db, unix:/path, "
                               "redis-sentinel://host:port,host:port/master-name or redis-cluster://host:port.");
    if (port.ptr && (!text_to_u64(port, UINT16_MAX, &number) || number == 0))
        return refuse(ret_why, "The port in the Redis address is not a number from 1 to 65535.");
    *ret_port = (uint16_t)number;
    return true;
}

static bool parse_tcp(struct text rest, struct redis_target *target, struct buf *ret_why)
{
    struct text authority, db;

    if (!parse_user(&rest, target, ret_why))
        return false;
    db = rest;
    if (!text_next(&db, '/', &authority))
        authority = rest;
    if (!parse_host(authority, REDIS_PORT, target->host, &target->port, ret_why))
        return false;
    if (db.len && !parse_db(db, &target->db))
        return refuse(ret_why, "The database in the Redis address is not a number: write redis://host:port/0.");
    return true;
}

/* Only names that Sentinel accepts. */
static bool parse_master_name(struct text name, struct redis_target *target)
{
    for (size_t i = 0; i < name.len; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", name.ptr[i]))
            return false;
    return name.len > 0 && decode_into(name, target->master_name, sizeof target->master_name);
}

static bool parse_seeds(struct text hosts, uint16_t default_port, struct redis_target *target, struct buf *ret_why)
{
    struct text host;

    if (hosts.len == 0)
        return parse_host(hosts, default_port, target->seeds[0].host, &target->seeds[0].port, ret_why);
    while (text_next(&hosts, ',', &host)) {
        struct redis_address *seed = &target->seeds[target->seed_count];

        if (target->seed_count == REDIS_SEEDS_MAX)
            return refuse(ret_why, "The Redis address names more than 9 hosts.");
        if (!parse_host(host, default_port, seed->host, &seed->port, ret_why))
            return false;
        target->seed_count++;
    }
    return true;
}

/* [user:password@]host:port,host:port/master-name[/db]. User and password are the master's. */
static bool parse_sentinels(struct text rest, struct redis_target *target, struct buf *ret_why)
{
    struct text path, hosts, name;

    if (!parse_user(&rest, target, ret_why))
        return false;
    path = rest;
    if (!text_next(&path, '/', &hosts) || !path.ptr || !text_next(&path, '/', &name) ||
        !parse_master_name(name, target))
        return refuse(ret_why,
                      "The Redis address names no master: write redis-sentinel://host:port,host:port/master-name, with "
                      "the name under which Sentinel monitors it.");
    if (path.len && !parse_db(path, &target->db))
        return refuse(ret_why, "The database in the Redis address is not a number: write "
                               "redis-sentinel://host:port/master-name/0.");
    target->found = REDIS_BY_SENTINEL;
    return parse_seeds(hosts, SENTINEL_PORT, target, ret_why);
}

/* [user:password@]host:port,host:port. User and password are those of all nodes. A trailing slash is harmless. */
static bool parse_cluster(struct text rest, struct redis_target *target, struct buf *ret_why)
{
    struct text path, hosts;

    if (!parse_user(&rest, target, ret_why))
        return false;
    path = rest;
    if (!text_next(&path, '/', &hosts) || !path.ptr)
        hosts = rest;
    if (path.len && !(parse_db(path, &target->db) && target->db == 0))
        return refuse(ret_why, "A Redis Cluster has neither a master name nor a database other than 0: end the Redis "
                               "address after the hosts, as in redis-cluster://host:port,host:port.");
    target->found = REDIS_BY_CLUSTER;
    return parse_seeds(hosts, REDIS_PORT, target, ret_why);
}

static bool parse_parameter(struct text parameter, struct redis_target *target)
{
    struct text name, value = parameter;

    if (!text_next(&value, '=', &name) || !value.ptr)
        return false;
    if (text_equal(name, TEXT("db")))
        return parse_db(value, &target->db);
    if (text_equal(name, TEXT("user")))
        return decode_into(value, target->login.user, sizeof target->login.user);
    if (text_equal(name, TEXT("password")))
        return decode_into(value, target->login.password, sizeof target->login.password);
    return false;
}

static bool parse_unix(struct text rest, struct redis_target *target, struct buf *ret_why)
{
    struct text query = rest, path, parameter;

    if (!text_next(&query, '?', &path))
        path = rest;
    target->is_unix = true;
    if (text_starts_with(path, TEXT("//")))
        path = text_skip(path, 2);
    if (!text_starts_with(path, TEXT("/")) || !decode_into(path, target->host, SOCKET_PATH_MAX_BYTES + 1))
        return refuse(ret_why, "The Redis socket must be an absolute path of at most 107 bytes: unix:/path.");
    while (text_next(&query, '&', &parameter))
        if (!parse_parameter(parameter, target))
            return refuse(ret_why, "After '?' the Redis address takes only db=N, user=… and password=….");
    if (target->login.user[0] && !target->login.password[0])
        return refuse(ret_why, "The Redis address has a user without a password.");
    return true;
}

/* A path, a host, or host:port. */
static bool lacks_only_scheme(struct text url)
{
    struct text port = url, host;
    uint64_t number;

    if (url.len == 0 || memchr(url.ptr, '@', url.len) || memchr(url.ptr, '?', url.len))
        return false;
    return url.ptr[0] == '/' || (text_next(&port, ':', &host) && port.len == 0) ||
           text_to_u64(port, UINT16_MAX, &number);
}

/* Quotes nothing: a file with a bare password looks like one with a bare host. */
static void refuse_scheme(struct text url, struct buf *ret_why)
{
    buf_append_str(ret_why, "A Redis address must begin with redis://, redis-sentinel:// or redis-cluster://, the same "
                            "with rediss for TLS, or be unix:/path");
    if (lacks_only_scheme(url))
        buf_append_str(ret_why, url.ptr[0] == '/' ? ": did you mean unix: before the path?"
                                                  : ": did you mean redis:// before the host?");
    else
        buf_append_str(ret_why, ".");
}

bool redis_target_add_sentinel_auth(struct text line, struct redis_target *target, struct buf *ret_why)
{
    struct text password = line, user;

    if (!text_next(&password, ':', &user) || password.len == 0)
        return refuse(ret_why, "The file must hold one line: user:password, or :password for the default user.");
    if (user.len >= sizeof target->sentinel_login.user || password.len >= sizeof target->sentinel_login.password)
        return refuse(ret_why, "The Sentinels' user may have up to 127 bytes, their password up to 255.");
    if (memchr(line.ptr, '\0', line.len) || memchr(line.ptr, '\n', line.len))
        return refuse(ret_why, "The file must hold one line of text.");
    snprintf(target->sentinel_login.user, sizeof target->sentinel_login.user, "%.*s", TEXT_ARG(user));
    snprintf(target->sentinel_login.password, sizeof target->sentinel_login.password, "%.*s", TEXT_ARG(password));
    return true;
}

bool redis_target_parse(struct text url, struct redis_target *ret_target, struct buf *ret_why)
{
    static const struct {
        struct text scheme;
        bool (*parse)(struct text rest, struct redis_target *target, struct buf *ret_why);
        bool tls;
    } SCHEMES[] = {
        {TEXT("redis://"), parse_tcp, false},
        {TEXT("rediss://"), parse_tcp, true},
        {TEXT("redis-sentinel://"), parse_sentinels, false},
        {TEXT("rediss-sentinel://"), parse_sentinels, true},
        {TEXT("redis-cluster://"), parse_cluster, false},
        {TEXT("rediss-cluster://"), parse_cluster, true},
        {TEXT("unix:"), parse_unix, false},
    };
    struct redis_target target = {0};
    bool is_good = false, is_known = false;

    for (size_t i = 0; i < sizeof SCHEMES / sizeof *SCHEMES && !is_known; i++) {
        is_known = text_starts_with(url, SCHEMES[i].scheme);
        target.tls = SCHEMES[i].tls;
        if (is_known)
            is_good = SCHEMES[i].parse(text_skip(url, SCHEMES[i].scheme.len), &target, ret_why);
    }
    if (!is_known)
        refuse_scheme(url, ret_why);
    if (is_good)
        *ret_target = target;
    secure_wipe(&target, sizeof target);
    return is_good;
}

bool redis_target_same_place(const struct redis_target *a, const struct redis_target *b)
{
    bool is_same = a->found == b->found && a->is_unix == b->is_unix && a->tls == b->tls && a->port == b->port &&
                   a->db == b->db && a->seed_count == b->seed_count && strcmp(a->host, b->host) == 0 &&
                   strcmp(a->master_name, b->master_name) == 0;

    for (unsigned i = 0; is_same && i < a->seed_count; i++)
        is_same = a->seeds[i].port == b->seeds[i].port && strcmp(a->seeds[i].host, b->seeds[i].host) == 0;
    return is_same;
}

const char *redis_target_scheme(const struct redis_target *target)
{
    static const char *const PLAIN[] = {"redis://", "redis-sentinel://", "redis-cluster://"};
    static const char *const SECURED[] = {"rediss://", "rediss-sentinel://", "rediss-cluster://"};

    if (target->is_unix)
        return "unix:";
    return target->tls ? SECURED[target->found] : PLAIN[target->found];
}
