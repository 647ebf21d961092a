/* Whether checks of each partition are answered, while primaries of others fail and slots move. An answer is a
 * decision: the key is accepted or refused. One thread notes, any may look. */
#pragma once
#include "shards.h"
#include <stddef.h>
#include <stdint.h>

struct availability;

struct availability *availability_create(const struct shards *shards);
void availability_destroy(struct availability *availability);

/* A check ended with that status (0: no answer). */
void availability_note(struct availability *availability, unsigned partition, int status, int64_t end_ns);

struct availability_count {
    size_t checks, answered;
};
/* So far. */
struct availability_count availability_count(const struct availability *availability, unsigned partition);

/* A table with a row for each partition. */
void availability_print(const struct availability *availability);
