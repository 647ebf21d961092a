/* Checks: a gateway asks whether it may let a request pass to its backend (api.md 4). */
#pragma once
#include "exchange_internal.h"

/* Any path below /check. */
void check_handle(struct http_request *request, struct service *service);
/* Adds X-Auth-Error to the refusal to come. With --check-status strict401 its status becomes one that nginx'
 * auth_request knows: 401 stays and every other verdict is 403, with the body and the code that it has elsewhere. What
 * is no verdict but a failure of ours (500, 503) stays what it is: nginx answers 500 to it, never lets the request
 * pass, and can try the next node before (proxy_next_upstream http_503). */
void check_mark_refusal(struct http_request *request, const struct service *service, struct problem *problem);
