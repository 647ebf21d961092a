/* Redis' clock as a process knows it: by answers that told it, counted on by the clock of deadlines, which nobody sets.
 * When this machine's clock is set, Redis' is set with it if it is the same one, and stays if it is another's. Only
 * Redis knows, so from then on its clock is unknown until it tells it again. All times are in ms. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Zero: it was never told. */
struct redis_clock {
    bool is_told;
    int64_t offset_ms; /* Redis' clock minus that of clock_boot_ns() */
    int64_t zero_ms;   /* clock_zero_ms() when it was told */
};

/* Made before the question is sent. */
struct redis_clock_question {
    uint64_t sent_ns;
    int64_t zero_ms;
};
struct redis_clock_question redis_clock_question(void);
/* The answer has just been read: at some moment since the question Redis' clock was ms. */
void redis_clock_told(struct redis_clock *clock, const struct redis_clock_question *question, int64_t ms);

/* It was told, and this machine's clock was not set since. */
bool redis_clock_is_known(const struct redis_clock *clock);
/* Redis' clock now. If it is not known: as if it had not been set either. */
int64_t redis_clock_ms(const struct redis_clock *clock);
/* Redis' clock minus this machine's. False, and nothing is set: it is not known. An answer that took long makes it
 * wrong by up to half of that. */
bool redis_clock_ahead(const struct redis_clock *clock, int64_t *ret_ms);
