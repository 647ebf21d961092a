/* Session tickets (RFC 5077; RFC 8446, section 2.2): the server keeps no session; the client brings it along, sealed
 * under a key that all nodes have. */
#pragma once
#include "context_internal.h"

void tickets_configure(struct tls_context *context, const struct tls_server_settings *settings);
