#include "engine/script_words.h"

/* Which take something away from somebody: a key, a session, a person's rights, an account. A lost one is waited for,
 * because to go on without it would be to give it back. */
bool script_ends(enum script script)
{
    switch (script) {
    case SCRIPT_key_revoke:
    case SCRIPT_key_schedule:
    case SCRIPT_key_replace:
    case SCRIPT_account_suspend:
    case SCRIPT_account_close_keys:
    case SCRIPT_account_close_people:
    case SCRIPT_account_close:
    case SCRIPT_person_change:
    case SCRIPT_person_remove:
    case SCRIPT_person_keys_end:
    case SCRIPT_user_reset:
    case SCRIPT_user_password:
    case SCRIPT_totp_confirm:
    case SCRIPT_recovery_codes_set:
    case SCRIPT_session_end:
    case SCRIPT_session_stop:
    case SCRIPT_link_withdraw:
    case SCRIPT_link_reset:
    case SCRIPT_device_deny:
        return true;
    default:
        return false;
    }
}

bool script_result_read(struct text word, enum store_result *ret_result)
{
    static const struct {
        struct text word;
        enum store_result result;
    } RESULTS[] = {
        {{"ok", 2}, STORE_OK},
        {{"not_found", 9}, STORE_NOT_FOUND},
        {{"conflict", 8}, STORE_CONFLICT},
        {{"refused", 7}, STORE_REFUSED},
        {{"actor_revoked", 13}, STORE_ACTOR_REVOKED},
        {{"actor_unknown", 13}, STORE_ACTOR_UNKNOWN},
        {{"actor_unproven", 14}, STORE_ACTOR_UNPROVEN},
        {{"actor_role", 10}, STORE_ACTOR_ROLE},
        {{"suspended", 9}, STORE_SUSPENDED},
        {{"full", 4}, STORE_FULL},
        {{"limited", 7}, STORE_LIMITED},
        {{"leaving", 7}, STORE_LEAVING},
    };

    for (size_t i = 0; i < sizeof RESULTS / sizeof RESULTS[0]; i++) {
        if (text_equal(word, RESULTS[i].word)) {
            *ret_result = RESULTS[i].result;
            return true;
        }
    }
    return false;
}

const struct script_refusal *script_refusal_of(struct text kind)
{
    static const struct script_refusal REFUSALS[] = {
        {{"OOM", 3}, "Redis refuses writes because its memory is full: raise maxmemory or free memory.", true, false},
        {{"READONLY", 8}, "Redis refuses writes because it is a replica: point --redis at the master.", false, false},
        {{"MISCONF", 7},
         "Redis refuses writes because it cannot save to disk: read its log and free disk space.",
         false,
         false},
        {{"NOREPLICAS", 10},
         "Redis refuses writes because too few replicas are connected: bring them back.",
         false,
         false},
        {{"NOPERM", 6}, "Redis refuses scripts: give its user the rights that OPERATIONS.md names.", false, true},
        {{"ASK", 3}, "The slot of this partition is being moved to another primary of the cluster.", false, false},
        {{"TRYAGAIN", 8}, "The slot of this partition is being moved to another primary of the cluster.", false, false},
        {{"MOVED", 5}, "The slot of this partition was moved to another primary of the cluster.", false, false},
        {{"CLUSTERDOWN", 11}, "The cluster is down: see what its nodes answer to CLUSTER INFO.", false, false},
    };

    for (size_t i = 0; i < sizeof REFUSALS / sizeof REFUSALS[0]; i++)
        if (text_equal(kind, REFUSALS[i].kind))
            return &REFUSALS[i];
    return NULL;
}
