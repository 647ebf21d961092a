/* One established connection, plain or TLS: replies in, commands out. Appended commands leave with the next flush in
 * one write. While the kernel accepts no more, a second buffer collects. */
#pragma once
#include "connect.h"
#include "tls/session.h"

struct redis_wire;

struct redis_wire_events {
    /* The TLS handshake is complete; the first event, only with TLS. */
    void (*secured)(void *arg);
    void (*reply)(void *arg, const struct redis_reply *reply);
    /* Runs at most once, and is the last event; the owner then closes the wire. Never inside redis_wire_create(). */
    void (*broken)(void *arg, const char *why);
};

/* Takes ownership of the stream, and of the client's TLS session (NULL: plain). */
struct redis_wire *redis_wire_create(union redis_stream *stream, struct tls_session *tls,
                                     const struct redis_wire_events *events, void *arg);
/* With TLS, call it once, and append nothing before `secured`. */
void redis_wire_begin_handshake(struct redis_wire *wire);
/* Its events go there from now on. Not inside one of them. */
void redis_wire_hand_over(struct redis_wire *wire, void *arg);
/* No event follows. closed runs later, after all memory is freed. */
void redis_wire_close(struct redis_wire *wire, void (*closed)(void *arg), void *arg);

/* Append commands here; the size is bounded. */
struct buf *redis_wire_output(struct redis_wire *wire);
void redis_wire_flush(struct redis_wire *wire);
/* How many bytes were ever appended, and how many of them the kernel may have. With TLS a command may have been sent as
 * soon as it was encrypted. */
uint64_t redis_wire_appended(const struct redis_wire *wire);
uint64_t redis_wire_handed(const struct redis_wire *wire);
