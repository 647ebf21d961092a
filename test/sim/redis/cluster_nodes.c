/* nodes.conf, and CLUSTER NODES: a line for each member,
 *   ID HOST:PORT@BUS FLAGS PRIMARY PING PONG EPOCH LINK SLOT… [SLOT->-ID] [SLOT-<-ID] */
#include "cluster_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIELDS = 8 };

void cluster_print_slots(const struct cluster *cluster, uint8_t place, struct buf *out)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        const unsigned first = slot;

        if (cluster->owner[slot] != place)
            continue;
        while (slot + 1 < SLOTS && cluster->owner[slot + 1] == place)
            slot++;
        buf_printf(out, first < slot ? " %u-%u" : " %u", first, slot);
    }
}

static void print_moves(const struct cluster *cluster, struct buf *out)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (cluster->to[slot] != NOBODY)
            buf_printf(out, " [%u->-%s]", slot, cluster->members[cluster->to[slot]].id);
        else if (cluster->from[slot] != NOBODY)
            buf_printf(out, " [%u-<-%s]", slot, cluster->members[cluster->from[slot]].id);
    }
}

void cluster_print(const struct simredis *server, struct buf *out)
{
    const struct cluster *cluster = server->cluster;

    for (uint8_t i = 0; i < cluster->count; i++) {
        const struct member *member = &cluster->members[i];

        buf_printf(out, "%s %s:%u@%u %s%s - 0 %" PRIu64 " %" PRIu64 " connected", member->id, member->host,
                   member->port, member->bus_port, i == MYSELF ? "myself,master" : "master",
                   member->failed_us > 0       ? ",fail"
                   : cluster_doubts(server, i) ? ",fail?"
                                               : "",
                   i == MYSELF ? 0 : member->heard_us / 1000, member->epoch);
        cluster_print_slots(cluster, i, out);
        if (i == MYSELF)
            print_moves(cluster, out);
        buf_append_char(out, '\n');
    }
}

char *simredis_nodes(const struct simredis *server)
{
    struct buf out;

    buf_init(&out, SIZE_MAX / 2);
    cluster_print(server, &out);
    buf_printf(&out, "vars currentEpoch %" PRIu64 " lastVoteEpoch 0\n", server->cluster->epoch);
    buf_append_char(&out, '\0');
    return out.ptr;
}

/* Reading */

bool cluster_read_slots(struct text words, void (*slot)(void *arg, unsigned slot), void *arg)
{
    struct text word, first;
    uint64_t from, to;

    while (text_next(&words, ' ', &word)) {
        if (word.len == 0 || word.ptr[0] == '[')
            continue;
        if (!text_next(&word, '-', &first) || !text_to_u64(first, SLOTS - 1, &from))
            return false;
        to = from;
        if (word.ptr && !text_to_u64(word, SLOTS - 1, &to))
            return false;
        for (; from <= to; from++)
            slot(arg, (unsigned)from);
    }
    return true;
}

struct giving {
    struct cluster *cluster;
    uint8_t place;
};

static void give(void *arg, unsigned slot)
{
    const struct giving *giving = arg;

    giving->cluster->owner[slot] = giving->place;
}

/* "[7->-ID]" or "[7-<-ID]". Everybody is known by now. */
static bool read_move(struct cluster *cluster, struct text word)
{
    struct text slot, direction;
    uint64_t number;
    uint8_t other;

    word = text_skip(word, 1);
    if (!text_next(&word, '-', &slot) || !text_to_u64(slot, SLOTS - 1, &number) || !text_next(&word, '-', &direction) ||
        word.len != MEMBER_ID_CHARS + 1)
        return false;
    word.len--;
    other = cluster_place_of(cluster, word);
    if (other == NOBODY)
        return false;
    (text_equal(direction, TEXT(">")) ? cluster->to : cluster->from)[number] = other;
    return true;
}

static bool read_moves(struct cluster *cluster, struct text words)
{
    struct text word;

    while (text_next(&words, ' ', &word))
        if (word.len > 0 && word.ptr[0] == '[' && !read_move(cluster, word))
            return false;
    return true;
}

/* "10.0.0.1:6379@16379" */
static bool read_address(struct text word, struct member *member)
{
    struct text host, port;
    uint64_t number, bus;

    if (!text_next(&word, ':', &host) || !text_next(&word, '@', &port) || host.len >= sizeof member->host ||
        !text_to_u64(port, UINT16_MAX, &number) || !text_to_u64(word, UINT16_MAX, &bus))
        return false;
    snprintf(member->host, sizeof member->host, "%.*s", TEXT_ARG(host));
    member->port = (uint16_t)number;
    member->bus_port = (uint16_t)bus;
    return true;
}

/* *ret_rest: its slots. */
static bool read_member(struct text line, struct member *member, bool *ret_is_me, struct text *ret_rest)
{
    struct text fields[FIELDS];

    for (size_t i = 0; i < FIELDS; i++)
        if (!text_next(&line, ' ', &fields[i]))
            return false;
    *ret_is_me = text_starts_with(fields[2], TEXT("myself,"));
    *ret_rest = line;
    *member = (struct member){0};
    snprintf(member->id, sizeof member->id, "%.*s", TEXT_ARG(fields[0]));
    return fields[0].len == MEMBER_ID_CHARS && text_equal(fields[3], TEXT("-")) &&
           text_to_u64(fields[6], UINT64_MAX, &member->epoch) && read_address(fields[1], member);
}

static bool read_line(struct cluster *cluster, struct text line, struct text *ret_moves)
{
    struct member member;
    struct text slots, epoch;
    uint64_t number;
    bool is_me;

    if (text_starts_with(line, TEXT("vars currentEpoch "))) {
        line = text_skip(line, strlen("vars currentEpoch "));
        if (!text_next(&line, ' ', &epoch) || !text_to_u64(epoch, UINT64_MAX, &number))
            return false;
        cluster->epoch = number > cluster->epoch ? number : cluster->epoch;
        return true;
    }
    if (!read_member(line, &member, &is_me, &slots) || cluster->count == MEMBERS_MAX)
        return false;
    if (!is_me && cluster->count == MYSELF)
        cluster->count++; /* that is for this server */
    struct giving giving = {cluster, is_me ? MYSELF : (uint8_t)cluster->count};
    cluster->members[giving.place] = member;
    cluster->count += cluster->count == giving.place;
    cluster->epoch = member.epoch > cluster->epoch ? member.epoch : cluster->epoch;
    if (is_me)
        *ret_moves = slots;
    return cluster_read_slots(slots, give, &giving);
}

bool simredis_join(struct simredis *server, const struct simredis_bus *bus, const char *nodes)
{
    struct cluster *cluster = mem_alloc(sizeof *cluster);
    struct text rest = text_of(nodes), line, moves = {0};
    const uint64_t now_us = server->host.unix_us(server->host.context);
    bool is_good = true;

    *cluster = (struct cluster){.bus = *bus, .began_us = now_us, .slot = NO_SLOT};
    memset(cluster->owner, NOBODY, sizeof cluster->owner);
    memset(cluster->to, NOBODY, sizeof cluster->to);
    memset(cluster->from, NOBODY, sizeof cluster->from);
    while (is_good && text_next(&rest, '\n', &line))
        is_good = line.len == 0 || read_line(cluster, line, &moves);
    if (!is_good || !cluster->members[MYSELF].id[0] || !read_moves(cluster, moves)) {
        free(cluster);
        return false;
    }
    for (size_t i = 0; i < cluster->count; i++)
        cluster->members[i].heard_us = now_us;
    server->cluster = cluster;
    return simredis_configure(server, "cluster-enabled", "yes");
}
