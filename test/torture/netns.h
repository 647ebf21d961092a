/* A network namespace for each node, linked to the root namespace by a veth pair: partitions made there lose packets,
 * as a real network does, where the proxy can only hold them. Or one for each process of a network in which all reach
 * each other: then the pairs lead to a bridge in a namespace of its own, out of reach of the host's firewall, as does
 * one of the root namespace. Needs root and iproute2. */
#pragma once
#include <stdbool.h>

struct netns;

/* NULL, with the reason on standard error, where it cannot be had. Removes what runs that were killed left behind.
 * folder: for the output of the commands that are run. */
struct netns *netns_create(const char *folder, unsigned count);
/* The same for such a network. */
struct netns *netns_create_bridged(const char *folder, unsigned count);
/* NULL is fine. */
void netns_destroy(struct netns *netns);

/* The calling thread works in the namespace until it leaves; what it starts or opens meanwhile stays there. With netns
 * NULL nothing happens. */
void netns_enter(const struct netns *netns, unsigned node);
void netns_leave(const struct netns *netns);
/* The root's end of the link, for the proxy to listen on; in a bridged network, the namespace's own. */
const char *netns_address(const struct netns *netns, unsigned node);
/* Packets are lost while it is down. */
void netns_set_link(const struct netns *netns, unsigned node, bool up);
/* In a bridged network: no packet of one reaches the other while they are parted. */
void netns_set_parted(const struct netns *netns, unsigned node, unsigned other, bool is_parted);
