#include "app/command_table.h"

#include "admin/commands.h"
#include "app/dev.h"
#include "app/serve.h"
#include "base/check.h"
#include "ready.h"

#include <string.h>

static const struct option_group NO_OPTIONS[] = {{0}};

const struct command COMMANDS[] = {
    {.name = "serve",
     .summary = "Run one node",
     .text = "Serves the public and the internal listener until SIGTERM or SIGINT, which let requests\n"
             "finish (a second one ends at once). SIGHUP reads the policy file again, and opens the\n"
             "revocation log again. While Redis is away requests are answered 503; a Redis that could\n"
             "lose a revocation is refused.",
     .groups = SERVE_OPTIONS,
     .run = serve_command,
     .logs = true},
    {.name = "dev",
     .summary = "Run one node with a Redis of its own, to try things out",
     .text = "Starts a private redis-server in a folder, makes a master key, an account and a user\n"
             "there the first time, shows how to sign in, and serves. A later start finds all again.\n"
             "The password lies in that folder: not for production. A shell that reads guide.sh of that\n"
             "folder has commands to try.",
     .groups = DEV_OPTIONS,
     .run = dev_command,
     .logs = true},
    {.name = "ready",
     .summary = "Ask the node of this machine whether it is ready",
     .text = "Exit status 0: it serves and its Redis answers; 1: not. For health checks of containers.",
     .groups = READY_OPTIONS,
     .run = ready_run},
    {.name = "account create",
     .summary = "Make an account",
     .groups = ACCOUNT_CREATE_OPTIONS,
     .run = account_create_run},
    {.name = "account list", .summary = "List the accounts", .groups = ACCOUNT_LIST_OPTIONS, .run = account_list_run},
    {.name = "user create",
     .summary = "Make a user who signs in at the console",
     .text = "Prints the secret of the one-time codes, as address and QR code: it is shown only here.",
     .groups = USER_CREATE_OPTIONS,
     .run = user_create_run},
    {.name = "user list", .summary = "List the users", .groups = USER_LIST_OPTIONS, .run = user_list_run},
    {.name = "user unlock",
     .summary = "Unlock a user, and forget his failed attempts",
     .text = "A user is locked by 100 wrong codes in a row behind the right password: somebody else knows it, so\n"
             "give him a new one as well (user reset-password, which unlocks too). Failed attempts of strangers\n"
             "that keep a user from signing in on a new browser are forgotten.",
     .groups = USER_UNLOCK_OPTIONS,
     .run = user_unlock_run},
    {.name = "user reset-totp",
     .summary = "Give a user a new secret for one-time codes",
     .text = "The old one is dead, all sessions of the user end, and he is unlocked.",
     .groups = USER_RESET_TOTP_OPTIONS,
     .run = user_reset_totp_run},
    {.name = "user reset-password",
     .summary = "Give a user a new password",
     .text = "All sessions of the user end, and he is unlocked.",
     .groups = USER_RESET_PASSWORD_OPTIONS,
     .run = user_reset_password_run},
    {.name = "key revoke",
     .operands = "ID|FILE...",
     .many_operands = true,
     .summary = "Revoke a key of any account, or those of revocation logs",
     .text = "Once this has returned with 0, no node accepts the key for any request that arrives later.\n"
             "With --from-log the operands are files that nodes wrote as --revocation-log ('-': standard\n"
             "input): every key that they name is revoked, as must be done after Redis was restored from\n"
             "a backup, before nodes serve again. A key may be named often, and the command be repeated.",
     .groups = KEY_REVOKE_OPTIONS,
     .run = key_revoke_run},
    {.name = "totp",
     .operands = "URI|SECRET|FILE",
     .optional_operand = true,
     .summary = "Print the current one-time code",
     .text = "The operand is an otpauth:// address, a base32 secret, a file that holds one of them\n"
             "(also as @FILE), or '-' for standard input.",
     .groups = TOTP_OPTIONS,
     .run = totp_run},
    {.name = "master-key rotate",
     .summary = "Bring the store to the current master key, and count what needs others",
     .text = "Notes --master-key-file as a key of this store, and seals with it what retired ones sealed. Every node\n"
             "must know the new key before, as one of its retired ones, and makes it its current one after. Digests\n"
             "of keys and passwords stay with the key that made them: until a key is replaced, a user signs in.",
     .groups = MASTER_KEY_ROTATE_OPTIONS,
     .run = master_key_rotate_run},
    {.name = "master-key",
     .summary = "Print a new random master key",
     .text = "For example: (umask 077; chatelaine master-key > master.key)",
     .groups = NO_OPTIONS,
     .run = master_key_run},
    {.name = "doctor",
     .summary = "Examine whether Redis and the settings are fit for production",
     .text = "One line a check, each with its remedy. Exit status 0: fit, 3: not fit.",
     .groups = DOCTOR_OPTIONS,
     .run = doctor_run},
    {.name = "store accept-loss",
     .summary = "Let nodes go on with a Redis that lacks what they have acknowledged",
     .text = "A node whose Redis lost changes that it had acknowledged (a replica that lagged was promoted,\n"
             "a backup was restored) answers 503 and says how many. It makes lost revocations of the last\n"
             "ten minutes again by itself. Bring the Redis back that has the others, if there is one; if\n"
             "not, replay the revocation logs ('key revoke --from-log'), then accept the loss with this.",
     .groups = STORE_ACCEPT_LOSS_OPTIONS,
     .run = store_accept_loss_run},
    {.name = "man", .summary = "Print the man page", .groups = NO_OPTIONS, .run = man_run, .hidden = true},
    {.name = "dev-redis",
     .operands = "CONFIG",
     .summary = "Become the redis-server of 'dev'",
     .groups = NO_OPTIONS,
     .run = dev_redis_run,
     .hidden = true},
};
const size_t COMMAND_COUNT = sizeof COMMANDS / sizeof *COMMANDS;

/* How many of the arguments spell the name, 0 if they do not. */
static int words_matching(const char *name, int argc, char **argv)
{
    struct text rest = text_of(name), word;
    int words = 0;

    for (; text_next(&rest, ' ', &word); words++)
        if (words >= argc || !text_equal(word, text_of(argv[words])))
            return 0;
    return words;
}

const struct command *command_find(int argc, char **argv, int *ret_words)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        int words = words_matching(COMMANDS[i].name, argc, argv);
        if (words == 0)
            continue;
        *ret_words = words;
        return &COMMANDS[i];
    }
    return NULL;
}

static size_t common_prefix(const char *a, const char *b)
{
    size_t length = 0;

    while (a[length] && a[length] == b[length])
        length++;
    return length;
}

const struct command *command_suggest(const char *word)
{
    const struct command *nearest = NULL;
    size_t longest = 0;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        size_t length = COMMANDS[i].hidden ? 0 : common_prefix(COMMANDS[i].name, word);
        if (length <= longest)
            continue;
        longest = length;
        nearest = &COMMANDS[i];
    }
    return nearest;
}

int command_read(const struct command *command, int argc, char **argv, struct command_line *ret_line)
{
    struct option_table tables[COMMAND_GROUPS_MAX];
    char storage[1024];
    struct buf why;
    size_t count = 0;

    for (; command->groups[count].table; count++) {
        CHECK(count < COMMAND_GROUPS_MAX);
        tables[count] = *command->groups[count].table;
    }
    *ret_line = (struct command_line){.operands = argv};
    buf_init_fixed(&why, storage, sizeof storage);
    if (!options_read(tables, count, ret_line, argc, argv, &ret_line->operand_count, &why))
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    int most = command->operands ? 1 : 0;
    if (ret_line->operand_count > most && !command->many_operands)
        return command_fail(EXIT_USAGE, "'%s' is one argument too many for '%s'; see 'chatelaine %s --help'",
                            argv[most], command->name, command->name);
    if (ret_line->operand_count < most && !command->optional_operand)
        return command_fail(EXIT_USAGE, "'%s' needs %s; see 'chatelaine %s --help'", command->name, command->operands,
                            command->name);
    return EXIT_DONE;
}

void commands_print_help(struct buf *out)
{
    buf_append_str(out, "Chatelaine " CHATELAINE_VERSION ": API keys and console sign-in, with revocation that holds.\n"
                        "\n"
                        "Usage: chatelaine COMMAND [OPTION…]\n"
                        "\n"
                        "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!COMMANDS[i].hidden)
            buf_printf(out, "  %-20s  %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    buf_append_str(out, "\n"
                        "Start with 'chatelaine dev'. 'chatelaine COMMAND --help' shows the options of a command;\n"
                        "each can be set in the environment as well: --redis-timeout-ms 500 is\n"
                        "CHATELAINE_REDIS_TIMEOUT_MS=500. 'chatelaine --version' prints the version.\n"
                        "\n"
                        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 Redis or settings are not fit.\n");
}

void command_print_help(const struct command *command, struct buf *out)
{
    bool has_options = command->groups[0].table;

    buf_printf(out, "%s.\n\nUsage: chatelaine %s", command->summary, command->name);
    if (command->operands)
        buf_printf(out, command->optional_operand ? " [%s]" : " %s", command->operands);
    buf_append_str(out, has_options ? " [OPTION…]\n" : "\n");
    if (command->text)
        buf_printf(out, "\n%s\n", command->text);
    for (const struct option_group *group = command->groups; group->table; group++) {
        if (group->title)
            buf_printf(out, "\n%s:\n", group->title);
        options_print_help(group->table, out);
    }
}
