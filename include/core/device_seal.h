/* The MACs that bind the parts of a device's enrolment: first when it is begun, and again when it is approved. The two
 * kinds differ, so a begun enrolment never passes for an approved one. */
#pragma once
#include "core/id.h"
#include "core/record_mac.h"
#include "core/scope.h"

enum { SEAL_PARTS_MAX = 6, SCOPES_TEXT_BYTES = 12 };

/* Points into itself: never copy it. */
struct seal {
    struct record_parts record;
    struct text parts[SEAL_PARTS_MAX];
    char scopes[SCOPES_TEXT_BYTES];
};

/* What a device asked for, as the MACs bind it. */
struct sealed_device {
    const uint8_t *code_digest; /* KEYRING_DIGEST_BYTES, of the device code */
    struct text client, name;
    scope_set scopes;
};

/* The texts must outlive the seal. */
void seal_enrolment(struct seal *seal, const struct sealed_device *sealed,
                    const uint8_t user_code_digest[KEYRING_DIGEST_BYTES]);
void seal_approval(struct seal *seal, const struct sealed_device *sealed, const struct id *account,
                   const struct id *user);
