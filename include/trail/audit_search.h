/* The searches in audit trails that a store has to do. */
#pragma once
#include "engine/part.h"

extern const struct store_part AUDIT_SEARCHES;
