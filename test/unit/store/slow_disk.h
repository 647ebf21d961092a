/* A disk that hangs: while this is set, no file of this process is synced. In test_audit_log.c. */
#pragma once
#include <stdatomic.h>

extern atomic_bool disk_hangs;
