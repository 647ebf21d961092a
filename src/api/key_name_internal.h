/* Names of new keys that would pose as somebody else in the trail. Keys that exist keep their names. */
#pragma once
#include "exchange_internal.h"

typedef void key_name_free(void *arg);

/* Call with the request held, as the last thing. If the name is one of actor_word_is(), or the email of somebody in the
 * account, the exchange is refused and the request released; likewise if the store cannot tell. Otherwise next(arg)
 * runs: at once unless the name has the form of an email. */
void key_name_judge(struct exchange *exchange, struct text name, key_name_free *next, void *arg);
