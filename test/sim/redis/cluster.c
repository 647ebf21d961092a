#include "cluster_internal.h"
#include "commands.h"

#include <stdlib.h>

enum { WRITABLE_US = 2000000, REJOIN_LEAST_US = 500000, REJOIN_MOST_US = 5000000 };

/* CRC-16/XMODEM */
static unsigned crc16(struct text text)
{
    unsigned crc = 0;

    for (size_t i = 0; i < text.len; i++) {
        crc ^= (unsigned)(unsigned char)text.ptr[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ (crc & 0x8000 ? 0x11021 : 0);
    }
    return crc;
}

unsigned simredis_slot_of(struct text key)
{
    const char *open = key.len > 0 ? memchr(key.ptr, '{', key.len) : NULL;
    struct text tag = open ? text_skip(key, (size_t)(open - key.ptr) + 1) : (struct text){0};
    const char *close = tag.len > 0 ? memchr(tag.ptr, '}', tag.len) : NULL;

    if (!close || close == tag.ptr)
        return crc16(key) % SLOTS;
    return crc16((struct text){tag.ptr, (size_t)(close - tag.ptr)}) % SLOTS;
}

bool cluster_owns_slots(const struct cluster *cluster, size_t place)
{
    return memchr(cluster->owner, (int)place, SLOTS) != NULL;
}

uint8_t cluster_place_of(const struct cluster *cluster, struct text id)
{
    for (size_t i = 0; i < cluster->count; i++)
        if (text_equal(id, text_of(cluster->members[i].id)))
            return (uint8_t)i;
    return NOBODY;
}

size_t cluster_keys_in(const struct simredis *server, unsigned slot, size_t most, struct text *ret_keys)
{
    struct dict_entry *entry;
    size_t place = 0, count = 0;

    while (count < most && (entry = dict_next(&server->databases[0].values, &place))) {
        if (simredis_slot_of(entry->key) != slot)
            continue;
        if (ret_keys)
            ret_keys[count] = entry->key;
        count++;
    }
    return count;
}

void cluster_delete_keys(struct simredis *server, unsigned slot)
{
    struct call call = {.server = server, .db = &server->databases[0]};
    struct dict_entry *entry;
    size_t place = 0;

    while ((entry = dict_next(&call.db->values, &place))) {
        if (simredis_slot_of(entry->key) != slot)
            continue;
        LOG_ARGV(&call, TEXT("DEL"), entry->key);
        space_delete(&call, entry->key);
    }
}

void cluster_give(struct simredis *server, unsigned slot, uint8_t place)
{
    if (server->cluster->owner[slot] != NOBODY)
        pubsub_end_slot(server, slot);
    server->cluster->owner[slot] = place;
}

uint64_t cluster_timeout_us(const struct simredis *server)
{
    return setting_number(server, "cluster-node-timeout") * 1000;
}

bool cluster_doubts(const struct simredis *server, size_t place)
{
    const uint64_t heard_us = server->cluster->members[place].heard_us;

    return place != MYSELF && server->now_us > heard_us && server->now_us - heard_us > cluster_timeout_us(server);
}

static bool is_covered(const struct cluster *cluster)
{
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (cluster->owner[slot] == NOBODY || cluster->members[cluster->owner[slot]].failed_us > 0)
            return false;
    return true;
}

static bool is_among_most(const struct simredis *server)
{
    const struct cluster *cluster = server->cluster;
    size_t primaries = 0, reached = 0;

    for (size_t i = 0; i < cluster->count; i++) {
        const bool counts = cluster_owns_slots(cluster, i);

        primaries += counts;
        reached += counts && cluster->members[i].failed_us == 0 && !cluster_doubts(server, i);
    }
    return reached >= primaries / 2 + 1;
}

/* Of a primary that has just begun, or was cut off, others may have learnt that somebody else has its slots. */
void cluster_judge_itself(struct simredis *server)
{
    struct cluster *cluster = server->cluster;
    const uint64_t now_us = server->now_us, timeout_us = cluster_timeout_us(server);
    const uint64_t rejoin_us = timeout_us < REJOIN_LEAST_US  ? REJOIN_LEAST_US
                               : timeout_us > REJOIN_MOST_US ? REJOIN_MOST_US
                                                             : timeout_us;

    if (!cluster->is_up && now_us - cluster->began_us < WRITABLE_US)
        return;
    if (!is_among_most(server)) {
        cluster->minority_us = now_us;
        cluster->is_up = false;
    } else if (text_equal(setting(server, "cluster-require-full-coverage"), TEXT("yes")) && !is_covered(cluster)) {
        cluster->is_up = false;
    } else if (now_us - cluster->minority_us >= rejoin_us) {
        cluster->is_up = true;
    }
}

/* Whether a command may run here: in Redis' order */

enum place { HERE, ELSEWHERE, MOVING, CROSSES, TORN, UNSERVED, DOWN };

struct look {
    int slot;       /* NO_SLOT: it has no keys */
    uint8_t member; /* ELSEWHERE and MOVING: where they are */
    bool is_moving_away, is_coming, has_several;
    size_t found, missing;
};

/* Channels are served at the old place until the move is done. */
static bool is_of_shards(const struct command *command)
{
    return command->run == cmd_ssubscribe || command->run == cmd_sunsubscribe || command->run == cmd_spublish;
}

static enum place look_at_keys(const struct call *call, struct look *look)
{
    const struct cluster *cluster = call->server->cluster;
    const size_t step = call->command->key_step > 0 ? (size_t)call->command->key_step : 1;
    size_t first, end;

    cmd_keys_of(call, &first, &end);
    for (size_t at = first; at < end; at += step) {
        const struct text key = call->argv[at];
        const unsigned slot = simredis_slot_of(key);
        struct call there = *call;

        if (look->slot == NO_SLOT) {
            look->slot = (int)slot;
            look->member = cluster->owner[slot];
            if (look->member == NOBODY)
                return UNSERVED;
            look->is_moving_away = look->member == MYSELF && cluster->to[slot] != NOBODY;
            look->is_coming = !look->is_moving_away && cluster->from[slot] != NOBODY;
        } else if (!text_equal(key, call->argv[first])) {
            if ((int)slot != look->slot)
                return CROSSES;
            look->has_several = true;
        }
        there.db = &call->server->databases[0];
        if ((!look->is_moving_away && !look->is_coming) || is_of_shards(call->command))
            continue;
        if (space_find(&there, key))
            look->found++;
        else
            look->missing++;
    }
    return HERE;
}

static enum place place_of(const struct call *call, struct look *look)
{
    const struct cluster *cluster = call->server->cluster;
    const bool is_asking = (call->client && call->client->is_asking) || call->command->run == cmd_restore_asking;
    const enum place keys = look_at_keys(call, look);

    if (keys != HERE)
        return keys;
    if (look->slot == NO_SLOT)
        return HERE;
    if (!cluster->is_up && !is_of_shards(call->command))
        return DOWN;
    if ((look->is_moving_away || look->is_coming) && call->command->run == cmd_migrate)
        return HERE;
    if (look->is_moving_away && look->missing > 0) {
        look->member = cluster->to[look->slot];
        return look->found > 0 ? TORN : MOVING;
    }
    if (look->is_coming && is_asking)
        return look->has_several && look->missing > 0 ? TORN : HERE;
    return look->member == MYSELF ? HERE : ELSEWHERE;
}

static bool script_cluster_may(struct call *call)
{
    struct cluster *cluster = call->server->cluster;
    const unsigned flags = call->server->script_flags;
    struct look look = {.slot = NO_SLOT};
    const enum place place = place_of(call, &look);

    if (place == DOWN) {
        say_error(call, "ERR Script attempted to execute a command while the cluster is down");
        return false;
    }
    if (place != HERE) {
        say_error(call, "ERR Script attempted to access a non local key in a cluster node");
        return false;
    }
    if (look.slot == NO_SLOT || !(flags & SCRIPT_HAS_FLAGS) || (flags & SCRIPT_CROSS_SLOT))
        return true;
    if (cluster->slot == NO_SLOT)
        cluster->slot = look.slot;
    if (cluster->slot != look.slot)
        say_error(call, "ERR Script attempted to access keys that do not hash to the same slot");
    return cluster->slot == look.slot;
}

bool cluster_may(struct call *call)
{
    static const char *const REFUSALS[] = {[CROSSES] = "CROSSSLOT Keys in request don't hash to the same slot",
                                           [TORN] = "TRYAGAIN Multiple keys request during rehashing of slot",
                                           [UNSERVED] = "CLUSTERDOWN Hash slot not served",
                                           [DOWN] = "CLUSTERDOWN The cluster is down"};
    struct cluster *cluster = call->server->cluster;
    struct look look = {.slot = NO_SLOT};
    enum place place;

    if (!cluster || !call->client || call->server->is_loading)
        return true;
    if (call->server->in_script)
        return script_cluster_may(call);
    place = place_of(call, &look);
    cluster->slot = look.slot;
    if (place == ELSEWHERE || place == MOVING)
        say_errorf(call, "%s %d %s:%u", place == MOVING ? "ASK" : "MOVED", look.slot,
                   cluster->members[look.member].host, cluster->members[look.member].port);
    else if (place != HERE)
        say_error(call, REFUSALS[place]);
    return place == HERE;
}
