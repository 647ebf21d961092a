#include "store/store_parts.h"
#include "audit_search.h"
#include "key_parts.h"
#include <stddef.h>

const struct store_part *const STORE_PARTS[] = {
    &KEY_FINDER,   &AUDIT_SEARCHES, &KEY_DISCARDS, &KEY_REVOCATIONS, &KEY_NOTES, &KEY_ENDS,
    &KEY_CONFIRMS, &KEY_BURIALS,    NULL,
};
