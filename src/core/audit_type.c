#include "core/audit_type.h"

static const char *const TYPES[] = {
    "api_key.created",
    "api_key.revoked",
    "api_key.revocation_scheduled",
    "api_key.revocation_withdrawn",
    "api_key.renamed",
    "api_key.used_after_revocation",
    "requests.refused",
    "device_key.created",
    "device_key.revoked",
    "device.approved",
    "device.denied",
    "session.created",
    "session.ended",
    "session.step_up",
    "login.failed",
    "step_up.failed",
    "user.locked",
    "user.unlocked",
    "user.created",
    "user.totp_reset",
    "user.password_reset",
    "user.invited",
    "link.opened",
    "user.joined",
    "user.role_changed",
    "user.disabled",
    "user.enabled",
    "user.removed",
    "user.reset",
    "user.password_changed",
    "user.totp_changed",
    "user.recovery_codes_made",
    "user.recovery_used",
    "browser.new",
    "account.suspended",
    "account.resumed",
    "account.closed",
};

bool audit_type_is_known(struct text type)
{
    for (size_t i = 0; type.len > 0 && i < sizeof TYPES / sizeof *TYPES; i++) {
        struct text known = text_of(TYPES[i]), family, rest = known;

        (void)text_next(&rest, '.', &family);
        if (text_equal(type, known) || text_equal(type, family) ||
            text_equal(type, (struct text){known.ptr, family.len + 1}))
            return true;
    }
    return false;
}
