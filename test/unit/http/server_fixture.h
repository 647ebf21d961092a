/* A server with a small handler and clients on the same loop, for tests of src/http over real sockets.
 *
 * The handler knows these paths: /hello (200, the query as body), /echo (reads the body and sends it back; /echo-held
 * waits like /hold instead), /hold (waits for fixture_answer_held()), /later (answers in a later turn), /big (as many
 * bytes as the query says; /held-big waits like /hold first), /unread (401 without reading the body), /made (201, and
 * asks whether it was delivered; the query as for /big), /body-later (reads the body when the test says so), /none
 * (204), /mute (neither replies nor holds), /about (describes the request), /json, /json-too-large, /lasting (as many
 * bytes as the query says, from lasting memory), /stream and /stream-broken (as many pieces as the query says, each of
 * FIXTURE_PIECE_BYTES, then the end or a break), /twice (two replies), /split (a header with CR LF). */
#pragma once
#include "http/request.h"
#include "http/server.h"

/* The time is for what must happen, on a busy machine too. */
enum { PEER_INPUT_BYTES = 16 * 1024 * 1024, FIXTURE_TIMEOUT_MS = 90 * 1000 };

/* The body of /lasting, for a test to fill. */
enum { FIXTURE_LASTING_BYTES = 12 * 1024 * 1024 };
extern char fixture_lasting[FIXTURE_LASTING_BYTES];

enum { FIXTURE_PIECE_BYTES = 20 * 1000 };

enum told { TOLD_NOTHING, TOLD_DELIVERED, TOLD_NOT_DELIVERED };

struct fixture {
    uv_loop_t loop;
    struct http_server *server;
    struct http_request *held;
    char address[HTTP_ADDRESS_BYTES];
    bool has_tls;
    unsigned handled;       /* calls of the handler */
    unsigned bodies_failed; /* bodies that ended in HTTP_BODY_FAILED */
    unsigned pieces;        /* of streams, made so far */
    unsigned streams_gone;  /* streams whose handler was told that the client is gone */
    enum told told;
    bool is_late, is_drained; /* of a drain */
    bool is_closed;
};

struct peer {
    struct fixture *fixture;
    int fd;
    uv_poll_t poll;
    struct tls_session *tls; /* NULL: it speaks plain HTTP */
    bool is_paused;          /* does not read */
    bool is_ended;           /* end of file or reset */
    bool is_reset;
    bool is_poll_closed;
    size_t bytes;
    char *input;                 /* NUL-terminated, PEER_INPUT_BYTES */
    const char *counted;         /* the last text that peer_count() was asked for, a literal */
    size_t counted_bytes, count; /* how far it has counted, and how many */
};

/* The defaults of include/http/settings.h. Errors have bodies like "error 400.". */
struct http_settings fixture_settings(void);
/* In virtual time, on the sockets of test/sim. Set fixture_needs_system before for tests of what only the system has:
 * how much it takes, IPv4 at IPv6's sockets, and more than one server at an address. */
extern bool fixture_needs_system;
void fixture_start(struct fixture *fixture, const struct http_settings *settings, const char *address);
/* Closes the server. Held requests are answered only afterwards, when nobody listens any more. */
void fixture_close(struct fixture *fixture);
/* Also closes the loop and asserts that nothing is left on it. */
void fixture_finish(struct fixture *fixture);
void fixture_answer_held(struct fixture *fixture);
void fixture_run_until_held(struct fixture *fixture);

/* http_server_drain() */
void fixture_drain(struct fixture *fixture, int64_t grace_ms, int64_t quiet_ms);

/* Speaks TLS if the fixture's server does. */
void peer_connect(struct peer *peer, struct fixture *fixture);
/* Speaks plain HTTP in any case. */
void peer_connect_plainly(struct peer *peer, struct fixture *fixture);
void peer_send(struct peer *peer, const char *bytes, size_t count);
/* The bytes themselves, whatever the peer speaks. */
void peer_send_raw(struct peer *peer, const char *bytes, size_t count);
void peer_send_str(struct peer *peer, const char *bytes);
/* In one piece, while the server does not run. */
void peer_send_at_once(struct peer *peer, const char *bytes);
void peer_half_close(struct peer *peer);
/* Sends a reset. */
void peer_reset(struct peer *peer);
void peer_pause(struct peer *peer, bool is_paused);
void peer_close(struct peer *peer);
/* Whether the text arrives within the fixture's timeout. */
bool peer_gets(struct peer *peer, const char *text);
/* How often the text has arrived. */
size_t peer_count(struct peer *peer, const char *text);
bool peer_gets_count(struct peer *peer, const char *text, size_t count);
/* Whether the server ends the connection in time. */
bool peer_is_ended(struct peer *peer);
void peer_forget(struct peer *peer);

bool fixture_until(struct fixture *fixture, bool (*predicate)(void *arg), void *arg);
/* Runs the loop until the server has that many connections. */
bool fixture_until_connections(struct fixture *fixture, size_t count);
