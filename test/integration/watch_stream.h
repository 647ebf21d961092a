/* A client of /check/watch. */
#pragma once
#include "fixture.h"

enum { WATCH_EVENT_BYTES = 8192 };

struct watch_event {
    char name[32];
    char id[WATCH_EVENT_BYTES]; /* empty: none */
    char data[WATCH_EVENT_BYTES];
};

struct watch_stream {
    struct http_client client;
    char text[2 * WATCH_EVENT_BYTES]; /* received, and not yet read as an event */
    size_t len;
    char cursor[WATCH_EVENT_BYTES]; /* of the last event that had one */
    char watcher[64];               /* the id, once it is ready */
};

/* Connects to a node's internal listener and asks, with that query ("" for none); more: further header lines. Reads the
 * head. Returns its status. */
int watch_open(struct watch_stream *stream, const struct fixture *fixture, size_t node, const char *query,
               const char *more);
/* The same for 200, and reads `ready`. */
void watch_begin_at(struct watch_stream *stream, const struct fixture *fixture, size_t node, const char *query);
void watch_close(struct watch_stream *stream);
/* The next event of any name. False: the stream has ended, or that time has passed. */
bool watch_try_next(struct watch_stream *stream, int within_ms, struct watch_event *ret_event);
/* The next one but `current`; stops the test if there is none. */
void watch_next(struct watch_stream *stream, struct watch_event *ret_event);
/* That is the next one. id: of a key or an account. */
void watch_expect(struct watch_stream *stream, const char *name, const char *id);
/* Reads on until it is `current`: all that was revoked before has been told. Nothing else may come. */
void watch_await_current(struct watch_stream *stream);
/* "since=<its cursor>". Valid until it is called again. */
const char *watch_since(const struct watch_stream *stream);
/* Stops the test unless the stream ends. */
void watch_expect_end(struct watch_stream *stream);
