/* Shared by the verbs about people. */
#pragma once
#include "redis/reply.h"
#include "store/people_store.h"

/* A person as person_reply() in the prelude returns it; the MAC is not verified. False: malformed. */
MUST_CHECK bool person_read(const struct redis_reply *reply, struct person *ret_person);
