#include "proxy_internal.h"

#include "base/metrics.h"
#include "burden_internal.h"

#define SIGNATURE TEXT("\r\n\r\n\0\r\nQUIT\n")

enum {
    AT_COMMAND = 12,
    AT_FAMILY = 13,
    AT_LENGTH = 14,
    FIXED_BYTES = 16, /* addresses and TLVs follow */
};

enum { VERSION_2 = 2, COMMAND_LOCAL = 0, COMMAND_PROXY = 1 };
/* The family byte's high and low half. */
enum { FAMILY_MAX = 3 /* AF_UNIX */, TRANSPORT_MAX = 2 /* SOCK_DGRAM */ };
enum { TCP_IPV4 = 0x11, TCP_IPV6 = 0x21 };
enum { IPV4_BYTES = 4, IPV6_BYTES = 16, PORT_BYTES = 2 };

/* Source and destination, each with its port. */
static size_t addresses_bytes(size_t address_bytes)
{
    return 2 * (address_bytes + PORT_BYTES);
}

static size_t source_bytes(uint8_t command, uint8_t family)
{
    if (command == COMMAND_LOCAL)
        return 0;
    if (family == TCP_IPV4)
        return IPV4_BYTES;
    return family == TCP_IPV6 ? IPV6_BYTES : 0;
}

/* As the specification has it: the family of LOCAL does not matter, and with known families other than TCP, which are
 * of no use here, the connection's own address counts. */
static bool read_fixed(const uint8_t *bytes, struct proxy_header *ret_header, enum proxy_error *ret_error)
{
    uint8_t version = bytes[AT_COMMAND] >> 4, command = bytes[AT_COMMAND] & 0xf, family = bytes[AT_FAMILY];
    size_t length = (size_t)bytes[AT_LENGTH] << 8 | bytes[AT_LENGTH + 1], source = source_bytes(command, family);
    bool is_known = (family >> 4) <= FAMILY_MAX && (family & 0xf) <= TRANSPORT_MAX;

    *ret_error = PROXY_MALFORMED;
    if (version != VERSION_2 || command > COMMAND_PROXY || (command == COMMAND_PROXY && !is_known) ||
        (source > 0 && length < addresses_bytes(source)))
        return false;
    *ret_error = PROXY_TOO_LONG;
    if (FIXED_BYTES + length > PROXY_HEADER_MAX_BYTES)
        return false;
    ret_header->bytes = FIXED_BYTES + length;
    ret_header->source = (struct text){source > 0 ? (const char *)bytes + FIXED_BYTES : NULL, source};
    return true;
}

enum proxy_result proxy_read(struct text input, struct proxy_header *ret_header, enum proxy_error *ret_error)
{
    struct text signature = SIGNATURE;

    if (input.len < signature.len)
        signature.len = input.len;
    if (!text_starts_with(input, signature)) {
        *ret_error = text_starts_with(input, TEXT("PROXY")) ? PROXY_VERSION_1 : PROXY_MISSING;
        return PROXY_REFUSED;
    }
    if (input.len < FIXED_BYTES)
        return PROXY_PARTIAL;
    if (!read_fixed((const uint8_t *)input.ptr, ret_header, ret_error))
        return PROXY_REFUSED;
    return input.len < ret_header->bytes ? PROXY_PARTIAL : PROXY_WHOLE;
}

void proxy_note_refusal(struct log_pause *pause, uint64_t now_ms, const char *peer, enum proxy_error error)
{
    static const struct {
        enum metric metric;
        const char *reason;
    } ERRORS[] = {
        [PROXY_UNTRUSTED] = {METRIC_PROXY_UNTRUSTED, "untrusted"},
        [PROXY_VERSION_1] = {METRIC_PROXY_VERSION_1, "version_1"},
        [PROXY_MISSING] = {METRIC_PROXY_MISSING, "missing"},
        [PROXY_MALFORMED] = {METRIC_PROXY_MALFORMED, "malformed"},
        [PROXY_TOO_LONG] = {METRIC_PROXY_TOO_LONG, "too_long"},
        [PROXY_INCOMPLETE] = {METRIC_PROXY_INCOMPLETE, "incomplete"},
    };

    metric_add(ERRORS[error].metric, 1);
    if (log_pause_is_over(pause, now_ms, COMPLAINT_INTERVAL_MS))
        LOG(LOG_WARN, "connection closed: it did not begin with a PROXY header from a trusted proxy",
            log_str("peer", peer), log_str("reason", ERRORS[error].reason), log_int("suppressed", pause->suppressed));
}
