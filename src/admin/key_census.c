#include "key_census_internal.h"

#include "auth/password.h"
#include "base/mem.h"
#include "base/secure.h"
#include "records/seal_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A record that gets a new seal. */
struct new_seal {
    uint8_t digest[KEY_DIGEST_BYTES];
    char was_storage[KEY_TEXT_MAX_BYTES], is_storage[KEY_TEXT_MAX_BYTES];
    struct text was, is;
};

struct person_role {
    struct id user;
    enum role role;
};

struct taking {
    struct store_client *client;
    struct keyring *keyring;
    enum census_act act;
    struct key_census *census;
    enum store_result result; /* the last one that was not STORE_OK */

    struct id *accounts;
    size_t account_count;
    const struct id *account; /* whose records are being read */
    struct id behind;         /* the last key or user read; the next page starts behind it */
    size_t listed;
    struct new_seal *seals; /* of the keys listed last */
    size_t seal_count;
    struct user_record *users;
    struct person_role *roles; /* of the account */
    size_t role_count, role_room;
    size_t waiting; /* changes under way */
};

static void note_result(struct taking *taking, enum store_result result)
{
    if (result != STORE_OK)
        taking->result = result;
    store_client_done(taking->client);
}

/* Sealing */

static void sealed(void *arg, enum store_result result)
{
    struct taking *taking = arg;

    if (result == STORE_OK)
        taking->census->resealed++;
    else if (result == STORE_CONFLICT)
        taking->census->missed++;
    else
        taking->result = result;
    if (--taking->waiting == 0)
        store_client_done(taking->client);
}

static bool is_to_seal(const struct taking *taking, enum record_seal seal, size_t generation)
{
    return (seal == RECORD_SEALED && generation > 0 && taking->act != CENSUS_COUNTS) ||
           (seal == RECORD_UNSEALED && taking->act >= CENSUS_ADOPTS);
}

static void count_seal(struct taking *taking, enum record_seal seal, size_t generation, const char *what,
                       const struct id *id)
{
    struct key_census *census = taking->census;

    if (seal == RECORD_SEALED) {
        census->of[generation].seals++;
    } else if (seal == RECORD_UNSEALED) {
        census->unsealed++;
    } else {
        census->altered++;
        if (taking->act != CENSUS_COUNTS)
            fprintf(stderr, "chatelaine: altered in Redis: %s %s\n", what, id->text);
    }
}

/* Keys */

static size_t generation_named(const struct key_census *census, struct text name)
{
    size_t i = 0;

    while (i < census->generations && !text_equal(name, text_of(census->names[i])))
        i++;
    return i;
}

static void count_key(struct key_census *census, const struct key_seal *key)
{
    size_t generation = generation_named(census, key->made_with);

    if (key->is_revoked)
        return;
    if (generation < census->generations)
        census->of[generation].keys++;
    else
        census->keys_unknown++;
}

/* A role that was lowered, and versions before 0.4, which let a developer give any scope, leave such keys. */
static void judge_scopes(const struct taking *taking, struct text packed)
{
    struct key_census *census = taking->census;
    struct key_record key;
    size_t i = 0;

    if (!key_decode(packed, &key) || key.revoked_ms > 0 || !key.origin.text[0])
        return;
    while (i < taking->role_count && !id_equal(&taking->roles[i].user, &key.origin))
        i++;
    if (i == taking->role_count || scope_includes(role_scopes(taking->roles[i].role), key.scopes))
        return;
    if (census->keys_above_role < CENSUS_KEYS_NAMED)
        census->above_role[census->keys_above_role] = key.id;
    census->keys_above_role++;
}

/* With a single master key, every record was made with it. */
static struct text made_with(const struct taking *taking)
{
    return taking->census->generations == 1 ? keyring_short_name(taking->keyring, 0) : (struct text){0};
}

static void reseal_key(struct taking *taking, const struct stored_key *key)
{
    struct new_seal *seal = &taking->seals[taking->seal_count];
    struct buf was, is;

    buf_init_fixed(&was, seal->was_storage, sizeof seal->was_storage);
    buf_init_fixed(&is, seal->is_storage, sizeof seal->is_storage);
    buf_append_text(&was, key->packed);
    if (was.failed || !key_reseal(key->packed, taking->keyring, key->digest, made_with(taking), &is)) {
        taking->census->altered++;
        return;
    }
    memcpy(seal->digest, key->digest, sizeof seal->digest);
    seal->was = buf_text(&was);
    seal->is = buf_text(&is);
    taking->seal_count++;
}

static void look_at_key(struct taking *taking, const struct stored_key *key)
{
    struct key_seal seal;

    if (!key_examine(key->packed, taking->keyring, key->digest, &seal)) {
        count_seal(taking, RECORD_ALTERED, 0, "key", &key->id);
        return;
    }
    if (seal.seal == RECORD_UNSEALED && seal.made_with.len == 0 && taking->act >= CENSUS_ADOPTS)
        seal.made_with = made_with(taking);
    if (seal.seal != RECORD_ALTERED) {
        count_key(taking->census, &seal);
        judge_scopes(taking, key->packed);
    }
    if (is_to_seal(taking, seal.seal, seal.generation))
        reseal_key(taking, key);
    else
        count_seal(taking, seal.seal, seal.generation, "key", &key->id);
}

static void keys_listed_part(void *arg, enum store_result result, const struct stored_key *keys, size_t count)
{
    struct taking *taking = arg;

    for (size_t i = 0; i < count; i++)
        look_at_key(taking, &keys[i]);
    if (count > 0)
        taking->behind = keys[count - 1].id;
    taking->listed = count;
    note_result(taking, result);
}

static void put_keys(struct taking *taking)
{
    taking->waiting = taking->seal_count;
    for (size_t i = 0; i < taking->seal_count; i++)
        seal_store_put_key(taking->client->store, taking->seals[i].digest, taking->seals[i].was, taking->seals[i].is,
                           sealed, taking);
    if (taking->seal_count > 0)
        store_client_wait(taking->client);
    taking->seal_count = 0;
}

static void take_key_set(struct taking *taking, unsigned set)
{
    taking->behind = (struct id){0};
    do {
        seal_store_list_keys(taking->client->store, taking->account, set, &taking->behind, keys_listed_part, taking);
        store_client_wait(taking->client);
        if (taking->result == STORE_OK)
            put_keys(taking);
    } while (taking->result == STORE_OK && taking->listed == SEAL_KEYS_AT_ONCE);
}

/* Users */

/* Renews the MAC and the TOTP secret under the current master key. secret: NULL if it cannot be opened. */
static void reseal_user(struct taking *taking, struct user_record *user, const struct totp_secret *secret)
{
    if (secret)
        keyring_seal(taking->keyring, id_text(&user->id), secret->bytes, sizeof secret->bytes, user->totp_sealed);
    user_record_seal(taking->keyring, user);
}

static void put_user(struct taking *taking, const struct user_record *was, const struct user_record *is)
{
    taking->waiting = 1;
    seal_store_put_user(taking->client->store, was, is, sealed, taking);
    store_client_wait(taking->client);
}

static void count_user(struct taking *taking, const struct user_record *user, bool has_codes)
{
    struct key_census *census = taking->census;
    size_t generation;
    size_t codes_by = generation_named(census, text_of(user->codes_made_with));
    bool has_password = password_hash_generation(taking->keyring, user->password_hash, &generation);
    bool is_reset = text_equal(text_of(user->password_hash), TEXT(USER_NO_PASSWORD));

    if (has_password)
        census->of[generation].passwords++;
    if (codes_by < census->generations)
        census->of[codes_by].codes++;
    census->users++;
    census->users_unknown += !is_reset && (!has_password || !has_codes);
}

static void note_role(struct taking *taking, const struct user_record *user)
{
    taking->roles = mem_grow(taking->roles, taking->role_count, &taking->role_room, sizeof *taking->roles);
    taking->roles[taking->role_count++] = (struct person_role){user->id, user->role};
}

static void take_user(struct taking *taking, const struct user_record *user)
{
    struct user_record is = *user;
    struct totp_secret secret;
    size_t sealed_by = 0, totp_by = 0;
    enum record_seal seal = user_record_verify(taking->keyring, user, &sealed_by);
    bool is_open = keyring_open_by(taking->keyring, id_text(&user->id), user->totp_sealed, sizeof user->totp_sealed,
                                   secret.bytes, &totp_by);
    bool is_old = sealed_by > 0 || (is_open && totp_by > 0);

    if (taking->act == CENSUS_ENDS &&
        password_hash_bind_older(taking->keyring, id_text(&user->id), user->password_hash, is.password_hash))
        seal = seal == RECORD_SEALED ? RECORD_UNSEALED : seal;
    count_user(taking, user, is_open);
    note_role(taking, user);
    if (is_to_seal(taking, seal, is_old)) {
        reseal_user(taking, &is, is_open ? &secret : NULL);
        put_user(taking, user, &is);
    } else {
        count_seal(taking, seal, sealed_by > totp_by ? sealed_by : totp_by, "user", &user->id);
    }
    secure_wipe(&secret, sizeof secret);
    secure_wipe(&is, sizeof is);
}

static void users_listed_part(void *arg, enum store_result result, const struct user_record *users, size_t count)
{
    struct taking *taking = arg;

    if (count > 0)
        memcpy(taking->users, users, count * sizeof *users);
    taking->listed = count;
    note_result(taking, result);
}

static void take_users(struct taking *taking)
{
    taking->users = mem_alloc(SEAL_USERS_AT_ONCE * sizeof *taking->users);
    taking->behind = (struct id){0};
    do {
        seal_store_list_users(taking->client->store, taking->account, &taking->behind, users_listed_part, taking);
        store_client_wait(taking->client);
        for (size_t i = 0; i < taking->listed && taking->result == STORE_OK; i++) {
            take_user(taking, &taking->users[i]);
            taking->behind = taking->users[i].id;
        }
    } while (taking->listed == SEAL_USERS_AT_ONCE && taking->result == STORE_OK);
    secure_wipe(taking->users, SEAL_USERS_AT_ONCE * sizeof *taking->users);
    free(taking->users);
}

/* Accounts */

static void accounts_listed_all(void *arg, enum store_result result, const struct account_row *accounts, size_t count)
{
    struct taking *taking = arg;

    taking->accounts = mem_alloc((count + 1) * sizeof *taking->accounts);
    for (size_t i = 0; i < count; i++)
        taking->accounts[i] = accounts[i].id;
    taking->account_count = count;
    note_result(taking, result);
}

static void take_accounts(struct taking *taking)
{
    account_store_list(taking->client->store, accounts_listed_all, taking);
    store_client_wait(taking->client);
    for (size_t i = 0; i < taking->account_count && taking->result == STORE_OK; i++) {
        taking->account = &taking->accounts[i];
        taking->role_count = 0;
        take_users(taking); /* before the keys, which are judged by roles */
        for (unsigned set = 0; set < SEAL_KEY_SETS && taking->result == STORE_OK; set++)
            take_key_set(taking, set);
    }
    free(taking->accounts);
}

int key_census_take(struct store_client *client, struct keyring *keyring, enum census_act act,
                    struct key_census *ret_census)
{
    struct taking taking = {.client = client, .keyring = keyring, .act = act, .census = ret_census};

    *ret_census = (struct key_census){.generations = keyring_generations(keyring)};
    for (size_t i = 0; i < ret_census->generations; i++)
        snprintf(ret_census->names[i], sizeof ret_census->names[i], "%.*s", TEXT_ARG(keyring_short_name(keyring, i)));
    taking.result = STORE_OK;
    taking.seals = mem_alloc(SEAL_KEYS_AT_ONCE * sizeof *taking.seals);
    for (unsigned i = 0; i < partitions_count(client->partitions) && taking.result == STORE_OK; i++) {
        client->store = partitions_at(client->partitions, i);
        take_accounts(&taking);
    }
    free(taking.seals);
    free(taking.roles);
    /* Resealed records now need only the current master key. */
    ret_census->of[0].seals += ret_census->resealed;
    return store_client_explain(client, taking.result, NULL);
}

bool key_census_needs(const struct key_census *census, size_t generation)
{
    const struct census_row *row = &census->of[generation];

    return row->keys > 0 || row->passwords > 0 || row->codes > 0 || row->seals > 0;
}
