/* IP addresses, including those of clients behind trusted proxies. */
#pragma once
#include "base/text.h"

/* An IPv4 address is kept, and compared, as ::ffff:a.b.c.d. */
enum { ADDRESS_BYTES = 16, ADDRESS_TEXT_BYTES = 64 };
struct address {
    uint8_t bytes[ADDRESS_BYTES];
};

/* "192.0.2.1", "2001:db8::1", "[2001:db8::1]"; the first and the last also with a port; no zone. */
MUST_CHECK bool address_parse(struct text t, struct address *ret_address);
/* An address or a network: "192.0.2.1", "192.0.2.0/24", "2001:db8::/32". ret_bits: how many of the first address's bits
 * count, of all 128: with IPv4, 96 more than written. Bits set beyond them are an error. */
MUST_CHECK bool address_parse_block(struct text t, struct address *ret_first, unsigned *ret_bits);
/* At most ADDRESS_TEXT_BYTES. A mapped address is printed as IPv4. */
void address_print(const struct address *address, struct buf *out);
/* 127.0.0.0/8 or ::1. */
bool address_is_loopback(const struct address *address);
enum { IPV4_BITS = 32, IPV6_BITS = 128 };
/* Prints the address's network of that many leading bits, by family: "192.0.2.0/24", "2001:db8:1::/48". All bits: the
 * address alone. 0 bits: nothing. */
void address_print_block(const struct address *address, unsigned ipv4_bits, unsigned ipv6_bits, struct buf *out);

struct address_ranges;

/* Reads "10.0.0.0/8, fd00::/8, 192.0.2.7". NULL if anything in it is wrong; ret_why is then one sentence. */
struct address_ranges *address_ranges_parse(struct text list, struct buf *ret_why);
void address_ranges_destroy(struct address_ranges *ranges);
/* False for no ranges: NULL. */
bool address_ranges_include(const struct address_ranges *ranges, const struct address *address);

/* One step back to the client: *address is trusted, list is its X-Forwarded-For, nearest last. Sets *address to the
 * last address that is not trusted; to the first if all are trusted; and to the one after an unreadable entry, because
 * nobody knows who wrote that. True: all are trusted, so an earlier list counts as well. */
bool address_walk_back(const struct address_ranges *trusted, struct text list, struct address *address);
