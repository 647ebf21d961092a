/* Shared by the verbs about people: reading replies of scripts. */
#pragma once
#include "engine/verb.h"
#include "records/people_store.h"

/* A person as person_reply() in the prelude returns it; the MAC is not verified. False: malformed. */
MUST_CHECK bool person_read(const struct redis_reply *reply, struct person *ret_person);

value_reader value_role; /* enum role */

struct text totp_text(const uint8_t sealed[TOTP_SEALED_BYTES]);

/* A user as user_record() in the prelude returns it. Fills all of ret_user. */
MUST_CHECK bool user_record_read(const struct redis_reply *reply, bool with_secrets, struct user_record *ret_user);
/* Whether the record can be trusted, as store_believe(). */
enum store_result user_record_believe(struct store *store, const struct user_record *user);
