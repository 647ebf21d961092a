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
     .text = "Serves the public and the internal listener. SIGTERM or SIGINT lets requests finish, then stops\nthe "
             "node; a second one stops it at once. SIGHUP rereads the policy file and reopens the\nrevocation log. "
             "While Redis is unreachable, requests are answered 503. The node refuses to serve\nfrom a Redis that "
             "could lose a revocation.",
     .groups = SERVE_OPTIONS,
     .run = serve_command,
     .logs = true},
    {.name = "dev",
     .summary = "Run one node with a private Redis, to try things out",
     .text = "Starts a private redis-server in a folder, creates a master key, an account and a user the first\ntime, "
             "shows how to sign in, and serves. Later starts reuse everything. Not for production: the\nfolder "
             "contains the password. Load its guide.sh into a shell for commands to try.",
     .groups = DEV_OPTIONS,
     .run = dev_command,
     .logs = true},
    {.name = "ready",
     .summary = "Ask the node on this machine whether it is ready",
     .text = "Exit status 0: the node serves and its Redis answers. 1: it does not. For health checks of\ncontainers.",
     .groups = READY_OPTIONS,
     .run = ready_run},
    {.name = "account create",
     .summary = "Create an account",
     .groups = ACCOUNT_CREATE_OPTIONS,
     .run = account_create_run},
    {.name = "account list", .summary = "List the accounts", .groups = ACCOUNT_LIST_OPTIONS, .run = account_list_run},
    {.name = "user create",
     .summary = "Create a user who can sign in to the console",
     .text = "Asks for a password, unless --password-file has it, and prints the secret for one-time codes as "
             "an\naddress and a QR code. The secret is shown only here: give both to the user.",
     .groups = USER_CREATE_OPTIONS,
     .run = user_create_run},
    {.name = "user list", .summary = "List the users", .groups = USER_LIST_OPTIONS, .run = user_list_run},
    {.name = "user unlock",
     .summary = "Unlock a user, and reset the count of failed attempts",
     .text = "A user is locked after 100 wrong codes in a row with the right password. Somebody else then knows\nthe "
             "password, so use 'user reset-password', which also unlocks. Unlocking also clears strangers'\nfailed "
             "attempts, which block sign-in from new browsers.",
     .groups = USER_UNLOCK_OPTIONS,
     .run = user_unlock_run},
    {.name = "user reset-totp",
     .summary = "Give a user a new secret for one-time codes",
     .text = "The old secret stops working, all sessions of the user end, and the user is unlocked.",
     .groups = USER_RESET_TOTP_OPTIONS,
     .run = user_reset_totp_run},
    {.name = "user reset-password",
     .summary = "Give a user a new password",
     .text = "All sessions of the user end, and the user is unlocked.",
     .groups = USER_RESET_PASSWORD_OPTIONS,
     .run = user_reset_password_run},
    {.name = "key revoke",
     .operands = "ID|FILE...",
     .many_operands = true,
     .summary = "Revoke a key of any account, or all keys named in revocation logs",
     .text = "Once this exits with 0, no node accepts the key for a request that arrives later. With --from-log,\nthe "
             "operands are revocation logs that nodes wrote (--revocation-log; '-': standard input), and every\nkey "
             "named in them is revoked. Do this after restoring a backup of Redis, before nodes serve again.\nThe "
             "command can be repeated, and keys may occur more than once.",
     .groups = KEY_REVOKE_OPTIONS,
     .run = key_revoke_run},
    {.name = "totp",
     .operands = "URI|SECRET|FILE",
     .optional_operand = true,
     .summary = "Print the current one-time code of a TOTP secret that you pass",
     .text = "The operand is an otpauth:// address, a base32 secret, a file with one of them (also as @FILE), or\n'-' "
             "for standard input. Users' secrets in Redis cannot be read with it.",
     .groups = TOTP_OPTIONS,
     .run = totp_run},
    {.name = "master-key rotate",
     .summary = "Reseal stored data with the current master key, and count what needs others",
     .text = "Registers --master-key-file in Redis and reseals with it whatever retired master keys sealed.\nBefore "
             "this, give the new key to every node as a retired one; afterwards, make it their current\none. An API "
             "key needs the master key that made its digest until that API key is replaced; a\npassword needs it until "
             "its user signs in.",
     .groups = MASTER_KEY_ROTATE_OPTIONS,
     .run = master_key_rotate_run},
    {.name = "master-key",
     .summary = "Print a new random master key",
     .text = "For example: (umask 077; chatelaine master-key > master.key)",
     .groups = NO_OPTIONS,
     .run = master_key_run},
    {.name = "doctor",
     .summary = "Check whether Redis and these settings are fit for production",
     .text = "Connects to Redis and the Sentinels, not to nodes. Pass the options that the nodes have. Prints "
             "one\nline per check, with a remedy unless it is ok. Exit status 0: no check failed (there may "
             "be\nwarnings), 3: at least one failed, 1 or 2: doctor could not run.",
     .groups = DOCTOR_OPTIONS,
     .run = doctor_run},
    {.name = "store accept-loss",
     .summary = "Let nodes continue with a Redis that has lost acknowledged changes",
     .text = "If Redis has lost changes that a node acknowledged (a lagging replica was promoted, a backup "
             "was\nrestored), the node answers 503 and says how many. It repeats the revocations of the last "
             "ten\nminutes by itself. If another Redis has the other changes, bring that one back. Otherwise "
             "replay\nthe revocation logs ('key revoke --from-log'), then accept the loss with this command.",
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

/* The number of arguments that spell the name; 0 if they do not. */
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

static bool is_in_group(const struct command *command, const char *group)
{
    struct text rest = text_of(command->name), word;

    return text_next(&rest, ' ', &word) && rest.len && text_equal(word, text_of(group));
}

bool command_is_group(const char *word)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (is_in_group(&COMMANDS[i], word))
            return true;
    return false;
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
        return command_fail(EXIT_USAGE, "unexpected argument '%s' for '%s'; see 'chatelaine %s --help'", argv[most],
                            command->name, command->name);
    if (ret_line->operand_count < most && !command->optional_operand)
        return command_fail(EXIT_USAGE, "'%s' needs %s; see 'chatelaine %s --help'", command->name, command->operands,
                            command->name);
    return EXIT_DONE;
}

void commands_print_help(const char *group, struct buf *out)
{
    buf_append_str(out, "Chatelaine " CHATELAINE_VERSION
                        ": API keys and console sign-in. A revoked key is refused by every node.\n"
                        "\n"
                        "Usage: chatelaine COMMAND [OPTION…]\n"
                        "\n"
                        "Commands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!COMMANDS[i].hidden && (!group || is_in_group(&COMMANDS[i], group)))
            buf_printf(out, "  %-20s  %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    if (!group)
        buf_append_str(out, "\nStart with 'chatelaine dev'.");
    buf_append_str(out,
                   "\n'chatelaine COMMAND --help' shows a command's options.\n"
                   "Each option can also be set in the environment: --redis-timeout-ms 500 is\n"
                   "CHATELAINE_REDIS_TIMEOUT_MS=500. The command line takes precedence.\n"
                   "'chatelaine --version' prints the version.\n"
                   "\n"
                   "Exit status: 0 done, 1 failed, 2 wrong usage, 3 Redis or the settings are not fit: see doctor.\n");
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
