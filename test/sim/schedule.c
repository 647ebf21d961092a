/* A heap, ordered by time and, within an instant, by lots. */
#include "schedule.h"
#include "base/check.h"
#include "base/mem.h"
#include "kernel_internal.h"
#include <string.h>

static struct sim_event **queue; /* from 1 */
static size_t queued, room;
static uint64_t state;

uint64_t sim_draw_from(uint64_t *stream)
{
    uint64_t mixed = *stream += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t sim_draw(void)
{
    return sim_draw_from(&state);
}

uint64_t sim_draw_below(uint64_t bound)
{
    CHECK(bound > 0);
    return sim_draw() % bound;
}

uint64_t sim_draw_between(uint64_t least, uint64_t most)
{
    CHECK(least <= most);
    return least + sim_draw_below(most - least + 1);
}

void sim_draw_bytes(void *ret_bytes, size_t count)
{
    unsigned char *at = ret_bytes;

    while (count > 0) {
        uint64_t drawn = sim_draw();
        size_t part = count < sizeof drawn ? count : sizeof drawn;

        memcpy(at, &drawn, part);
        at += part;
        count -= part;
    }
}

void sim_schedule_begin(uint64_t seed)
{
    while (queued > 0)
        queue[queued--]->place = 0;
    state = seed;
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->lot < b->lot;
}

static void put(struct sim_event *event, size_t place)
{
    queue[place] = event;
    event->place = place;
}

static void rise(struct sim_event *event, size_t place)
{
    for (; place > 1 && is_before(event, queue[place / 2]); place /= 2)
        put(queue[place / 2], place);
    put(event, place);
}

static void sink(struct sim_event *event, size_t place)
{
    for (size_t below; (below = 2 * place) <= queued; place = below) {
        below += below < queued && is_before(queue[below + 1], queue[below]);
        if (!is_before(queue[below], event))
            break;
        put(queue[below], place);
    }
    put(event, place);
}

void sim_event_cancel(struct sim_event *event)
{
    size_t place = event->place;
    struct sim_event *last;

    if (place == 0)
        return;
    CHECK(queue[place] == event);
    event->place = 0;
    last = queue[queued--];
    if (last == event)
        return;
    if (place > 1 && is_before(last, queue[place / 2]))
        rise(last, place);
    else
        sink(last, place);
}

void sim_event_at(struct sim_event *event, uint64_t at_ns)
{
    CHECK(event->run);
    sim_event_cancel(event);
    event->at_ns = at_ns < sim_now_ns() ? sim_now_ns() : at_ns;
    event->lot = sim_draw();
    queue = mem_grow(queue, queued + 1, &room, sizeof *queue);
    queued++;
    rise(event, queued);
}

void sim_event_in(struct sim_event *event, uint64_t ns)
{
    sim_event_at(event, sim_now_ns() + ns);
}

uint64_t sim_next_ns(void)
{
    return queued > 0 ? queue[1]->at_ns : UINT64_MAX;
}

bool sim_step(uint64_t until_ns)
{
    struct sim_event *event = queued > 0 ? queue[1] : NULL;
    bool is_due = event && event->at_ns <= until_ns;
    uint64_t to_ns = is_due ? event->at_ns : until_ns;

    CHECK(is_due || until_ns != UINT64_MAX); /* nothing would ever happen */
    if (to_ns > sim_now_ns())
        sim_kernel_spend_ns(to_ns - sim_now_ns());
    if (!is_due)
        return false;
    sim_event_cancel(event);
    event->run(event);
    return true;
}
