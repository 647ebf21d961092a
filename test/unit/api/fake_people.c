/* The store's people and links: of a store that is away. What they do is tested with a real one (test/integration). */
#include "fake_world.h"
#include "records/account_store.h"
#include "records/email_owner.h"
#include "records/link_store.h"
#include "records/people_store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

struct away {
    people_listed *people_listed;
    person_found *person_found;
    person_was_changed *changed;
    link_done *link_done;
    links_listed *links_listed;
    link_found *link_found;
    link_opened *link_opened;
    user_was_reset *was_reset;
    store_done *done;
    void *arg;
};

static void run_away(void *arg)
{
    struct away away = *(struct away *)arg;

    free(arg);
    if (away.people_listed)
        away.people_listed(away.arg, STORE_UNAVAILABLE, NULL, 0, false);
    if (away.person_found)
        away.person_found(away.arg, STORE_UNAVAILABLE, NULL);
    if (away.changed)
        away.changed(away.arg, STORE_UNKNOWN, NULL);
    if (away.link_done)
        away.link_done(away.arg, STORE_UNAVAILABLE, 0);
    if (away.links_listed)
        away.links_listed(away.arg, STORE_UNAVAILABLE, NULL, 0, false);
    if (away.link_found)
        away.link_found(away.arg, STORE_UNAVAILABLE, NULL, 0);
    if (away.link_opened)
        away.link_opened(away.arg, STORE_UNAVAILABLE, NULL, NULL, 0);
    if (away.was_reset)
        away.was_reset(away.arg, STORE_UNAVAILABLE, 0);
    if (away.done)
        away.done(away.arg, STORE_UNAVAILABLE);
}

static void later(struct away away)
{
    struct away *kept = malloc(sizeof *kept);

    cr_assert(kept);
    *kept = away;
    world_later(run_away, kept);
}

struct owner_question {
    email_owner_found *done;
    void *arg;
};

static void run_owner(void *arg)
{
    struct owner_question question = *(struct owner_question *)arg;
    const struct email_owner owner = {.account = world.email_account};
    enum store_result result = world.owner_result;

    free(arg);
    if (result == STORE_OK && !owner.account.text[0])
        result = STORE_NOT_FOUND;
    question.done(question.arg, result, result == STORE_OK ? &owner : NULL);
}

void email_find_owner(UNUSED struct partitions *partitions, struct text email, email_owner_found *done, void *arg)
{
    struct owner_question *question = malloc(sizeof *question);

    cr_assert(question);
    *question = (struct owner_question){done, arg};
    snprintf(world.email_asked, sizeof world.email_asked, "%.*s", TEXT_ARG(email));
    world_later(run_owner, question);
}

void people_store_list(UNUSED struct store *store, UNUSED const struct id *account, UNUSED unsigned limit,
                       UNUSED const struct id *behind, people_listed *done, void *arg)
{
    later((struct away){.people_listed = done, .arg = arg});
}

void people_store_find(UNUSED struct store *store, UNUSED const struct id *account, UNUSED const struct id *user,
                       UNUSED bool with_removed, person_found *done, void *arg)
{
    later((struct away){.person_found = done, .arg = arg});
}

void people_store_change(UNUSED struct partitions *partitions, UNUSED const struct id *account,
                         UNUSED const struct id *user, UNUSED const struct person_change *change,
                         const struct audit_source *source, const struct person_observer *observer)
{
    world.needs_step_up = source->credential.needs_step_up;
    later((struct away){.changed = observer->done, .arg = observer->arg});
}

void link_store_invite(UNUSED struct partitions *partitions, UNUSED struct link_record *link,
                       const struct audit_source *source, link_done *done, void *arg)
{
    world.needs_step_up = source->credential.needs_step_up;
    later((struct away){.link_done = done, .arg = arg});
}

void link_store_list(UNUSED struct store *store, UNUSED const struct id *account, UNUSED unsigned limit,
                     UNUSED const struct id *behind, links_listed *done, void *arg)
{
    later((struct away){.links_listed = done, .arg = arg});
}

void link_store_withdraw(UNUSED struct store *store, UNUSED const struct id *account, UNUSED const struct id *id,
                         UNUSED const struct audit_source *source, store_done *done, void *arg)
{
    later((struct away){.done = done, .arg = arg});
}

void link_store_reset(UNUSED struct store *store, UNUSED struct link_record *link,
                      UNUSED const struct audit_source *source, user_was_reset *done, void *arg)
{
    later((struct away){.was_reset = done, .arg = arg});
}

void link_store_find(UNUSED const struct partitions *partitions, UNUSED const struct token_digests *code,
                     UNUSED struct text ip_tag, link_found *done, void *arg)
{
    later((struct away){.link_found = done, .arg = arg});
}

void link_store_open(UNUSED struct store *store, UNUSED const struct link_record *link,
                     UNUSED const struct link_opening *opening, UNUSED const struct audit_source *source,
                     link_opened *done, void *arg)
{
    later((struct away){.link_opened = done, .arg = arg});
}

void link_store_start(UNUSED struct store *store, UNUSED const struct link_record *link,
                      UNUSED const uint8_t totp_sealed[TOTP_SEALED_BYTES], link_found *done, void *arg)
{
    later((struct away){.link_found = done, .arg = arg});
}

void link_store_use(UNUSED struct partitions *partitions, UNUSED const struct link_record *link,
                    UNUSED const struct user_record *user, UNUSED const struct audit_source *source, store_done *done,
                    void *arg)
{
    later((struct away){.done = done, .arg = arg});
}

/* Of the users whose email is kept as it was written, the world has at most one. */

struct written {
    user_found *done;
    void *arg;
    bool is_known;
};

static void run_written(void *arg)
{
    struct written written = *(struct written *)arg;
    const struct user_record user = {0};

    free(arg);
    written.done(written.arg, written.is_known ? STORE_OK : STORE_NOT_FOUND, written.is_known ? &user : NULL);
}

void account_store_find_user(struct partitions *partitions, struct text email, user_found *done, void *arg)
{
    struct written *written = malloc(sizeof *written);

    (void)partitions;
    cr_assert(written);
    *written = (struct written){done, arg, world.written_email && text_equal(email, text_of(world.written_email))};
    world_later(run_written, written);
}
