/* The access checks that both listeners share (guard.c). */
#pragma once
#include "exchange_internal.h"

/* Checks credential, route, method and permission, then runs exchange->admit or refuses the exchange: now, or later
 * with the request held. Set request, service, method, path, mount, admit and, where the key is not in the head,
 * question before. */
void guard_begin(struct exchange *exchange);
/* In check.c: adapts a refusal to gateways. arg: the service. */
void check_mark_refusal(struct http_request *request, struct problem *problem, void *arg);
/* In check.c: sends a question through the guard; exchange->admit or reply_refusal follows, perhaps within the call. */
void check_question(struct exchange *exchange);
