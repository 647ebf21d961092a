/* A proxy between nodes and their Redis, in a thread of its own: it cuts, holds, delays and refuses connections. Within
 * a connection no byte is changed, lost or overtaken, as with TCP itself. Each node has a port of its own, and a node's
 * connections are told apart by the name that they give themselves (CLIENT SETNAME chatelaine-<name>), so that what one
 * of them carries can be made to fall behind the others. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { REDIS_PROXY_NODES_MAX = 3 };

enum redis_proxy_link {
    REDIS_PROXY_READS,
    REDIS_PROXY_SCRIPTS,
    REDIS_PROXY_CHANGES,
    REDIS_PROXY_INVALIDATIONS,
    REDIS_PROXY_UNNAMED, /* until the name has come */
    REDIS_PROXY_LINKS
};

enum redis_proxy_direction { REDIS_PROXY_TO_REDIS, REDIS_PROXY_TO_NODE, REDIS_PROXY_DIRECTIONS };

struct redis_proxy;

/* Listens on addresses[i], a free port each, for node i; forwards to the unix socket of Redis. Aborts the test when it
 * cannot. */
struct redis_proxy *redis_proxy_start(const char *socket_path, unsigned nodes, const char *const *addresses);
void redis_proxy_stop(struct redis_proxy *proxy);
uint16_t redis_proxy_port(const struct redis_proxy *proxy, unsigned node);

/* Where the node's connections lead that are made from now on: the address has moved, or is one of several. */
void redis_proxy_redirect(struct redis_proxy *proxy, unsigned node, const char *socket_path);

/* What holds for the node's connections of that kind, present and future, until it is set again. Any thread may call.
 */

/* Each byte is forwarded no sooner than ms after it came. What waits is forwarded sooner if that is now shorter, never
 * later; 0 forwards all at once. */
void redis_proxy_delay(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link,
                       enum redis_proxy_direction direction, unsigned ms);
/* Nothing is forwarded; all of it is, in order, once this ends. */
void redis_proxy_hold(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link,
                      enum redis_proxy_direction direction, bool held);
/* New connections are reset as soon as they are known to be of that kind. */
void redis_proxy_refuse(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link, bool refused);
/* Ends the present connections of that kind, by a reset or by an orderly close; what waits in them is lost. */
void redis_proxy_cut(struct redis_proxy *proxy, unsigned node, enum redis_proxy_link link, bool reset);
