/* What happens when, and every choice: one queue of events in virtual time, and one source of numbers. Events of one
 * instant happen in an order that the seed draws, so a run is repeated by its seed alone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its owner's, zeroed before its first use, and cancelled before its memory ends. */
struct sim_event {
    void (*run)(struct sim_event *event);
    /* Private. */
    uint64_t at_ns, lot;
    size_t place; /* in the queue, from 1; 0: it is not in it */
};

/* Forgets all events, and begins the choices of this seed. */
void sim_schedule_begin(uint64_t seed);
/* Moves it if it is in the queue. A time that has passed is now. */
void sim_event_at(struct sim_event *event, uint64_t at_ns);
void sim_event_in(struct sim_event *event, uint64_t ns);
void sim_event_cancel(struct sim_event *event);
static inline bool sim_event_waits(const struct sim_event *event)
{
    return event->place > 0;
}
/* When the next one is due; UINT64_MAX: there is none. */
uint64_t sim_next_ns(void);
/* Time goes on to the next event, if that is due by then, and it happens. False: none is, and it is that time. */
bool sim_step(uint64_t until_ns);

/* Numbers from the seed. */
uint64_t sim_draw(void);
/* The same, from a stream of its own, which begins with any number. */
uint64_t sim_draw_from(uint64_t *stream);
uint64_t sim_draw_below(uint64_t bound);
/* From least to most. */
uint64_t sim_draw_between(uint64_t least, uint64_t most);
void sim_draw_bytes(void *ret_bytes, size_t count);
