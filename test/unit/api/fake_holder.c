/* The store's revocations by secret, which answer as fake_world.h says. */
#include "records/key_holder.h"
#include "fake_world.h"

#include <criterion/criterion.h>
#include <string.h>

COMPLETION(run_revoked, key_held_revoked, (enum store_result)completion->result,
           completion->result == STORE_OK || completion->result == STORE_UNKNOWN ? &world.key : NULL)

void key_holder_revoke(const struct partitions *partitions, const struct token_digests *secret,
                       const struct audit_source *source, key_held_revoked *done, void *arg)
{
    enum store_result result = world.held_results ? world.held_results[world.helds] : world.held_result;

    cr_assert(secret->count >= 1);
    cr_assert(text_equal(source->actor, TEXT("holder")) && source->credential.kind == CREDENTIAL_NONE);
    world.held_secret = *secret;
    world.helds++;
    ANSWER_WITH(run_revoked, done, arg, result);
}

COMPLETION(run_counted, store_limited, world.miss_result, world.miss_result == STORE_REFUSED ? 30 : 0)

void key_holder_count_miss(const struct partitions *partitions, struct text ip_tag, store_limited *done, void *arg)
{
    cr_assert(ip_tag.len == THROTTLE_TAG_CHARS);
    memcpy(world.ip_tag, ip_tag.ptr, ip_tag.len);
    world.misses++;
    ANSWER_LATER(run_counted, done, arg);
}
