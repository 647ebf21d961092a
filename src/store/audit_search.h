/* The searches in audit trails that a store has to do. */
#pragma once
#include "store/store.h"

struct audit_searches;

struct audit_searches *audit_searches_create(struct store *store);
/* Fails the searches that wait for their turn. No slice may be under way. closed runs once, later. */
void audit_searches_close(struct audit_searches *searches, void (*closed)(void *arg), void *arg);
