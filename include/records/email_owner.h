/* Whose an email is. */
#pragma once
#include "engine/partitions.h"

struct email_owner {
    struct id user, account;
};

/* owner: NULL unless STORE_OK. That user may not exist. STORE_NOT_FOUND: nobody claims the email. */
typedef void email_owner_found(void *arg, enum store_result result, const struct email_owner *owner);
/* email: normalised; copied. done runs once, later. It takes as long whoever the owner is. While the partitions close,
 * no result is STORE_OK. */
void email_find_owner(struct partitions *partitions, struct text email, email_owner_found *done, void *arg);
