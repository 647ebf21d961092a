/* How requests pass the gate (api/gate.h). */
#pragma once
#include "exchange_internal.h"

/* Enters the exchange in its row's class, before its body is read. False: it has been refused. Its place is given back
 * when it is answered, or freed because the client has gone. */
MUST_CHECK bool admission_enter(struct exchange *exchange);
/* Calls go when the exchange has its place: now, or later with the request held meanwhile. Without a ticket: now. */
void admission_wait(struct exchange *exchange, void (*go)(struct exchange *exchange));
/* For a stream, which has given its place back: waits for the next one, with the request held by the caller, and calls
 * done once, now or later. GATE_LATE, GATE_CLOSED: the stream cannot go on. */
void admission_go_on(struct exchange *exchange, gate_done *done, void *arg);
/* Between two pieces. */
void admission_rest(struct exchange *exchange);
