/* A proxy between nodes and their Redis, in a thread of its own. It cuts, holds, delays and refuses connections. Within
 * a connection, no byte is changed, lost or reordered, as with TCP itself. Each node has a port of its own. A node's
 * connections are distinguished by the names they give themselves (CLIENT SETNAME chatelaine-<name>), so that one of
 * them can be made to fall behind the others. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { REDIS_PROXY_NODES_MAX = 3 };

enum redis_proxy_link {
    REDIS_PROXY_READS,
    REDIS_PROXY_SCRIPTS,
    REDIS_PROXY_CHANGES,
    REDIS_PROXY_INVALIDATIONS,
    REDIS_PROXY_UNNAMED, /* until the name has arrived */
    REDIS_PROXY_LINKS
};

enum redis_proxy_direction { REDIS_PROXY_TO_REDIS, REDIS_PROXY_TO_NODE, REDIS_PROXY_DIRECTIONS };

struct redis_proxy;

/* Listens on addresses[i], a free port each, for node i, and forwards to Redis' Unix socket. Aborts the test if it
 * cannot. */
struct redis_proxy *redis_proxy_start(const char *socket_path, unsigned nodes, const char *const *addresses);
void redis_proxy_stop(struct redis_proxy *proxy);
uint16_t redis_proxy_port(const struct redis_proxy *proxy, unsigned node);

/* Forwards the node's new connections elsewhere, as if the address had moved or stood for several servers. */
void redis_proxy_redirect(struct redis_proxy *proxy, unsigned node, const char *socket_path);

/* These set how the node's connections of that kind behave, present and future ones, until changed. Any thread may call
 * them. */

/* Forwards each byte no sooner than ms after it arrived. A shorter delay applies to waiting bytes too, a longer one
 * does not; 0 forwards everything at once. */
void redis_proxy_delay(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link,
                       enum redis_proxy_direction direction, unsigned ms);
/* Holds everything, and forwards it in order once this ends. */
void redis_proxy_hold(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link,
                      enum redis_proxy_direction direction, bool held);
/* Resets new connections as soon as their kind is known. */
void redis_proxy_refuse(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link, bool refused);
/* Ends the present connections of that kind, by a reset or an orderly close. Bytes that wait in them are lost. */
void redis_proxy_cut(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link, bool reset);
