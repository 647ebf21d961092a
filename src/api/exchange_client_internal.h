/* Where the request of an exchange comes from. */
#pragma once
#include "core/user_agent.h"
#include "exchange_internal.h"

/* The client's address: the peer's, or the one reported by trusted proxies (--trusted-proxies). For logs and audit
 * events. Limits count by network instead, because a client may use every address of its /64. */
struct text exchange_client_address(const struct exchange *exchange);
struct text exchange_client_network(const struct exchange *exchange);
/* The tag of that for a throttle. It begins like that of its IPv4 /24 or IPv6 /48, which its place in Redis counts for
 * (src/records/throttle.h). */
void exchange_network_tag(const struct exchange *exchange, struct text kind, char ret_tag[THROTTLE_TAG_CHARS + 1]);
/* The name of the browser that it says it is. */
void exchange_browser(const struct exchange *exchange, char ret_name[BROWSER_NAME_BYTES]);
/* The client's address block of that many bits; empty for 0 bits. Failed attempts are counted by block, because one
 * stranger may own a whole block. */
struct text exchange_client_block(const struct exchange *exchange, unsigned ipv4_bits, unsigned ipv6_bits);
