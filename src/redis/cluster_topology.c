#include "cluster_topology.h"
#include "base/mem.h"
#include "redis/cluster.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Slots */

/* CRC-16/XMODEM, as Redis Cluster uses it. */
static uint16_t crc16_of(struct text t)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < t.len; i++) {
        crc = (uint16_t)(crc ^ ((unsigned)(uint8_t)t.ptr[i] << 8));
        for (unsigned bit = 0; bit < 8; bit++)
            crc = (uint16_t)((unsigned)crc << 1 ^ (crc & 0x8000U ? 0x1021U : 0));
    }
    return crc;
}

unsigned redis_slot_of(struct text name)
{
    struct text tag = name, rest = name, before;

    if (text_next(&rest, '{', &before) && rest.ptr && text_next(&rest, '}', &before) && rest.ptr && before.len > 0)
        tag = before;
    return crc16_of(tag) % REDIS_SLOTS;
}

/* Parsing: one line for each node, its fields separated by blanks
 * <id> <ip:port@bus-port[,name[,more]]> <flags> <primary's id or -> <ping> <pong> <epoch> <link state> <slots>... */

enum { FIELDS = 8, PLACES_FIRST = 16 };

enum field { FIELD_ID, FIELD_ADDRESS, FIELD_FLAGS, FIELD_PRIMARY, FIELD_PING, FIELD_PONG, FIELD_EPOCH, FIELD_LINK };

static bool read_id(struct text field, char ret_id[CLUSTER_NODE_ID_CHARS + 1])
{
    if (field.len != CLUSTER_NODE_ID_CHARS)
        return false;
    for (size_t i = 0; i < field.len; i++)
        if (!memchr("0123456789abcdef", field.ptr[i], strlen("0123456789abcdef")))
            return false;
    memcpy(ret_id, field.ptr, field.len);
    ret_id[field.len] = '\0';
    return true;
}

static bool has_flag(struct text flags, struct text wanted)
{
    struct text flag;

    while (text_next(&flags, ',', &flag))
        if (text_equal(flag, wanted))
            return true;
    return false;
}

/* The address may contain colons: the last one precedes the port. A node without an address has ":0@0". */
static bool read_address(struct text field, bool with_names, struct redis_address *ret_address)
{
    struct text rest = field, address, name = {NULL, 0}, host_port, port;
    uint64_t number;

    if (!text_next(&rest, ',', &address) || (rest.ptr && !text_next(&rest, ',', &name)))
        return false;
    if (!text_next(&address, '@', &host_port) || !address.ptr)
        return false;
    const char *colon = host_port.len ? memrchr(host_port.ptr, ':', host_port.len) : NULL;
    if (!colon)
        return false;
    struct text host = {host_port.ptr, (size_t)(colon - host_port.ptr)};
    port = text_skip(host_port, host.len + 1);
    if (with_names && name.len > 0)
        host = name;
    if (!text_to_u64(port, UINT16_MAX, &number) || host.len >= sizeof ret_address->host ||
        (host.len > 0 && memchr(host.ptr, '\0', host.len)))
        return false;
    snprintf(ret_address->host, sizeof ret_address->host, "%.*s", TEXT_ARG(host));
    ret_address->port = (uint16_t)number;
    return true;
}

static bool read_node(const struct text fields[FIELDS], bool with_names, struct cluster_node *ret_node)
{
    struct text flags = fields[FIELD_FLAGS];
    bool is_away = has_flag(flags, TEXT("handshake")) || has_flag(flags, TEXT("noaddr"));

    *ret_node = (struct cluster_node){.is_myself = has_flag(flags, TEXT("myself")),
                                      .is_primary = has_flag(flags, TEXT("master"))};
    if (!read_id(fields[FIELD_ID], ret_node->id) ||
        !read_address(fields[FIELD_ADDRESS], with_names, &ret_node->address) ||
        !text_to_u64(fields[FIELD_EPOCH], INT64_MAX, &ret_node->epoch))
        return false;
    if (is_away)
        ret_node->address.port = 0;
    return text_equal(fields[FIELD_PRIMARY], TEXT("-")) || read_id(fields[FIELD_PRIMARY], ret_node->primary_id);
}

/* "7" or "7-9". */
static bool read_range(struct text field, struct cluster_range *ret_range)
{
    struct text last = field, first;
    uint64_t from, to;

    if (!text_next(&last, '-', &first) || !text_to_u64(first, REDIS_SLOTS - 1, &from))
        return false;
    to = from;
    if (last.ptr && (!text_to_u64(last, REDIS_SLOTS - 1, &to) || to < from))
        return false;
    ret_range->first = (unsigned)from;
    ret_range->last = (unsigned)to;
    return true;
}

/* "[7->-<id>]": handed over to that node; "[7-<-<id>]": imported from it. A slot is in one of them at most. */
static bool read_move(struct text field, struct cluster_move *ret_move)
{
    struct text rest = text_skip(field, 1), slot, direction, id;
    uint64_t number;

    if (!text_next(&rest, '-', &slot) || !rest.ptr || !text_next(&rest, '-', &direction) || !rest.ptr ||
        !text_next(&rest, ']', &id) || !rest.ptr || rest.len > 0 || !text_to_u64(slot, REDIS_SLOTS - 1, &number))
        return false;
    ret_move->slot = (unsigned)number;
    ret_move->is_import = text_equal(direction, TEXT("<"));
    return (ret_move->is_import || text_equal(direction, TEXT(">"))) && read_id(id, ret_move->other_id);
}

static bool add_move(struct cluster_topology *topology, struct text field)
{
    struct cluster_move move;

    if (topology->move_count == REDIS_SLOTS || !read_move(field, &move))
        return false;
    topology->moves = mem_resize(topology->moves, (topology->move_count + 1) * sizeof *topology->moves);
    topology->moves[topology->move_count++] = move;
    return true;
}

static bool add_range(struct cluster_topology *topology, size_t *max, struct text field)
{
    struct cluster_range range = {.node = topology->node_count};

    if (text_starts_with(field, TEXT("[")))
        return add_move(topology, field);
    if (topology->range_count == REDIS_SLOTS || !read_range(field, &range))
        return false;
    if (topology->range_count == *max) {
        *max = *max ? 2 * *max : PLACES_FIRST;
        topology->ranges = mem_resize(topology->ranges, *max * sizeof *topology->ranges);
    }
    topology->ranges[topology->range_count++] = range;
    topology->nodes[topology->node_count].has_slots = true;
    return true;
}

static bool read_line(struct text line, bool with_names, struct cluster_topology *topology, size_t *ranges_max)
{
    struct text fields[FIELDS], field;

    for (size_t i = 0; i < FIELDS; i++)
        if (!text_next(&line, ' ', &fields[i]))
            return false;
    if (topology->node_count == CLUSTER_NODES_MAX ||
        !read_node(fields, with_names, &topology->nodes[topology->node_count]))
        return false;
    while (text_next(&line, ' ', &field))
        if (!add_range(topology, ranges_max, field))
            return false;
    topology->node_count++;
    return true;
}

static size_t count_lines(struct text nodes)
{
    size_t count = 1;

    for (size_t i = 0; i < nodes.len && count < CLUSTER_NODES_MAX; i++)
        count += nodes.ptr[i] == '\n';
    return count;
}

/* Exactly one node speaks of itself. */
static bool find_myself(struct cluster_topology *topology)
{
    for (size_t i = 0; i < topology->node_count; i++) {
        if (!topology->nodes[i].is_myself)
            continue;
        if (topology->myself)
            return false;
        topology->myself = &topology->nodes[i];
    }
    return topology->myself != NULL;
}

bool cluster_topology_parse(struct text nodes, bool with_names, struct cluster_topology *ret_topology)
{
    size_t ranges_max = 0;
    struct text line;
    bool is_good = true;

    *ret_topology = (struct cluster_topology){.nodes = mem_alloc(count_lines(nodes) * sizeof *ret_topology->nodes)};
    while (is_good && text_next(&nodes, '\n', &line))
        if (line.len > 0)
            is_good = read_line(line, with_names, ret_topology, &ranges_max);
    if (is_good && find_myself(ret_topology))
        return true;
    cluster_topology_free(ret_topology);
    return false;
}

void cluster_topology_free(struct cluster_topology *topology)
{
    free(topology->nodes);
    free(topology->ranges);
    free(topology->moves);
    *topology = (struct cluster_topology){0};
}

const struct cluster_node *cluster_topology_owner(const struct cluster_topology *topology, unsigned slot)
{
    const struct cluster_node *owner = NULL;

    for (size_t i = 0; i < topology->range_count; i++) {
        const struct cluster_range *range = &topology->ranges[i];
        const struct cluster_node *node = &topology->nodes[range->node];

        if (range->first <= slot && slot <= range->last && node->is_primary && (!owner || node->epoch > owner->epoch))
            owner = node;
    }
    return owner;
}

const struct cluster_move *cluster_topology_move(const struct cluster_topology *topology, unsigned slot)
{
    for (size_t i = 0; i < topology->move_count; i++)
        if (topology->moves[i].slot == slot)
            return &topology->moves[i];
    return NULL;
}

const struct cluster_node *cluster_topology_find(const struct cluster_topology *topology, const char *id)
{
    for (size_t i = 0; i < topology->node_count; i++)
        if (strcmp(topology->nodes[i].id, id) == 0)
            return &topology->nodes[i];
    return NULL;
}

/* Of a primary without slots, or such a primary. */
static bool is_left_over(const struct cluster_topology *topology, const struct cluster_node *node)
{
    const struct cluster_node *primary = node->is_primary ? node : cluster_topology_find(topology, node->primary_id);

    return !primary || (primary->is_primary && !primary->has_slots);
}

int64_t cluster_topology_replicas(const struct cluster_topology *topology, const struct cluster_node *primary)
{
    int64_t count = 0;

    for (size_t i = 0; i < topology->node_count; i++) {
        const struct cluster_node *node = &topology->nodes[i];

        count += node != primary && (strcmp(node->primary_id, primary->id) == 0 || is_left_over(topology, node));
    }
    return count;
}

int64_t cluster_topology_replicas_usual(const struct cluster_topology *topology)
{
    int64_t primaries = 0, replicas = 0;

    for (size_t i = 0; i < topology->node_count; i++) {
        primaries += topology->nodes[i].is_primary;
        replicas += topology->nodes[i].primary_id[0] != '\0';
    }
    return primaries > 0 ? replicas / primaries : 0;
}

void cluster_roster_set(struct cluster_roster *roster, const struct cluster_topology *topology)
{
    free(roster->ids);
    *roster = (struct cluster_roster){0};
    if (!topology)
        return;
    roster->count = topology->node_count;
    roster->ids = mem_alloc(roster->count * sizeof *roster->ids);
    for (size_t i = 0; i < roster->count; i++)
        memcpy(roster->ids[i], topology->nodes[i].id, sizeof *roster->ids);
}

bool cluster_roster_meets(const struct cluster_roster *roster, const struct cluster_topology *topology)
{
    for (size_t i = 0; i < roster->count; i++)
        if (cluster_topology_find(topology, roster->ids[i]))
            return true;
    return false;
}
