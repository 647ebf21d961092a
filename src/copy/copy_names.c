#include "copy_internal.h"

enum extent { EXACTLY, ALL_BELOW };

static const struct {
    const char *name;
    enum extent extent;
    enum copy_kind kind;
} KINDS[] = {
    {"acct:", ALL_BELOW, COPY_ACCOUNT},
    {"user:", ALL_BELOW, COPY_USER},
    {"key:", ALL_BELOW, COPY_KEY},
    {"dead:", ALL_BELOW, COPY_TOMBSTONE},
    {"session:", ALL_BELOW, COPY_SESSION},
    {"link:", ALL_BELOW, COPY_LINK},
    {"recovery:", ALL_BELOW, COPY_RECOVERY},
    {"email:", ALL_BELOW, COPY_EMAIL},
    {"refused_told:", ALL_BELOW, COPY_KEY_NOTE},
    {"used_after:", ALL_BELOW, COPY_KEY_NOTE},
    {"accounts", EXACTLY, COPY_DERIVED},
    {"id:", ALL_BELOW, COPY_DERIVED},
    {"key_ends", EXACTLY, COPY_DERIVED},
    {"alias:", ALL_BELOW, COPY_DERIVED},
    {"schema", EXACTLY, COPY_WHOLE},
    {"store", EXACTLY, COPY_WHOLE},
    {"audit", EXACTLY, COPY_WHOLE},
    {"suspended", EXACTLY, COPY_WHOLE},
    {"master_keys", EXACTLY, COPY_WHOLE},
    {"unsealed", EXACTLY, COPY_WHOLE},
    {"lease_max", EXACTLY, COPY_WHOLE},
    {"log_heads", EXACTLY, COPY_WHOLE},
    {"log_dropped", EXACTLY, COPY_WHOLE},
    {"unlogged:", ALL_BELOW, COPY_WHOLE},
    {"strangers", EXACTLY, COPY_WHOLE},
    {"strangers:counts", EXACTLY, COPY_WHOLE},
    {"nodes", EXACTLY, COPY_LEFT},
    {"chains", EXACTLY, COPY_WHOLE},
    {"chain_order", EXACTLY, COPY_WHOLE},
    {"missing", EXACTLY, COPY_LEFT},
    {"tellers", EXACTLY, COPY_LEFT},
    {"told", EXACTLY, COPY_LEFT},
    {"inv_log", EXACTLY, COPY_LEFT},
    {"reports", EXACTLY, COPY_LEFT},
    {"report:", ALL_BELOW, COPY_LEFT},
    {"canary", EXACTLY, COPY_LEFT},
    {"canary_nodes", EXACTLY, COPY_LEFT},
    {"canary_runner", EXACTLY, COPY_LEFT},
    {"log_taker", EXACTLY, COPY_LEFT},
    {"log_writer:", ALL_BELOW, COPY_LEFT},
    {"throttle:", ALL_BELOW, COPY_LEFT},
    {"changes:", ALL_BELOW, COPY_LEFT},
    {"usage:seq:", ALL_BELOW, COPY_LEFT},
    {"device:", ALL_BELOW, COPY_LEFT},
    {"user_code:", ALL_BELOW, COPY_LEFT},
    {"enrolments", EXACTLY, COPY_LEFT},
    {"enrolment_networks", EXACTLY, COPY_LEFT},
    {"addresses", EXACTLY, COPY_LEFT},
    {"address_networks", EXACTLY, COPY_LEFT},
    {"throttles", EXACTLY, COPY_LEFT},
    {"throttle_networks", EXACTLY, COPY_LEFT},
    {"void:", ALL_BELOW, COPY_LEFT},
    {"burials", EXACTLY, COPY_LEFT},
    {"burials_due", EXACTLY, COPY_LEFT},
};

enum { OWNED_NAME_BYTES = 512 };

enum copy_kind copy_kind_of(struct text name, struct text *ret_owner)
{
    struct id account;

    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS && name.len <= OWNED_NAME_BYTES; i++) {
        const struct text known = text_of(KINDS[i].name);

        if (KINDS[i].extent == EXACTLY ? !text_equal(name, known) : !text_starts_with(name, known))
            continue;
        struct text rest = text_skip(name, known.len);
        *ret_owner = rest;
        if (KINDS[i].kind != COPY_ACCOUNT && KINDS[i].kind != COPY_USER)
            return KINDS[i].kind;
        if (!text_next(&rest, ':', ret_owner))
            return COPY_UNKNOWN;
        return KINDS[i].kind == COPY_USER || id_parse(ID_ACCOUNT, *ret_owner, &account) ? KINDS[i].kind : COPY_UNKNOWN;
    }
    return COPY_UNKNOWN;
}
