/* key rename: also for a key of which only the id is known, in any account. */
#include "admin/commands.h"

#include "admin/users.h"
#include "admin_internal.h"
#include "listing_internal.h"

#include "core/account.h"
#include "core/actor_word.h"
#include "core/label.h"
#include "records/key_store.h"

struct renaming {
    struct store_client *client;
    const struct id *id;
    struct text name;
    struct key_record key; /* of STORE_OK */
};

static void key_was_renamed(void *arg, enum store_result result, const struct key_record *key,
                            uint32_t retry_after_s UNUSED)
{
    struct renaming *renaming = arg;

    if (result == STORE_OK)
        key_copy(&renaming->key, key);
    store_client_answer(renaming->client, result);
}

static enum store_result rename_here(struct store_client *client, void *arg)
{
    static const struct key_view API_KEYS = {.kind = KEY_API};
    struct renaming *renaming = arg;

    key_store_rename(client->store, &API_KEYS, renaming->id, renaming->name, &OPERATOR, key_was_renamed, renaming);
    return store_client_result(client);
}

static int print_renamed(const struct command_line *line, const struct key_record *key)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_OUTPUT_MAX_BYTES);
    struct json_writer w = {.out = &out};

    if (line->json) {
        json_object_begin(&w);
        view_put_key(&w, key, VIEW_OPERATOR);
        json_line_end(&w);
    } else {
        buf_printf(&out, "Key %s has the name ", key->id.text);
        buf_append_printable(&out, key_name(key));
        buf_append_str(&out, ".\n");
    }
    return command_print(buf_text(&out));
}

/* In a trail the key would pass for that person. Not even of another account, which the operator need not look up. */
static int refuse_email(struct store_client *client, struct text name)
{
    char email[EMAIL_MAX_BYTES + 1];
    struct known_user user;
    bool is_known = false;
    int code = EXIT_DONE;

    if (account_normalise_email(name, email))
        code = user_find(client, email, &is_known, &user);
    return is_known ? command_fail(EXIT_FAILED, "somebody has this name as an email: take another") : code;
}

static int rename_in_store(const struct command_line *line, const struct id *id)
{
    static const struct store_refusals REFUSALS = {.not_found =
                                                       "there is no key with this id; 'chatelaine key list' shows all"};
    struct store_client client;
    struct renaming renaming = {.client = &client, .id = id, .name = text_of(line->operands[1])};
    int code = command_open(line, &client, NULL);

    if (code != EXIT_DONE)
        return code;
    code = refuse_email(&client, renaming.name);
    if (code == EXIT_DONE)
        code = store_client_explain(&client, store_client_ask_each(&client, rename_here, &renaming), &REFUSALS);
    store_client_close(&client);
    return code == EXIT_DONE ? print_renamed(line, &renaming.key) : code;
}

int key_rename_run(const struct command_line *line)
{
    const struct text name = text_of(line->operands[1]);
    struct buf why = BUF_FIXED(LABEL_WHY_BYTES);
    struct id id;
    int code = key_operand_read(line->operands[0], &id);

    if (code != EXIT_DONE)
        return code;
    if (id_kind_of(id_text(&id)) != ID_KEY)
        return command_fail(EXIT_USAGE, "%s is a device: only API keys can be renamed", id.text);
    if (!label_valid(name)) {
        label_explain(name, "NAME", &why);
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    }
    if (actor_word_is(name))
        return command_fail(EXIT_USAGE, "the audit trail uses this name for those who act without one: take another");
    return rename_in_store(line, &id);
}
