#include "core/audit_chain.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>

enum { MAC_KEPT_CHARS = AUDIT_MAC_PART_CHARS, CHUNK = 256, MS_PER_S = 1000 };

/* A line of some chain, genuine or (is_altered) claiming to be. */
struct record {
    uint32_t chain, file;
    uint64_t seq, line;
    char mac[MAC_KEPT_CHARS], prev[MAC_KEPT_CHARS];
    bool is_altered, is_continued, is_reopened, has_ended;
    uint64_t lost_from;
    char time[32];
};

/* What a line says of another chain, or a witness. */
struct sighting {
    uint32_t chain, by; /* by: a chain, or NOBODY */
    const char *file;
    uint64_t seq, line;
    char mac[MAC_KEPT_CHARS]; /* begins with NUL: not known */
    char time[32];
    bool is_current;
};
enum { NOBODY = UINT32_MAX };

/* Heads that somebody was given, signed. */
struct expected {
    char *name;
    char salt[AUDIT_SALT_CHARS + 1];
    int64_t issued_s;
    size_t count;
    audit_digest *digests; /* sorted */
    bool *were_found;
};

struct audit_chain {
    char name[AUDIT_CHAIN_CHARS + 1], node[AUDIT_NODE_BYTES];
    uint64_t known; /* a witness has verified it up to this line; 0: none has */
    char known_mac[MAC_KEPT_CHARS];
};

/* A growing array. */
struct array {
    char *items;
    size_t count, room, bytes;
};

struct audit_verifier {
    struct keyring *keyring;
    struct array chains, records, sightings, findings, summaries, files, expected;

    /* The current file. */
    uint64_t line;
    uint32_t last_chain; /* that a line belonged to */
    uint64_t unreadable; /* the line before this one, if it was unreadable; else 0 */
};

static void *array_add(struct array *array)
{
    if (!array->items || array->count == array->room) {
        array->room = array->room ? 2 * array->room : CHUNK;
        array->items = mem_resize(array->items, array->room * array->bytes);
    }
    char *item = array->items + array->count++ * array->bytes;
    memset(item, 0, array->bytes);
    return item;
}

static struct audit_chain *chain_at(const struct audit_verifier *v, size_t i)
{
    return (struct audit_chain *)(void *)v->chains.items + i;
}

static struct record *record_at(const struct audit_verifier *v, size_t i)
{
    return (struct record *)(void *)v->records.items + i;
}

static struct expected *expected_at(const struct audit_verifier *v, size_t i)
{
    return (struct expected *)(void *)v->expected.items + i;
}

static const char *file_name(const struct audit_verifier *v, uint32_t file)
{
    return ((char **)(void *)v->files.items)[file];
}

struct audit_verifier *audit_verifier_create(struct keyring *keyring)
{
    struct audit_verifier *v = mem_alloc(sizeof *v);

    v->keyring = keyring;
    v->chains.bytes = sizeof(struct audit_chain);
    v->records.bytes = sizeof(struct record);
    v->sightings.bytes = sizeof(struct sighting);
    v->findings.bytes = sizeof(struct audit_finding);
    v->summaries.bytes = sizeof(struct audit_chain_summary);
    v->files.bytes = sizeof(char *);
    v->expected.bytes = sizeof(struct expected);
    return v;
}

void audit_verifier_destroy(struct audit_verifier *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->files.count; i++)
        free(((char **)(void *)v->files.items)[i]);
    for (size_t i = 0; i < v->expected.count; i++) {
        free(expected_at(v, i)->name);
        free(expected_at(v, i)->digests);
        free(expected_at(v, i)->were_found);
    }
    struct array *arrays[] = {&v->chains,    &v->records, &v->sightings, &v->findings,
                              &v->summaries, &v->files,   &v->expected};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]->items);
    free(v);
}

/* The chain is unknown: findings may name one only once the table of chains is complete. */
static struct audit_finding *find(struct audit_verifier *v, enum audit_finding_kind kind, const char *file,
                                  uint64_t line)
{
    struct audit_finding *finding = array_add(&v->findings);

    finding->kind = kind;
    finding->chain = finding->node = "";
    finding->file = file;
    finding->line = line;
    return finding;
}

/* Reading */

/* The chains of a deployment are few; the last one is nearly always the right one. */
static uint32_t chain_of(struct audit_verifier *v, const char *name, const char *node)
{
    struct audit_chain *chain;

    if (v->chains.count > 0 && strcmp(chain_at(v, v->last_chain)->name, name) == 0)
        return v->last_chain;
    for (size_t i = 0; i < v->chains.count; i++)
        if (strcmp(chain_at(v, i)->name, name) == 0)
            return (uint32_t)i;
    chain = array_add(&v->chains);
    memcpy(chain->name, name, strlen(name));
    memcpy(chain->node, node, strlen(node));
    return (uint32_t)(v->chains.count - 1);
}

static uint32_t current_file(const struct audit_verifier *v)
{
    return (uint32_t)(v->files.count - 1);
}

void audit_verifier_witness(struct audit_verifier *v, const struct audit_witness *witness)
{
    const struct audit_head *head = witness->head;
    uint32_t chain = chain_of(v, head->chain, witness->node);
    struct sighting *sighting = array_add(&v->sightings);

    sighting->chain = chain;
    sighting->by = NOBODY;
    sighting->file = witness->name;
    sighting->seq = head->seq;
    memcpy(sighting->mac, head->mac, MAC_KEPT_CHARS);
    if (witness->time_ms > 0)
        clock_print_rfc3339(witness->time_ms, sighting->time);
    sighting->is_current = witness->is_current;
    if (!witness->has_it_all || head->seq <= chain_at(v, chain)->known)
        return;
    chain_at(v, chain)->known = head->seq;
    memcpy(chain_at(v, chain)->known_mac, head->mac, MAC_KEPT_CHARS);
}

void audit_verifier_expect(struct audit_verifier *v, struct text name, const struct audit_signed *heads)
{
    struct expected *expected = array_add(&v->expected);

    expected->name = mem_copy_text(name.ptr, name.len);
    memcpy(expected->salt, heads->salt, sizeof expected->salt);
    expected->issued_s = heads->issued_s;
    expected->count = heads->count;
    expected->digests = mem_alloc((heads->count + 1) * sizeof *expected->digests);
    if (heads->count > 0)
        memcpy(expected->digests, heads->digests, heads->count * sizeof *expected->digests);
    expected->were_found = mem_alloc(heads->count + 1);
}

static void add_sighting(struct audit_verifier *v, const struct audit_line_read *line, uint32_t by)
{
    struct sighting *sighting;
    uint32_t chain = chain_of(v, line->other.chain, line->other_node);

    sighting = array_add(&v->sightings);
    sighting->chain = chain;
    sighting->by = by;
    sighting->file = file_name(v, current_file(v));
    sighting->seq = line->other.seq;
    sighting->line = v->line;
    memcpy(sighting->mac, line->other.mac, MAC_KEPT_CHARS);
    memcpy(sighting->time, line->time, sizeof sighting->time);
}

static void add_record(struct audit_verifier *v, const struct audit_line_read *line, bool is_altered)
{
    uint32_t chain = chain_of(v, line->head.chain, line->node);
    struct record *record = array_add(&v->records);

    record->chain = chain;
    record->file = current_file(v);
    record->seq = line->head.seq;
    record->line = v->line;
    record->is_altered = is_altered;
    record->is_continued = strcmp(line->type, AUDIT_LINE_CONTINUED) == 0;
    record->is_reopened = strcmp(line->type, AUDIT_LINE_REOPENED) == 0;
    record->lost_from = line->lost_from;
    record->has_ended = strcmp(line->type, AUDIT_LINE_ENDED) == 0;
    memcpy(record->mac, line->head.mac, MAC_KEPT_CHARS);
    memcpy(record->prev, line->prev, MAC_KEPT_CHARS);
    memcpy(record->time, line->time, sizeof record->time);
    v->last_chain = chain;
}

/* The unreadable line before this one is explained if this line says so. */
static void settle_unreadable(struct audit_verifier *v, bool is_explained)
{
    if (v->unreadable > 0)
        find(v, is_explained ? AUDIT_TORN : AUDIT_UNREADABLE, file_name(v, current_file(v)), v->unreadable);
    v->unreadable = 0;
}

void audit_verifier_begin_file(struct audit_verifier *v, const char *name)
{
    settle_unreadable(v, false);
    char **file = array_add(&v->files);
    *file = mem_copy_text(name, strlen(name));
    v->line = 0;
}

void audit_verifier_add(struct audit_verifier *v, struct text line, bool is_whole)
{
    struct audit_line_read read;
    enum audit_line_state state = audit_line_read(v->keyring, line, &read);

    v->line++;
    settle_unreadable(v, state == AUDIT_LINE_GENUINE && strcmp(read.type, AUDIT_LINE_TORN) == 0);
    if (state == AUDIT_LINE_UNREADABLE && !is_whole) {
        find(v, AUDIT_UNFINISHED, file_name(v, current_file(v)), v->line);
    } else if (state == AUDIT_LINE_UNREADABLE) {
        v->unreadable = v->line;
    } else {
        add_record(v, &read, state == AUDIT_LINE_ALTERED);
        if (state == AUDIT_LINE_GENUINE && read.other.chain[0])
            add_sighting(v, &read, record_at(v, v->records.count - 1)->chain);
    }
}

/* Judging: the records of all files, sorted, are compared neighbour by neighbour. */

static int compare_records(const void *left, const void *right)
{
    const struct record *a = left, *b = right;

    if (a->chain != b->chain)
        return a->chain < b->chain ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    if (a->is_altered != b->is_altered)
        return a->is_altered ? 1 : -1; /* a genuine line, if there is one, comes first */
    int order = memcmp(a->mac, b->mac, MAC_KEPT_CHARS);
    if (order == 0 && a->file != b->file)
        order = a->file < b->file ? -1 : 1;
    return order != 0 ? order : a->line < b->line ? -1 : a->line > b->line;
}

static struct audit_finding *find_in(struct audit_verifier *v, enum audit_finding_kind kind,
                                     const struct record *record, uint64_t seq, uint64_t seq_end)
{
    CHECK(record);
    struct audit_finding *finding = find(v, kind, file_name(v, record->file), record->line);
    const struct audit_chain *chain = chain_at(v, record->chain);

    finding->chain = chain->name;
    finding->node = chain->node;
    finding->seq = seq;
    finding->seq_end = seq_end;
    return finding;
}

/* The same lines in two places: one finding for a run of them. */
static void note_repeated(struct audit_verifier *v, const struct record *record)
{
    struct audit_finding *last =
        v->findings.count > 0 ? (struct audit_finding *)(void *)v->findings.items + v->findings.count - 1 : NULL;

    if (last && last->kind == AUDIT_REPEATED && last->chain == chain_at(v, record->chain)->name &&
        record->seq <= last->seq_end + 1)
        last->seq_end = record->seq;
    else
        find_in(v, AUDIT_REPEATED, record, record->seq, record->seq);
}

/* One that is not known contradicts none. */
static bool is_same_mac(const char *one, const char *other)
{
    return one[0] == '\0' || other[0] == '\0' || memcmp(one, other, MAC_KEPT_CHARS) == 0;
}

/* Lines from expected on are in no file. What a line says of a loss explains only what it says is lost. */
static void judge_gap(struct audit_verifier *v, const struct record *before, const struct record *record,
                      uint64_t expected)
{
    uint64_t lost_from = record->is_reopened ? record->lost_from : record->seq;

    if (expected < lost_from)
        find_in(v, !before && (record->is_continued || record->is_reopened) ? AUDIT_EARLIER : AUDIT_MISSING, record,
                expected, lost_from - 1);
    else
        lost_from = expected;
    if (lost_from < record->seq)
        find_in(v, AUDIT_LOST, record, lost_from, record->seq - 1);
}

/* before: the line with the next lower number, NULL: there is none. What an altered line claims proves nothing. */
static void judge_step(struct audit_verifier *v, const struct record *before, const struct record *record)
{
    const struct audit_chain *chain = chain_at(v, record->chain);
    uint64_t expected = before ? before->seq + 1 : record->seq <= chain->known ? record->seq : chain->known + 1;

    if (record->is_altered)
        find_in(v, AUDIT_CHANGED, record, record->seq, record->seq);
    else if (before && record->seq == before->seq && memcmp(record->mac, before->mac, MAC_KEPT_CHARS) == 0)
        note_repeated(v, record);
    else if (record->seq > expected)
        judge_gap(v, before, record, expected);
    else if (before ? !before->is_altered && (record->seq == before->seq || !is_same_mac(record->prev, before->mac))
                    : record->seq == chain->known + 1 && !is_same_mac(record->prev, chain->known_mac))
        find_in(v, AUDIT_FORKED, record, record->seq, record->seq);
    if (before && record->file == before->file && record->seq > before->seq && record->line < before->line)
        find_in(v, AUDIT_REORDERED, before, before->seq, before->seq);
}

/* Whether the next line is compared with this one. An altered line holds only the place that it must have had. */
static bool goes_on(const struct record *before, const struct record *record)
{
    return record->is_altered ? record->seq == (before ? before->seq + 1 : 1) : !before || record->seq > before->seq;
}

static void summarise(struct audit_verifier *v, uint32_t chain, size_t first, size_t end)
{
    struct audit_chain_summary *summary = array_add(&v->summaries);
    const struct record *last = NULL;

    summary->chain = chain_at(v, chain)->name;
    summary->node = chain_at(v, chain)->node;
    for (size_t i = first; i < end; i++) {
        const struct record *record = record_at(v, i);

        if (record->is_altered || (last && record->seq == last->seq))
            continue;
        if (!last) {
            summary->first = record->seq;
            memcpy(summary->first_time, record->time, sizeof record->time);
        }
        last = record;
        summary->lines++;
    }
    if (!last)
        return;
    summary->last = last->seq;
    summary->has_ended = last->has_ended;
    memcpy(summary->last_time, last->time, sizeof last->time);
    memcpy(summary->last_mac, last->mac, MAC_KEPT_CHARS);
}

static const struct record *search(const struct audit_verifier *v, size_t first, size_t end, uint64_t seq)
{
    while (first < end) {
        size_t middle = first + (end - first) / 2;

        if (record_at(v, middle)->seq < seq)
            first = middle + 1;
        else
            end = middle;
    }
    return first < v->records.count ? record_at(v, first) : NULL;
}

/* Somebody else saw another line in this place. */
static void judge_sighting(struct audit_verifier *v, const struct sighting *sighting, size_t first, size_t end)
{
    const struct record *record = search(v, first, end, sighting->seq);

    if (!record || record->chain != sighting->chain || record->seq != sighting->seq || record->is_altered ||
        is_same_mac(record->mac, sighting->mac))
        return;
    struct audit_finding *finding = find_in(v, AUDIT_FORKED, record, sighting->seq, sighting->seq);
    finding->file = sighting->file;
    finding->line = sighting->line;
}

/* furthest NULL: nobody saw this chain. is_current: somebody has just seen it, not as far as it goes now. */
static void judge_end(struct audit_verifier *v, const struct audit_chain_summary *summary,
                      const struct sighting *furthest, bool is_current, const struct record *last)
{
    uint64_t seen = furthest ? furthest->seq : 0;
    struct audit_finding *finding;

    if (summary->lines > 0 && seen <= summary->last) {
        if (seen < summary->last && !is_current)
            find_in(v, AUDIT_UNCONFIRMED, last, seen + 1, summary->last);
        return;
    }
    if (!furthest)
        return;
    finding = find(v, last ? AUDIT_CUT : AUDIT_NOT_GIVEN, furthest->file, furthest->line);
    finding->chain = summary->chain;
    finding->node = summary->node;
    finding->seq = summary->last + 1;
    finding->seq_end = seen;
}

/* What others saw of this chain, and it no longer is. Several lines that saw the same cut are one finding: the one that
 * saw most. */
static void judge_sightings(struct audit_verifier *v, struct audit_chain_summary *summary, uint32_t chain, size_t first,
                            size_t end)
{
    const struct sighting *furthest = NULL;
    const struct sighting *all = (const struct sighting *)(const void *)v->sightings.items;
    bool is_current = false;

    for (size_t i = 0; i < v->sightings.count; i++) {
        if (all[i].chain != chain || all[i].by == chain)
            continue;
        if (!furthest || all[i].seq > furthest->seq)
            furthest = &all[i];
        is_current |= all[i].is_current;
        judge_sighting(v, &all[i], first, end);
    }
    judge_end(v, summary, furthest, is_current, first < end ? record_at(v, end - 1) : NULL);
    if (!furthest)
        return;
    summary->seen = furthest->seq;
    memcpy(summary->seen_time, furthest->time, sizeof furthest->time);
}

enum audit_weight audit_finding_weight(enum audit_finding_kind kind)
{
    return kind <= AUDIT_CUT ? AUDIT_WRONG : kind <= AUDIT_UNCONFIRMED ? AUDIT_UNPROVEN : AUDIT_NOTE;
}

static void judge_chain(struct audit_verifier *v, uint32_t chain, size_t first, size_t end)
{
    size_t findings = v->findings.count;
    const struct record *before = NULL;

    for (size_t i = first; i < end; i++) {
        const struct record *record = record_at(v, i);

        judge_step(v, before, record);
        if (goes_on(before, record))
            before = record;
    }
    summarise(v, chain, first, end);
    struct audit_chain_summary *summary =
        (struct audit_chain_summary *)(void *)v->summaries.items + v->summaries.count - 1;
    judge_sightings(v, summary, chain, first, end);
    summary->is_whole = summary->has_beginning = true;
    for (size_t i = findings; i < v->findings.count; i++) {
        const struct audit_finding *finding = (struct audit_finding *)(void *)v->findings.items + i;

        if (audit_finding_weight(finding->kind) == AUDIT_WRONG)
            summary->is_whole = false;
        if (finding->kind == AUDIT_EARLIER)
            summary->has_beginning = false;
    }
}

/* Signed heads do not name their lines: each line says whether it is one of them. */
static void find_expected(struct audit_verifier *v, struct expected *expected, const struct record *record)
{
    audit_digest digest;

    audit_digest_of(text_of(expected->salt), text_of(chain_at(v, record->chain)->name), record->seq, record->mac,
                    digest);
    const audit_digest *found =
        bsearch(&digest, expected->digests, expected->count, sizeof digest, audit_digest_compare);
    if (!found)
        return;
    expected->were_found[found - expected->digests] = true;
    struct sighting *sighting = array_add(&v->sightings);
    sighting->chain = record->chain;
    sighting->by = NOBODY;
    sighting->file = expected->name;
    sighting->seq = record->seq;
    memcpy(sighting->mac, record->mac, MAC_KEPT_CHARS);
    clock_print_rfc3339(expected->issued_s * MS_PER_S, sighting->time);
}

static void judge_expected(struct audit_verifier *v, struct expected *expected)
{
    for (size_t i = 0; i < v->records.count; i++)
        if (!record_at(v, i)->is_altered)
            find_expected(v, expected, record_at(v, i));
    for (size_t i = 0; i < expected->count; i++)
        if (!expected->were_found[i])
            find(v, AUDIT_ABSENT, expected->name, 0);
}

void audit_verifier_judge(struct audit_verifier *v)
{
    size_t first = 0;

    settle_unreadable(v, false);
    for (size_t i = 0; i < v->expected.count; i++)
        judge_expected(v, expected_at(v, i));
    if (v->records.count > 0)
        qsort(v->records.items, v->records.count, sizeof(struct record), compare_records);
    for (uint32_t chain = 0; chain < v->chains.count; chain++) {
        size_t end = first;

        while (end < v->records.count && record_at(v, end)->chain == chain)
            end++;
        judge_chain(v, chain, first, end);
        first = end;
    }
}

size_t audit_verifier_findings(const struct audit_verifier *v, const struct audit_finding **ret_findings)
{
    *ret_findings = (const struct audit_finding *)(const void *)v->findings.items;
    return v->findings.count;
}

size_t audit_verifier_chains(const struct audit_verifier *v, const struct audit_chain_summary **ret_chains)
{
    *ret_chains = (const struct audit_chain_summary *)(const void *)v->summaries.items;
    return v->summaries.count;
}
