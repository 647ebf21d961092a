/* The store's enrolments, which answer as fake_world.h says. */
#include "fake_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

COMPLETION(run_begun, store_limited, (enum store_result)completion->result, 30)

void device_store_begin(const struct partitions *partitions, const struct device_request *request, store_limited *done,
                        void *arg)
{
    bool conflict = world.begins++ < world.begin_conflicts;

    cr_assert(request->scopes == SCOPE_DOCUMENTS_WRITE && request->ip_tag.len == THROTTLE_TAG_CHARS &&
              request->network_tag.len == THROTTLE_TAG_CHARS && !text_equal(request->ip_tag, request->network_tag));
    cr_assert_eq(bucket_of_digest(request->code_digest), bucket_of_digest(request->user_code_digest));
    memcpy(world.ip_tag, request->ip_tag.ptr, request->ip_tag.len);
    snprintf(world.device_name, sizeof world.device_name, "%.*s", TEXT_ARG(request->name));
    ANSWER_WITH(run_begun, done, arg, conflict ? STORE_CONFLICT : world.begin_result);
}

/* As far as the store gets before its answer may be lost. */
static bool poll_reaches_claim(void)
{
    return world.poll_result == STORE_OK || world.poll_result == STORE_UNKNOWN;
}

static device_approved *poll_approved;

static void run_polled(const struct completion *completion)
{
    uint8_t digest[KEY_DIGEST_BYTES];

    if (poll_reaches_claim()) {
        world.inserted.account = world.poll.account;
        poll_approved(completion->arg, &world.inserted, digest);
        world_expect_bucket(digest, &world.poll.account);
        cr_assert_eq(strlen(world.inserted.last4), KEY_LAST4_BYTES - 1);
    }
    ((device_polled *)completion->done)(completion->arg, world.poll_result, &world.poll);
}

void device_store_poll(const struct partitions *partitions, const struct token_digests *code, struct text client,
                       struct text ip_tag, const struct key_record *key, const struct audit_source *source,
                       device_approved *approved, device_polled *done, void *arg)
{
    cr_assert(text_equal(client, TEXT("desktop-agent")) && ip_tag.len == THROTTLE_TAG_CHARS);
    cr_assert(key->kind == KEY_DEVICE && key->mode == MODE_LIVE && id_kind_of(id_text(&key->id)) == ID_DEVICE);
    cr_assert_eq(source->actor.len, 0);
    memcpy(world.ip_tag, ip_tag.ptr, ip_tag.len);
    world.polls++;
    key_copy(&world.inserted, key);
    poll_approved = approved;
    ANSWER_LATER(run_polled, done, arg);
}

COMPLETION(run_found, device_found, world.enrolment_result, &world.enrolment, 30)

static void find(struct text user_tag, const struct id *account, device_found *done, void *arg)
{
    cr_assert(user_tag.len == THROTTLE_TAG_CHARS && id_equal(account, &world.session.user.account));
    memcpy(world.user_code_tag, user_tag.ptr, user_tag.len);
    world.user_codes++;
    ANSWER_LATER(run_found, done, arg);
}

void device_store_find(const struct partitions *partitions, const struct token_digests *user_code,
                       const struct id *account, struct text user_tag, device_found *done, void *arg)
{
    find(user_tag, account, done, arg);
}

void device_store_decide(const struct partitions *partitions, const struct token_digests *user_code,
                         const struct id *account, struct text user_tag, bool approve,
                         const struct audit_source *source, device_found *done, void *arg)
{
    cr_assert(text_equal(source->actor, id_text(&world.session.user.id)));
    world_expect_credential(source, false);
    world.approves = approve;
    find(user_tag, account, done, arg);
}
