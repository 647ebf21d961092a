/* A stream socket, for the files that make it work: socket.c (descriptors, names, options), connect.c (listening and
 * connecting), stream.c (bytes, and ends), network.c (what is on its way), actor.c. */
#pragma once
#include "base/text.h"
#include "kernel_internal.h"
#include "network.h"
#include "schedule.h"
#include <sys/socket.h>
#include <sys/types.h>

enum { SIM_FDS_MAX = 1 << 16, SIM_ANY = 0, SIM_RIGHTS_MAX = 4 };

enum sim_socket_state {
    SIM_FRESH,
    SIM_LISTENING,
    SIM_CONNECTING,
    SIM_CONNECTED, /* to a peer that may be gone */
};

/* What one end tells the other. */
enum sim_word {
    SIM_KNOCK, /* from the socket itself: it arrives at the listener */
    SIM_ASK,   /* the same: bytes that arrive where nobody is any more */
    SIM_WELCOME,
    SIM_REFUSAL,
    SIM_BYTES,
    SIM_ROOM, /* there is room again */
    SIM_END,
    SIM_RESET,
};

struct sim_actor;

/* How long a host's socket waits for the other side. */
struct sim_patience {
    struct sim_event looks;
    uint64_t heard_ns, probed_ns; /* heard: or when it began to connect */
    uint64_t asked_ns;            /* when what is asked of nobody was sent first; 0: nothing is */
    bool probes;                  /* SO_KEEPALIVE */
    int idle_s, interval_s, count, unanswered;
};

struct sim_socket {
    enum sim_socket_state state;
    int fd;               /* -1: nobody has accepted it yet, or an actor's */
    bool is_unix, resets; /* resets: SO_LINGER 0 */
    struct list watches;
    struct sim_host *host; /* NULL: what it sends arrives at once */
    struct list of_host;
    const struct sim_actor *actor; /* NULL: a process' */
    void *actor_arg;
    bool holds;        /* an actor that does not read */
    bool knows_of_end; /* an actor that was told of it */
    struct sim_event resumes;
    /* Listening */
    struct list listeners, waiting;
    size_t backlog, waits;
    struct sockaddr_storage address; /* of a Unix socket: what stat() says of its file is in dev and ino */
    dev_t dev;
    ino_t ino;
    /* Connected */
    struct list of_listener; /* while it waits */
    struct sim_socket *peer; /* NULL: closed */
    struct sim_host *peer_host;
    struct sockaddr_storage peer_address;
    uint64_t acknowledged; /* bytes that have arrived at the peer */
    char *input;           /* what the peer has sent: from `taken` on */
    size_t input_len, input_room, taken, room;
    bool is_ended;  /* the peer sends nothing more */
    bool has_ended; /* we do not */
    bool was_full;  /* the peer waits for room */
    int error;
    int rights[SIM_RIGHTS_MAX]; /* descriptors that came with what is unread */
    size_t right_count;
    struct list flying; /* what is on its way to it */
    size_t flying_bytes;
    uint64_t lag_ns;   /* of what is sent to it */
    unsigned lag_turn; /* of its link, when that was drawn */
    struct sim_event arrival;
    struct sim_patience patience;
};

/* socket.c */

/* fd: -1 for none yet. */
struct sim_socket *sim_socket_make(int fd, bool is_unix, struct sim_host *host);
/* A socket that was made without gets a descriptor. */
void sim_socket_name(struct sim_socket *socket, int fd);
void sim_socket_unname(int fd);
void sim_socket_free(struct sim_socket *socket);
int sim_fail(int error);
int sim_take_error(struct sim_socket *socket);
bool sim_may_block(const struct sim_socket *socket);
size_t sim_unread(const struct sim_socket *socket);
/* Bytes that the peer can send now. */
size_t sim_room(const struct sim_socket *socket);
/* As Linux: only a third that is free is worth a wake-up. */
bool sim_has_room(const struct sim_socket *socket);
void sim_socket_tell_address(const struct sockaddr_storage *address, bool is_unix, struct sockaddr *ret_address,
                             socklen_t *ret_len);
/* connect.c */

void sim_join(struct sim_socket *a, struct sim_socket *b);
void sim_begin_to_listen(struct sim_socket *socket, size_t backlog);
void sim_begin_to_connect(struct sim_socket *socket, const struct sockaddr_storage *address);
/* A socket's knock has arrived where it wanted to. */
void sim_knock_arrived(struct sim_socket *client);

/* stream.c */

/* Its end, with or without a descriptor. */
void sim_socket_end(struct sim_socket *socket);
/* A word has arrived. It may end the socket, if that is an actor's. */
void sim_word_arrived(struct sim_socket *to, enum sim_word word, struct text bytes);
/* As much as the peer has room for. */
size_t sim_send(struct sim_socket *socket, struct text bytes);
/* Something was read: the peer is told, if it waits for room and there is enough. */
void sim_tell_room(struct sim_socket *socket);
/* Bytes of a host's socket to a peer that is gone, sent first at that time: it hears a reset, once that can reach it.
 */
void sim_send_to_nobody(struct sim_socket *socket, uint64_t first_ns);

/* rights.c */

/* The message has been sent to this socket (NULL: to nobody), with its descriptors. */
void sim_rights_sent(struct sim_socket *to, const struct msghdr *message);
/* Bytes were taken from it into this message, and what came with them. */
void sim_rights_taken(struct sim_socket *socket, struct msghdr *message);
void sim_rights_drop(struct sim_socket *socket);

/* patience.c */

void sim_patience_init(struct sim_patience *patience);
/* Its state has changed, or its settings. */
void sim_patience_begin(struct sim_socket *socket);
/* The same, for what is called often: it has sent. */
static inline void sim_patience_sent(struct sim_socket *socket)
{
    if (!sim_event_waits(&socket->patience.looks))
        sim_patience_begin(socket);
}
void sim_patience_heard(struct sim_socket *socket);
/* SO_KEEPALIVE and what belongs to it. */
void sim_patience_set(struct sim_socket *socket, int level, int name, int value);

/* actor.c */

/* It does not read, or has not begun again: what arrives waits. */
bool sim_actor_waits(const struct sim_socket *socket);
/* It may end the socket. bytes: of SIM_BYTES. */
void sim_tell_actor(struct sim_socket *to, enum sim_word word, struct text bytes);

/* network.c */

/* from: NULL if the socket has no host. The bytes are copied. */
void sim_convey(struct sim_socket *to, struct sim_host *from, enum sim_word word, struct text bytes);
/* Its knock has been lost, as a full listener loses it. */
void sim_knock_again(struct sim_socket *client);
/* The last word that is on its way to it; false: there is none. */
bool sim_last_flying(const struct sim_socket *socket, enum sim_word *ret_word);
/* When the first bytes that are on their way to it were sent; UINT64_MAX: none are. */
uint64_t sim_flying_since(const struct sim_socket *socket);
/* Nothing that one sends now arrives at the other, for the time being. */
bool sim_is_cut(const struct sim_host *from, const struct sim_host *to);
void sim_drop_flying(struct sim_socket *socket);
