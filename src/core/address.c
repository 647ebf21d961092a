#include "core/address.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { IPV4_OFFSET = 12, PORT_MAX = 65535, QUOTED_MAX_BYTES = 60 };

static const uint8_t MAPPED_PREFIX[IPV4_OFFSET] = {[10] = 0xff, [11] = 0xff};

struct range {
    struct address first;
    unsigned bits;
};

struct address_ranges {
    size_t count;
    struct range ranges[];
};

static bool is_ipv4(const struct address *address)
{
    return memcmp(address->bytes, MAPPED_PREFIX, sizeof MAPPED_PREFIX) == 0;
}

static bool parse_bare(struct text t, struct address *ret_address)
{
    char terminated[INET6_ADDRSTRLEN];
    if (t.len == 0 || t.len >= sizeof terminated || memchr(t.ptr, '\0', t.len))
        return false;
    memcpy(terminated, t.ptr, t.len);
    terminated[t.len] = '\0';
    memcpy(ret_address->bytes, MAPPED_PREFIX, sizeof MAPPED_PREFIX);
    return inet_pton(AF_INET, terminated, ret_address->bytes + IPV4_OFFSET) == 1 ||
           inet_pton(AF_INET6, terminated, ret_address->bytes) == 1;
}

/* t: empty, or ":" and a port. */
static bool is_port_or_nothing(struct text t)
{
    uint64_t port;
    return t.len == 0 || (t.ptr[0] == ':' && text_to_u64(text_skip(t, 1), PORT_MAX, &port));
}

bool address_parse(struct text t, struct address *ret_address)
{
    if (parse_bare(t, ret_address))
        return true;
    if (t.len && t.ptr[0] == '[') {
        const struct text inside = text_skip(t, 1);
        const char *const end = memchr(inside.ptr, ']', inside.len);
        const size_t bytes = end ? (size_t)(end - inside.ptr) : 0;
        return end && is_port_or_nothing(text_skip(inside, bytes + 1)) && memchr(inside.ptr, ':', bytes) &&
               parse_bare((struct text){inside.ptr, bytes}, ret_address);
    }
    const char *const colon = t.len ? memchr(t.ptr, ':', t.len) : NULL;
    const size_t bytes = colon ? (size_t)(colon - t.ptr) : 0;
    return colon && is_port_or_nothing(text_skip(t, bytes)) && parse_bare((struct text){t.ptr, bytes}, ret_address);
}

void address_print(const struct address *address, struct buf *out)
{
    char text[INET6_ADDRSTRLEN];
    if (is_ipv4(address))
        inet_ntop(AF_INET, address->bytes + IPV4_OFFSET, text, sizeof text);
    else
        inet_ntop(AF_INET6, address->bytes, text, sizeof text);
    buf_append_str(out, text);
}

bool address_is_loopback(const struct address *address)
{
    static const struct address LOOPBACK = {{[ADDRESS_BYTES - 1] = 1}};
    return is_ipv4(address) ? address->bytes[IPV4_OFFSET] == 127
                            : memcmp(address->bytes, LOOPBACK.bytes, sizeof LOOPBACK.bytes) == 0;
}

void address_print_block(const struct address *address, unsigned ipv4_bits, unsigned ipv6_bits, struct buf *out)
{
    const unsigned bits = is_ipv4(address) ? ipv4_bits : ipv6_bits;
    const unsigned kept = is_ipv4(address) ? 8 * IPV4_OFFSET + bits : bits;
    struct address block = *address;
    if (bits == 0)
        return;
    for (unsigned bit = kept; bit < 8 * ADDRESS_BYTES; bit++)
        block.bytes[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
    address_print(&block, out);
    if (kept < 8 * ADDRESS_BYTES)
        buf_printf(out, "/%u", bits);
}

static bool same_bits(const struct address *a, const struct address *b, unsigned bits)
{
    const unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a->bytes, b->bytes, whole) != 0)
        return false;
    return rest == 0 || ((a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest)) == 0;
}

bool address_ranges_include(const struct address_ranges *ranges, const struct address *address)
{
    for (size_t i = 0; ranges && i < ranges->count; i++)
        if (same_bits(&ranges->ranges[i].first, address, ranges->ranges[i].bits))
            return true;
    return false;
}

/* Bits set beyond a network's length are probably a mistake. */
static bool has_bits_beyond(const struct range *range)
{
    for (unsigned bit = range->bits; bit < 8 * ADDRESS_BYTES; bit++)
        if (range->first.bytes[bit / 8] >> (7 - bit % 8) & 1)
            return true;
    return false;
}

static bool parse_range(struct text t, struct range *ret_range)
{
    const unsigned all = 8 * ADDRESS_BYTES;
    struct text address;
    uint64_t bits;
    if (!text_next(&t, '/', &address) || !parse_bare(address, &ret_range->first))
        return false;
    const unsigned offset = memchr(address.ptr, ':', address.len) ? 0 : 8 * IPV4_OFFSET;
    ret_range->bits = all;
    if (!t.ptr)
        return true;
    if (!text_to_u64(t, all - offset, &bits))
        return false;
    ret_range->bits = (unsigned)bits + offset;
    return !has_bits_beyond(ret_range);
}

bool address_parse_block(struct text t, struct address *ret_first, unsigned *ret_bits)
{
    struct range range;
    if (!parse_range(t, &range))
        return false;
    *ret_first = range.first;
    *ret_bits = range.bits;
    return true;
}

static size_t count_parts(struct text list)
{
    struct text part;
    size_t count = 0;
    while (text_next(&list, ',', &part))
        count++;
    return count;
}

struct address_ranges *address_ranges_parse(struct text list, struct buf *ret_why)
{
    struct address_ranges *ranges = mem_alloc(sizeof *ranges + count_parts(list) * sizeof *ranges->ranges);
    struct text part;
    while (text_next(&list, ',', &part)) {
        part = text_trim(part);
        if (parse_range(part, &ranges->ranges[ranges->count++]))
            continue;
        buf_printf(ret_why, "\"%.*s\" is neither an address nor a network such as 10.0.0.0/8 or fd00::/8.",
                   (int)(part.len < QUOTED_MAX_BYTES ? part.len : QUOTED_MAX_BYTES), part.ptr);
        address_ranges_destroy(ranges);
        return NULL;
    }
    return ranges;
}

void address_ranges_destroy(struct address_ranges *ranges)
{
    free(ranges);
}

/* Takes the part after the last comma off the end. False: nothing is left. */
static bool take_last(struct text *list, struct text *ret_part)
{
    if (!list->ptr)
        return false;
    const char *const comma = list->len ? memrchr(list->ptr, ',', list->len) : NULL;
    const size_t before = comma ? (size_t)(comma - list->ptr) : 0;
    *ret_part = text_trim(text_skip(*list, comma ? before + 1 : 0));
    *list = comma ? (struct text){list->ptr, before} : (struct text){NULL, 0};
    return true;
}

bool address_walk_back(const struct address_ranges *trusted, struct text list, struct address *address)
{
    struct text part;
    while (take_last(&list, &part)) {
        struct address before;
        if (part.len == 0)
            continue;
        if (!address_parse(part, &before))
            return false;
        *address = before;
        if (!address_ranges_include(trusted, address))
            return false;
    }
    return true;
}
