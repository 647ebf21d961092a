#include "key_name_internal.h"
#include "core/account.h"
#include "core/actor_word.h"
#include "core/email.h"
#include "records/email_owner.h"

#include <string.h>

#define RULE                                                                            \
    "name must not be the email of somebody in this account, nor what the trail calls " \
    "those who act without a name, such as \"operator\" or \"You\"."

enum { FORMS = 2 };

struct name_question {
    struct exchange *exchange;
    key_name_free *next;
    void *arg;
    char emails[FORMS][EMAIL_MAX_BYTES + 1];
    size_t count, asked;
};

static void owner_found(void *arg, enum store_result result, const struct email_owner *owner);

static void ask(struct name_question *question)
{
    if (question->asked == question->count)
        question->next(question->arg);
    else
        email_find_owner(question->exchange->service->partitions, text_of(question->emails[question->asked++]),
                         owner_found, question);
}

static void owner_found(void *arg, enum store_result result, const struct email_owner *owner)
{
    struct name_question *question = arg;
    struct exchange *exchange = question->exchange;

    /* Whether an account of others has it must not show. */
    if (result == STORE_NOT_FOUND || (result == STORE_OK && !id_equal(&owner->account, exchange_account(exchange)))) {
        ask(question);
        return;
    }
    if (result == STORE_OK)
        exchange_refuse_value(exchange, RULE);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

/* The email that is meant; and as earlier versions kept it, which people of theirs still have. */
static void read_emails(struct name_question *question, struct text name)
{
    char(*emails)[EMAIL_MAX_BYTES + 1] = question->emails;

    question->count += email_read(name, emails[0]);
    if (account_normalise_email(name, emails[question->count]) &&
        (question->count == 0 || strcmp(emails[0], emails[1]) != 0))
        question->count++;
}

void key_name_judge(struct exchange *exchange, struct text name, key_name_free *next, void *arg)
{
    struct name_question *question = http_request_alloc(exchange->request, sizeof *question);

    if (actor_word_is(name)) {
        exchange_refuse_value(exchange, RULE);
        http_request_release(exchange->request);
        return;
    }
    *question = (struct name_question){.exchange = exchange, .next = next, .arg = arg};
    read_emails(question, name);
    ask(question);
}
