/* The settings that all nodes of a store must agree on, because a request is answered by any of them. */
#pragma once
#include "base/json.h"
#include "config/settings.h"

enum { AGREEMENTS_MAX = 32, AGREEMENT_NAME_BYTES = 24 };

/* Puts a member for each row that is_agreed: its name, and a number that tells its value from others. */
void agreement_put(struct json_writer *w, const struct settings *settings);
