/* How requests pass the gate (api/gate.h). */
#pragma once
#include "exchange_internal.h"

/* Before the body of an exchange is read, which holds nothing at the gate. False: there is no room for its row's class,
 * and it has been refused. */
MUST_CHECK bool admission_has_room(struct exchange *exchange);
/* Calls go when the exchange has its place in its row's class, unless there is no room and it is refused: now, or later
 * with the request held meanwhile. A class without places: now. The place is given back when the exchange is answered,
 * or freed because the client has gone. */
void admission_wait(struct exchange *exchange, exchange_handler *go);
/* For a stream, which has given its place back: waits for the next one, with the request held by the caller, and calls
 * done once, now or later. GATE_LATE, GATE_CLOSED: the stream cannot go on. */
void admission_go_on(struct exchange *exchange, gate_done *done, void *arg);
/* Between two pieces. */
void admission_rest(struct exchange *exchange);
