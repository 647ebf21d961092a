/* Keys of TLS session tickets, derived from the master keys and the hour. All nodes derive the same ones, so each
 * accepts the tickets of the others, without any exchange.
 *
 * New tickets are sealed with the key of the current hour and the current master key. Accepted are those of the hours
 * before and after as well, because a ticket is good for an hour (TLS_TICKET_LIFETIME_S) and clocks of nodes may
 * differ, and those of retired master keys. */
#pragma once
#include "core/keyring.h"
#include "tls/context.h"

struct ticket_keys;

/* The keyring must outlive them. */
struct ticket_keys *ticket_keys_create(struct keyring *keyring);
/* Wipes. NULL is fine. */
void ticket_keys_destroy(struct ticket_keys *keys);
/* tls_server_settings.find_ticket_key; arg is a struct ticket_keys. */
const struct tls_ticket_key *ticket_keys_find(void *arg, const uint8_t *name);
