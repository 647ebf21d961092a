/* store accept-loss, store upgrade, store lower-lease: decisions about the whole store that only an operator can make.
 */
#include "admin/commands.h"

#include "admin_internal.h"
#include "core/limits.h"
#include "lease/barrier.h"
#include "lease/lower.h"

#include <inttypes.h>

enum { LOWER_TRIES = 3 };

static const struct option_row UPGRADE_ROWS[] = {ROW_YES, ROW_JSON};

static const struct option_row LOWER_LEASE_ROWS[] = {
    {.name = "lease-ms",
     A_TIME(COMMAND_OFFSET(settings.lease_ms), "1s", 0, LEASE_MS_MAX),
     .help = "Lower to this: the longest lease that a node has now, as in the nodes' settings."},
    ROW_JSON,
};

const struct option_group STORE_LOWER_LEASE_OPTIONS[] = ADMIN_OPTIONS(LOWER_LEASE_ROWS);
const struct option_group STORE_UPGRADE_OPTIONS[] = ADMIN_OPTIONS(UPGRADE_ROWS);

struct loss_acceptance {
    struct store_client client;
    struct store_loss loss; /* of all partitions */
};

static void loss_accepted(void *arg, enum store_result result, const struct store_loss *loss)
{
    struct loss_acceptance *acceptance = arg;

    if (loss) {
        acceptance->loss.endings += loss->endings;
        acceptance->loss.others += loss->others;
    }
    store_client_answer(&acceptance->client, result);
}

static enum store_result accept_here(struct store_client *client, void *arg)
{
    struct loss_acceptance *acceptance = arg;

    store_accept_loss(client->store, loss_accepted, acceptance);
    return store_client_result(client);
}

static int print_acceptance(const struct command_line *line, const struct store_loss *loss)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    if (line->json)
        buf_printf(&out, "{\"accepted\":true,\"missing_endings\":%" PRId64 ",\"lost_changes\":%" PRId64 "}\n",
                   loss->endings, loss->others);
    else
        buf_printf(&out,
                   "Accepted. Missing changes that ended something: %" PRId64 ", other lost changes: %" PRId64
                   ". Nodes that waited serve again within a second.\n",
                   loss->endings, loss->others);
    return command_print(buf_text(&out));
}

int store_accept_loss_run(const struct command_line *line)
{
    static const struct store_refusals REFUSALS = {
        .not_found = "the store is empty, so nodes have nothing to continue with; create an account instead"};
    struct loss_acceptance acceptance = {.loss = {0, 0}};
    int code = command_open(line, &acceptance.client, NULL);

    if (code != EXIT_DONE)
        return code;
    code = store_client_change_all(&acceptance.client, accept_here, &acceptance, &REFUSALS);
    store_client_close(&acceptance.client);
    if (code != EXIT_DONE)
        return code;
    return print_acceptance(line, &acceptance.loss);
}

/* store upgrade */

struct upgrade {
    struct store_client client;
    bool was_raised;
};

static void store_upgraded(void *arg, enum store_result result, bool was_raised)
{
    struct upgrade *upgrade = arg;

    upgrade->was_raised |= was_raised;
    store_client_answer(&upgrade->client, result);
}

static enum store_result upgrade_here(struct store_client *client, void *arg)
{
    struct upgrade *upgrade = arg;

    store_upgrade(client->store, store_upgraded, upgrade);
    return store_client_result(client);
}

int store_upgrade_run(const struct command_line *line)
{
    static const struct store_refusals REFUSALS = {.not_found = "the store is empty: there is nothing to upgrade"};
    struct upgrade upgrade = {.was_raised = false};
    int code = command_confirm(line, "Nodes and commands of earlier versions refuse the upgraded store, and going back "
                                     "to them needs a backup made before.");

    if (code == EXIT_DONE)
        code = command_open(line, &upgrade.client, NULL);
    if (code != EXIT_DONE)
        return code;
    code = store_client_change_all(&upgrade.client, upgrade_here, &upgrade, &REFUSALS);
    store_client_close(&upgrade.client);
    if (code != EXIT_DONE)
        return code;
    if (line->json)
        return command_print(upgrade.was_raised ? TEXT("{\"upgraded\":true}\n") : TEXT("{\"upgraded\":false}\n"));
    return command_print(upgrade.was_raised ? TEXT("Upgraded. Nodes of this version go on serving.\n")
                                            : TEXT("The store is as new as this version; nothing was changed.\n"));
}

/* store lower-lease */

struct lowering {
    struct store_client client;
    int64_t lease_ms;
    enum lease_lowered result;
    struct lease_lowering found; /* in the partition that was asked last */
    bool was_lowered;            /* in any partition, by this command */
    int64_t before_ms;           /* the longest of these partitions, before */
    int64_t after_ms;            /* the longest of all partitions, now */
};

static void lease_lowered(void *arg, enum lease_lowered result, const struct lease_lowering *found)
{
    struct lowering *lowering = arg;

    lowering->result = result;
    lowering->found = *found;
    store_client_done(&lowering->client);
}

static int64_t longer_of(int64_t a_ms, int64_t b_ms)
{
    return a_ms > b_ms ? a_ms : b_ms;
}

static void note_lowering(struct lowering *lowering)
{
    bool is_ours = lowering->result == LEASE_LOWERED;

    if (is_ours) {
        lowering->was_lowered = true;
        lowering->before_ms = longer_of(lowering->before_ms, lowering->found.longest_ms);
    }
    lowering->after_ms = longer_of(lowering->after_ms, is_ours ? lowering->lease_ms : lowering->found.longest_ms);
}

/* Again if nothing was in the way but another command, or a revocation, that waits for the same nodes. */
static enum store_result lower_here(struct store_client *client, void *arg)
{
    static const enum store_result RESULTS[] = {[LEASE_LOWER_FAILED] = STORE_UNKNOWN,
                                                [LEASE_LOWER_MALFORMED] = STORE_UNAVAILABLE,
                                                [LEASE_LOWER_IN_USE] = STORE_CONFLICT,
                                                [LEASE_NOT_LONGER] = STORE_OK,
                                                [LEASE_LOWERED] = STORE_OK};
    struct lowering *lowering = arg;
    unsigned tries = 0;

    do {
        lease_lower(store_lease(client->store), lowering->lease_ms, lease_lowered, lowering);
        store_client_wait(client);
    } while (lowering->result == LEASE_LOWER_IN_USE && lowering->found.living == 0 && ++tries < LOWER_TRIES);
    note_lowering(lowering);
    return RESULTS[lowering->result];
}

static int fail_at_longest(const struct lowering *lowering)
{
    struct buf prefix = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    partition_prefix(&lowering->client.settings, lowering->client.told, &prefix);
    return command_fail(EXIT_FAILED,
                        "not lowered: Redis holds no lease of 0 to %d ms in %.*slease_max. Set it to %d, which is "
                        "never too low, and try again",
                        LEASE_MS_MAX, TEXT_ARG(buf_text(&prefix)), LEASE_MS_MAX);
}

static int explain_lowering(struct lowering *lowering, enum store_result result)
{
    static const struct store_refusals REFUSALS = {
        .conflict = "not lowered: another command or revocation is waiting for the same nodes. Try again in a minute"};
    const struct lease_lowering *found = &lowering->found;

    store_client_tell_done(&lowering->client, result);
    if (lowering->result == LEASE_LOWER_MALFORMED && found->longest_ms < 0)
        return fail_at_longest(lowering);
    if (result != STORE_CONFLICT || found->living == 0)
        return store_client_explain(&lowering->client, result, &REFUSALS);
    return command_fail(EXIT_FAILED,
                        "not lowered, because a lease of up to %" PRId64 " ms is still in use (memberships of nodes: "
                        "%" PRId64 "). Restart these nodes with --lease-ms %" PRId64
                        "ms or less; 'chatelaine status --json' has the lease_ms of each. Then try again",
                        found->living_ms, found->living, lowering->lease_ms);
}

static int print_lowering(const struct command_line *line, const struct lowering *lowering)
{
    bool was_lowered = lowering->was_lowered;
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    if (line->json)
        buf_printf(&out, "{\"lowered\":%s,\"from_ms\":%" PRId64 ",\"longest_lease_ms\":%" PRId64 "}\n",
                   was_lowered ? "true" : "false", was_lowered ? lowering->before_ms : lowering->after_ms,
                   lowering->after_ms);
    else if (was_lowered)
        buf_printf(&out, "Lowered from %" PRId64 " ms to %" PRId64 " ms. Revocations wait for %u ms at most.\n",
                   lowering->before_ms, lowering->after_ms, barrier_wait_ms((uint32_t)lowering->after_ms));
    else
        buf_printf(&out, "The longest lease is %" PRId64 " ms; nothing was changed.\n", lowering->after_ms);
    return command_print(buf_text(&out));
}

int store_lower_lease_run(const struct command_line *line)
{
    struct lowering lowering = {.lease_ms = line->settings.lease_ms};
    int code = command_open(line, &lowering.client, NULL);

    if (code != EXIT_DONE)
        return code;
    lowering.client.waits_for = "Waiting until no longer lease can be valid";
    code = explain_lowering(&lowering, store_client_tell_all(&lowering.client, lower_here, &lowering));
    store_client_close(&lowering.client);
    return code == EXIT_DONE ? print_lowering(line, &lowering) : code;
}
