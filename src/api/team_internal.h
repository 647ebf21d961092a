/* Shared by the handlers about people. */
#pragma once
#include "exchange_internal.h"

/* As exchange_refuse_store(); STORE_REFUSED: the last owner; STORE_FULL: the account has
 * its maximum of people. */
void people_refuse(struct exchange *exchange, enum store_result result);
/* 403: keys manage nobody above a developer. */
void team_refuse_role(struct exchange *exchange);
