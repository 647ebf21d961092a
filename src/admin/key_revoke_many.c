/* key revoke with selectors: finds the active keys that match all of them, shows them, and revokes them, with one wait
 * for all leases. */
#include "key_revoke_many_internal.h"

#include "admin_internal.h"
#include "auth/revocation_log.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "key_selection_internal.h"
#include "listing_internal.h"
#include "records/key_store.h"
#include "engine/partitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct found_key {
    struct id id;
    unsigned partition;
};

struct revoking {
    struct listing listing; /* of the keys that are found */
    const struct command_line *line;
    struct store_client client;
    struct id account_storage;
    const struct id *account; /* NULL: all */
    struct key_selection selection;
    struct revocation_log *log;
    int log_error;
    struct key_query query;
    enum store_result result; /* the worst of all lists */
    struct found_key *found;
    size_t count, capacity;
    bool is_quiet; /* looks again for what was made meanwhile */
    size_t lists, marked, outcomes[KEY_WAS_REVOKED_BEFORE + 1];
};

/* Finding */

static void add_found(struct revoking *revoking, const struct key_record *key)
{
    revoking->found = mem_grow(revoking->found, revoking->count, &revoking->capacity, sizeof *revoking->found);
    revoking->found[revoking->count++] = (struct found_key){key->id, store_partition(revoking->client.store)};
}

static void print_found(struct revoking *revoking, const struct key_record *key)
{
    if (revoking->is_quiet) {
        return;
    } else if (revoking->listing.json) {
        listing_count(&revoking->listing);
        json_object_begin(&revoking->listing.writer);
        view_put_key(&revoking->listing.writer, key, VIEW_OPERATOR);
        json_object_end(&revoking->listing.writer);
    } else if (!revoking->line->json) {
        buf_printf(&revoking->listing.out, "%s  %s  ", key->id.text, key->account.text);
        buf_append_printable(&revoking->listing.out, key_name(key));
        buf_append_char(&revoking->listing.out, '\n');
    }
}

static void on_page(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    struct revoking *revoking = arg;

    for (size_t i = 0; i < count; i++) {
        if (!key_selection_has(&revoking->selection, &keys[i]))
            continue;
        add_found(revoking, &keys[i]);
        print_found(revoking, &keys[i]);
    }
    listing_paged(&revoking->listing, result, count > 0 ? &keys[count - 1].id : NULL, has_more);
}

static void ask_for_keys(struct listing *listing)
{
    struct revoking *revoking = (struct revoking *)listing;

    revoking->query.starting_after = listing->behind;
    key_store_list(revoking->client.store, &revoking->query, on_page, revoking);
}

static int find_in_account(void *arg, const struct account_row *account)
{
    struct revoking *revoking = arg;
    int code = key_selection_enter(&revoking->selection, &revoking->client, &account->id);

    if (code != EXIT_DONE)
        return code;
    revoking->query = (struct key_query){.view = {.account = account->id, .any_kind = true},
                                         .limit = LIST_LIMIT_MAX,
                                         .by_mode = revoking->selection.by_mode,
                                         .mode = revoking->selection.mode,
                                         .status = KEYS_ACTIVE};
    return listing_pages(&revoking->listing, ask_for_keys);
}

/* Revoking: all lists at once, so that their waits for leases fall together. */

static void print_progress(const struct revoking *revoking)
{
    if (isatty(STDERR_FILENO) && (revoking->marked % LIST_LIMIT_MAX == 0 || revoking->marked == revoking->count))
        fprintf(stderr, "\r%zu of %zu keys%s", revoking->marked, revoking->count,
                revoking->marked == revoking->count ? "; waiting for all nodes\n" : "");
}

static void on_marked(void *arg, const struct key_record *key)
{
    struct revoking *revoking = arg;
    struct text store = store_id(partition_of_account(revoking->client.partitions, &key->account));
    int error = revoking->log ? revocation_log_append(revoking->log, key, store) : 0;

    revoking->log_error = error ? error : revoking->log_error;
    revoking->marked++;
    print_progress(revoking);
}

static void on_list_done(void *arg, enum store_result result, const struct key_of_list *keys, size_t count)
{
    struct revoking *revoking = arg;

    if (result != STORE_OK)
        revoking->result = result;
    for (size_t i = 0; result == STORE_OK && i < count; i++)
        revoking->outcomes[keys[i].outcome]++;
    if (--revoking->lists == 0)
        store_client_done(&revoking->client);
}

static void begin_list(struct revoking *revoking, unsigned partition, const struct id *ids, size_t count)
{
    static const struct key_view EVERYTHING = {.any_kind = true};
    const struct keys_observer observer = {on_marked, on_list_done, revoking, NULL};

    revoking->lists++;
    key_store_revoke_list(partitions_at(revoking->client.partitions, partition), &EVERYTHING, ids, count, &OPERATOR,
                          &observer);
}

static void begin_lists(struct revoking *revoking, unsigned partition)
{
    struct id *ids = mem_alloc(REVOKE_LIST_MAX * sizeof *ids);
    size_t count = 0;

    for (size_t i = 0; i < revoking->count; i++) {
        if (revoking->found[i].partition != partition)
            continue;
        ids[count++] = revoking->found[i].id;
        if (count == REVOKE_LIST_MAX) {
            begin_list(revoking, partition, ids, count);
            count = 0;
        }
    }
    if (count > 0)
        begin_list(revoking, partition, ids, count);
    free(ids);
}

static int print_outcome(struct revoking *revoking)
{
    const size_t *outcomes = revoking->outcomes;
    struct json_writer w = {.out = &revoking->listing.out};

    if (revoking->line->json) {
        json_object_begin(&w);
        json_put_number(&w, "revoked", (int64_t)outcomes[KEY_WAS_REVOKED]);
        json_put_number(&w, "already_revoked", (int64_t)outcomes[KEY_WAS_REVOKED_BEFORE]);
        json_line_end(&w);
    } else {
        buf_printf(&revoking->listing.out, "%zu keys were revoked, %zu were revoked already; no node accepts them.\n",
                   outcomes[KEY_WAS_REVOKED], outcomes[KEY_WAS_REVOKED_BEFORE]);
    }
    return listing_flush(&revoking->listing);
}

/* Some may be marked as revoked, and then these options no longer select them. */
static int fail_unconfirmed(struct revoking *revoking)
{
    struct json_writer w = {.out = &revoking->listing.out};
    int code = store_client_explain(&revoking->client, revoking->result, NULL);

    if (revoking->line->json) {
        json_object_begin(&w);
        json_key_array(&w, "unconfirmed");
        for (size_t i = 0; i < revoking->count; i++)
            json_put_text(&w, id_text(&revoking->found[i].id));
        json_array_end(&w);
        json_line_end(&w);
    }
    command_fail(EXIT_FAILED,
                 "any of the %zu keys may still be accepted. Revoke each again by its id: these options "
                 "select only active keys, and some may be marked as revoked",
                 revoking->count);
    return listing_flush(&revoking->listing) == EXIT_DONE ? code : EXIT_FAILED;
}

static int revoke_found(struct revoking *revoking)
{
    unsigned partitions = partitions_count(revoking->client.partitions);
    int code;

    revoking->result = STORE_OK;
    for (unsigned i = 0; i < partitions; i++)
        begin_lists(revoking, i);
    store_client_wait(&revoking->client);
    code = revoking->result == STORE_OK ? EXIT_DONE : fail_unconfirmed(revoking);
    if (revoking->log_error != 0)
        return command_fail(EXIT_FAILED, "some of these keys could not be added to the revocation log: %s",
                            strerror(revoking->log_error));
    return code;
}

/* On the terminal, before the question. */
static int find(struct revoking *revoking)
{
    int code;

    if (revoking->listing.json)
        listing_json_begin(&revoking->listing);
    code = accounts_walk(&revoking->client, revoking->account, find_in_account, revoking);
    if (code != EXIT_DONE)
        return code;
    if (revoking->listing.json) {
        listing_json_end(&revoking->listing);
    } else if (!revoking->line->json && !revoking->is_quiet) {
        buf_printf(&revoking->listing.out, "%zu %s.\n", revoking->count,
                   revoking->count == 1 ? "key matches" : "keys match");
    }
    return listing_flush(&revoking->listing);
}

static int confirm(const struct revoking *revoking)
{
    char question[96];

    snprintf(question, sizeof question, "%zu %s revoked for ever.", revoking->count,
             revoking->count == 1 ? "key is" : "keys are");
    return command_confirm(revoking->line, question);
}

static int find_and_revoke(struct revoking *revoking)
{
    int code = find(revoking);

    if (code != EXIT_DONE || revoking->line->dry_run)
        return code;
    if (revoking->count == 0)
        return revoking->line->json ? print_outcome(revoking) : EXIT_DONE;
    code = confirm(revoking);
    /* A key that is found may have made another one until it was revoked. */
    do {
        if (code == EXIT_DONE)
            code = revoke_found(revoking);
        if (code != EXIT_DONE || !revoking->line->descendants)
            break;
        revoking->is_quiet = true;
        revoking->count = 0;
        code = find(revoking);
    } while (code == EXIT_DONE && revoking->count > 0);
    return code == EXIT_DONE ? print_outcome(revoking) : code;
}

static int run_in_store(struct revoking *revoking)
{
    int code = command_open(revoking->line, &revoking->client, NULL);

    if (code != EXIT_DONE)
        return code;
    code = find_and_revoke(revoking);
    store_client_close(&revoking->client);
    return code;
}

int key_revoke_many_run(const struct command_line *line, struct revocation_log *log)
{
    /* With --json there is one object: what was revoked, or with --dry-run the list. */
    struct revoking revoking = {
        .line = line, .log = log, .listing = {.client = &revoking.client, .json = line->json && line->dry_run}};
    int code = account_option_read(line, &revoking.account_storage, &revoking.account);

    if (code == EXIT_DONE)
        code = key_selection_read(line, &revoking.selection);

    buf_init(&revoking.listing.out, ADMIN_OUTPUT_MAX_BYTES);
    revoking.listing.writer.out = &revoking.listing.out;
    if (code == EXIT_DONE)
        code = run_in_store(&revoking);
    buf_finish(&revoking.listing.out);
    free(revoking.found);
    key_selection_finish(&revoking.selection);
    return code;
}
