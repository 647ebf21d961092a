#include "link_internal.h"

#include "base/check.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "redis/access.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    BACKOFF_FIRST_MS = 50,
    RETRY_AT_ONCE_MS = 10, /* after losing a connection that had held; jittered, because many nodes lose it together */
    LOG_PAUSE_MS = 10000,  /* at most one line in this time about an unstable link */
};

static enum redis_peer peer_of(const struct redis_link *link);
static void connect_begin(struct redis_link *link);
static void on_connected(void *arg, int status, union redis_stream *stream);
static void secure(struct redis_link *link, union redis_stream *stream);
static void on_kind(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void on_greeting(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void on_name(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void on_role(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void on_server(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void on_ping(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void subscribe(struct redis_link *link);
static void on_subscribed(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);

/* Log lines: one when the link is lost or cannot be made, one when it is back */

/* A loss is told once, and again when its reason changes: the first reason is often only that the connection ended. */
static bool may_log_loss(struct redis_link *link)
{
    uint64_t now_ms = uv_now(link->loop);

    if (link->is_trial)
        return false;
    if (!link->is_loss_logged)
        return log_pause_is_over(&link->loss_pause, now_ms, LOG_PAUSE_MS);
    return strcmp(link->trouble, link->logged_trouble) != 0 &&
           log_pause_is_over(&link->change_pause, now_ms, LOG_PAUSE_MS);
}

static void log_loss(struct redis_link *link)
{
    if (!may_log_loss(link))
        return;
    link->is_loss_logged = true;
    memcpy(link->logged_trouble, link->trouble, sizeof link->trouble);
    LOG(LOG_WARN, "Redis connection is down", log_str("link", link->name), log_str("why", link->trouble), link->about);
}

static void log_ready(struct redis_link *link)
{
    if (link->is_loss_logged)
        LOG(LOG_INFO, "Redis connection is up again", log_str("link", link->name), log_str("redis", link->where),
            link->about);
    link->is_loss_logged = false;
}

/* Connecting */

static void retry_later(struct redis_link *link)
{
    uint64_t backoff_ms = RETRY_AT_ONCE_MS;

    if (!link_move(link, LINK_WAITING))
        return;
    for (unsigned i = 1; i <= link->attempts && backoff_ms < link->backoff_max_ms; i++)
        backoff_ms = i == 1 ? BACKOFF_FIRST_MS : backoff_ms * 2;
    if (backoff_ms > link->backoff_max_ms)
        backoff_ms = link->backoff_max_ms;
    link->attempts++;
    link->has_tried = true;
    link_arm(link, backoff_ms / 2 + random_below((uint32_t)(backoff_ms / 2) + 1));
}

void link_set_trouble(struct redis_link *link, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(link->trouble, sizeof link->trouble, format, args);
    va_end(args);
}

void link_lose(struct redis_link *link, const char *why)
{
    bool was_ready = link->state == LINK_READY;

    REQUIRE(link->wire);
    if (was_ready)
        link->down_since_ms = uv_now(link->loop);
    if (was_ready && uv_now(link->loop) - link->ready_since_ms >= link->backoff_max_ms)
        link->attempts = 0;
    link_drop_wire(link);
    link_set_trouble(link, "%s: %s", link->where, why);
    retry_later(link);
    log_loss(link);
    if (was_ready && link->ready)
        link->ready(link->arg, false);
}

void link_name_place(struct redis_link *link)
{
    const struct redis_target *t = &link->target;

    if (link->resolver && !t->port)
        snprintf(link->where, sizeof link->where, "%s", link->resolver->source);
    else
        snprintf(link->where, sizeof link->where,
                 t->is_unix          ? "unix:%s"
                 : link->to_sentinel ? "Sentinel %s:%u"
                                     : "%s:%u",
                 t->host, t->port);
}

/* Asks the resolver before each attempt, because the master may have moved. */
void link_attempt(struct redis_link *link)
{
    if (!link->resolver) {
        connect_begin(link);
        return;
    }
    if (link_move(link, LINK_ASKING))
        redis_resolver_ask(link->resolver, &link->follower);
}

void link_on_master(void *arg, const struct redis_address *master, const char *why)
{
    struct redis_link *link = arg;

    if (master) {
        memcpy(link->target.host, master->host, sizeof link->target.host);
        link->target.port = master->port;
        link_name_place(link);
        connect_begin(link);
        return;
    }
    link_set_trouble(link, "%s: %s", link->resolver->source, why);
    retry_later(link);
    log_loss(link);
}

static struct redis_address address_of(const struct redis_link *link)
{
    struct redis_address address = {.port = link->target.port};

    memcpy(address.host, link->target.host, sizeof address.host);
    return address;
}

/* A connection to another address is dropped at once, even if that Redis still answers. */
void link_on_moved(void *arg, const struct redis_address *master)
{
    struct redis_link *link = arg;
    const struct redis_address current = address_of(link);
    bool is_same = redis_address_equal(&current, master);
    char why[LINK_TROUBLE_BYTES];

    switch (link->state) {
    case LINK_WAITING:
        link->attempts = 0;
        link_arm(link, 0);
        break;
    case LINK_CONNECTING:
        link->attempts = 0;
        if (!is_same)
            redis_connect_cancel(link->connect);
        break;
    case LINK_SECURING:
    case LINK_GREETING:
    case LINK_READY:
        link->attempts = 0;
        snprintf(why, sizeof why, "%s names another master", link->resolver->what);
        if (!is_same)
            link_lose(link, why);
        break;
    case LINK_ASKING:
    case LINK_CLOSING:
        break;
    }
}

/* What the files say now; or, after a refusal, what was accepted last. */
static void take_login(struct redis_link *link)
{
    struct redis_access *access = link->target.access;

    if (!access)
        return;
    access->look(access);
    link->target.login = link->uses_proven ? link->proven : access->now[peer_of(link)];
}

/* A new password may be in the file before Redis knows it, or may be wrong. A trial must show that it is right. */
static void try_other_login(struct redis_link *link)
{
    const struct redis_access *access = link->target.access;

    if (access && !link->is_trial && link->proven.version != access->now[peer_of(link)].version)
        link->uses_proven = !link->uses_proven;
}

static void connect_begin(struct redis_link *link)
{
    if (!link_move(link, LINK_CONNECTING))
        return;
    take_login(link);
    link->connect = redis_connect_start(link->loop, &link->target, link->attempts, on_connected, link);
    link_arm(link, link->timeout_ms);
}

static void on_connected(void *arg, int status, union redis_stream *stream)
{
    struct redis_link *link = arg;

    link->connect = NULL;
    if (link->state == LINK_CLOSING) {
        /* The close has cancelled the attempt, so there is no stream. */
        link_wake(link);
        return;
    }
    if (status != 0) {
        const char *why = status == UV_ECANCELED ? "connecting timed out" : uv_strerror(status);

        link_set_trouble(link, "%s: %s", link->where, why);
        retry_later(link);
        log_loss(link);
        return;
    }
    metric_add(METRIC_REDIS_CONNECTS, 1);
    if (link->tls) {
        secure(link, stream);
        return;
    }
    link_take_wire(link, stream, NULL);
    link_greet(link);
}

/* The handshake has what is left of the attempt's time. */
static void secure(struct redis_link *link, union redis_stream *stream)
{
    struct tls_context *context = link->tls->context(link->tls);

    link_take_wire(link, stream, tls_session_connect(context, link->target.host));
    tls_context_release(context);
    if (link_move(link, LINK_SECURING))
        redis_wire_begin_handshake(link->wire);
}

/* Pipelined. PING is last because a Redis that is still loading refuses it but answers the others. */
void link_greet(void *arg)
{
    struct redis_link *link = arg;
    const struct redis_target *t = &link->target;
    char text[64];
    bool is_sent = true;

    if (!link_move(link, LINK_GREETING))
        return;
    if (link->to_sentinel)
        is_sent = link_send(link, 3, (struct text[]){TEXT("SENTINEL"), TEXT("MASTER"), TEXT("-")}, on_kind, link);
    if (t->login.password[0]) {
        struct text auth[] = {TEXT("AUTH"), text_of(t->login.user), text_of(t->login.password)};
        struct text auth_standard_user[] = {TEXT("AUTH"), text_of(t->login.password)};

        is_sent &= t->login.user[0] ? link_send(link, 3, auth, on_greeting, link)
                                    : link_send(link, 2, auth_standard_user, on_greeting, link);
    }
    if (t->db) {
        snprintf(text, sizeof text, "%u", t->db);
        is_sent &= link_send(link, 2, (struct text[]){TEXT("SELECT"), text_of(text)}, on_greeting, link);
    }
    snprintf(text, sizeof text, "chatelaine-%s", link->name);
    is_sent &= link_send(link, 3, (struct text[]){TEXT("CLIENT"), TEXT("SETNAME"), text_of(text)}, on_name, link);
    if (link->to_master) {
        is_sent &= link_send(link, 1, (struct text[]){TEXT("ROLE")}, on_role, link);
        is_sent &= link_send(link, 2, (struct text[]){TEXT("INFO"), TEXT("server")}, on_server, link);
    }
    is_sent &= link_send(link, 1, (struct text[]){TEXT("PING")}, on_ping, link);
    if (!is_sent)
        link_lose(link, "out of memory");
}

static enum redis_peer peer_of(const struct redis_link *link)
{
    return link->to_sentinel ? REDIS_PEER_SENTINEL : REDIS_PEER_SERVER;
}

static bool is_about_login(struct text kind)
{
    return text_equal(kind, TEXT("NOAUTH")) || text_equal(kind, TEXT("WRONGPASS"));
}

/* Which setting holds the user and password that were refused or are missing. */
static const char *hint_at(const struct redis_link *link, struct text kind)
{
    if (!is_about_login(kind))
        return "";
    return link->to_sentinel ? " (see --sentinel-auth-file)" : " (see --redis-file)";
}

/* False: Redis refused, and the connection was dropped. */
static bool greeting_is_good(struct redis_link *link, const struct redis_reply *reply)
{
    char why[LINK_TROUBLE_BYTES];
    struct text words = reply->type == REPLY_ERROR ? reply_error_shown(reply) : TEXT("it is not a Redis server");

    if (reply->type == REPLY_STATUS)
        return true;
    /* Redis' own words name the cause: WRONGPASS, NOAUTH, LOADING, NOPERM, … */
    if (words.len > 0 && words.ptr[words.len - 1] == '.')
        words.len--;
    snprintf(why, sizeof why, "%.*s%s", TEXT_ARG(words), hint_at(link, reply_error_kind(reply)));
    if (is_about_login(reply_error_kind(reply)))
        try_other_login(link);
    link_lose(link, why);
    return false;
}

/* Redis says that it has no such command, even to those who have not logged in. A Sentinel says that there is no such
 * master, or that one must log in. */
static void on_kind(void *arg, UNUSED enum redis_outcome outcome, const struct redis_reply *reply)
{
    if (reply->type == REPLY_ERROR && text_starts_with(reply->text, TEXT("ERR unknown command")))
        link_lose(arg,
                  "this is no Sentinel: name Sentinels behind redis-sentinel://, or write redis:// for this Redis");
}

static void on_greeting(void *arg, UNUSED enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)greeting_is_good(arg, reply);
}

/* The name only helps in CLIENT LIST, so a Redis that forbids it is accepted. */
static void on_name(UNUSED void *arg, UNUSED enum redis_outcome outcome, UNUSED const struct redis_reply *reply)
{
}

/* Explains a missing right, or what Redis answered instead. */
static void refuse_answer(struct redis_link *link, const struct redis_reply *reply)
{
    if (text_equal(reply_error_kind(reply), TEXT("NOPERM")))
        link_lose(link, "its ACL forbids ROLE or INFO: grant this user +role and +info");
    else
        (void)greeting_is_good(link, reply->type == REPLY_ERROR ? reply : &(struct redis_reply){.type = REPLY_NIL});
}

/* A replica may lack acknowledged changes. The address may lead to one: a name for several servers, a demoted master,
 * or outdated news from Sentinel. */
static void on_role(void *arg, UNUSED enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct redis_link *link = arg;
    char why[LINK_TROUBLE_BYTES] = "it is a replica: point --redis at the master";
    struct text role;

    if (link->resolver)
        snprintf(why, sizeof why, "it is a replica, although %s names it as the master", link->resolver->what);
    if (!reply_text(reply_at(reply, 0), &role))
        refuse_answer(link, reply);
    else if (text_equal(role, TEXT("sentinel")))
        link_lose(link, "this is a Sentinel: write redis-sentinel://HOST:PORT/MASTER-NAME");
    else if (!text_equal(role, TEXT("master")) && RULE(RULE_RUN_ID))
        link_lose(link, why);
}

static void on_server(void *arg, UNUSED enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct redis_link *link = arg;
    struct text info, run_id;

    if (!reply_text(reply, &info)) {
        refuse_answer(link, reply);
        return;
    }
    run_id = reply_info_value(info, TEXT("run_id"));
    if (run_id.len != REDIS_RUN_ID_CHARS || memchr(run_id.ptr, '\0', run_id.len))
        link_lose(link, "its INFO has no run_id");
    else
        snprintf(link->run_id, sizeof link->run_id, "%.*s", TEXT_ARG(run_id));
}

static void become_ready(struct redis_link *link)
{
    if (!link_move(link, LINK_READY))
        return;
    link_arm(link, link->quiet_ms);
    link->has_tried = true;
    link->ready_since_ms = uv_now(link->loop);
    link->trouble[0] = '\0';
    link->proven = link->target.login;
    log_ready(link);
    if (link->ready)
        link->ready(link->arg, true);
}

static void on_ping(void *arg, UNUSED enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct redis_link *link = arg;

    if (!greeting_is_good(link, reply))
        return;
    if (link->subscription)
        subscribe(link);
    else
        become_ready(link);
}

/* Subscribing */

/* One command per channel, so each gets one reply. */
static void subscribe(struct redis_link *link)
{
    const struct text command = link->subscription->is_sharded ? TEXT("SSUBSCRIBE") : TEXT("SUBSCRIBE");
    struct text channels[REDIS_CHANNELS_MAX];
    bool is_sent = true;

    link->channels = link->unconfirmed = (unsigned)link->subscription->channels(link->arg, channels);
    for (unsigned i = 0; i < link->unconfirmed; i++)
        is_sent &= link_send(link, 2, (struct text[]){command, channels[i]}, on_subscribed, link);
    if (!is_sent)
        link_lose(link, "out of memory");
}

static bool is_confirmation(const struct redis_link *link, const struct redis_reply *reply)
{
    const struct text wanted = link->subscription->is_sharded ? TEXT("ssubscribe") : TEXT("subscribe");
    struct text kind;

    return reply_text(reply_at(reply, 0), &kind) && text_equal(kind, wanted);
}

static void on_subscribed(void *arg, UNUSED enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct redis_link *link = arg;

    if (!is_confirmation(link, reply)) {
        (void)greeting_is_good(link, reply->type == REPLY_ERROR ? reply : &(struct redis_reply){.type = REPLY_NIL});
        return;
    }
    INVARIANT(link->unconfirmed > 0);
    if (--link->unconfirmed == 0)
        become_ready(link);
}
