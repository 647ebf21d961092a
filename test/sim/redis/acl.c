/* Users and what they may do. Of categories there are @all and @dangerous, and there are no selectors. */
#include "commands.h"
#include "internal.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READS = 1, WRITES = 2, COMMANDS_MAX = 256 };

struct acl_user {
    struct text name; /* of its entry in simredis.users */
    bool is_on, needs_no_password, has_all_keys, has_all_channels;
    bool may[COMMANDS_MAX];     /* by the command's place in the table */
    struct dict passwords;      /* by their SHA-256 */
    struct dict keys, channels; /* patterns; score of keys: READS, WRITES */
};

static size_t place_of(const struct command *command)
{
    return (size_t)(command - cmd_at(0));
}

static void forget_all(struct acl_user *user)
{
    dict_finish(&user->passwords);
    dict_finish(&user->keys);
    dict_finish(&user->channels);
}

static void allow_all(struct acl_user *user, bool may)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++)
        user->may[i] = may;
}

static void allow_key(struct acl_user *user, struct text pattern, unsigned access)
{
    struct dict_entry *entry = dict_add(&user->keys, pattern, NULL);

    entry->score = (unsigned)entry->score | access;
}

static void hash_of(char ret_hash[65], struct text password)
{
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (EVP_Digest(password.len > 0 ? password.ptr : "", password.len, digest, NULL, EVP_sha256(), NULL) != 1)
        abort();
    for (size_t i = 0; i < 32; i++)
        snprintf(ret_hash + 2 * i, 3, "%02x", digest[i]);
}

static const char *change_password(struct acl_user *user, struct text password, bool is_added)
{
    char hash[65];
    struct dict_entry *entry;

    hash_of(hash, password);
    entry = dict_find(&user->passwords, text_of(hash));
    if (is_added) {
        dict_add(&user->passwords, text_of(hash), NULL);
        user->needs_no_password = false;
        return NULL;
    }
    if (!entry)
        return "The password you are trying to remove from the user does not exist";
    dict_remove(&user->passwords, entry);
    return NULL;
}

/* Those that Redis has in @dangerous. */
static bool is_dangerous(const struct command *command)
{
    static const char *const NAMES[] = {"acl|deluser",    "acl|dryrun",  "acl|setuser",
                                        "client|kill",    "client|list", "client|pause",
                                        "client|unpause", "config|get",  "config|resetstat",
                                        "config|set",     "debug",       "flushall",
                                        "flushdb",        "info",        "keys",
                                        "replicaof",      "role",        "sort"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (text_equal(text_of(command->name), text_of(NAMES[i])))
            return true;
    return false;
}

static bool change_commands(struct acl_user *user, struct text name, bool may)
{
    struct text whole = name, first = {0};
    const struct command *command, *each;

    if (text_equal_nocase(name, TEXT("@all"))) {
        allow_all(user, may);
        return true;
    }
    if (text_equal_nocase(name, TEXT("@dangerous"))) {
        for (size_t i = 0; (each = cmd_at(i)); i++)
            user->may[i] = is_dangerous(each) ? may : user->may[i];
        return true;
    }
    if (!text_next(&whole, '|', &first) || !(command = cmd_find(first, whole)) ||
        (whole.ptr && !strchr(command->name, '|')))
        return false;
    user->may[place_of(command)] = may;
    for (size_t i = place_of(command) + 1; (command->flags & CMD_CONTAINER) && (each = cmd_at(i)); i++)
        if (text_starts_with(text_of(each->name), first) && each->name[first.len] == '|')
            user->may[i] = may;
    return true;
}

/* "~pattern", or "%R~pattern" and its kin. */
static bool change_keys(struct acl_user *user, struct text word)
{
    unsigned access = 0;

    if (word.ptr[0] == '~') {
        allow_key(user, text_skip(word, 1), READS | WRITES);
        return true;
    }
    for (word = text_skip(word, 1); word.len > 0 && word.ptr[0] != '~'; word = text_skip(word, 1)) {
        if (text_lower(word.ptr[0]) != 'r' && text_lower(word.ptr[0]) != 'w')
            return false;
        access |= text_lower(word.ptr[0]) == 'r' ? READS : WRITES;
    }
    if (access == 0 || word.len == 0)
        return false;
    allow_key(user, text_skip(word, 1), access);
    return true;
}

static void reset(struct acl_user *user)
{
    forget_all(user);
    allow_all(user, false);
    user->is_on = user->needs_no_password = user->has_all_keys = user->has_all_channels = false;
}

static void reset_password(struct acl_user *user)
{
    dict_finish(&user->passwords);
    user->needs_no_password = false;
}

static void need_no_password(struct acl_user *user)
{
    dict_finish(&user->passwords);
    user->needs_no_password = true;
}

static void turn_on(struct acl_user *user)
{
    user->is_on = true;
}

static void turn_off(struct acl_user *user)
{
    user->is_on = false;
}

static void reset_keys(struct acl_user *user)
{
    user->has_all_keys = false;
    dict_finish(&user->keys);
}

static void reset_channels(struct acl_user *user)
{
    user->has_all_channels = false;
    dict_finish(&user->channels);
}

static void all_keys(struct acl_user *user)
{
    reset_keys(user);
    allow_key(user, TEXT("*"), READS | WRITES);
    user->has_all_keys = true;
}

static void all_channels(struct acl_user *user)
{
    reset_channels(user);
    dict_add(&user->channels, TEXT("*"), NULL);
    user->has_all_channels = true;
}

static void all_commands(struct acl_user *user)
{
    allow_all(user, true);
}

static void no_commands(struct acl_user *user)
{
    allow_all(user, false);
}

static bool change_by_word(struct acl_user *user, struct text word)
{
    static const struct {
        const char *word;
        void (*change)(struct acl_user *user);
    } WORDS[] = {{"on", turn_on},
                 {"off", turn_off},
                 {"reset", reset},
                 {"nopass", need_no_password},
                 {"resetpass", reset_password},
                 {"allkeys", all_keys},
                 {"~*", all_keys},
                 {"resetkeys", reset_keys},
                 {"allchannels", all_channels},
                 {"&*", all_channels},
                 {"resetchannels", reset_channels},
                 {"allcommands", all_commands},
                 {"nocommands", no_commands}};

    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (text_equal_nocase(word, text_of(WORDS[i].word))) {
            WORDS[i].change(user);
            return true;
        }
    return false;
}

/* What is wrong with it, or NULL. */
static const char *change(struct acl_user *user, struct text word)
{
    struct text rest = text_skip(word, 1);

    if (change_by_word(user, word))
        return NULL;
    switch (word.len > 0 ? word.ptr[0] : '\0') {
    case '+':
    case '-':
        return change_commands(user, rest, word.ptr[0] == '+') ? NULL : "Unknown command or category name in ACL";
    case '>':
    case '<':
        return change_password(user, rest, word.ptr[0] == '>');
    case '~':
    case '%':
        if (user->has_all_keys)
            return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any "
                   "effect. "
                   "Try 'resetkeys' to start with an empty list of patterns";
        return change_keys(user, word) ? NULL : "Syntax error";
    case '&':
        if (user->has_all_channels)
            return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have "
                   "any "
                   "effect. Try 'resetchannels' to start with an empty list of channels";
        dict_add(&user->channels, rest, NULL);
        return NULL;
    default:
        return "Syntax error";
    }
}

struct acl_user *acl_find(const struct simredis *server, struct text name)
{
    struct dict_entry *entry = dict_find(&server->users, name);

    return entry ? entry->object : NULL;
}

struct text acl_name(const struct acl_user *user)
{
    return user->name;
}

static struct acl_user *add_user(struct simredis *server, struct text name)
{
    struct dict_entry *entry = dict_add(&server->users, name, NULL);
    struct acl_user *user = entry->object ? entry->object : mem_alloc(sizeof *user);

    user->name = entry->key;
    entry->object = user;
    return user;
}

void acl_init(struct simredis *server)
{
    struct acl_user *user = add_user(server, TEXT("default"));

    turn_on(user);
    need_no_password(user);
    all_keys(user);
    all_channels(user);
    all_commands(user);
}

void acl_finish(struct simredis *server)
{
    struct dict_entry *entry;

    for (size_t place = 0; (entry = dict_next(&server->users, &place));) {
        forget_all(entry->object);
        free(entry->object);
    }
    dict_finish(&server->users);
}

void acl_set_password(struct simredis *server, struct text password)
{
    struct acl_user *user = acl_find(server, TEXT("default"));

    need_no_password(user);
    if (password.len > 0)
        (void)change_password(user, password, true);
}

struct acl_user *acl_usual(const struct simredis *server)
{
    struct acl_user *user = acl_find(server, TEXT("default"));

    return user->is_on && user->needs_no_password ? user : NULL;
}

struct acl_user *acl_log_in(const struct simredis *server, struct text name, struct text password)
{
    struct acl_user *user = acl_find(server, name);
    char hash[65];

    hash_of(hash, password);
    return user && user->is_on && (user->needs_no_password || dict_find(&user->passwords, text_of(hash))) ? user : NULL;
}

static bool key_fits(const struct acl_user *user, struct text key, unsigned access)
{
    struct dict_entry *pattern;

    for (size_t place = 0; (pattern = dict_next(&user->keys, &place));)
        if (((unsigned)pattern->score & access) == access && glob_matches(pattern->key, key, false))
            return true;
    return false;
}

/* is_literal: the channel is a pattern itself, which must be the same. */
static bool channel_fits(const struct acl_user *user, struct text channel, bool is_literal)
{
    struct dict_entry *pattern;

    for (size_t place = 0; (pattern = dict_next(&user->channels, &place));)
        if (text_equal(pattern->key, TEXT("*")) ||
            (is_literal ? text_equal(pattern->key, channel) : glob_matches(pattern->key, channel, false)))
            return true;
    return false;
}

void cmd_keys_of(const struct call *call, size_t *ret_first, size_t *ret_end)
{
    const struct command *command = call->command;
    int64_t count = 0;

    *ret_first = (size_t)command->first_key;
    *ret_end = command->last_key < 0 ? call->argc : (size_t)command->last_key + 1;
    if (command->run == cmd_eval || command->run == cmd_evalsha) {
        bool is_count = number_parse_i64(call->argv[2], &count) && count >= 0 && count <= (int64_t)call->argc - 3;

        *ret_first = 3;
        *ret_end = 3 + (is_count ? (size_t)count : 0);
    } else if (command->run == cmd_migrate && call->argv[3].len == 0) {
        for (*ret_first = 6; *ret_first < call->argc && !arg_is(call, *ret_first, "KEYS"); (*ret_first)++)
            ;
        *ret_first += 1;
        *ret_end = call->argc;
    } else if (command->first_key == 0) {
        *ret_end = 0;
    }
}

static enum acl_verdict judge_channels(const struct acl_user *user, const struct call *call, size_t *ret_at)
{
    size_t end = call->command->flags & CMD_TELLS ? 2 : call->argc;

    for (*ret_at = 1; *ret_at < end; (*ret_at)++)
        if (!channel_fits(user, call->argv[*ret_at], call->command->run == cmd_psubscribe))
            return ACL_NO_CHANNEL;
    return ACL_FINE;
}

enum acl_verdict acl_judge(const struct acl_user *user, const struct call *call, size_t *ret_at)
{
    const struct command *command = call->command;
    unsigned access = command->flags & CMD_WRITE ? WRITES : READS;
    size_t end, step = command->key_step > 0 ? (size_t)command->key_step : 1;

    *ret_at = 0;
    if (!user->may[place_of(command)] && !(command->flags & CMD_NO_AUTH))
        return ACL_NO_COMMAND;
    if (command->flags & (CMD_TELLS | CMD_HEARS))
        return judge_channels(user, call, ret_at);
    access |= command->flags & CMD_READS_TOO ? READS | WRITES : 0;
    cmd_keys_of(call, ret_at, &end);
    for (; *ret_at < end; *ret_at += step)
        if (!key_fits(user, call->argv[*ret_at], access))
            return ACL_NO_KEY;
    return ACL_FINE;
}

/* Whether the client is subscribed to what its user may no longer hear. */
static bool hears_too_much(const struct simredis_client *client)
{
    struct dict_entry *entry;

    for (size_t kind = 0; kind < sizeof client->channels / sizeof *client->channels; kind++)
        for (size_t place = 0; (entry = dict_next(&client->channels[kind], &place));)
            if (!channel_fits(client->user, entry->key, kind == PATTERN))
                return true;
    return false;
}

void cmd_acl_setuser(struct call *call)
{
    struct simredis *server = call->server;
    const struct acl_user *old = acl_find(server, call->argv[2]);
    struct acl_user next = {0}, *user;
    const char *trouble = NULL;

    if (old) {
        next = *old;
        next.passwords = next.keys = next.channels = (struct dict){0};
        dict_copy(&next.passwords, &old->passwords);
        dict_copy(&next.keys, &old->keys);
        dict_copy(&next.channels, &old->channels);
    }
    for (size_t i = 3; i < call->argc && !trouble; i++) {
        trouble = change(&next, call->argv[i]);
        if (trouble)
            say_errorf(call, "ERR Error in ACL SETUSER modifier '%s': %s", call->argv[i].ptr, trouble);
    }
    if (trouble) {
        forget_all(&next);
        return;
    }
    user = add_user(server, call->argv[2]);
    forget_all(user);
    next.name = user->name;
    *user = next;
    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (client->user == user && hears_too_much(client))
            sim_close_client(client);
    }
    say_ok(call);
}

/* Its clients go, too. */
static void delete_user(struct simredis *server, struct dict_entry *entry)
{
    struct acl_user *user = entry->object;

    for (struct list *node = server->clients.next; node != &server->clients; node = node->next) {
        struct simredis_client *client = LIST_ENTRY(node, struct simredis_client, node);

        if (client->user != user)
            continue;
        client->user = NULL;
        sim_close_client(client);
    }
    forget_all(user);
    free(user);
    dict_remove(&server->users, entry);
}

void cmd_acl_deluser(struct call *call)
{
    struct dict_entry *entry;
    int64_t deleted = 0;

    for (size_t i = 2; i < call->argc; i++)
        if (text_equal(call->argv[i], TEXT("default"))) {
            say_error(call, "ERR The 'default' user cannot be removed");
            return;
        }
    for (size_t i = 2; i < call->argc; i++)
        if ((entry = dict_find(&call->server->users, call->argv[i]))) {
            delete_user(call->server, entry);
            deleted++;
        }
    say_integer(call, deleted);
}

void cmd_acl_whoami(struct call *call)
{
    say_text(call, call->client->user->name);
}

static void say_verdict(struct call *call, const struct call *asked, enum acl_verdict verdict, size_t at)
{
    struct buf out = BUF_FIXED(1024);

    if (verdict == ACL_FINE) {
        say_ok(call);
        return;
    }
    if (verdict == ACL_NO_COMMAND)
        buf_printf(&out, "This user has no permissions to run the '%s' command", asked->command->name);
    else
        buf_printf(&out, "This user has no permissions to access the '%.500s' %s", asked->argv[at].ptr,
                   verdict == ACL_NO_KEY ? "key" : "channel");
    say_text(call, buf_text(&out));
}

void cmd_acl_dryrun(struct call *call)
{
    const struct acl_user *user = acl_find(call->server, call->argv[2]);
    struct call asked = *call;
    size_t at;

    asked.argv += 3;
    asked.argc -= 3;
    asked.command = cmd_find(asked.argv[0], asked.argc > 1 ? asked.argv[1] : (struct text){0});
    if (!user)
        say_errorf(call, "ERR User '%s' not found", call->argv[2].ptr);
    else if (!asked.command || (asked.command->flags & CMD_CONTAINER))
        say_errorf(call, "ERR Command '%s' not found", call->argv[3].ptr);
    else if (!cmd_arity_fits(&asked))
        say_errorf(call, "ERR wrong number of arguments for '%s' command", asked.command->name);
    else {
        enum acl_verdict verdict = acl_judge(user, &asked, &at);

        say_verdict(call, &asked, verdict, at);
    }
}
