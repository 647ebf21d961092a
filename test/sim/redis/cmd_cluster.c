/* CLUSTER, and ASKING. */
#include "cluster_internal.h"
#include "commands.h"

#include <inttypes.h>
#include <stdlib.h>

/* NULL: it is no member, and that is said. */
static struct cluster *cluster_of(struct call *call)
{
    if (!call->server->cluster)
        say_error(call, "ERR This instance has cluster support disabled");
    return call->server->cluster;
}

void cmd_asking(struct call *call)
{
    if (cluster_of(call))
        say_ok(call);
}

/* Of the slots: how many members are "ok", suspected and failed. */
static void count_slots(const struct simredis *server, unsigned ret_counts[3])
{
    const struct cluster *cluster = server->cluster;

    for (unsigned slot = 0; slot < SLOTS; slot++) {
        const uint8_t owner = cluster->owner[slot];

        if (owner != NOBODY)
            ret_counts[cluster->members[owner].failed_us > 0 ? 2 : cluster_doubts(server, owner) ? 1 : 0]++;
    }
}

void cmd_cluster_info(struct call *call)
{
    const struct cluster *cluster = cluster_of(call);
    unsigned counts[3] = {0, 0, 0}, primaries = 0;
    struct buf out = BUF_FIXED(1024);

    if (!cluster)
        return;
    count_slots(call->server, counts);
    for (size_t i = 0; i < cluster->count; i++)
        primaries += cluster_owns_slots(cluster, i);
    buf_printf(&out,
               "cluster_state:%s\r\ncluster_slots_assigned:%u\r\ncluster_slots_ok:%u\r\ncluster_slots_pfail:%u\r\n"
               "cluster_slots_fail:%u\r\ncluster_known_nodes:%zu\r\ncluster_size:%u\r\ncluster_current_epoch:%" PRIu64
               "\r\ncluster_my_epoch:%" PRIu64 "\r\n",
               cluster->is_up ? "ok" : "fail", counts[0] + counts[1] + counts[2], counts[0], counts[1], counts[2],
               cluster->count, primaries, cluster->epoch, cluster->members[MYSELF].epoch);
    say_text(call, buf_text(&out));
}

void cmd_cluster_nodes(struct call *call)
{
    struct buf out;

    if (!cluster_of(call))
        return;
    buf_init(&out, SIZE_MAX / 2);
    cluster_print(call->server, &out);
    say_text(call, buf_text(&out));
    buf_finish(&out);
}

void cmd_cluster_myid(struct call *call)
{
    const struct cluster *cluster = cluster_of(call);

    if (cluster)
        say_text(call, text_of(cluster->members[MYSELF].id));
}

void cmd_cluster_keyslot(struct call *call)
{
    if (cluster_of(call))
        say_integer(call, simredis_slot_of(call->argv[2]));
}

/* Slots as arguments */

static bool read_slot(struct call *call, size_t index, const char *trouble, unsigned *ret_slot)
{
    int64_t slot;
    bool is_one = number_parse_i64(call->argv[index], &slot) && slot >= 0 && slot < SLOTS;

    if (is_one)
        *ret_slot = (unsigned)slot;
    else
        say_error(call, trouble);
    return is_one;
}

void cmd_cluster_countkeysinslot(struct call *call)
{
    int64_t slot;

    if (!cluster_of(call) || !arg_i64(call, 2, &slot))
        return;
    if (slot < 0 || slot >= SLOTS)
        say_error(call, "ERR Invalid slot");
    else
        say_integer(call, (int64_t)cluster_keys_in(call->server, (unsigned)slot, SIZE_MAX, NULL));
}

void cmd_cluster_getkeysinslot(struct call *call)
{
    struct text *keys;
    int64_t slot, most;
    size_t count;

    if (!cluster_of(call) || !arg_i64(call, 2, &slot) || !arg_i64(call, 3, &most))
        return;
    if (slot < 0 || slot >= SLOTS || most < 0) {
        say_error(call, "ERR Invalid slot or number of keys");
        return;
    }
    keys = mem_alloc((call->db->values.count + 1) * sizeof *keys);
    count = cluster_keys_in(call->server, (unsigned)slot, (size_t)most, keys);
    say_array(call, count);
    for (size_t i = 0; i < count; i++)
        say_text(call, keys[i]);
    free(keys);
}

void cmd_cluster_delslots(struct call *call)
{
    static const char TROUBLE[] = "ERR Invalid or out of range slot";
    struct cluster *cluster = cluster_of(call);
    unsigned slot = 0;

    for (size_t i = 2; cluster && i < call->argc; i++) {
        if (!read_slot(call, i, TROUBLE, &slot))
            return;
        if (cluster->owner[slot] == NOBODY) {
            say_errorf(call, "ERR Slot %u is already unassigned", slot);
            return;
        }
    }
    for (size_t i = 2; cluster && i < call->argc && read_slot(call, i, TROUBLE, &slot); i++)
        cluster_give(call->server, slot, NOBODY);
    if (!cluster)
        return;
    cluster_judge_itself(call->server);
    say_ok(call);
}

/* SETSLOT */

static uint8_t read_member(struct call *call, const char *trouble)
{
    const uint8_t place = cluster_place_of(call->server->cluster, call->argv[4]);

    if (place == NOBODY)
        say_errorf(call, "ERR %s %s", trouble, call->argv[4].ptr);
    return place;
}

static bool set_migrating(struct call *call, unsigned slot)
{
    struct cluster *cluster = call->server->cluster;
    uint8_t place;

    if (cluster->owner[slot] != MYSELF) {
        say_errorf(call, "ERR I'm not the owner of hash slot %u", slot);
        return false;
    }
    place = read_member(call, "I don't know about node");
    if (place != NOBODY)
        cluster->to[slot] = place;
    return place != NOBODY;
}

static bool set_importing(struct call *call, unsigned slot)
{
    struct cluster *cluster = call->server->cluster;
    uint8_t place;

    if (cluster->owner[slot] == MYSELF) {
        say_errorf(call, "ERR I'm already the owner of hash slot %u", slot);
        return false;
    }
    place = read_member(call, "I don't know about node");
    if (place != NOBODY)
        cluster->from[slot] = place;
    return place != NOBODY;
}

/* It takes an epoch that is higher than all others, without asking them. */
static void end_import(struct simredis *server, unsigned slot)
{
    struct cluster *cluster = server->cluster;
    struct member *me = &cluster->members[MYSELF];
    uint64_t highest = cluster->epoch;

    for (size_t i = 0; i < cluster->count; i++)
        highest = cluster->members[i].epoch > highest ? cluster->members[i].epoch : highest;
    if (me->epoch == 0 || me->epoch != highest)
        me->epoch = cluster->epoch = highest + 1;
    cluster->from[slot] = NOBODY;
    cluster_tell_all(server);
}

static bool set_owner(struct call *call, unsigned slot)
{
    struct cluster *cluster = call->server->cluster;
    const uint8_t place = read_member(call, "Unknown node");
    bool has_keys;

    if (place == NOBODY)
        return false;
    has_keys = cluster_keys_in(call->server, slot, 1, NULL) > 0;
    if (cluster->owner[slot] == MYSELF && place != MYSELF && has_keys) {
        say_errorf(call, "ERR Can't assign hashslot %u to a different node while I still hold keys for this hash slot.",
                   slot);
        return false;
    }
    if (!has_keys)
        cluster->to[slot] = NOBODY;
    cluster_give(call->server, slot, place);
    if (place == MYSELF && cluster->from[slot] != NOBODY)
        end_import(call->server, slot);
    return true;
}

void cmd_cluster_setslot(struct call *call)
{
    struct cluster *cluster = cluster_of(call);
    bool is_done;
    unsigned slot;

    if (!cluster || !read_slot(call, 2, "ERR Invalid or out of range slot", &slot))
        return;
    if (arg_is(call, 3, "MIGRATING") && call->argc == 5) {
        is_done = set_migrating(call, slot);
    } else if (arg_is(call, 3, "IMPORTING") && call->argc == 5) {
        is_done = set_importing(call, slot);
    } else if (arg_is(call, 3, "STABLE") && call->argc == 4) {
        cluster->to[slot] = cluster->from[slot] = NOBODY;
        is_done = true;
    } else if (arg_is(call, 3, "NODE") && call->argc == 5) {
        is_done = set_owner(call, slot);
    } else {
        say_error(call, "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP");
        return;
    }
    if (!is_done)
        return;
    cluster_judge_itself(call->server);
    say_ok(call);
}
