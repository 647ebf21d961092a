/* A server of simredis as a member of a Redis Cluster: the members know each other from the beginning, as if they had
 * met. They go by the clocks of their hosts, and simredis_run() is what makes them speak. */
#pragma once
#include "base/text.h"
#include "simredis.h"

/* What a member asks of its surroundings, with the context of its struct simredis_host. */
struct simredis_bus {
    /* Another member is told something, by simredis_hear(): later or never, in order, and whole. */
    void (*tell)(void *context, const char *host, uint16_t port, const char *bytes, size_t length);
    /* A client of the server at that address sends all of this, and the replies are appended: at once. False: nobody
     * answers. */
    bool (*ask)(void *context, const char *host, uint16_t port, const char *bytes, size_t length,
                struct buf *ret_replies);
};

/* Of a server without clients. nodes: what its nodes.conf says; no replicas. False: it does not say that. */
bool simredis_join(struct simredis *server, const struct simredis_bus *bus, const char *nodes);
/* What nodes.conf says now. The caller frees it. */
char *simredis_nodes(const struct simredis *server);
/* A member has told it this. */
void simredis_hear(struct simredis *server, const char *bytes, size_t length);
/* As CLUSTER KEYSLOT says it. */
unsigned simredis_slot_of(struct text key);
