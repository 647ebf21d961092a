/* Often used passwords that pass the length rule. Compared whole and without ASCII case; plain repetitions and runs are
 * found by rule instead (account.c). */
#pragma once
#include <stddef.h>

extern const char *const COMMON_PASSWORDS[];
extern const size_t COMMON_PASSWORD_COUNT;
