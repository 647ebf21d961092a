/* An email belongs to one user of the whole store, but its index is in the email's partition and the user's record in
 * the account's. A creation first claims the email, then writes the record. A removal deletes the record, then the
 * claim. A claim without a record belongs to a creation under way, or was left by an operation that was cut off.
 * An operation that needs the email first voids the user in the account's partition, so that it can never be created,
 * and then replaces the claim. Every step can be repeated. At any time an email leads to at most one user.
 *
 * Texts are copied. done runs once, later. While the partitions close, no result is STORE_OK. */
#pragma once
#include "records/email_owner.h"

/* STORE_OK: no user has the email. STORE_CONFLICT: one has it. STORE_UNAVAILABLE: cannot tell. */
void email_check_free(struct partitions *partitions, struct text email, store_done *done, void *arg);

/* STORE_OK: the user may be created. STORE_CONFLICT: another user has the email. STORE_UNAVAILABLE: not done, though a
 * claim may be left, which hinders nobody. */
void email_claim(struct partitions *partitions, const struct email_owner *owner, struct text email, store_done *done,
                 void *arg);
/* Releases the claim of a user who does not exist. Failing leaves a claim that hinders nobody. */
void email_release(struct partitions *partitions, const struct id *user, struct text email, store_done *done,
                   void *arg);
