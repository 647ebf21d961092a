/* A stream socket, for the files that make it work: socket.c (descriptors, names, options), connect.c (listening and
 * connecting), stream.c (bytes, and ends). */
#pragma once
#include "kernel_internal.h"
#include <sys/socket.h>
#include <sys/types.h>

enum { SIM_FDS_MAX = 1 << 16, SIM_ANY = 0 };

enum sim_socket_state {
    SIM_FRESH,
    SIM_LISTENING,
    SIM_CONNECTED, /* to a peer that may be gone */
};

struct sim_socket {
    enum sim_socket_state state;
    int fd;               /* -1: nobody has accepted it yet */
    bool is_unix, resets; /* resets: SO_LINGER 0 */
    struct list watches;
    /* SIM_LISTENING */
    struct list listeners, waiting;
    size_t backlog, waits;
    struct sockaddr_storage address; /* of a Unix socket: what stat() says of its file is in dev and ino */
    dev_t dev;
    ino_t ino;
    /* SIM_CONNECTED */
    struct list of_listener; /* while it waits */
    struct sim_socket *peer; /* NULL: closed */
    struct sockaddr_storage peer_address;
    uint64_t sent;
    char *input; /* what the peer has sent: from `taken` on */
    size_t input_len, taken, room;
    bool is_ended;  /* the peer sends nothing more */
    bool has_ended; /* we do not */
    bool was_full;  /* the peer waits for room */
    int error;
};

/* socket.c */

/* fd: -1 for none yet. */
struct sim_socket *sim_socket_make(int fd, bool is_unix);
/* A socket that was made without gets a descriptor. */
void sim_socket_name(struct sim_socket *socket, int fd);
void sim_socket_unname(int fd);
void sim_socket_free(struct sim_socket *socket);
int sim_fail(int error);
int sim_take_error(struct sim_socket *socket);
bool sim_may_block(const struct sim_socket *socket);
size_t sim_unread(const struct sim_socket *socket);
/* As Linux: only a third that is free is worth a wake-up. */
bool sim_has_room(const struct sim_socket *socket);
void sim_socket_tell_address(const struct sockaddr_storage *address, bool is_unix, struct sockaddr *ret_address,
                             socklen_t *ret_len);

/* connect.c */

void sim_join(struct sim_socket *a, struct sim_socket *b);
