/* An account's people in Redis: lists, roles, disabling and removing. */
#pragma once
#include "core/key.h"
#include "records/account_store.h"

struct person {
    struct user_record user; /* password_hash and totp_sealed are empty */
    bool is_locked;          /* by wrong codes with the right password */
    bool is_invited;         /* has no password before a link is used */
    int64_t last_sign_in_ms; /* 0: never */
};
static inline const char *person_status(const struct person *person)
{
    if (person->user.disabled_ms > 0)
        return "disabled";
    if (person->is_invited)
        return "invited";
    return person->is_locked ? "locked" : "active";
}

/* people: newest first, valid during the call. Records with a wrong MAC are left out. */
typedef void people_listed(void *arg, enum store_result result, const struct person *people, size_t count,
                           bool has_more);
/* behind: empty for the first page. */
void people_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *behind,
                       people_listed *done, void *arg);

/* person: NULL unless STORE_OK. account: empty for any. STORE_NOT_FOUND: the account has no such user. with_removed:
 * one who was removed counts, too, and is shown as disabled. */
typedef void person_found(void *arg, enum store_result result, const struct person *person);
void people_store_find(struct store *store, const struct id *account, const struct id *user, bool with_removed,
                       person_found *done, void *arg);

enum person_change_kind { PERSON_ROLE, PERSON_ENABLE, PERSON_DISABLE, PERSON_REMOVE };
/* `made`: of the person's making (key_is_made_by()). `all`: also what goes back to the person otherwise. */
struct person_change {
    enum person_change_kind kind;
    enum role role;     /* of PERSON_ROLE */
    enum key_fate keys; /* which are revoked, with one barrier; not of PERSON_ENABLE */
    bool spares_owners; /* STORE_ACTOR_ROLE if the user is an owner */
};

/* The result of a change. Every active key that goes back to the user, or may, is either revoked or named as kept. */
struct person_changed {
    struct person person; /* of PERSON_REMOVE: as it was */
    int64_t sessions_ended;
    const struct id *revoked, *kept; /* revoked: also by an earlier call, of the last day, with that */
    size_t revoked_count, kept_count;
};
/* changed: with STORE_OK only, and valid during the call. */
typedef void person_was_changed(void *arg, enum store_result result, const struct person_changed *changed);
/* For the revocation log: each revoked key, before done runs. */
typedef void person_key_revoked(void *arg, const struct key_record *key);

/* STORE_OK: in effect on every node. Disabling and removing end all sessions and links of the user. A removal first
 * disables; whatever fails in between, repeating it completes it. Repeating a change that was made changes nothing but
 * keys; also a removal.
 * STORE_NOT_FOUND: the account has no such user. STORE_REFUSED: the account would be left without an owner
 * who can sign in. STORE_UNKNOWN: nothing is promised; call again. Events: user.role_changed, user.enabled,
 * user.disabled, user.removed, session.ended, <kind>.revoked. */
struct person_observer {
    person_key_revoked *revoked; /* NULL: none */
    person_was_changed *done;
    void *arg;
};
void people_store_change(struct partitions *partitions, const struct id *account, const struct id *user,
                         const struct person_change *change, const struct audit_source *source,
                         const struct person_observer *observer);
