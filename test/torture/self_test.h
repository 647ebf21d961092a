/* Whether the checker finds what it is there for: histories with a planted fault, and the same without. */
#pragma once
#include <stdbool.h>

bool self_test_passes(void);
