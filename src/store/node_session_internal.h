/* What revocations need of the node's session; a store without one (NULL) has no name and no lease. */
#pragma once
#include "session_name_internal.h"
#include "store/node_session.h"

/* "-" while there is no session that acknowledgements could reach. */
void node_session_name(const struct node_session *session, struct session_name *ret_name);
uint32_t node_session_lease_ms(const struct node_session *session);
/* Why the newest heartbeat granted nothing, or has granted nothing yet, as a sentence. */
const char *node_session_trouble(const struct node_session *session);
