/* A peer's address as text, without its port: "192.0.2.1", "2001:db8::1", "unix". A mapped address is IPv4. */
#pragma once
#include "base/text.h"

#include <netinet/in.h>

void peer_print(const struct sockaddr *address, char ret_peer[INET6_ADDRSTRLEN]);
/* The 4 or 16 bytes of an address. */
void peer_print_bytes(struct text address, char ret_peer[INET6_ADDRSTRLEN]);
