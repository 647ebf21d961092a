/* receipt show: the certificate of a revocation or suspension, for whoever cannot ask a node: the keys and people of a
 * suspended or closed account are refused. */
#include "admin/commands.h"

#include "admin_internal.h"

#include "core/receipt.h"
#include "records/revocation_effect.h"

static const struct option_row SHOW_ROWS[] = {
    ROW_TEXT("public-origin", settings.public_origin, "ORIGIN",
             "The issuer of the certificate: the origin of the nodes. Required."),
};
const struct option_group RECEIPT_SHOW_OPTIONS[] = ADMIN_OPTIONS(SHOW_ROWS);

struct receipt_showing {
    const struct command_line *line;
    struct store_client client;
    struct id id;
    struct buf receipt;
};

static void on_found(void *arg, enum store_result result, const struct revocation_effect *revocation)
{
    struct receipt_showing *showing = arg;

    if (result == STORE_OK) {
        revocation_effect_certify(revocation, text_of(showing->line->settings.public_origin), showing->client.keyring,
                                  &showing->receipt);
        buf_append_char(&showing->receipt, '\n');
    }
    store_client_answer(&showing->client, result);
}

static enum store_result find_key(struct store_client *client, void *arg)
{
    static const struct key_view EVERYTHING = {.any_kind = true};
    struct receipt_showing *showing = arg;

    key_store_revocation(client->store, &EVERYTHING, &showing->id, &OPERATOR, on_found, showing);
    return store_client_result(client);
}

static int show_key(struct receipt_showing *showing)
{
    static const struct store_refusals REFUSALS = {.not_found = "there is no key with this id, or it is active"};

    return store_client_explain(&showing->client, store_client_ask_each(&showing->client, find_key, showing),
                                &REFUSALS);
}

static int show_account(struct receipt_showing *showing)
{
    static const struct store_refusals REFUSALS = {.not_found = "there is no account with this id, or it is active"};

    store_client_choose(&showing->client, &showing->id);
    account_store_suspension(showing->client.store, &showing->id, on_found, showing);
    if (store_client_result(&showing->client) == STORE_UNKNOWN)
        return command_fail(EXIT_FAILED,
                            "nobody has noted when the suspension had taken effect on every node. Run 'chatelaine "
                            "account suspend %s' again, which waits for all nodes, then repeat this command",
                            showing->id.text);
    return store_client_explain(&showing->client, showing->client.result, &REFUSALS);
}

static int show(struct receipt_showing *showing, bool is_account)
{
    int code = command_open(showing->line, &showing->client, NULL);

    if (code != EXIT_DONE)
        return code;
    code = is_account ? show_account(showing) : show_key(showing);
    store_client_close(&showing->client);
    return code == EXIT_DONE ? command_print(buf_text(&showing->receipt)) : code;
}

int receipt_show_run(const struct command_line *line)
{
    struct receipt_showing showing = {.line = line};
    bool is_account = id_parse(ID_ACCOUNT, text_of(line->operands[0]), &showing.id);
    int code = is_account ? EXIT_DONE : key_operand_read(line->operands[0], &showing.id);

    if (code == EXIT_DONE)
        code = command_require_origin(line, "the certificate names the nodes' public origin");
    if (code != EXIT_DONE)
        return code;
    buf_init(&showing.receipt, RECEIPT_MAX_BYTES + 1);
    code = show(&showing, is_account);
    buf_finish(&showing.receipt);
    return code;
}
