#include "records/store_parts.h"
#include "trail/audit_search.h"
#include "keys/key_parts.h"
#include <stddef.h>

const struct store_part *const STORE_PARTS[] = {
    &KEY_FINDER,   &AUDIT_SEARCHES, &KEY_DISCARDS, &KEY_REVOCATIONS, &EFFECT_NOTES, &KEY_ENDS,
    &KEY_CONFIRMS, &KEY_BURIALS,    NULL,
};
