/* bench_records KIND ACCOUNT: adds records as nodes do, by the same scripts, one after the other, to the Redis of the
 * environment (see bench_fill). For each line of standard input:
 *   users     a user with that number; prints the id
 *   sessions  a session of the user with that id
 *   uses      a use of the key with that id today
 *   days      one on each of the three days before
 * For scripts/bench sizing. */
#include "admin/store_client.h"
#include "base/clock.h"
#include "base/mem.h"
#include "config/key_file.h"
#include "core/token.h"
#include "records/account_store.h"
#include "records/session_store.h"
#include "records/usage_store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_WHY_MAX_BYTES = 1024, LINE_BYTES = 64, USAGE_DAYS = 3, USES_A_BATCH = 256 /* as a node's, at least */ };

#define DAY_MS INT64_C(86400000)

static const struct audit_source ORIGIN = {.actor = TEXT("operator")};
static const struct session_limits LIMITS = {.idle_ms = 1800000, .absolute_ms = 43200000, .step_up_ms = 300000};

struct recording {
    struct store_client client;
    struct keyring *keyring;
    struct id account;
    enum store_result result;
    struct usage_entry uses[USES_A_BATCH]; /* not written yet */
    size_t use_count;
    int first_day, last_day; /* that they are written for; 0: today, 1: yesterday */
};

typedef void record_line(struct recording *recording, struct text line);

static void verb_done(void *arg, enum store_result result)
{
    struct recording *recording = arg;

    recording->result = result;
    store_client_done(&recording->client);
}

static void session_done(void *arg, enum store_result result, UNUSED const struct session_record *session)
{
    verb_done(arg, result);
}

/* As long as real ones: the hash of no password, and a sealed TOTP secret that nobody knows. */
static void add_user(struct recording *recording, struct text line)
{
    struct user_record user = {.id = id_mint(ID_USER, clock_wall_ms()),
                               .account = recording->account,
                               .role = ROLE_OWNER,
                               .created_ms = clock_wall_ms()};

    snprintf(user.email, sizeof user.email, "user%.*s@clinic.example.org", TEXT_ARG(line));
    snprintf(user.password_hash, sizeof user.password_hash,
             "scrypt$17$8$1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    account_store_add_user(recording->client.partitions, &user, &ORIGIN, verb_done, recording);
    store_client_wait(&recording->client);
    puts(user.id.text);
}

static void add_session(struct recording *recording, struct text line)
{
    struct id sid = id_mint(ID_REQUEST, clock_wall_ms());
    uint8_t digest[KEYRING_DIGEST_BYTES];
    struct token token;
    struct session_start start = {.account = recording->account,
                                  .totp_step = 1,
                                  .token_digest = digest,
                                  .sid = sid.text + strlen("req_"),
                                  .attempt = {.id = TEXT("bench")}};

    token_mint(&token);
    if (!id_parse(ID_USER, line, &start.user) ||
        !token_digest(recording->keyring, KEYRING_SESSION_DIGEST, text_of(token.text), digest)) {
        recording->result = STORE_REFUSED;
        return;
    }
    session_store_create(recording->client.partitions, &start, &LIMITS, &ORIGIN, session_done, recording);
    store_client_wait(&recording->client);
}

static void write_uses(struct recording *recording)
{
    const struct id sender = id_mint(ID_REQUEST, clock_wall_ms()); /* of this batch alone */
    const struct usage_batch batch = {recording->uses, recording->use_count, NULL, 0};

    for (int day = recording->first_day;
         day <= recording->last_day && recording->use_count > 0 && recording->result == STORE_OK; day++) {
        for (size_t i = 0; i < recording->use_count; i++)
            recording->uses[i].last_used_ms =
                (uint64_t)(clock_wall_ms() - day * DAY_MS) & ((UINT64_C(1) << USAGE_TIME_BITS) - 1);
        usage_store_flush(recording->client.store, text_of(sender.text), (uint64_t)day + 1, &batch, verb_done,
                          recording);
        store_client_wait(&recording->client);
    }
    recording->use_count = 0;
}

static void gather_use(struct recording *recording, struct text line)
{
    struct usage_entry *entry = &recording->uses[recording->use_count++];
    struct id key;

    *entry = (struct usage_entry){.uses = 100, .is_live = 1};
    if (!id_parse(ID_KEY, line, &key)) {
        recording->result = STORE_REFUSED;
        return;
    }
    memcpy(entry->account, id_chars(&recording->account), sizeof entry->account);
    memcpy(entry->key, id_chars(&key), sizeof entry->key);
    if (recording->use_count == USES_A_BATCH)
        write_uses(recording);
}

static void add_days(struct recording *recording, struct text line)
{
    recording->first_day = 1;
    recording->last_day = USAGE_DAYS;
    gather_use(recording, line);
}

static record_line *find_kind(const char *name)
{
    static const struct {
        const char *name;
        record_line *add;
    } KINDS[] = {{"users", add_user}, {"sessions", add_session}, {"uses", gather_use}, {"days", add_days}};

    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i].name, name) == 0)
            return KINDS[i].add;
    return NULL;
}

static void record_lines(struct recording *recording, record_line *add)
{
    char line[LINE_BYTES];

    while (recording->result == STORE_OK && fgets(line, sizeof line, stdin))
        add(recording, (struct text){line, strcspn(line, "\n")});
    write_uses(recording);
}

static int record_all(const struct settings *settings, record_line *add, const struct id *account)
{
    static const struct store_refusals REFUSALS = {
        .not_found = "no such user", .conflict = "it exists already", .refused = "not an id, or no such account"};
    static struct recording recording;
    char storage[RECORDS_WHY_MAX_BYTES];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    recording.account = *account;
    recording.keyring = key_file_load(settings, &why);
    if (!recording.keyring)
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    int code = store_client_open(&recording.client, settings, recording.keyring);
    if (code == EXIT_DONE) {
        store_client_choose(&recording.client, account);
        record_lines(&recording, add);
        code = store_client_explain(&recording.client, recording.result, &REFUSALS);
        store_client_close(&recording.client);
    }
    keyring_destroy(recording.keyring);
    return code;
}

int main(int argc, char **argv)
{
    const struct option_table tables[] = {SETTINGS_STORE, SETTINGS_KEYS};
    char storage[RECORDS_WHY_MAX_BYTES];
    struct settings settings = {0};
    struct buf why;
    struct id account;
    int rest;

    buf_init_fixed(&why, storage, sizeof storage);
    if (!options_read(tables, sizeof tables / sizeof *tables, &settings, argc, argv, &rest, &why))
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    record_line *add = rest == 3 ? find_kind(argv[1]) : NULL;
    if (!add || !id_parse(ID_ACCOUNT, text_of(argv[2]), &account))
        return command_fail(EXIT_USAGE, "usage: bench_records users|sessions|uses|days ACCOUNT < lines");
    return record_all(&settings, add, &account);
}
