/* Redis commands on the wire (RESP2): an array of bulk strings. */
#pragma once
#include "base/text.h"

void redis_command_begin(struct buf *out, size_t argc);
void redis_command_append(struct buf *out, struct text argument);
