/* audit verify: reads audit logs and says what is whole, changed, missing, out of order or cut. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/json.h"
#include "admin/store_client.h"
#include "base/clock.h"
#include "core/audit_chain.h"
#include "trail/audit_keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_MAX_BYTES = 64 * 1024 * 1024, FINDINGS_PRINTED_MAX = 10000 };
/* Nodes publish their heads each minute. */
enum { HEAD_IS_CURRENT_MS = 2 * 60 * 1000 };

static const struct option_row ROWS[] = {
    ROW_TEXT("expect", expect, "HEADS",
             "What an earlier run printed: CHAIN:SEQ:MAC, separated by commas. These chains must go on from there, "
             "so files that were verified then need not be given again. Or files with heads that an account got "
             "from GET /v1/audit/heads: they must be in these logs."),
    ROW_JSON,
};
const struct option_group AUDIT_VERIFY_OPTIONS[] = ADMIN_OPTIONS(ROWS);

/* Reading */

static int read_lines(struct audit_verifier *verifier, FILE *file, const char *name)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t got;

    audit_verifier_begin_file(verifier, name);
    errno = 0;
    while ((got = getline(&line, &size, file)) >= 0) {
        bool is_whole = got > 0 && line[got - 1] == '\n';

        audit_verifier_add(verifier, (struct text){line, (size_t)got - is_whole}, is_whole);
    }
    free(line);
    return feof(file) ? EXIT_DONE : command_fail(EXIT_FAILED, "cannot read %s: %s", name, strerror(errno));
}

static int read_file(struct audit_verifier *verifier, const char *path)
{
    if (text_equal(text_of(path), TEXT("-")))
        return read_lines(verifier, stdin, "standard input");
    FILE *file = fopen(path, "re");
    if (!file)
        return command_fail(EXIT_FAILED, "cannot open %s: %s", path, strerror(errno));
    int code = read_lines(verifier, file, path);
    fclose(file);
    return code;
}

/* Witnesses */

/* "CHAIN:SEQ:MAC", of which the MAC may be missing. */
static bool read_head(struct text t, struct audit_head *ret_head)
{
    struct text chain, seq, mac = t;

    *ret_head = (struct audit_head){0};
    if (!text_next(&mac, ':', &chain) || !text_next(&mac, ':', &seq) || chain.len != AUDIT_CHAIN_CHARS ||
        mac.len > AUDIT_MAC_CHARS || (mac.len > 0 && mac.len < AUDIT_MAC_PART_CHARS))
        return false;
    memcpy(ret_head->chain, chain.ptr, chain.len);
    if (mac.len > 0)
        memcpy(ret_head->mac, mac.ptr, mac.len);
    return text_to_u64(seq, INT64_MAX, &ret_head->seq) && ret_head->seq > 0;
}

static int add_expected(struct audit_verifier *verifier, const struct keyring *keyring, const char *expected)
{
    struct text rest = text_of(expected ? expected : ""), one;
    struct audit_head head;

    while (rest.len > 0 && text_next(&rest, ',', &one)) {
        const struct audit_witness witness = {.name = "--expect", .head = &head, .node = "", .has_it_all = true};

        if (read_head(one, &head)) {
            audit_verifier_witness(verifier, &witness);
            continue;
        }
        int code = audit_expect_file(verifier, keyring, one);
        if (code != EXIT_DONE)
            return code;
    }
    return EXIT_DONE;
}

/* What reads the heads of one partition after the other. */
struct asking {
    struct store_client *client;
    struct audit_verifier *verifier;
    struct keyring *keyring;
};

/* One that was altered confirms nothing, and its chain exists all the same. */
static void add_published(const struct asking *asking, struct text chain, struct text value)
{
    struct audit_published published = {0};
    struct audit_witness witness = {.name = "Redis", .head = &published.head, .node = published.node};

    if (audit_published_read(asking->keyring, chain, value, &published)) {
        witness.time_ms = published.time_ms;
        witness.is_current = clock_wall_ms() - published.time_ms < HEAD_IS_CURRENT_MS;
    } else if (chain.len == AUDIT_CHAIN_CHARS) {
        published = (struct audit_published){0};
        memcpy(published.head.chain, chain.ptr, chain.len);
    } else {
        return;
    }
    audit_verifier_witness(asking->verifier, &witness);
}

static void heads_found(void *arg, enum store_result result, const struct text *heads, size_t count)
{
    struct asking *asking = arg;

    for (size_t i = 0; result == STORE_OK && i < count; i++)
        add_published(asking, heads[2 * i], heads[2 * i + 1]);
    store_client_answer(asking->client, result);
}

static enum store_result ask(struct store_client *client, void *arg)
{
    struct asking *asking = arg;

    audit_heads_read(client->store, heads_found, asking);
    return store_client_result(client);
}

static bool asks_redis(const struct command_line *line)
{
    for (size_t i = 0; i < SETTINGS_STORE.count; i++) {
        const char *name = SETTINGS_STORE.rows[i].name;

        if ((strcmp(name, "redis") == 0 || strcmp(name, "redis-file") == 0) &&
            line->origins[sizeof ROWS / sizeof *ROWS + i] != OPTION_FROM_DEFAULT)
            return true;
    }
    return false;
}

/* Whether the heads in Redis were compared. */
enum redis_part { REDIS_NOT_ASKED, REDIS_COMPARED, REDIS_SILENT };

/* Before the files: what is in Redis by then is in the files of nodes that go on writing. Redis may be away just when
 * somebody looks into what happened: the files are judged all the same, and whoever asked has read why. */
static int add_witnesses(const struct command_line *line, struct audit_verifier *verifier, struct keyring *keyring,
                         enum redis_part *ret_redis)
{
    struct store_client client;
    struct asking asking = {.client = &client, .verifier = verifier, .keyring = keyring};
    int code = add_expected(verifier, keyring, line->expect);

    *ret_redis = REDIS_NOT_ASKED;
    if (code != EXIT_DONE || !asks_redis(line))
        return code;
    *ret_redis = REDIS_SILENT;
    code = command_open(line, &client, keyring);
    if (code != EXIT_DONE) /* a Redis that is there and unfit, or of another master key, is no silent one */
        return code == EXIT_FAILED ? EXIT_DONE : code;
    if (store_client_explain(&client, store_client_tell_all(&client, ask, &asking), NULL) == EXIT_DONE)
        *ret_redis = REDIS_COMPARED;
    store_client_close(&client);
    return EXIT_DONE;
}

/* Printing */

static const char *const KINDS[] = {
    [AUDIT_CHANGED] = "changed",     [AUDIT_UNREADABLE] = "unreadable",
    [AUDIT_MISSING] = "missing",     [AUDIT_REORDERED] = "out_of_order",
    [AUDIT_FORKED] = "forked",       [AUDIT_CUT] = "cut",
    [AUDIT_TORN] = "torn",           [AUDIT_UNFINISHED] = "unfinished",
    [AUDIT_REPEATED] = "repeated",   [AUDIT_EARLIER] = "earlier",
    [AUDIT_NOT_GIVEN] = "not_given", [AUDIT_UNCONFIRMED] = "unconfirmed",
    [AUDIT_ABSENT] = "absent",       [AUDIT_LOST] = "lost",
};
static const char *const WEIGHTS[] = {[AUDIT_WRONG] = "WRONG", [AUDIT_UNPROVEN] = "unproven", [AUDIT_NOTE] = "note"};

static const char *const SENTENCES[] = {
    [AUDIT_CHANGED] = "was changed, or written with a master key that is not here",
    [AUDIT_UNREADABLE] = "is not a line of an audit log",
    [AUDIT_MISSING] = "lines before it are missing",
    [AUDIT_REORDERED] = "is out of order: it follows a later line",
    [AUDIT_FORKED] = "contradicts other lines: the log was put back to an earlier state",
    [AUDIT_LOST] = "says that the lines before it were lost: their file was removed, replaced or cut under the node",
    [AUDIT_CUT] = "saw lines that the log lacks: its end was cut off, or it was copied earlier",
    [AUDIT_TORN] = "was cut short while it was written, as the node noted; it was never confirmed",
    [AUDIT_UNFINISHED] = "is incomplete: it is being written, or was cut",
    [AUDIT_REPEATED] = "appears earlier in these files",
    [AUDIT_EARLIER] = "continues an earlier file that was not given",
    [AUDIT_NOT_GIVEN] = "names a log whose file was not given",
    [AUDIT_ABSENT] = "has a head that no line here has: its log was not given, or was cut or replaced",
    [AUDIT_UNCONFIRMED] = "is the end, as far as these files go: nobody else has seen the last lines",
};

/* "7" or "7 to 9". */
static void put_range(struct buf *out, const struct audit_finding *finding)
{
    if (finding->seq_end > finding->seq)
        buf_printf(out, "%" PRIu64 " to %" PRIu64, finding->seq, finding->seq_end);
    else
        buf_printf(out, "%" PRIu64, finding->seq);
}

static void print_finding(const struct audit_finding *finding, struct buf *out)
{
    buf_printf(out, "%-8s ", WEIGHTS[audit_finding_weight(finding->kind)]);
    buf_append_printable(out, text_of(finding->file));
    if (finding->line > 0)
        buf_printf(out, ":%" PRIu64, finding->line);
    buf_printf(out, ": %s", SENTENCES[finding->kind]);
    if (finding->seq > 0) {
        buf_append_str(out, " (seq ");
        put_range(out, finding);
        buf_printf(out, " of chain %s, ", finding->chain);
        buf_append_printable(out, text_of(finding->node));
        buf_append_char(out, ')');
    }
    buf_append_char(out, '\n');
}

static void print_chain(const struct audit_chain_summary *chain, struct buf *out)
{
    if (chain->lines == 0)
        return;
    buf_printf(out, "%-8s chain %s, ", chain->is_whole ? "whole" : "BROKEN", chain->chain);
    buf_append_printable(out, text_of(chain->node));
    buf_printf(out, ": seq %" PRIu64 " to %" PRIu64 ", %s to %s", chain->first, chain->last, chain->first_time,
               chain->last_time);
    if (chain->seen > 0)
        buf_printf(out, "; others saw it up to %" PRIu64 "%s%s", chain->seen, chain->seen_time[0] ? " at " : "",
                   chain->seen_time);
    else
        buf_append_str(out, "; nothing here confirms its end");
    buf_append_str(out, chain->has_ended ? "; its node stopped\n" : "\n");
}

static void print_head(const struct audit_chain_summary *chain, struct buf *out)
{
    buf_printf(out, "%s:%" PRIu64 ":%s", chain->chain, chain->last, chain->last_mac);
}

/* For --expect of the next run, which takes what is up to there for seen. */
static bool has_head(const struct audit_chain_summary *chain)
{
    return chain->lines > 0 && chain->is_whole && chain->has_beginning;
}

static void print_heads(const struct audit_chain_summary *chains, size_t count, struct buf *out)
{
    const char *separator = "Next time, add: --expect ";

    for (size_t i = 0; i < count; i++) {
        if (!has_head(&chains[i]))
            continue;
        buf_append_str(out, separator);
        print_head(&chains[i], out);
        separator = ",";
    }
    if (*separator == ',')
        buf_append_char(out, '\n');
}

static void print_text(const struct audit_verifier *verifier, enum redis_part redis, int verdict, struct buf *out)
{
    static const char *const SENTENCES_OF[] = {
        [EXIT_DONE] = "Nothing is wrong.\n",
        [EXIT_FAILED] = "Something is wrong: src/audit/README.md says what each finding means.\n",
        [EXIT_UNPROVEN] = "Not proven: nothing is wrong, but lines could be missing where it says so.\n",
    };
    const struct audit_finding *findings;
    const struct audit_chain_summary *chains;
    size_t finding_count = audit_verifier_findings(verifier, &findings);
    size_t chain_count = audit_verifier_chains(verifier, &chains);

    for (size_t i = 0; i < finding_count && i < FINDINGS_PRINTED_MAX; i++)
        print_finding(&findings[i], out);
    if (finding_count > FINDINGS_PRINTED_MAX)
        buf_printf(out, "… and %zu more.\n", finding_count - FINDINGS_PRINTED_MAX);
    if (redis == REDIS_SILENT)
        buf_append_str(out, "unproven Redis did not say what it has seen, so lines could be missing at any end\n");
    for (size_t i = 0; i < chain_count; i++)
        print_chain(&chains[i], out);
    print_heads(chains, chain_count, out);
    buf_append_str(out, SENTENCES_OF[verdict]);
}

static void put_findings(const struct audit_verifier *verifier, struct json_writer *w)
{
    const struct audit_finding *findings;
    size_t count = audit_verifier_findings(verifier, &findings);

    json_key_array(w, "findings");
    for (size_t i = 0; i < count && i < FINDINGS_PRINTED_MAX; i++) {
        json_object_begin(w);
        json_put_member(w, "kind", text_of(KINDS[findings[i].kind]));
        json_put_flag(w, "wrong", audit_finding_weight(findings[i].kind) == AUDIT_WRONG);
        json_put_flag(w, "unproven", audit_finding_weight(findings[i].kind) == AUDIT_UNPROVEN);
        json_put_member(w, "file", text_of(findings[i].file));
        json_put_number(w, "line", (int64_t)findings[i].line);
        view_put_text_or_null(w, "chain", text_of(findings[i].chain));
        view_put_text_or_null(w, "node", text_of(findings[i].node));
        json_put_number(w, "seq", (int64_t)findings[i].seq);
        json_put_number(w, "seq_end", (int64_t)findings[i].seq_end);
        json_object_end(w);
    }
    json_array_end(w);
    json_put_number(w, "finding_count", (int64_t)count);
}

static void put_head(struct json_writer *w, const struct audit_chain_summary *chain)
{
    struct buf head = BUF_FIXED(AUDIT_CHAIN_CHARS + AUDIT_MAC_CHARS + 32);

    if (has_head(chain))
        print_head(chain, &head);
    view_put_text_or_null(w, "head", buf_text(&head));
}

static void put_chains(const struct audit_verifier *verifier, struct json_writer *w)
{
    const struct audit_chain_summary *chains;
    size_t count = audit_verifier_chains(verifier, &chains);

    json_key_array(w, "chains");
    for (size_t i = 0; i < count; i++) {
        json_object_begin(w);
        json_put_member(w, "chain", text_of(chains[i].chain));
        json_put_member(w, "node", text_of(chains[i].node));
        json_put_flag(w, "whole", chains[i].is_whole);
        json_put_number(w, "lines", (int64_t)chains[i].lines);
        json_put_number(w, "first", (int64_t)chains[i].first);
        json_put_number(w, "last", (int64_t)chains[i].last);
        view_put_text_or_null(w, "first_time", text_of(chains[i].first_time));
        view_put_text_or_null(w, "last_time", text_of(chains[i].last_time));
        json_put_flag(w, "ended", chains[i].has_ended);
        json_put_number(w, "seen", (int64_t)chains[i].seen);
        view_put_text_or_null(w, "seen_time", text_of(chains[i].seen_time));
        put_head(w, &chains[i]);
        json_object_end(w);
    }
    json_array_end(w);
}

static void print_json(const struct audit_verifier *verifier, enum redis_part redis, int verdict, struct buf *out)
{
    static const char *const REDIS[] = {
        [REDIS_NOT_ASKED] = "", [REDIS_COMPARED] = "compared", [REDIS_SILENT] = "silent"};
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_put_flag(&w, "whole", verdict != EXIT_FAILED);
    json_put_flag(&w, "proven", verdict == EXIT_DONE);
    view_put_text_or_null(&w, "redis", text_of(REDIS[redis]));
    put_chains(verifier, &w);
    put_findings(verifier, &w);
    json_line_end(&w);
}

/* Files without a single genuine line must not pass: they are no audit logs, or another master key made them. */
static int judge(const struct audit_verifier *verifier, enum redis_part redis)
{
    const struct audit_finding *findings;
    const struct audit_chain_summary *chains;
    size_t finding_count = audit_verifier_findings(verifier, &findings);
    size_t chain_count = audit_verifier_chains(verifier, &chains), counts[AUDIT_NOTE + 1] = {0};
    uint64_t lines = 0;

    for (size_t i = 0; i < finding_count; i++)
        counts[audit_finding_weight(findings[i].kind)]++;
    for (size_t i = 0; i < chain_count; i++)
        lines += chains[i].lines;
    if (counts[AUDIT_WRONG] > 0 || lines == 0)
        return EXIT_FAILED;
    return counts[AUDIT_UNPROVEN] > 0 || redis == REDIS_SILENT ? EXIT_UNPROVEN : EXIT_DONE;
}

static int print_verdict(const struct command_line *line, struct audit_verifier *verifier, enum redis_part redis)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(OUTPUT_MAX_BYTES);
    int verdict, code;

    audit_verifier_judge(verifier);
    verdict = judge(verifier, redis);
    if (line->json)
        print_json(verifier, redis, verdict, &out);
    else
        print_text(verifier, redis, verdict, &out);
    code = command_print(buf_text(&out));
    return code == EXIT_DONE ? verdict : code;
}

int audit_verify_run(const struct command_line *line)
{
    enum redis_part redis;
    int code;
    struct keyring *keyring = command_keyring(line, &code);

    if (!keyring)
        return code;
    struct audit_verifier *verifier = audit_verifier_create(keyring);
    code = add_witnesses(line, verifier, keyring, &redis);
    for (int i = 0; i < line->operand_count && code == EXIT_DONE; i++)
        code = read_file(verifier, line->operands[i]);
    if (code == EXIT_DONE)
        code = print_verdict(line, verifier, redis);
    audit_verifier_destroy(verifier);
    keyring_destroy(keyring);
    return code;
}
