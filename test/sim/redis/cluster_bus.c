/* What members tell each other. A message has lines: "<kind> <sender's id> <highest epoch>", "<id> <epoch>", which
 * slots that member has, and the ids of those that the sender does not reach. A ping asks for a pong; an update tells
 * of another member than the sender. */
#include "cluster_internal.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TICK_US = 100000, PING_MOST_US = 1000000 };

static struct member *myself(struct cluster *cluster)
{
    return &cluster->members[MYSELF];
}

static void tell(struct simredis *server, const char *kind, uint8_t about, uint8_t to)
{
    struct cluster *cluster = server->cluster;
    const struct member *subject = &cluster->members[about], *other = &cluster->members[to];
    struct buf out;

    buf_init(&out, SIZE_MAX / 2);
    buf_printf(&out, "%s %s %" PRIu64 "\n%s %" PRIu64 "\n", kind, myself(cluster)->id, cluster->epoch, subject->id,
               subject->epoch);
    cluster_print_slots(cluster, about, &out);
    buf_append_char(&out, '\n');
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster_doubts(server, i))
            buf_printf(&out, "%s ", cluster->members[i].id);
    cluster->bus.tell(server->host.context, other->host, other->port, out.ptr, out.len);
    buf_finish(&out);
}

void cluster_tell_all(struct simredis *server)
{
    for (size_t i = 1; i < server->cluster->count; i++)
        tell(server, "ping", MYSELF, (uint8_t)i);
}

/* Hearing */

struct message {
    struct simredis *server;
    struct text kind, slots, doubted;
    uint8_t sender, subject;
    uint64_t highest, epoch;
    uint8_t better; /* who owns a slot that it claims, by a higher epoch; NOBODY */
};

static bool read_message(struct simredis *server, struct text bytes, struct message *ret_message)
{
    struct text first, second, sender, id;

    *ret_message = (struct message){.server = server, .better = NOBODY};
    if (!text_next(&bytes, '\n', &first) || !text_next(&bytes, '\n', &second) ||
        !text_next(&bytes, '\n', &ret_message->slots) || !text_next(&first, ' ', &ret_message->kind) ||
        !text_next(&first, ' ', &sender) || !text_to_u64(first, UINT64_MAX, &ret_message->highest) ||
        !text_next(&second, ' ', &id) || !text_to_u64(second, UINT64_MAX, &ret_message->epoch))
        return false;
    ret_message->doubted = bytes;
    ret_message->sender = cluster_place_of(server->cluster, sender);
    ret_message->subject = cluster_place_of(server->cluster, id);
    return ret_message->sender != NOBODY && ret_message->sender != MYSELF && ret_message->subject != NOBODY &&
           ret_message->subject != MYSELF;
}

/* A slot that is being imported is given by hand alone. */
static void hear_slot(void *arg, unsigned slot)
{
    struct message *message = arg;
    struct cluster *cluster = message->server->cluster;
    const uint8_t owner = cluster->owner[slot];

    if (owner == message->subject || cluster->from[slot] != NOBODY)
        return;
    if (owner == NOBODY || cluster->members[owner].epoch < message->epoch) {
        cluster_give(message->server, slot, message->subject);
        if (owner == MYSELF)
            cluster_delete_keys(message->server, slot);
    } else if (cluster->members[owner].epoch > message->epoch) {
        message->better = owner;
    }
}

/* Of two with one epoch, the one with the lower id takes another. */
static void hear_epoch(struct message *message)
{
    struct cluster *cluster = message->server->cluster;
    struct member *subject = &cluster->members[message->subject];

    if (message->highest > cluster->epoch)
        cluster->epoch = message->highest;
    if (message->epoch > subject->epoch)
        subject->epoch = message->epoch;
    if (subject->epoch == myself(cluster)->epoch && strcmp(myself(cluster)->id, subject->id) < 0)
        myself(cluster)->epoch = ++cluster->epoch;
}

static void hear_doubts(struct message *message)
{
    struct cluster *cluster = message->server->cluster;
    struct text id;

    for (size_t i = 0; i < cluster->count; i++)
        cluster->members[i].doubted_us[message->sender] = 0;
    while (text_next(&message->doubted, ' ', &id)) {
        const uint8_t place = cluster_place_of(cluster, id);

        if (place != NOBODY && cluster_owns_slots(cluster, message->sender))
            cluster->members[place].doubted_us[message->sender] = message->server->now_us;
    }
}

/* It has failed once most primaries do not reach it, of which this server must be one. One that has slots is believed
 * again after a while. */
static void judge_others(struct simredis *server)
{
    struct cluster *cluster = server->cluster;
    const uint64_t while_us = 2 * cluster_timeout_us(server);
    size_t primaries = 0;

    for (size_t i = 0; i < cluster->count; i++)
        primaries += cluster_owns_slots(cluster, i);
    for (size_t i = 1; i < cluster->count; i++) {
        struct member *member = &cluster->members[i];
        const bool is_doubted = cluster_doubts(server, i);
        size_t doubting = cluster_owns_slots(cluster, MYSELF);

        for (size_t other = 1; other < cluster->count; other++)
            doubting += member->doubted_us[other] > 0 && server->now_us - member->doubted_us[other] < while_us;
        if (is_doubted && member->failed_us == 0 && doubting >= primaries / 2 + 1)
            member->failed_us = server->now_us;
        if (!is_doubted && (!cluster_owns_slots(cluster, i) || server->now_us - member->failed_us > while_us))
            member->failed_us = 0;
    }
}

void simredis_hear(struct simredis *server, const char *bytes, size_t length)
{
    struct message message;

    server->now_us = server->host.unix_us(server->host.context);
    if (!read_message(server, (struct text){bytes, length}, &message))
        return;
    if (text_equal(message.kind, TEXT("pong")))
        server->cluster->members[message.sender].heard_us = server->now_us;
    hear_epoch(&message);
    (void)!cluster_read_slots(message.slots, hear_slot, &message);
    hear_doubts(&message);
    judge_others(server);
    if (message.better != NOBODY)
        tell(server, "update", message.better, message.sender);
    if (text_equal(message.kind, TEXT("ping")))
        tell(server, "pong", MYSELF, message.sender);
    cluster_judge_itself(server);
    sim_flush(server);
}

/* Turns */

/* The clock may have been set back. */
static uint64_t not_far(uint64_t due_us, uint64_t now_us, uint64_t most_us)
{
    return due_us > now_us + most_us ? now_us : due_us;
}

static uint64_t ping_every_us(const struct simredis *server)
{
    const uint64_t us = cluster_timeout_us(server) / 4;

    return us < PING_MOST_US ? us : PING_MOST_US;
}

void cluster_run(struct simredis *server)
{
    struct cluster *cluster = server->cluster;
    const uint64_t now_us = server->now_us, every_us = ping_every_us(server);

    if (!cluster || not_far(cluster->next_us, now_us, TICK_US) > now_us)
        return;
    cluster->next_us = now_us + TICK_US;
    if (not_far(cluster->next_ping_us, now_us, every_us) <= now_us) {
        cluster->next_ping_us = now_us + every_us;
        cluster_tell_all(server);
    }
    judge_others(server);
    cluster_judge_itself(server);
}

uint64_t cluster_next_us(const struct simredis *server)
{
    return server->cluster ? server->cluster->next_us : UINT64_MAX;
}
