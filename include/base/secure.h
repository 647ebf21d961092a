/* The only names allowed for comparing or clearing sensitive bytes. */
#pragma once
#include "base/text.h"

/* Constant time in the content; the lengths are not secret. */
bool secure_equal(struct text a, struct text b);
/* Survives optimisation. NULL with 0 bytes is fine. */
void secure_wipe(void *ptr, size_t bytes);
