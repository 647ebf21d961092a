#include "key_selection_internal.h"

#include "admin_internal.h"
#include "base/mem.h"
#include "listing_internal.h"
#include "records/key_store.h"

#include <stdlib.h>
#include <string.h>

/* A line in a file, or a variable that was left, must not choose what `key revoke` ends. */
#define SELECTS(option, kind, text)                                      \
    {                                                                    \
        .name = (option), kind, .is_argument_only = true, .help = (text) \
    }
#define A_WORD(field, value) A_TEXT(COMMAND_OFFSET(field), value)

static const struct option_row ROWS[] = {
    SELECTS("account", A_WORD(account, "ID"), "Only keys of this account."),
    SELECTS("mode", A_CHOICE(COMMAND_OFFSET(mode), NULL, "any|test|live"), "Only keys of this mode."),
    SELECTS("created-by", A_WORD(created_by, "ID"), "Only keys that this user or key created, and what replaces them."),
    SELECTS("descendants", A_FLAG(COMMAND_OFFSET(descendants)),
            "With --created-by: also the keys that such keys created or replaced, and so on; of a key, also the key "
            "itself."),
    SELECTS("created-before", A_WORD(created_before, "TIME"),
            "Only keys that were created before this time: 90d (ago), yesterday, 2026-01-31T12:00:00Z."),
    SELECTS("unused-since", A_WORD(unused_since, "TIME"),
            "Only keys that were created before this time and not used since."),
    SELECTS("scope", A_WORD(scope, "SCOPE"), "Only keys that have this scope."),
    SELECTS("name", A_WORD(name, "TEXT"), "Only keys with this text in their name, in capitals or not (A to Z)."),
};
const struct option_table KEY_SELECTION = OPTION_TABLE(ROWS);

/* From which keys a key came. */
struct key_lineage {
    struct id id, parents[3]; /* empty: none */
    bool is_descendant;
};

bool key_selection_is_given(const struct command_line *line)
{
    /* A mode alone only narrows. */
    return line->account || line->created_by || line->created_before || line->unused_since || line->scope || line->name;
}

static int read_maker(const struct command_line *line, struct id *ret_id)
{
    const char *text = line->created_by;
    struct text t = text_of(text ? text : "");

    if (line->descendants && !text)
        return command_fail(EXIT_USAGE, "--descendants needs --created-by");
    if (text && !id_parse(ID_USER, t, ret_id) && !id_parse(ID_KEY, t, ret_id))
        return command_fail(EXIT_USAGE, "--created-by '%s' is not the id of a user (usr_…) or a key (key_…)", text);
    return EXIT_DONE;
}

static int read_scope(const char *text, scope_set *ret_scope)
{
    *ret_scope = text ? scope_parse(text_of(text)) : SCOPE_NONE;
    return text && !*ret_scope ? command_fail(EXIT_USAGE, "--scope '%s' is not a scope", text) : EXIT_DONE;
}

int key_selection_read(const struct command_line *line, struct key_selection *ret)
{
    *ret = (struct key_selection){.created_before_ms = INT64_MAX,
                                  .unused_since_ms = INT64_MAX,
                                  .name = text_of(line->name ? line->name : ""),
                                  .by_mode = line->mode > 0,
                                  .mode = line->mode == 1 ? MODE_TEST : MODE_LIVE,
                                  .with_descendants = line->descendants};
    int code = read_maker(line, &ret->by);

    if (code == EXIT_DONE && line->name && ret->name.len == 0)
        code = command_fail(EXIT_USAGE, "--name is empty: every key would match");
    if (code == EXIT_DONE)
        code = read_scope(line->scope, &ret->scope);
    if (code == EXIT_DONE)
        code = time_option_read("--created-before", line->created_before, &ret->created_before_ms);
    return code == EXIT_DONE ? time_option_read("--unused-since", line->unused_since, &ret->unused_since_ms) : code;
}

void key_selection_finish(struct key_selection *selection)
{
    free(selection->lineages);
    selection->lineages = NULL;
}

/* Descendants */

static int compare_lineages(const void *a, const void *b)
{
    return strcmp(((const struct key_lineage *)a)->id.text, ((const struct key_lineage *)b)->id.text);
}

static bool is_descendant(const struct key_selection *selection, const struct id *id)
{
    const struct key_lineage wanted = {.id = *id};
    const struct key_lineage *found = selection->lineage_count == 0
                                          ? NULL
                                          : bsearch(&wanted, selection->lineages, selection->lineage_count,
                                                    sizeof *selection->lineages, compare_lineages);

    return found && found->is_descendant;
}

/* Whatever comes from such a key comes from `by`, a key or a person, also where records do not say their origin. */
static bool is_begun_by(const struct key_record *key, const struct id *by)
{
    return id_equal(&key->id, by) || id_equal(&key->origin, by) || key_is_made_by(key, by);
}

/* Parents are older, unless clocks differ: once is nearly always enough. */
static void mark_descendants(struct key_selection *selection)
{
    bool is_changed = true;

    if (selection->lineage_count > 0)
        qsort(selection->lineages, selection->lineage_count, sizeof *selection->lineages, compare_lineages);
    while (is_changed) {
        is_changed = false;
        for (size_t i = 0; i < selection->lineage_count; i++) {
            struct key_lineage *key = &selection->lineages[i];

            for (size_t p = 0; p < sizeof key->parents / sizeof *key->parents && !key->is_descendant; p++)
                is_changed |= key->is_descendant = is_descendant(selection, &key->parents[p]);
        }
    }
}

struct lineage_listing {
    struct listing listing;
    struct key_query query;
    struct key_selection *selection;
};

static void on_lineages(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    struct lineage_listing *listing = arg;
    struct key_selection *to = listing->selection;

    for (size_t i = 0; i < count; i++) {
        to->lineages = mem_grow(to->lineages, to->lineage_count, &to->lineage_room, sizeof *to->lineages);
        to->lineages[to->lineage_count++] = (struct key_lineage){
            keys[i].id, {keys[i].by, keys[i].replaces, keys[i].via}, is_begun_by(&keys[i], &to->by)};
    }
    listing_paged(&listing->listing, result, count > 0 ? &keys[count - 1].id : NULL, has_more);
}

static void ask_for_lineages(struct listing *arg)
{
    struct lineage_listing *listing = (struct lineage_listing *)arg;

    listing->query.starting_after = arg->behind;
    key_store_list(arg->client->store, &listing->query, on_lineages, listing);
}

int key_selection_enter(struct key_selection *selection, struct store_client *client, const struct id *account)
{
    struct lineage_listing listing = {
        .listing = {.client = client},
        .query = {.view = {.account = *account, .any_kind = true}, .limit = LIST_LIMIT_MAX, .status = KEYS_ANY},
        .selection = selection};

    selection->lineage_count = 0;
    const int code = selection->with_descendants ? listing_pages(&listing.listing, ask_for_lineages) : EXIT_DONE;
    mark_descendants(selection);
    return code;
}

/* Whether it matches */

/* A key that was created since has had no time to be used. */
static bool is_unused(const struct key_record *key, int64_t since_ms)
{
    return key->last_used_ms < since_ms && key->created_ms < since_ms;
}

static bool is_by(const struct key_selection *selection, const struct key_record *key)
{
    const struct id *by = &selection->by;

    return !by->text[0] || key_is_made_by(key, by) ||
           (selection->with_descendants && (id_equal(&key->origin, by) || is_descendant(selection, &key->id)));
}

static bool is_named(const struct key_record *key, struct text part)
{
    const struct text name = key_name(key);

    for (size_t at = 0; at + part.len <= name.len; at++)
        if (text_equal_nocase((struct text){name.ptr + at, part.len}, part))
            return true;
    return false;
}

bool key_selection_has(const struct key_selection *selection, const struct key_record *key)
{
    return is_by(selection, key) && key->created_ms < selection->created_before_ms &&
           is_unused(key, selection->unused_since_ms) && (!selection->scope || (key->scopes & selection->scope)) &&
           (selection->name.len == 0 || is_named(key, selection->name));
}
