/* audit verify: reads audit logs and says what is whole, changed, missing, out of order or cut. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/json.h"
#include "core/audit_chain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_MAX_BYTES = 64 * 1024 * 1024, FINDINGS_PRINTED_MAX = 10000 };

static const struct option_row ROWS[] = {ROW_JSON};
static const struct option_table TABLE = OPTION_TABLE(ROWS);
const struct option_group AUDIT_VERIFY_OPTIONS[] = {{"Options", &TABLE}, {"Keys", &SETTINGS_KEYS}, {0}};

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

/* Printing */

static const char *const KINDS[] = {
    [AUDIT_CHANGED] = "changed",     [AUDIT_UNREADABLE] = "unreadable",
    [AUDIT_MISSING] = "missing",     [AUDIT_REORDERED] = "out_of_order",
    [AUDIT_FORKED] = "forked",       [AUDIT_CUT] = "cut",
    [AUDIT_TORN] = "torn",           [AUDIT_UNFINISHED] = "unfinished",
    [AUDIT_REPEATED] = "repeated",   [AUDIT_EARLIER] = "earlier",
    [AUDIT_NOT_GIVEN] = "not_given",
};

static const char *const SENTENCES[] = {
    [AUDIT_CHANGED] = "was changed, or written with a master key that is not here",
    [AUDIT_UNREADABLE] = "is not a line of an audit log",
    [AUDIT_MISSING] = "lines before it are missing",
    [AUDIT_REORDERED] = "is out of order: it follows a later line",
    [AUDIT_FORKED] = "contradicts other lines: the log was put back to an earlier state",
    [AUDIT_CUT] = "saw lines that the log lacks: its end was cut off",
    [AUDIT_TORN] = "was cut short while it was written, as the node noted; it was never confirmed",
    [AUDIT_UNFINISHED] = "is incomplete: it is being written, or was cut",
    [AUDIT_REPEATED] = "appears earlier in these files",
    [AUDIT_EARLIER] = "continues an earlier file that was not given",
    [AUDIT_NOT_GIVEN] = "names a log whose file was not given",
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
    buf_printf(out, "%-7s ", audit_finding_is_wrong(finding->kind) ? "WRONG" : "note");
    buf_append_printable(out, text_of(finding->file));
    buf_printf(out, ":%" PRIu64 ": %s", finding->line, SENTENCES[finding->kind]);
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
    buf_printf(out, "%-7s chain %s, ", chain->is_whole ? "whole" : "BROKEN", chain->chain);
    buf_append_printable(out, text_of(chain->node));
    buf_printf(out, ": seq %" PRIu64 " to %" PRIu64 ", %s to %s", chain->first, chain->last, chain->first_time,
               chain->last_time);
    if (chain->seen > 0)
        buf_printf(out, "; other nodes saw it up to %" PRIu64 " at %s", chain->seen, chain->seen_time);
    else
        buf_append_str(out, "; no other log here confirms its end");
    buf_append_str(out, chain->has_ended ? "; its node stopped\n" : "\n");
}

static void print_text(const struct audit_verifier *verifier, bool is_fine, struct buf *out)
{
    const struct audit_finding *findings;
    const struct audit_chain_summary *chains;
    size_t finding_count = audit_verifier_findings(verifier, &findings);
    size_t chain_count = audit_verifier_chains(verifier, &chains);

    for (size_t i = 0; i < finding_count && i < FINDINGS_PRINTED_MAX; i++)
        print_finding(&findings[i], out);
    if (finding_count > FINDINGS_PRINTED_MAX)
        buf_printf(out, "… and %zu more.\n", finding_count - FINDINGS_PRINTED_MAX);
    for (size_t i = 0; i < chain_count; i++)
        print_chain(&chains[i], out);
    buf_append_str(out, is_fine ? "Nothing is wrong.\n"
                                : "Something is wrong: OPERATIONS.md says what each finding means.\n");
}

static void put_number(struct json_writer *w, const char *name, uint64_t value)
{
    json_key(w, name);
    json_put_integer(w, (int64_t)value);
}

static void put_flag(struct json_writer *w, const char *name, bool value)
{
    json_key(w, name);
    json_put_bool(w, value);
}

static void put_findings(const struct audit_verifier *verifier, struct json_writer *w)
{
    const struct audit_finding *findings;
    size_t count = audit_verifier_findings(verifier, &findings);

    json_key(w, "findings");
    json_array_begin(w);
    for (size_t i = 0; i < count && i < FINDINGS_PRINTED_MAX; i++) {
        json_object_begin(w);
        json_put_member(w, "kind", text_of(KINDS[findings[i].kind]));
        put_flag(w, "wrong", audit_finding_is_wrong(findings[i].kind));
        json_put_member(w, "file", text_of(findings[i].file));
        put_number(w, "line", findings[i].line);
        put_text_member(w, "chain", text_of(findings[i].chain));
        put_text_member(w, "node", text_of(findings[i].node));
        put_number(w, "seq", findings[i].seq);
        put_number(w, "seq_end", findings[i].seq_end);
        json_object_end(w);
    }
    json_array_end(w);
    put_number(w, "finding_count", count);
}

static void print_json(const struct audit_verifier *verifier, bool is_fine, struct buf *out)
{
    const struct audit_chain_summary *chains;
    size_t count = audit_verifier_chains(verifier, &chains);
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    put_flag(&w, "whole", is_fine);
    json_key(&w, "chains");
    json_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(&w);
        json_put_member(&w, "chain", text_of(chains[i].chain));
        json_put_member(&w, "node", text_of(chains[i].node));
        put_flag(&w, "whole", chains[i].is_whole);
        put_number(&w, "lines", chains[i].lines);
        put_number(&w, "first", chains[i].first);
        put_number(&w, "last", chains[i].last);
        put_text_member(&w, "first_time", text_of(chains[i].first_time));
        put_text_member(&w, "last_time", text_of(chains[i].last_time));
        put_flag(&w, "ended", chains[i].has_ended);
        put_number(&w, "seen", chains[i].seen);
        put_text_member(&w, "seen_time", text_of(chains[i].seen_time));
        json_object_end(&w);
    }
    json_array_end(&w);
    put_findings(verifier, &w);
    json_object_end(&w);
    buf_append_char(out, '\n');
}

/* Files without a single genuine line must not pass: they are no audit logs, or another master key made them. */
static bool is_fine(const struct audit_verifier *verifier)
{
    const struct audit_finding *findings;
    const struct audit_chain_summary *chains;
    size_t finding_count = audit_verifier_findings(verifier, &findings);
    size_t chain_count = audit_verifier_chains(verifier, &chains);
    uint64_t lines = 0;

    for (size_t i = 0; i < finding_count; i++)
        if (audit_finding_is_wrong(findings[i].kind))
            return false;
    for (size_t i = 0; i < chain_count; i++)
        lines += chains[i].lines;
    return lines > 0;
}

static int judge(const struct command_line *line, struct audit_verifier *verifier)
{
    struct buf out CLEANUP(buf_finish);

    audit_verifier_judge(verifier);
    buf_init(&out, OUTPUT_MAX_BYTES);
    if (line->json)
        print_json(verifier, is_fine(verifier), &out);
    else
        print_text(verifier, is_fine(verifier), &out);
    int code = command_print(buf_text(&out));
    return code == EXIT_DONE && !is_fine(verifier) ? EXIT_FAILED : code;
}

int audit_verify_run(const struct command_line *line)
{
    int code;
    struct keyring *keyring = command_keyring(line, &code);

    if (!keyring)
        return code;
    struct audit_verifier *verifier = audit_verifier_create(keyring);
    code = EXIT_DONE;
    for (int i = 0; i < line->operand_count && code == EXIT_DONE; i++)
        code = read_file(verifier, line->operands[i]);
    if (code == EXIT_DONE)
        code = judge(line, verifier);
    audit_verifier_destroy(verifier);
    keyring_destroy(keyring);
    return code;
}
