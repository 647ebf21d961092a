/* The store's revocations by secret, which answer as fake_world.h says. */
#include "records/key_holder.h"
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
    held.done(held.arg, held.result, has_key ? &world.key : NULL);
}

void key_holder_revoke(const struct partitions *partitions, const struct token_digests *secret,
                       const struct audit_source *source, key_held_revoked *done, void *arg)
{
    struct held *held = malloc(sizeof *held);

    (void)partitions;
    cr_assert(held && secret->count >= 1);
    cr_assert(text_equal(source->actor, TEXT("holder")) && source->credential.kind == CREDENTIAL_NONE);
    world.held_secret = *secret;
    *held = (struct held){done, arg, world.held_results ? world.held_results[world.helds] : world.held_result};
    world.helds++;
    world_later(run_revoked, held);
}

struct miss {
    key_miss_counted *done;
    void *arg;
};

static void run_counted(void *arg)
{
    struct miss miss = *(struct miss *)arg;

    free(arg);
    miss.done(miss.arg, world.miss_result, world.miss_result == STORE_REFUSED ? 30 : 0);
}

void key_holder_count_miss(const struct partitions *partitions, struct text ip_tag, key_miss_counted *done, void *arg)
{
    struct miss *miss = malloc(sizeof *miss);

    (void)partitions;
    cr_assert(miss && ip_tag.len == THROTTLE_TAG_CHARS);
    memcpy(world.ip_tag, ip_tag.ptr, ip_tag.len);
    *miss = (struct miss){done, arg};
    world.misses++;
    world_later(run_counted, miss);
}
