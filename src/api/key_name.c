#include "key_name_internal.h"
#include "core/account.h"
#include "core/actor_word.h"
#include "core/email.h"
#include "store/email_owner.h"

#define RULE                                                                            \
    "name must not be the email of somebody in this account, nor what the trail calls " \
    "those who act without a name, such as \"operator\" or \"You\"."

struct name_question {
    struct exchange *exchange;
    key_name_free *next;
    void *arg;
};

static void owner_found(void *arg, enum store_result result, const struct email_owner *owner)
{
    const struct name_question *question = arg;
    struct exchange *exchange = question->exchange;

    /* Whether an account of others has it must not show. */
    if (result == STORE_NOT_FOUND || (result == STORE_OK && !id_equal(&owner->account, exchange_account(exchange)))) {
        question->next(question->arg);
        return;
    }
    if (result == STORE_OK)
        exchange_refuse_value(exchange, RULE);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

void key_name_judge(struct exchange *exchange, struct text name, key_name_free *next, void *arg)
{
    struct name_question *question = http_request_alloc(exchange->request, sizeof *question);
    char email[EMAIL_MAX_BYTES + 1];

    if (actor_word_is(name)) {
        exchange_refuse_value(exchange, RULE);
        http_request_release(exchange->request);
        return;
    }
    /* People of earlier versions may have addresses that no new user may. */
    if (!email_read(name, email) && !account_normalise_email(name, email)) {
        next(arg);
        return;
    }
    *question = (struct name_question){exchange, next, arg};
    email_find_owner(exchange->service->partitions, text_of(email), owner_found, question);
}
