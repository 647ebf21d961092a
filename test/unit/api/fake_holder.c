/* The store's revocations by secret, which answer as fake_world.h says. */
#include "store/key_holder.h"
#include "fake_world.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct held {
    key_held_revoked *done;
    void *arg;
    enum store_result result;
};

static void run_revoked(void *arg)
{
    struct held held = *(struct held *)arg;
    bool has_key = held.result == STORE_OK || held.result == STORE_UNKNOWN;

    free(arg);
    held.done(held.arg, held.result, has_key ? &world.key : NULL, 30);
}

void key_holder_revoke(const struct partitions *partitions, const struct token_digests *secret, struct text ip_tag,
                       const struct audit_source *source, key_held_revoked *done, void *arg)
{
    struct held *held = malloc(sizeof *held);

    (void)partitions;
    cr_assert(held && secret->count >= 1 && ip_tag.len == THROTTLE_TAG_CHARS);
    cr_assert(text_equal(source->actor, TEXT("holder")) && source->credential.kind == CREDENTIAL_NONE);
    memcpy(world.ip_tag, ip_tag.ptr, ip_tag.len);
    world.held_secret = *secret;
    *held = (struct held){done, arg, world.held_results ? world.held_results[world.helds] : world.held_result};
    world.helds++;
    world_later(run_revoked, held);
}
