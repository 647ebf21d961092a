#include "peer_internal.h"

#include "base/check.h"

#include <string.h>
#include <sys/socket.h>
#include <uv.h>

void peer_print_bytes(struct text address, char ret_peer[INET6_ADDRSTRLEN])
{
    static const uint8_t MAPPED_IPV4[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    int family;

    if (address.len > sizeof MAPPED_IPV4 && memcmp(address.ptr, MAPPED_IPV4, sizeof MAPPED_IPV4) == 0)
        address = text_skip(address, sizeof MAPPED_IPV4);
    family = address.len == sizeof(struct in_addr) ? AF_INET : AF_INET6;
    CHECK(uv_inet_ntop(family, address.ptr, ret_peer, INET6_ADDRSTRLEN) == 0);
}

void peer_print(const struct sockaddr *address, char ret_peer[INET6_ADDRSTRLEN])
{
    const struct in_addr *v4 = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;

    if (address->sa_family == AF_UNIX)
        memcpy(ret_peer, "unix", sizeof "unix");
    else if (address->sa_family == AF_INET)
        peer_print_bytes((struct text){(const char *)v4, sizeof *v4}, ret_peer);
    else
        peer_print_bytes((struct text){(const char *)v6, sizeof *v6}, ret_peer);
}
