/* One established connection: replies in, commands out. What is appended to the output leaves with the next flush, in
 * one write; while the kernel takes no more, a second buffer collects. */
#pragma once
#include "connect.h"

struct redis_wire;

struct redis_wire_events {
    void (*reply)(void *arg, const struct redis_reply *reply);
    /* Once, and nothing after it: the owner closes the wire. Never inside redis_wire_create(). */
    void (*broken)(void *arg, const char *why);
};

/* Takes the stream over. */
struct redis_wire *redis_wire_create(union redis_stream *stream, const struct redis_wire_events *events, void *arg);
/* No event comes after this; closed runs later, when all memory is given back. */
void redis_wire_close(struct redis_wire *wire, void (*closed)(void *arg), void *arg);

/* Where commands are appended; bounded. */
struct buf *redis_wire_output(struct redis_wire *wire);
void redis_wire_flush(struct redis_wire *wire);
/* How many bytes were ever appended, and how many of these the kernel may have seen. */
uint64_t redis_wire_appended(const struct redis_wire *wire);
uint64_t redis_wire_handed(const struct redis_wire *wire);
