/* The PROXY protocol, version 2 ("The PROXY protocol, versions 1 & 2", section 2.2): a header in front of a
 * connection's bytes. In it, a balancer that forwards TCP names the client. */
#pragma once
#include "base/attr.h"
#include "base/log.h"
#include "base/text.h"

/* With its TLVs. The specification expects a header to fit any TCP segment (536 bytes), but host names and certificates
 * in TLVs take more. */
enum { PROXY_HEADER_MAX_BYTES = 4096 };

/* Why a connection is refused. */
enum proxy_error {
    PROXY_UNTRUSTED, /* the peer may not send a header */
    PROXY_VERSION_1,
    PROXY_MISSING,   /* something else, or nothing in time */
    PROXY_MALFORMED, /* another version, command or family, or an address that is cut */
    PROXY_TOO_LONG,
    PROXY_INCOMPLETE, /* it ended, or did not go on in time */
};

struct proxy_header {
    size_t bytes;       /* of all of it */
    struct text source; /* the client's address, 4 or 16 bytes of the input; {NULL, 0}: the connection's own counts */
};

enum proxy_result { PROXY_PARTIAL, PROXY_WHOLE, PROXY_REFUSED };
/* A pure function of bytes. They may come in any pieces, as long as each call sees them from the first one on. What
 * cannot become a header is refused at once. Skips TLVs. */
enum proxy_result proxy_read(struct text input, struct proxy_header *ret_header, enum proxy_error *ret_error);

/* Counts the refusal, and logs it unless the pause lasts. */
void proxy_note_refusal(struct log_pause *pause, uint64_t now_ms, const char *peer, enum proxy_error error);
