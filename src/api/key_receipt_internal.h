/* Receipts of revocations (core/receipt.h) as responses. */
#pragma once
#include "exchange_internal.h"
#include "records/key_revocation.h"

/* 200 with a JWS in compact form, signed now. */
void key_receipt_reply(struct exchange *exchange, const struct key_revocation *revocation);
