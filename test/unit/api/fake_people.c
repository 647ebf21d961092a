/* The store's people and links: of a store that is away. What they do is tested with a real one (test/integration). */
#include "fake_world.h"
#include "records/account_store.h"
#include "records/email_owner.h"
#include "records/link_store.h"
#include "records/people_store.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define AWAY STORE_UNAVAILABLE
COMPLETION(people_away, people_listed, AWAY, NULL, 0, false)
COMPLETION(person_away, person_found, AWAY, NULL)
COMPLETION(change_unknown, person_was_changed, STORE_UNKNOWN, NULL)
COMPLETION(invitation_away, store_limited, AWAY, 0)
COMPLETION(links_away, links_listed, AWAY, NULL, 0, false)
COMPLETION(link_away, link_found, AWAY, NULL, 0)
COMPLETION(opening_away, link_opened, AWAY, NULL, NULL, 0)
COMPLETION(reset_away, store_counted, AWAY, 0)
COMPLETION(change_away, store_done, AWAY)

static void run_owner(const struct completion *completion)
{
    const struct email_owner owner = {.account = world.email_account};
    bool is_known = world.owner_result != STORE_OK || owner.account.text[0];
    enum store_result result = is_known ? world.owner_result : STORE_NOT_FOUND;

    ((email_owner_found *)completion->done)(completion->arg, result, result == STORE_OK ? &owner : NULL);
}

void email_find_owner(struct partitions *partitions, struct text email, email_owner_found *done, void *arg)
{
    snprintf(world.email_asked, sizeof world.email_asked, "%.*s", TEXT_ARG(email));
    ANSWER_LATER(run_owner, done, arg);
}

void people_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *behind,
                       people_listed *done, void *arg)
{
    ANSWER_LATER(people_away, done, arg);
}

void people_store_find(struct store *store, const struct id *account, const struct id *user, bool with_removed,
                       person_found *done, void *arg)
{
    ANSWER_LATER(person_away, done, arg);
}

void people_store_change(struct partitions *partitions, const struct id *account, const struct id *user,
                         const struct person_change *change, const struct audit_source *source,
                         const struct person_observer *observer)
{
    world.needs_step_up = source->credential.needs_step_up;
    ANSWER_LATER(change_unknown, observer->done, observer->arg);
}

void link_store_invite(struct partitions *partitions, struct link_record *link, const struct audit_source *source,
                       store_limited *done, void *arg)
{
    world.needs_step_up = source->credential.needs_step_up;
    ANSWER_LATER(invitation_away, done, arg);
}

void link_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *behind,
                     links_listed *done, void *arg)
{
    ANSWER_LATER(links_away, done, arg);
}

void link_store_withdraw(struct store *store, const struct id *account, const struct id *id,
                         const struct audit_source *source, store_done *done, void *arg)
{
    ANSWER_LATER(change_away, done, arg);
}

void link_store_reset(struct store *store, struct link_record *link, const struct audit_source *source,
                      store_counted *done, void *arg)
{
    ANSWER_LATER(reset_away, done, arg);
}

void link_store_find(const struct partitions *partitions, const struct token_digests *code, struct text ip_tag,
                     link_found *done, void *arg)
{
    ANSWER_LATER(link_away, done, arg);
}

void link_store_open(struct store *store, const struct link_record *link, const struct link_opening *opening,
                     const struct audit_source *source, link_opened *done, void *arg)
{
    ANSWER_LATER(opening_away, done, arg);
}

void link_store_start(struct store *store, const struct link_record *link, const uint8_t totp_sealed[TOTP_SEALED_BYTES],
                      link_found *done, void *arg)
{
    ANSWER_LATER(link_away, done, arg);
}

void link_store_use(struct partitions *partitions, const struct link_record *link, const struct user_record *user,
                    const struct audit_source *source, store_done *done, void *arg)
{
    ANSWER_LATER(change_away, done, arg);
}

/* Of the users whose email is kept as it was written, the world has at most one. */
COMPLETION(run_written, user_found, (enum store_result)completion->result,
           completion->result == STORE_OK ? &(struct user_record){0} : NULL)

void account_store_find_user(struct partitions *partitions, struct text email, user_found *done, void *arg)
{
    bool is_known = world.written_email && text_equal(email, text_of(world.written_email));

    ANSWER_WITH(run_written, done, arg, is_known ? STORE_OK : STORE_NOT_FOUND);
}
