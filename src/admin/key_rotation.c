#include "admin/commands.h"

#include "admin_internal.h"
#include "key_census_internal.h"

#include "base/clock.h"
#include "base/json.h"
#include "engine/fitness.h"
#include "records/seal_store.h"

#include <inttypes.h>
#include <string.h>

/* How long records without a seal are accepted, while nodes of an earlier version, which seal nothing, may run. */
enum { ADOPTION_DAYS = 7 };
static const int64_t ADOPTION_MS = ADOPTION_DAYS * INT64_C(86400000);

static const struct option_row ROTATE_ROWS[] = {
    ROW_FLAG("adopt", adopt,
             "Trust and seal records without a seal. Use this once, when you upgrade from a version without seals. Old "
             "nodes may serve beside new ones for 7 days; once they are gone, run the command without this option."),
    ROW_FLAG("forget", forget,
             "Remove retired master keys that nothing needs from the list in Redis. Nodes then start without them; "
             "sessions and links made under them end."),
    ROW_JSON,
};

const struct option_group MASTER_KEY_ROTATE_OPTIONS[] = ADMIN_OPTIONS(ROTATE_ROWS);

/* What any partition has. */
struct keys_found {
    char lacking[sizeof((struct store_facts *)NULL)->lacking]; /* a master key that records need; empty: none */
    bool is_unnoted;
    int64_t unsealed_until_ms; /* the latest */
};

struct rotation {
    const struct command_line *line;
    struct keyring *keyring;
    struct store_client client;
    struct keys_found found; /* before */
    struct key_census census;
    size_t forgotten;
};

static void add_facts(struct keys_found *found, const struct store_facts *facts)
{
    if (facts->lacking[0])
        memcpy(found->lacking, facts->lacking, sizeof found->lacking);
    found->is_unnoted |= facts->keys == STORE_KEYS_UNNOTED;
    if (facts->unsealed_until_ms > found->unsealed_until_ms)
        found->unsealed_until_ms = facts->unsealed_until_ms;
}

static void rotation_examined(void *arg, enum store_result result, const struct store_facts *facts)
{
    struct rotation *rotation = arg;

    if (result == STORE_OK)
        add_facts(&rotation->found, facts);
    store_client_answer(&rotation->client, result);
}

static enum store_result examine_here(struct store_client *client, void *arg)
{
    struct rotation *rotation = arg;

    store_examine(client->store, rotation_examined, rotation);
    return store_client_result(client);
}

static int examine(struct rotation *rotation)
{
    rotation->found = (struct keys_found){0};
    return store_client_explain(&rotation->client, store_client_tell_all(&rotation->client, examine_here, rotation),
                                NULL);
}

/* Seals unsealed records only if nodes accept them at present, or the operator vouches for them. */
static enum census_act act_of(const struct rotation *rotation)
{
    if (rotation->line->adopt)
        return CENSUS_ADOPTS;
    return rotation->found.unsealed_until_ms > clock_wall_ms() ? CENSUS_ENDS : CENSUS_SEALS;
}

/* Adopting a store needs its master key, so that must open at least one user's secrets. */
static int check_adoption(struct rotation *rotation)
{
    int code = key_census_take(&rotation->client, rotation->keyring, CENSUS_COUNTS, &rotation->census);

    if (code == EXIT_DONE && rotation->census.users > 0 && rotation->census.users_unknown == rotation->census.users)
        return command_fail(EXIT_UNFIT, "the master key of this store is missing, so its users' secrets cannot be "
                                        "opened: set --master-key-file as on the nodes");
    return code;
}

static int check_keys(struct rotation *rotation)
{
    const struct keys_found *found = &rotation->found;

    if (found->lacking[0])
        return command_fail(
            EXIT_UNFIT,
            "this store has records made with master key %s, which is missing: add it to --retired-master-key-file",
            found->lacking);
    if (rotation->line->adopt)
        return check_adoption(rotation);
    if (found->is_unnoted)
        return command_fail(EXIT_UNFIT, "%s", fitness_rule("noted-master-key")->remedy);
    return EXIT_DONE;
}

struct rotation_note {
    struct text forget;
    int64_t unsealed_until_ms;
};

static enum store_result note_here(struct store_client *client, void *arg)
{
    const struct rotation_note *noted = arg;

    seal_store_note(client->store, noted->forget, noted->unsealed_until_ms, store_client_answered, client);
    return store_client_result(client);
}

static int note(struct rotation *rotation, struct text forget, int64_t unsealed_until_ms)
{
    struct rotation_note noted = {forget, unsealed_until_ms};

    return store_client_change_all(&rotation->client, note_here, &noted, NULL);
}

static int forget_unneeded(struct rotation *rotation)
{
    int code = EXIT_DONE;

    for (size_t i = 1; i < rotation->census.generations && code == EXIT_DONE; i++) {
        if (key_census_needs(&rotation->census, i) || rotation->census.keys_unknown > 0)
            continue;
        code = note(rotation, keyring_name(rotation->keyring, i),
                    rotation->line->adopt ? clock_wall_ms() + ADOPTION_MS : 0);
        rotation->forgotten += code == EXIT_DONE;
    }
    return code;
}

/* Notes the new key before anything is made with it. Unsealed records are accepted until all are sealed. */
static int rotate(struct rotation *rotation)
{
    bool adopt = rotation->line->adopt;
    int64_t until_ms = adopt ? clock_wall_ms() + ADOPTION_MS : rotation->found.unsealed_until_ms;
    int code = check_keys(rotation);

    if (code == EXIT_DONE)
        code = note(rotation, TEXT(""), until_ms);
    if (code == EXIT_DONE)
        code = key_census_take(&rotation->client, rotation->keyring, act_of(rotation), &rotation->census);
    if (code == EXIT_DONE && !adopt && until_ms > 0 && rotation->census.missed == 0)
        code = note(rotation, TEXT(""), 0);
    if (code == EXIT_DONE && rotation->line->forget)
        code = forget_unneeded(rotation);
    return code;
}

static void print_row(const struct rotation *rotation, size_t i, struct buf *out)
{
    const struct census_row *row = &rotation->census.of[i];

    buf_printf(out,
               "%s %s: %" PRIu64 " active keys, %" PRIu64 " passwords, recovery codes of %" PRIu64 " users, %" PRIu64
               " seals%s\n",
               i == 0 ? "current" : "retired", rotation->census.names[i], row->keys, row->passwords, row->codes,
               row->seals, i > 0 && !key_census_needs(&rotation->census, i) ? ": nothing needs it any more" : "");
}

static void print_text(const struct rotation *rotation, struct buf *out)
{
    const struct key_census *census = &rotation->census;

    for (size_t i = 0; i < census->generations; i++)
        print_row(rotation, i, out);
    if (census->keys_unknown > 0)
        buf_printf(out, "%" PRIu64 " active keys do not record which master key they need: keep all of them.\n",
                   census->keys_unknown);
    buf_printf(out, "%" PRIu64 " records resealed, %zu master keys forgotten.\n", census->resealed,
               rotation->forgotten);
    if (census->missed > 0)
        buf_printf(out, "%" PRIu64 " records changed meanwhile: run the command again.\n", census->missed);
    if (census->unsealed + census->altered > 0)
        buf_printf(out, "%" PRIu64 " records without a seal, %" PRIu64 " altered ones: nodes refuse them.\n",
                   census->unsealed, census->altered);
    if (rotation->line->adopt)
        buf_printf(out,
                   "Records without a seal are accepted for %d days. Once all nodes are new, run: chatelaine "
                   "master-key rotate\n",
                   ADOPTION_DAYS);
}

static void put_row(struct json_writer *w, const struct key_census *census, size_t i)
{
    json_object_begin(w);
    json_put_member(w, "name", text_of(census->names[i]));
    json_put_number(w, "keys", (int64_t)census->of[i].keys);
    json_put_number(w, "passwords", (int64_t)census->of[i].passwords);
    json_put_number(w, "recovery_codes", (int64_t)census->of[i].codes);
    json_put_number(w, "seals", (int64_t)census->of[i].seals);
    json_object_end(w);
}

static void print_json(const struct rotation *rotation, struct buf *out)
{
    const struct key_census *census = &rotation->census;
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_key_array(&w, "master_keys");
    for (size_t i = 0; i < census->generations; i++)
        put_row(&w, census, i);
    json_array_end(&w);
    json_put_number(&w, "keys_unknown", (int64_t)census->keys_unknown);
    json_put_number(&w, "resealed", (int64_t)census->resealed);
    json_put_number(&w, "missed", (int64_t)census->missed);
    json_put_number(&w, "unsealed", (int64_t)census->unsealed);
    json_put_number(&w, "altered", (int64_t)census->altered);
    json_put_number(&w, "forgotten", (int64_t)rotation->forgotten);
    json_line_end(&w);
}

static int print_outcome(const struct rotation *rotation)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_OUTPUT_MAX_BYTES);

    if (rotation->line->json)
        print_json(rotation, &out);
    else
        print_text(rotation, &out);
    return command_print(buf_text(&out));
}

static int rotate_with(struct rotation *rotation)
{
    int code = command_open(rotation->line, &rotation->client, rotation->keyring);

    if (code != EXIT_DONE)
        return code;
    code = examine(rotation);
    if (code == EXIT_DONE)
        code = rotate(rotation);
    store_client_close(&rotation->client);
    return code == EXIT_DONE ? print_outcome(rotation) : code;
}

int master_key_rotate_run(const struct command_line *line)
{
    struct rotation rotation = {.line = line};
    int code;

    rotation.keyring = command_keyring(line, &code);
    if (rotation.keyring)
        code = rotate_with(&rotation);
    keyring_destroy(rotation.keyring);
    return code;
}

int master_key_adopt_own(const struct settings *settings, struct keyring *keyring)
{
    struct command_line line = {.settings = *settings, .adopt = true};
    struct rotation rotation = {.line = &line, .keyring = keyring};
    int code = store_client_open_to_rotate(&rotation.client, settings, keyring);

    if (code != EXIT_DONE)
        return code;
    code = examine(&rotation);
    if (code == EXIT_DONE && rotation.found.is_unnoted)
        code = rotate(&rotation);
    /* A private store has no other nodes, so the adoption ends at once. */
    line.adopt = false;
    if (code == EXIT_DONE)
        code = examine(&rotation);
    if (code == EXIT_DONE && rotation.found.unsealed_until_ms > 0)
        code = rotate(&rotation);
    store_client_close(&rotation.client);
    return code;
}
