/* store copy: moves a store to another Redis, or to another number of partitions. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "base/check.h"
#include "core/bucket.h"
#include "examine_internal.h"
#include "engine/fitness.h"
#include "copy/store_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct option_row ROWS[] = {
    ROW_TEXT("from", from, "URL", "The Redis to copy from, as for --redis. Left out: that of --redis or --redis-file."),
    {.name = "from-file",
     A_TEXT(COMMAND_OFFSET(from_file), "PATH"),
     .instead_of = "from",
     .help = "Read that address from this file."},
    {.name = "from-partitions",
     AN_INTEGER(COMMAND_OFFSET(from_partitions), "0", 0, PARTITIONS_MAX),
     .help = "The partitions of the source. 0: as many as it says."},
    ROW_TEXT("to", to, "URL", "The Redis to copy to."),
    {.name = "to-file",
     A_TEXT(COMMAND_OFFSET(to_file), "PATH"),
     .instead_of = "to",
     .help = "Read that address from this file."},
    {.name = "to-partitions",
     AN_INTEGER(COMMAND_OFFSET(to_partitions), "0", 0, PARTITIONS_MAX),
     .help = "The partitions of the target, as the nodes' --partitions. 0: that of --partitions, which by default is "
             "what its Redis needs."},
    ROW_FLAG("undo", undo,
             "Copy nothing: let nodes serve the source of an earlier copy again, because its target is lost for good. "
             "What was changed at the target is lost, so replay the revocation logs. Asks first, unless --yes is "
             "given."),
    ROW_YES,
    ROW_JSON,
};

const struct option_group STORE_COPY_OPTIONS[] = {OPTIONS_OF(ROWS), {"Redis", &SETTINGS_STORE}, {0}};

/* Certificates and the Sentinels' password are of whichever side needs them. */
static void drop_unneeded(const struct store_settings *store, struct settings *settings)
{
    if (!store->target.tls)
        settings->redis_ca = settings->redis_cert = settings->redis_key = NULL;
    if (store->target.found != REDIS_BY_SENTINEL)
        settings->sentinel_auth_file = NULL;
}

/* Reads the settings of one side. Unless it fails, the caller ends with store_settings_finish(). */
static int side_read(struct settings *settings, const char *option, struct store_settings *ret_store)
{
    struct settings bare = *settings;
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    bare.redis_ca = bare.redis_cert = bare.redis_key = bare.sentinel_auth_file = NULL;
    bool is_read = store_settings_read(&bare, ret_store, &why);
    if (is_read) {
        drop_unneeded(ret_store, settings);
        store_settings_finish(ret_store);
        is_read = store_settings_read(settings, ret_store, &why);
    }
    if (is_read)
        return EXIT_DONE;
    store_settings_finish(ret_store);
    return command_fail(EXIT_USAGE, "%s: %.*s", option, TEXT_ARG(buf_text(&why)));
}

static void side_choose(struct settings *settings, const char *url, const char *file, int64_t partitions)
{
    if (url || file) {
        settings->redis = url;
        settings->redis_file = file;
    }
    if (partitions > 0)
        settings->partitions = partitions;
}

/* The target must be what a node would serve from. A copy that was interrupted has left its own schema there, and one
 * from there too. */
static const char *breach_of(struct store_facts facts, bool is_unsafe)
{
    if (facts.schema == STORE_COPY_SCHEMA)
        facts.schema = 0;
    facts.moved[0] = '\0';
    return fitness_breach(&facts, is_unsafe ? FITNESS_UNSAFE : FITNESS_ALL);
}

static int target_judge(const struct settings *settings)
{
    struct store_client client;
    struct store_facts facts;
    struct buf trouble = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    unsigned well;
    int code = store_client_open_to_copy(&client, settings);

    if (code != EXIT_DONE)
        return code;
    if (!redis_examine(&client, &facts, &well)) {
        partitions_trouble(client.partitions, &trouble);
        code = command_fail(EXIT_FAILED, "the target: %.*s", TEXT_ARG(buf_text(&trouble)));
    } else if (breach_of(facts, settings->unsafe_redis)) {
        code = command_fail(EXIT_UNFIT, "the target: %s", breach_of(facts, settings->unsafe_redis));
    }
    store_client_close(&client);
    return code;
}

/* Copying */

struct copying {
    bool is_done;
    bool is_json;
    int code;
};

static int print_copied(const struct store_copied *c, bool is_json)
{
    struct buf out = BUF_FIXED(1024);

    if (c->was_finished_only)
        buf_append_str(&out, is_json
                                 ? "{\"copied\":true,\"finished_only\":true}\n"
                                 : "An earlier run had copied and compared everything. Its last step is done now.\n");
    else
        buf_printf(&out,
                   is_json ? "{\"copied\":true,\"from_partitions\":%u,\"to_partitions\":%u,\"accounts\":%" PRIu64
                             ",\"keys\":%" PRIu64 ",\"users\":%" PRIu64 ",\"events\":%" PRIu64 ",\"suspended\":%" PRIu64
                             ",\"sessions\":%" PRIu64 ",\"links\":%" PRIu64 ",\"emails\":%" PRIu64
                             ",\"aliases\":%" PRIu64 ",\"left\":%" PRIu64 ",\"unknown\":%" PRIu64 "}\n"
                           : "Copied and compared, %u partitions to %u: %" PRIu64 " accounts, %" PRIu64
                             " keys, %" PRIu64 " users, %" PRIu64 " events; %" PRIu64 " suspended accounts; %" PRIu64
                             " sessions, %" PRIu64 " links, %" PRIu64 " emails. %" PRIu64
                             " are found by an alias. Left behind: %" PRIu64 " that belong to nothing, %" PRIu64
                             " names of no known kind.\n",
                   c->from, c->to, c->counts.accounts, c->counts.keys, c->counts.users, c->counts.events,
                   c->counts.suspended, c->sessions, c->links, c->emails, c->aliases, c->left, c->unknown);
    return command_print(buf_text(&out));
}

static void on_copied(void *arg, const struct store_copied *copied)
{
    struct copying *copying = arg;

    copying->is_done = true;
    if (copied->trouble && copied->is_whole)
        copying->code = command_fail(EXIT_FAILED, "%s", copied->trouble);
    else if (copied->trouble && copied->is_refusal)
        copying->code = command_fail(EXIT_FAILED, "nothing was copied. %s", copied->trouble);
    else if (copied->trouble && copied->lacks_last_step)
        copying->code = command_fail(EXIT_FAILED,
                                     "the copy lacks its last step, and no node serves the source or all of the "
                                     "target: run it again. %s",
                                     copied->trouble);
    else if (copied->trouble)
        copying->code = command_fail(EXIT_FAILED, "the copy is not whole, and no node serves it. %s", copied->trouble);
    else
        copying->code = print_copied(copied, copying->is_json);
    if (!copied->trouble && copied->unknown > 0)
        fprintf(stderr, "chatelaine: Not copied, because this version does not know what it is: %s and the like.\n",
                copied->an_unknown);
}

/* How the source names the target, for whoever still looks there. A long list of seeds is cut. */
static void place_print(const struct store_settings *from, const struct store_settings *to, struct buf *out)
{
    store_target_print(&to->target, out);
    if (out->failed) {
        buf_clear(out);
        buf_printf(out, "%s%s:%u and others", redis_target_scheme(&to->target), to->target.seeds[0].host,
                   to->target.seeds[0].port);
    }
    buf_printf(out, ", --partitions %u", to->partitions);
    if (strcmp(to->prefix, from->prefix) != 0)
        buf_printf(out, ", --prefix %s", to->prefix);
    if (out->failed) {
        buf_clear(out);
        buf_append_str(out, "another place");
    }
    buf_append_char(out, '\0');
}

static int copy_between(const struct store_settings *from, const struct store_settings *to, bool is_json)
{
    struct copying copying = {.is_json = is_json};
    struct buf place = BUF_FIXED(IDENTITY_PLACE_BYTES);
    uv_loop_t loop;

    place_print(from, to, &place);
    CHECK(uv_loop_init(&loop) == 0);
    store_copy(&loop, from, to, place.ptr, on_copied, &copying);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(copying.is_done && uv_loop_close(&loop) == 0);
    return copying.code;
}

static void on_undone(void *arg, const struct store_copied *copied)
{
    struct copying *copying = arg;

    copying->is_done = true;
    if (copied->trouble)
        copying->code = command_fail(EXIT_FAILED, "nothing was undone. %s", copied->trouble);
    else
        copying->code = command_print(copying->is_json ? TEXT("{\"undone\":true}\n")
                                                       : TEXT("Nodes serve this place again, as it was when it was "
                                                              "copied. Replay the revocation logs before they do.\n"));
}

static int undo(const struct command_line *line, const struct store_settings *from)
{
    struct copying copying = {.is_json = line->json};
    uv_loop_t loop;
    int code = command_confirm(line, "The source is as it was when it was copied: keys that were revoked at the target "
                                     "since are valid again, and two stores with one identity serve unless the target "
                                     "is gone.");

    if (code != EXIT_DONE)
        return code;
    CHECK(uv_loop_init(&loop) == 0);
    store_copy_undo(&loop, from, on_undone, &copying);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(copying.is_done && uv_loop_close(&loop) == 0);
    return copying.code;
}

static int copy_to(const struct command_line *line, const struct store_settings *from)
{
    struct settings settings = line->settings;
    struct store_settings to;

    side_choose(&settings, line->to, line->to_file, line->to_partitions);
    int code = side_read(&settings, "--to", &to);
    if (code != EXIT_DONE)
        return code;
    code = target_judge(&settings);
    if (code == EXIT_DONE)
        code = copy_between(from, &to, line->json);
    store_settings_finish(&to);
    return code;
}

int store_copy_run(const struct command_line *line)
{
    struct settings settings = line->settings;
    bool has_target = line->to || line->to_file;
    struct store_settings from;

    if (!line->undo && !has_target)
        return command_require(NULL, "--to or --to-file");
    if (line->undo && has_target)
        return command_fail(EXIT_USAGE, "--undo copies nothing: leave out --to and --to-file");
    side_choose(&settings, line->from, line->from_file, line->from_partitions > 0 ? line->from_partitions : 1);
    int code = side_read(&settings, "--from", &from);
    if (code != EXIT_DONE)
        return code;
    from.partitions = (unsigned)line->from_partitions;
    code = line->undo ? undo(line, &from) : copy_to(line, &from);
    store_settings_finish(&from);
    return code;
}
