/* The types of events that an account's trail holds, as openapi.json lists them. */
#pragma once
#include "base/text.h"

/* Whether it is one of them ("api_key.created"), or a family of them ("api_key." or "api_key"). */
bool audit_type_is_known(struct text type);
