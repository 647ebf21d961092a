/* store accept-loss, store upgrade: decisions about the whole store that only an operator can make. */
#include "admin/commands.h"

#include "admin_internal.h"

#include <inttypes.h>

static const struct option_row ACCEPT_LOSS_ROWS[] = {ROW_JSON};
static const struct option_table ACCEPT_LOSS_TABLE = OPTION_TABLE(ACCEPT_LOSS_ROWS);

static const struct option_row UPGRADE_ROWS[] = {ROW_YES, ROW_JSON};
static const struct option_table UPGRADE_TABLE = OPTION_TABLE(UPGRADE_ROWS);

const struct option_group STORE_UPGRADE_OPTIONS[] = ADMIN_OPTIONS(UPGRADE_TABLE);
const struct option_group STORE_ACCEPT_LOSS_OPTIONS[] = ADMIN_OPTIONS(ACCEPT_LOSS_TABLE);

struct acceptance {
    struct store_client client;
    enum store_result result;
    struct store_loss loss; /* of all partitions */
};

static void loss_accepted(void *arg, enum store_result result, const struct store_loss *loss)
{
    struct acceptance *acceptance = arg;

    acceptance->result = result;
    if (loss) {
        acceptance->loss.endings += loss->endings;
        acceptance->loss.others += loss->others;
    }
    store_client_done(&acceptance->client);
}

static enum store_result accept_here(struct store_client *client, void *arg)
{
    struct acceptance *acceptance = arg;

    store_accept_loss(client->store, loss_accepted, acceptance);
    store_client_wait(client);
    return acceptance->result;
}

static int print_acceptance(const struct command_line *line, const struct store_loss *loss)
{
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, ADMIN_WHY_MAX_BYTES);
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
    struct acceptance acceptance = {.loss = {0, 0}};
    int code = command_open(line, &acceptance.client, NULL);

    if (code != EXIT_DONE)
        return code;
    code = store_client_explain(&acceptance.client, store_client_tell_all(&acceptance.client, accept_here, &acceptance),
                                &REFUSALS);
    store_client_close(&acceptance.client);
    if (code != EXIT_DONE)
        return code;
    return print_acceptance(line, &acceptance.loss);
}

/* store upgrade */

struct upgrade {
    struct store_client client;
    enum store_result result;
    bool was_raised;
};

static void store_upgraded(void *arg, enum store_result result, bool was_raised)
{
    struct upgrade *upgrade = arg;

    upgrade->result = result;
    upgrade->was_raised |= was_raised;
    store_client_done(&upgrade->client);
}

static enum store_result upgrade_here(struct store_client *client, void *arg)
{
    struct upgrade *upgrade = arg;

    store_upgrade(client->store, store_upgraded, upgrade);
    store_client_wait(client);
    return upgrade->result;
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
    code = store_client_explain(&upgrade.client, store_client_tell_all(&upgrade.client, upgrade_here, &upgrade),
                                &REFUSALS);
    store_client_close(&upgrade.client);
    if (code != EXIT_DONE)
        return code;
    if (line->json)
        return command_print(upgrade.was_raised ? TEXT("{\"upgraded\":true}\n") : TEXT("{\"upgraded\":false}\n"));
    return command_print(upgrade.was_raised ? TEXT("Upgraded. Nodes of this version go on serving.\n")
                                            : TEXT("The store is as new as this version; nothing was changed.\n"));
}
