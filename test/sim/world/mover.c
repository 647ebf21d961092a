#include "mover.h"
#include "base/check.h"
#include "cluster.h"
#include "core/bucket.h"
#include "schedule.h"
#include "simredis_cluster.h"
#include "trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REST_MOST_MS = 1500, STEP_MOST_MS = 60, HURRY_MS = 1, AGAIN_MS = 50, NAMES_MAX = 40, ADDRESS_BYTES = 16 };

#define NS_PER_MS UINT64_C(1000000)

enum step { RESTS, IMPORTS, MIGRATES, COPIES, DELETES, TAKES, GIVES };

static struct sim_deployment *of;
static struct sim_event turn;
static enum step step;
static bool must_stop, is_held;
static unsigned partition, slot;
static struct sim_master *owners[SIM_PARTITIONS], *from, *to;
/* What was copied, and is to be deleted. */
static struct text names[NAMES_MAX];
static size_t name_count;
static struct buf listed;

static unsigned slot_of(unsigned number)
{
    char tag[16];

    snprintf(tag, sizeof tag, "{%u}", number);
    return simredis_slot_of(text_of(tag));
}

struct sim_master *sim_mover_owner_of(const char *account)
{
    struct id id = {0};

    snprintf(id.text, sizeof id.text, "%s", account);
    return owners[bucket_of_account(&id) % SIM_PARTITIONS];
}

/* As cluster.c gives slots away. */
void sim_mover_begin(struct sim_deployment *deployment)
{
    of = deployment;
    step = RESTS;
    must_stop = true;
    is_held = false;
    for (unsigned i = 0; i < SIM_PARTITIONS; i++)
        for (unsigned k = 0; k < SIM_MASTERS; k++)
            if (slot_of(i) >= of->masters[k].first_slot && slot_of(i) <= of->masters[k].last_slot)
                owners[i] = &of->masters[k];
    buf_init(&listed, SIZE_MAX / 2);
}

bool sim_mover_hold(void)
{
    is_held = step == RESTS;
    return is_held;
}

bool sim_mover_rests(void)
{
    return step == RESTS;
}

void sim_mover_release(void)
{
    is_held = false;
}

/* Steps: whether one is done. */

static bool is_good(const struct buf *reply)
{
    const bool is = reply->len > 0 && reply->ptr[0] != '-';

    if (!is && reply->len > 0)
        sim_trace("mover", "slot %u: %.*s", slot, (int)reply->len - 2, reply->ptr);
    return is;
}

static bool tell(const struct sim_master *master, const char *action, const struct sim_master *other)
{
    char number[8];
    struct buf reply;
    bool is_done;

    snprintf(number, sizeof number, "%u", slot);
    buf_init(&reply, SIZE_MAX / 2);
    is_done = sim_server_ask(master->server,
                             (struct text[]){TEXT("CLUSTER"), TEXT("SETSLOT"), text_of(number), text_of(action),
                                             text_of(other->id)},
                             5, &reply) &&
              is_good(&reply);
    buf_finish(&reply);
    return is_done;
}

/* Takes the names of a reply, which stays. */
static void read_names(struct text reply)
{
    struct text line;
    uint64_t count = 0, len;

    name_count = 0;
    CHECK(text_next(&reply, '\r', &line) && text_to_u64(text_skip(line, 1), NAMES_MAX, &count));
    for (uint64_t i = 0; i < count; i++) {
        CHECK(text_next(&reply, '$', &line) && text_next(&reply, '\r', &line) && text_to_u64(line, SIZE_MAX, &len));
        names[name_count++] = (struct text){reply.ptr + 1, (size_t)len};
        reply = text_skip(reply, (size_t)len + 1);
    }
}

/* False: it is down. */
static bool list_names(void)
{
    char number[8], most[8];

    snprintf(number, sizeof number, "%u", slot);
    snprintf(most, sizeof most, "%llu", must_stop ? NAMES_MAX : (unsigned long long)sim_draw_between(1, NAMES_MAX));
    buf_clear(&listed);
    if (!sim_server_ask(from->server,
                        (struct text[]){TEXT("CLUSTER"), TEXT("GETKEYSINSLOT"), text_of(number), text_of(most)}, 4,
                        &listed) ||
        !is_good(&listed))
        return false;
    read_names(buf_text(&listed));
    return true;
}

static bool copy_names(void)
{
    struct text argv[9 + NAMES_MAX] = {TEXT("MIGRATE"), text_of(to->ip), TEXT("6379"),    {"", 0},     TEXT("0"),
                                       TEXT("5000"),    TEXT("COPY"),    TEXT("REPLACE"), TEXT("KEYS")};
    struct buf reply;
    bool is_done;

    memcpy(argv + 9, names, name_count * sizeof *names);
    buf_init(&reply, SIZE_MAX / 2);
    is_done = sim_server_ask(from->server, argv, 9 + name_count, &reply) && is_good(&reply);
    buf_finish(&reply);
    if (!is_done)
        sim_server_ask(to->server, (struct text[]){TEXT("CLIENT"), TEXT("KILL"), TEXT("TYPE"), TEXT("normal")}, 4,
                       NULL);
    return is_done;
}

static bool delete_names(void)
{
    struct text argv[1 + NAMES_MAX] = {TEXT("UNLINK")};
    struct buf reply;
    bool is_done;

    memcpy(argv + 1, names, name_count * sizeof *names);
    buf_init(&reply, SIZE_MAX / 2);
    is_done = sim_server_ask(from->server, argv, 1 + name_count, &reply) && is_good(&reply);
    buf_finish(&reply);
    return is_done;
}

/* Turns */

static void begin_move(void)
{
    partition = (unsigned)sim_draw_below(SIM_PARTITIONS);
    slot = slot_of(partition);
    from = owners[partition];
    to = &of->masters[((unsigned)(from - of->masters) + 1 + sim_draw_below(SIM_MASTERS - 1)) % SIM_MASTERS];
    sim_trace("mover", "slot %u moves from %s to %s", slot, from->host->name, to->host->name);
}

static void end_move(void)
{
    owners[partition] = to;
    sim_trace("mover", "slot %u is with %s", slot, to->host->name);
}

/* An empty list of names ends the copying. False: the step is to be tried again. */
static bool go_on(void)
{
    switch (step) {
    case RESTS:
        if (is_held)
            return false;
        begin_move();
        step = IMPORTS;
        return true;
    case IMPORTS:
        step = tell(to, "IMPORTING", from) ? MIGRATES : IMPORTS;
        return step != IMPORTS;
    case MIGRATES:
        step = tell(from, "MIGRATING", to) ? COPIES : MIGRATES;
        return step != MIGRATES;
    case COPIES:
        if (!list_names() || (name_count > 0 && !copy_names()))
            return false;
        step = name_count > 0 ? DELETES : TAKES;
        return true;
    case DELETES: /* refused if one of them has expired meanwhile */
        step = COPIES;
        return delete_names();
    case TAKES:
        step = tell(to, "NODE", to) ? GIVES : TAKES;
        return step != TAKES;
    case GIVES:
        if (!tell(from, "NODE", to))
            return false;
        end_move();
        step = RESTS;
        return true;
    }
    UNREACHABLE();
}

static void on_turn(struct sim_event *event)
{
    bool is_done = true;

    while (must_stop && step != RESTS && is_done)
        is_done = go_on();
    if (!must_stop)
        is_done = go_on();
    if (!is_done)
        sim_event_in(event, AGAIN_MS * NS_PER_MS);
    else if (!must_stop)
        sim_event_in(event, sim_draw_between(1, step == RESTS ? REST_MOST_MS : STEP_MOST_MS) * NS_PER_MS);
}

void sim_mover_start(void)
{
    must_stop = false;
    turn.run = on_turn;
    sim_event_in(&turn, HURRY_MS * NS_PER_MS);
}

void sim_mover_stop(void)
{
    must_stop = true;
    turn.run = on_turn;
    sim_event_in(&turn, HURRY_MS * NS_PER_MS);
}
