#include "base/json.h"
#include "core/audit_chain.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t MASTERS[3][KEYRING_MASTER_BYTES] = {{1}, {2}, {3}};

static struct keyring *keyring;

static void begin(void)
{
    keyring = keyring_create(MASTERS, 1);
}

static void end(void)
{
    keyring_destroy(keyring);
    leak_guard();
}

TestSuite(audit_line, .init = begin, .fini = end);
TestSuite(audit_chain, .init = begin, .fini = end);

/* Lines */

static const struct audit_line REVOKED = {
    .time_ms = 1700000000000,
    .node = {"n1", 2},
    .id = {"evt_01jd0000000000000000000001", 30},
    .account = {"acct_01jd0000000000000000000001", 31},
    .type = {"api_key.revoked", 15},
    .actor = {"operator", 8},
    .target = {"key_01jd0000000000000000000001", 30},
    .data_count = 1,
    .data = {{{"reason", 6}, {"a\"b", 3}}},
};

static void print_line(struct keyring *by, const struct audit_line *line, struct audit_head *head, struct buf *out)
{
    struct buf body CLEANUP(buf_finish);

    buf_init(&body, AUDIT_LINE_MAX_BYTES);
    audit_body_print(line, &body);
    cr_assert_not(body.failed);
    audit_line_print(by, buf_text(&body), head, out);
    cr_assert_not(out->failed);
}

static struct text without_newline(const struct buf *out)
{
    return (struct text){out->ptr, out->len - 1};
}

Test(audit_line, tells_everything_in_one_object)
{
    struct audit_head head = {.chain = "00112233aabbccdd", .mac = AUDIT_NO_MAC};
    struct buf out CLEANUP(buf_finish);
    struct audit_line_read read;
    char expected[600];

    buf_init(&out, AUDIT_LINE_MAX_BYTES);
    print_line(keyring, &REVOKED, &head, &out);
    snprintf(expected, sizeof expected,
             "{\"chain\":\"00112233aabbccdd\",\"seq\":1,\"time\":\"2023-11-14T22:13:20.000Z\",\"node\":\"n1\","
             "\"id\":\"evt_01jd0000000000000000000001\",\"account\":\"acct_01jd0000000000000000000001\","
             "\"type\":\"api_key.revoked\",\"actor\":\"operator\",\"actor_kind\":\"operator\","
             "\"target\":\"key_01jd0000000000000000000001\",\"target_kind\":\"api_key\",\"ip\":null,"
             "\"request_id\":null,\"data\":{\"reason\":\"a\\\"b\"},\"prev\":\"" AUDIT_NO_MAC "\",\"mac\":\"%s\"}\n",
             head.mac);
    buf_append_char(&out, '\0');
    cr_expect_str_eq(out.ptr, expected);
    out.len--;
    cr_assert_eq(audit_line_read(keyring, without_newline(&out), &read), AUDIT_LINE_GENUINE);
    cr_expect_eq(read.head.seq, 1);
    cr_expect_str_eq(read.head.mac, head.mac);
    cr_expect_str_eq(read.prev, AUDIT_NO_MAC);
    cr_expect_str_eq(read.node, "n1");
    cr_expect_str_eq(read.other.chain, "");
}

static bool ends_key(struct keyring *by, struct audit_line line, struct audit_key_end *ret_end)
{
    struct audit_head head = {.chain = "00112233aabbccdd", .mac = AUDIT_NO_MAC};
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, AUDIT_LINE_MAX_BYTES);
    print_line(by, &line, &head, &out);
    return audit_line_may_end_key(without_newline(&out)) &&
           audit_line_read_key_end(keyring, without_newline(&out), ret_end);
}

Test(audit_line, tells_which_key_was_revoked)
{
    struct keyring *other = keyring_create(&MASTERS[1], 1);
    struct audit_line line = REVOKED;
    struct audit_key_end end;

    cr_assert(ends_key(keyring, line, &end));
    cr_expect_str_eq(end.key.text, "key_01jd0000000000000000000001");
    cr_expect_str_eq(end.account.text, "acct_01jd0000000000000000000001");
    cr_expect_eq(end.at_ms, REVOKED.time_ms);
    cr_expect_not(ends_key(other, line, &end), "it is not genuine");
    line.type = TEXT("device_key.revoked");
    line.target = TEXT("dev_01jd0000000000000000000001");
    cr_expect(ends_key(keyring, line, &end));
    cr_expect_str_eq(end.key.text, "dev_01jd0000000000000000000001");
    line.target = TEXT("usr_01jd0000000000000000000001");
    cr_expect_not(ends_key(keyring, line, &end));
    line = REVOKED;
    line.type = TEXT("api_key.created");
    line.data[0].value = TEXT("\"type\":\"api_key.revoked\"");
    cr_expect_not(ends_key(keyring, line, &end), "somebody's text");
    cr_expect_not(audit_line_may_end_key(TEXT("")));
    keyring_destroy(other);
}

/* Names that strangers give are no ids. */
Test(audit_line, names_kinds)
{
    static const struct {
        struct text type, target, kind;
    } CASES[] = {
        {TEXT("device.denied"), TEXT("usr_01jd0000000000000000000001"), TEXT("device")},
        {TEXT("user.created"), TEXT("usr_01jd0000000000000000000001"), TEXT("user")},
        {TEXT("device_key.revoked"), TEXT("dev_01jd0000000000000000000001"), TEXT("device_key")},
        {TEXT("account.suspended"), TEXT("acct_01jd0000000000000000000001"), TEXT("account")},
        {TEXT("log.head"), TEXT("0011"), TEXT("")},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_expect(text_equal(audit_target_kind(CASES[i].type, CASES[i].target), CASES[i].kind), "case %zu", i);
    cr_expect(text_equal(audit_actor_kind(TEXT("system")), TEXT("system")));
    cr_expect(text_equal(audit_actor_kind(TEXT("holder")), TEXT("holder")));
    cr_expect(text_equal(audit_actor_kind(TEXT("systems")), TEXT("")));
}

Test(audit_line, any_changed_byte_shows)
{
    struct audit_head head;
    struct buf out CLEANUP(buf_finish);
    struct audit_line_read read;

    audit_head_begin(&head);
    buf_init(&out, AUDIT_LINE_MAX_BYTES);
    print_line(keyring, &REVOKED, &head, &out);
    for (size_t i = 0; i + 1 < out.len; i++) {
        out.ptr[i] ^= 1;
        cr_expect_neq(audit_line_read(keyring, without_newline(&out), &read), AUDIT_LINE_GENUINE, "byte %zu", i);
        out.ptr[i] ^= 1;
        cr_expect_eq(audit_line_read(keyring, (struct text){out.ptr, i}, &read), AUDIT_LINE_UNREADABLE, "cut at %zu",
                     i);
    }
    cr_expect_eq(audit_line_read(keyring, without_newline(&out), &read), AUDIT_LINE_GENUINE);
    cr_expect_eq(audit_line_read(NULL, without_newline(&out), &read), AUDIT_LINE_ALTERED);
}

Test(audit_line, the_longest_fits)
{
    static char control[4000];
    struct audit_line line = REVOKED;
    struct audit_head head;
    struct buf out CLEANUP(buf_finish);
    struct audit_line_read read;
    struct text t = {control, sizeof control};

    memset(control, 1, sizeof control);
    line.account = line.id = line.type = line.actor = line.target = line.ip = line.request_id = t;
    for (line.data_count = 0; line.data_count < AUDIT_LINE_DATA_MAX; line.data_count++)
        line.data[line.data_count] = (struct audit_line_datum){t, t};
    audit_head_begin(&head);
    buf_init(&out, AUDIT_LINE_MAX_BYTES);
    print_line(keyring, &line, &head, &out);
    cr_expect_lt(out.len, (size_t)AUDIT_LINE_MAX_BYTES);
    (void)audit_line_read(keyring, without_newline(&out), &read);
}

Test(audit_line, retired_keys_verify_and_others_do_not)
{
    struct keyring *rotated = keyring_create((const uint8_t[2][KEYRING_MASTER_BYTES]){{2}, {1}}, 2);
    struct keyring *other = keyring_create(&MASTERS[2], 1);
    struct audit_head head;
    struct buf out CLEANUP(buf_finish);
    struct audit_line_read read;

    audit_head_begin(&head);
    buf_init(&out, AUDIT_LINE_MAX_BYTES);
    print_line(keyring, &REVOKED, &head, &out);
    cr_expect_eq(audit_line_read(rotated, without_newline(&out), &read), AUDIT_LINE_GENUINE);
    cr_expect_eq(audit_line_read(other, without_newline(&out), &read), AUDIT_LINE_ALTERED);
    keyring_destroy(rotated);
    keyring_destroy(other);
}

Test(audit_line, published_heads_cannot_be_made_up)
{
    struct audit_published published = {.event_seq = 5, .time_ms = 77, .node = "host 127.0.0.1:80"}, read;
    struct keyring *other = keyring_create(&MASTERS[2], 1);
    struct buf out CLEANUP(buf_finish);

    audit_head_begin(&published.head);
    published.head.seq = 9;
    buf_init(&out, 1000);
    audit_published_print(keyring, &published, &out);
    struct text chain = text_of(published.head.chain);
    cr_assert(audit_published_read(keyring, chain, buf_text(&out), &read));
    cr_expect_eq(read.head.seq, 9);
    cr_expect_eq(read.event_seq, 5);
    cr_expect_eq(read.time_ms, 77);
    cr_expect_str_eq(read.head.mac, published.head.mac);
    cr_expect_str_eq(read.node, published.node);
    cr_expect_not(audit_published_read(other, chain, buf_text(&out), &read));
    cr_expect_not(audit_published_read(keyring, TEXT("0011223344556677"), buf_text(&out), &read));
    for (size_t i = 0; i < out.len; i++) {
        out.ptr[i] ^= 1;
        cr_expect_not(audit_published_read(keyring, chain, buf_text(&out), &read), "byte %zu", i);
        out.ptr[i] ^= 1;
        cr_expect_not(audit_published_read(keyring, chain, (struct text){out.ptr, i}, &read), "cut at %zu", i);
    }
    keyring_destroy(other);
}

/* Chains */

enum { LINES_MAX = 32 };

/* A log: lines with their newlines. */
struct log {
    struct audit_head head;
    size_t count;
    char *lines[LINES_MAX];
};

static void add(struct log *log, const char *type, const struct audit_head *other, const char *other_node)
{
    struct audit_line line = {.time_ms = 1700000000000, .node = TEXT("n1"), .type = text_of(type)};
    struct buf out;
    char seq[24];

    if (log->count == 0 && log->head.seq == 0)
        audit_head_begin(&log->head);
    if (other) {
        snprintf(seq, sizeof seq, "%llu", (unsigned long long)other->seq);
        line.data[0] = (struct audit_line_datum){TEXT("chain"), text_of(other->chain)};
        line.data[1] = (struct audit_line_datum){TEXT("seq"), text_of(seq)};
        line.data[2] = (struct audit_line_datum){TEXT("mac"), text_of(other->mac)};
        line.data[3] = (struct audit_line_datum){TEXT("node"), text_of(other_node)};
        line.data_count = 4;
    }
    buf_init(&out, AUDIT_LINE_MAX_BYTES);
    print_line(keyring, &line, &log->head, &out);
    buf_append_char(&out, '\0');
    log->lines[log->count++] = out.ptr;
}

static struct log make_log(size_t events)
{
    struct log log = {0};

    add(&log, AUDIT_LINE_BEGAN, NULL, NULL);
    while (log.count < events + 1)
        add(&log, "api_key.revoked", NULL, NULL);
    return log;
}

static void free_log(struct log *log)
{
    for (size_t i = 0; i < log->count; i++)
        free(log->lines[i]);
}

/* Feeds lines[from, to) of a log as a file. */
static void feed(struct audit_verifier *v, const char *name, const struct log *log, size_t from, size_t to)
{
    audit_verifier_begin_file(v, name);
    for (size_t i = from; i < to; i++) {
        size_t len = strlen(log->lines[i]);
        bool is_whole = log->lines[i][len - 1] == '\n';

        audit_verifier_add(v, (struct text){log->lines[i], len - is_whole}, is_whole);
    }
}

/* Judges and checks the findings: "kind seq seq_end file:line; …". Frees the verifier. */
static void expect(struct audit_verifier *v, const char *expected)
{
    static const char *const NAMES[] = {"changed", "unreadable",  "missing",    "reordered", "forked",
                                        "lost",    "cut",         "unfinished", "earlier",   "not given",
                                        "absent",  "unconfirmed", "torn",       "repeated"};
    const struct audit_finding *findings;
    struct buf out CLEANUP(buf_finish);

    audit_verifier_judge(v);
    buf_init(&out, 4000);
    for (size_t i = 0, count = audit_verifier_findings(v, &findings); i < count; i++)
        buf_printf(&out, "%s%s %llu %llu %s:%llu", i > 0 ? "; " : "", NAMES[findings[i].kind],
                   (unsigned long long)findings[i].seq, (unsigned long long)findings[i].seq_end, findings[i].file,
                   (unsigned long long)findings[i].line);
    buf_append_char(&out, '\0');
    cr_expect_str_eq(out.ptr, expected);
    audit_verifier_destroy(v);
}

Test(audit_chain, a_whole_log_is_whole)
{
    struct log log = make_log(5);
    struct audit_verifier *v = audit_verifier_create(keyring);
    const struct audit_chain_summary *chains;

    add(&log, AUDIT_LINE_ENDED, NULL, NULL);
    feed(v, "a", &log, 0, log.count);
    audit_verifier_judge(v);
    cr_assert_eq(audit_verifier_chains(v, &chains), 1);
    cr_expect_str_eq(chains->chain, log.head.chain);
    cr_expect_str_eq(chains->node, "n1");
    cr_expect_eq(chains->first, 1);
    cr_expect_eq(chains->last, 7);
    cr_expect_eq(chains->lines, 7);
    cr_expect(chains->has_ended && chains->is_whole);
    audit_verifier_destroy(v);
    v = audit_verifier_create(keyring);
    feed(v, "a", &log, 0, log.count);
    expect(v, "unconfirmed 1 7 a:7");
    free_log(&log);
}

/* What may be wrong with one file of lines 1 to 8: which lines it has, and what of line 5 is changed. */
Test(audit_chain, what_is_wrong_with_a_file_shows)
{
    static const struct {
        const char *lines; /* by number, in their order; 'x': garbage, 'c': line 5, changed; 'h': half of line 8 */
        const char *findings;
    } CASES[] = {
        {"12345678", "unconfirmed 1 8 a:8"},
        {"1234c678", "changed 5 5 a:5; unconfirmed 1 8 a:8"},
        {"1234678", "missing 5 5 a:5; unconfirmed 1 8 a:7"},
        {"145678", "missing 2 3 a:2; unconfirmed 1 8 a:6"},
        {"345678", "missing 1 2 a:1; unconfirmed 1 8 a:6"},
        {"12346578", "reordered 5 5 a:6; unconfirmed 1 8 a:8"},
        {"1234x678", "unreadable 0 0 a:5; missing 5 5 a:6; unconfirmed 1 8 a:8"},
        {"1234x5678", "unreadable 0 0 a:5; unconfirmed 1 8 a:9"},
        {"12345678x", "unreadable 0 0 a:9; unconfirmed 1 8 a:8"},
        {"1234567h", "unfinished 0 0 a:8; unconfirmed 1 7 a:7"},
        {"123455678", "repeated 5 5 a:6; unconfirmed 1 8 a:9"},
        {"1234567", "unconfirmed 1 7 a:7"},
        {"2345678", "missing 1 1 a:1; unconfirmed 1 8 a:7"},
        {"1234c5678", "changed 5 5 a:5; unconfirmed 1 8 a:9"},
    };
    struct log log = make_log(7), part = {0};
    struct audit_verifier *v;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char changed[2000], half[100];

        snprintf(changed, sizeof changed, "%s", log.lines[4]);
        *strstr(changed, "revoked") = 'R';
        snprintf(half, sizeof half, "%.50s", log.lines[7]);
        part.count = 0;
        for (const char *at = CASES[i].lines; *at; at++)
            part.lines[part.count++] = *at == 'x'   ? (char *)"garbage\n"
                                       : *at == 'c' ? changed
                                       : *at == 'h' ? half
                                                    : log.lines[*at - '1'];
        v = audit_verifier_create(keyring);
        feed(v, "a", &part, 0, part.count);
        expect(v, CASES[i].findings);
    }
    free_log(&log);
}

/* Says that the lines from there on were lost. */
static void add_loss(struct log *log, uint64_t lost_from)
{
    const struct audit_number from = {"lost_from", lost_from}, to = {"lost_to", log->head.seq};
    struct buf out;

    buf_init(&out, AUDIT_LINE_MAX_BYTES);
    audit_line_print_own(keyring, TEXT("n1"), AUDIT_LINE_REOPENED, from, to, &log->head, &out);
    buf_append_char(&out, '\0');
    log->lines[log->count++] = out.ptr;
}

/* Of lines 1 to 8, 5 to 8 were lost, says line 9. Files with lines 1 to `end`, and from line `begin` on. */
Test(audit_chain, a_loss_that_a_line_tells_explains_what_it_names)
{
    static const struct {
        uint64_t lost_from;
        size_t end, begin;
        const char *findings;
    } CASES[] = {
        {5, 4, 8, "lost 5 8 b:1; unconfirmed 1 10 b:2"},
        {0, 4, 8, "lost 5 8 b:1; unconfirmed 1 10 b:2"}, /* the node could not tell from where on */
        {5, 8, 8, "unconfirmed 1 10 b:2"},               /* a copy was kept */
        {5, 6, 8, "lost 7 8 b:1; unconfirmed 1 10 b:2"},
        {5, 3, 8, "missing 4 4 b:1; lost 5 8 b:1; unconfirmed 1 10 b:2"},
        {5, 0, 8, "earlier 1 4 b:1; lost 5 8 b:1; unconfirmed 1 10 b:2"},
        {5, 4, 9, "missing 5 9 b:1; unconfirmed 1 10 b:1"}, /* without the line that tells */
        {9, 4, 8, "missing 5 8 b:1; unconfirmed 1 10 b:2"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct audit_verifier *v = audit_verifier_create(keyring);
        struct log log = make_log(7);

        add_loss(&log, CASES[i].lost_from);
        add(&log, "api_key.revoked", NULL, NULL);
        feed(v, "a", &log, 0, CASES[i].end);
        feed(v, "b", &log, CASES[i].begin, log.count);
        expect(v, CASES[i].findings);
        free_log(&log);
    }
}

static void see(struct audit_verifier *v, const struct log *log, uint64_t seq, bool has_mac, bool is_current,
                bool has_it_all)
{
    struct audit_head head = {.seq = seq};
    const struct audit_witness witness = {
        .name = "W", .head = &head, .node = "n1", .is_current = is_current, .has_it_all = has_it_all};
    struct audit_line_read read;

    memcpy(head.chain, log->head.chain, sizeof head.chain);
    if (has_mac && seq > 0 && seq <= log->count) {
        cr_assert_eq(
            audit_line_read(keyring, (struct text){log->lines[seq - 1], strlen(log->lines[seq - 1]) - 1}, &read),
            AUDIT_LINE_GENUINE);
        memcpy(head.mac, read.head.mac, sizeof head.mac);
    }
    audit_verifier_witness(v, &witness);
}

/* Of a log of 8 lines in two files, of which the second begins with line 5: which lines are there, and how far a
 * witness has seen it. */
Test(audit_chain, only_what_somebody_confirms_is_proven)
{
    enum { CURRENT = 1, ALL = 2, WITHOUT_MAC = 4 };
    static const struct {
        size_t from, to;
        uint64_t seen;
        int how;
        const char *findings;
    } CASES[] = {
        {1, 8, 8, 0, ""},
        {1, 8, 6, 0, "unconfirmed 7 8 b:4"}, /* the newest lines */
        {1, 8, 6, CURRENT, ""},
        {1, 6, 8, 0, "cut 7 8 W:0"}, /* the last two are cut */
        {1, 6, 8, CURRENT, "cut 7 8 W:0"},
        {1, 4, 8, 0, "cut 5 8 W:0"},     /* the newest file is missing */
        {5, 8, 8, 0, "earlier 1 4 b:1"}, /* the oldest file is missing */
        {5, 8, 8, ALL, ""},
        {5, 8, 4, ALL | CURRENT, ""},
        {5, 8, 4, ALL, "unconfirmed 5 8 b:4"},
        {5, 8, 4, ALL | WITHOUT_MAC, "unconfirmed 5 8 b:4"},
        {5, 8, 2, ALL | CURRENT, "earlier 3 4 b:1"},
        {6, 8, 8, 0, "missing 1 5 b:1"},
        {6, 8, 8, ALL, ""},
        {1, 8, 9, WITHOUT_MAC, "cut 9 9 W:0"},
        {1, 8, 0, 0, "unconfirmed 1 8 b:4"}, /* its head in Redis was altered */
        {9, 8, 8, 0, "not given 1 8 W:0"},   /* the whole file is missing */
    };
    struct log log = make_log(3);

    add(&log, AUDIT_LINE_CONTINUED, NULL, NULL);
    for (int i = 0; i < 3; i++)
        add(&log, "x", NULL, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct audit_verifier *v = audit_verifier_create(keyring);

        see(v, &log, CASES[i].seen, !(CASES[i].how & WITHOUT_MAC), CASES[i].how & CURRENT, CASES[i].how & ALL);
        if (CASES[i].from < 5)
            feed(v, "a", &log, CASES[i].from - 1, CASES[i].to < 4 ? CASES[i].to : 4);
        if (CASES[i].from <= CASES[i].to && CASES[i].to > 4)
            feed(v, "b", &log, CASES[i].from < 5 ? 4 : CASES[i].from - 1, CASES[i].to);
        expect(v, CASES[i].findings);
    }
    free_log(&log);
}

/* A log that was put back and went on, seen as it was before: inside, and just before the first line. */
Test(audit_chain, a_witness_has_seen_another_line)
{
    struct log log = make_log(5), other = make_log(5);
    struct audit_verifier *v = audit_verifier_create(keyring);

    memcpy(other.head.chain, log.head.chain, sizeof log.head.chain);
    see(v, &other, 6, true, true, false);
    feed(v, "a", &log, 0, 6);
    expect(v, "forked 6 6 W:0");
    v = audit_verifier_create(keyring);
    see(v, &other, 3, true, true, true);
    feed(v, "a", &log, 3, 6);
    expect(v, "forked 4 4 a:1");
    free_log(&log);
    free_log(&other);
}

/* Pieces of a rotated log, in any order; a piece given twice; a piece that is not given. */
Test(audit_chain, pieces_come_in_any_order)
{
    struct log log = make_log(3);
    struct audit_verifier *v = audit_verifier_create(keyring);

    add(&log, AUDIT_LINE_CONTINUED, NULL, NULL); /* 5 */
    add(&log, "x", NULL, NULL);
    add(&log, AUDIT_LINE_CONTINUED, NULL, NULL); /* 7 */
    add(&log, "x", NULL, NULL);
    feed(v, "c", &log, 6, 8);
    feed(v, "a", &log, 0, 4);
    feed(v, "b", &log, 4, 6);
    expect(v, "unconfirmed 1 8 c:2");
    v = audit_verifier_create(keyring);
    feed(v, "c", &log, 6, 8);
    feed(v, "b", &log, 4, 6);
    feed(v, "b2", &log, 4, 6);
    expect(v, "earlier 1 4 b:1; repeated 5 6 b2:1; unconfirmed 1 8 c:2");
    v = audit_verifier_create(keyring);
    feed(v, "c", &log, 6, 8);
    feed(v, "a", &log, 0, 4);
    expect(v, "missing 5 6 c:1; unconfirmed 1 8 c:2");
    free_log(&log);
}

Test(audit_chain, a_cut_end_shows_in_another_node_s_file)
{
    struct log log = make_log(5), other = make_log(1);
    struct audit_verifier *v;

    add(&other, AUDIT_LINE_HEAD, &log.head, "n9");
    add(&log, "x", NULL, NULL); /* after it was seen */
    for (size_t cut = 0; cut <= 2; cut++) {
        const char *const EXPECTED[] = {"unconfirmed 7 7 a:7; unconfirmed 1 3 b:3", "unconfirmed 1 3 b:3",
                                        "cut 6 6 b:3; unconfirmed 1 3 b:3"};

        v = audit_verifier_create(keyring);
        feed(v, "a", &log, 0, log.count - cut);
        feed(v, "b", &other, 0, other.count);
        expect(v, EXPECTED[cut]);
    }
    v = audit_verifier_create(keyring);
    feed(v, "b", &other, 0, other.count);
    expect(v, "unconfirmed 1 3 b:3; not given 1 6 b:3");
    free_log(&log);
    free_log(&other);
}

/* The file was put back to an earlier state, and the node went on from there: the other node has seen another line. */
Test(audit_chain, a_log_that_was_put_back_shows)
{
    struct log log = make_log(5), other = make_log(1), back = {.head = log.head};
    struct audit_verifier *v = audit_verifier_create(keyring);
    struct audit_line_read read;

    add(&other, AUDIT_LINE_HEAD, &log.head, "n1");
    cr_assert_eq(audit_line_read(keyring, (struct text){log.lines[3], strlen(log.lines[3]) - 1}, &read),
                 AUDIT_LINE_GENUINE);
    back.head = read.head;
    add(&back, "y", NULL, NULL);
    add(&back, "y", NULL, NULL);
    audit_verifier_begin_file(v, "a");
    for (size_t i = 0; i < 4; i++)
        audit_verifier_add(v, (struct text){log.lines[i], strlen(log.lines[i]) - 1}, true);
    for (size_t i = 0; i < 2; i++)
        audit_verifier_add(v, (struct text){back.lines[i], strlen(back.lines[i]) - 1}, true);
    feed(v, "b", &other, 0, other.count);
    expect(v, "forked 6 6 b:3; unconfirmed 1 3 b:3");
    /* With a copy of the file from before. */
    v = audit_verifier_create(keyring);
    feed(v, "a", &log, 0, log.count);
    feed(v, "b", &back, 0, back.count);
    audit_verifier_judge(v);
    const struct audit_chain_summary *chains;
    cr_assert_eq(audit_verifier_chains(v, &chains), 1);
    cr_expect_not(chains->is_whole);
    audit_verifier_destroy(v);
    free_log(&log);
    free_log(&other);
    free_log(&back);
}

Test(audit_chain, a_torn_line_is_explained_by_the_node)
{
    struct log log = make_log(2), part = {0};
    struct audit_verifier *v = audit_verifier_create(keyring);

    add(&log, AUDIT_LINE_TORN, NULL, NULL);
    add(&log, "x", NULL, NULL);
    const char *const LINES[] = {log.lines[0],          log.lines[1], log.lines[2],
                                 "{\"chain\":\"half\n", log.lines[3], log.lines[4]};
    for (size_t i = 0; i < 6; i++)
        part.lines[part.count++] = (char *)LINES[i];
    feed(v, "a", &part, 0, part.count);
    expect(v, "torn 0 0 a:4; unconfirmed 1 5 a:6");
    free_log(&log);
}

/* What an account was given of these heads. */
static void sign_heads(const struct audit_head *heads, size_t count, struct buf *out, struct audit_signed *ret_signed)
{
    const struct audit_signing signing = {
        .issuer = TEXT("https://console.test"), .store = TEXT("aa"), .issued_s = 1700000100, count, heads};
    struct receipt_keys keys;
    const char *why = NULL;

    buf_init(out, AUDIT_SIGNED_MAX_BYTES);
    audit_signed_print(&signing, keyring, out);
    cr_assert_not(out->failed);
    receipt_keys_of(keyring, &keys);
    cr_assert(audit_signed_read(buf_text(out), &keys, ret_signed, &why), "%s", why);
}

static struct audit_verifier *expecting(const struct audit_signed *heads)
{
    struct audit_verifier *v = audit_verifier_create(keyring);

    audit_verifier_expect(v, TEXT("heads"), heads);
    return v;
}

/* An account holds where two logs ended, and does not know where. Whoever has the logs finds it there, or it is gone.
 */
Test(audit_chain, signed_heads_are_found_again)
{
    struct log one = make_log(5), other = make_log(2), later = {.head = one.head}, anew = {.head = one.head};
    const struct audit_head heads[] = {one.head, other.head};
    struct buf jws CLEANUP(buf_finish);
    struct audit_signed given;

    sign_heads(heads, 2, &jws, &given);
    cr_expect_eq(given.issued_s, 1700000100);
    cr_assert_eq(given.count, 2);
    add(&later, "x", NULL, NULL);
    struct audit_verifier *v = expecting(&given);
    feed(v, "a", &one, 0, one.count);
    feed(v, "b", &other, 0, other.count);
    expect(v, "");
    v = expecting(&given);
    feed(v, "a", &one, 0, one.count);
    feed(v, "c", &later, 0, later.count);
    feed(v, "b", &other, 0, other.count);
    expect(v, "unconfirmed 7 7 c:1");
    /* Cut by whoever could, before it was verified. */
    v = expecting(&given);
    feed(v, "a", &one, 0, one.count - 1);
    feed(v, "b", &other, 0, other.count);
    expect(v, "absent 0 0 heads:0; unconfirmed 1 5 a:5");
    /* The last line, written anew with the master key: the chain itself is flawless. */
    struct audit_line_read read;
    cr_assert_eq(audit_line_read(keyring, (struct text){one.lines[4], strlen(one.lines[4]) - 1}, &read),
                 AUDIT_LINE_GENUINE);
    anew.head = read.head;
    add(&anew, "y", NULL, NULL);
    v = expecting(&given);
    feed(v, "a", &one, 0, 5);
    feed(v, "d", &anew, 0, 1);
    feed(v, "b", &other, 0, other.count);
    expect(v, "absent 0 0 heads:0; unconfirmed 1 6 d:1");
    free(given.digests);
    free_log(&one);
    free_log(&other);
    free_log(&later);
    free_log(&anew);
}

/* Nothing of what an account gets says how much others do. */
Test(audit_chain, signed_heads_say_nothing_of_other_accounts)
{
    struct audit_head head = {.chain = "00112233aabbccdd", .seq = 123456, .mac = AUDIT_NO_MAC};
    struct buf first CLEANUP(buf_finish), second CLEANUP(buf_finish);
    struct audit_signed one, other;

    sign_heads(&head, 1, &first, &one);
    sign_heads(&head, 1, &second, &other);
    cr_expect_neq(memcmp(one.digests, other.digests, AUDIT_DIGEST_BYTES), 0, "the same head is known again");
    cr_expect_str_neq(one.salt, other.salt);
    head.seq = 7;
    struct buf third CLEANUP(buf_finish);
    struct audit_signed low;
    sign_heads(&head, 1, &third, &low);
    cr_expect_eq(third.len, first.len, "the length tells the number");
    free(one.digests);
    free(other.digests);
    free(low.digests);
}

Test(audit_chain, what_are_no_signed_heads)
{
    const struct receipt receipt = {.issuer = TEXT("i"), .key = TEXT("k"), .store = TEXT("s"), .event = TEXT("e")};
    struct keyring *stranger = keyring_create(&MASTERS[2], 1);
    struct audit_head heads[2] = {{.chain = "00112233aabbccdd", .seq = 1, .mac = AUDIT_NO_MAC}};
    struct buf jws CLEANUP(buf_finish), certificate CLEANUP(buf_finish);
    struct receipt_keys keys, others;
    struct audit_signed read;
    const char *why = NULL;

    sign_heads(heads, 1, &jws, &read);
    free(read.digests);
    receipt_keys_of(keyring, &keys);
    receipt_keys_of(stranger, &others);
    cr_expect_not(audit_signed_read(buf_text(&jws), &others, &read, &why));
    cr_expect(strstr(why, "another master key"), "%s", why);
    for (size_t i = 0; i < jws.len; i++) {
        char kept = jws.ptr[i];

        jws.ptr[i] = kept == 'A' ? 'B' : 'A';
        cr_expect_not(audit_signed_read(buf_text(&jws), &keys, &read, &why), "byte %zu", i);
        jws.ptr[i] = kept;
        cr_expect_not(audit_signed_read((struct text){jws.ptr, i}, &keys, &read, &why), "cut at %zu", i);
    }
    buf_init(&certificate, RECEIPT_MAX_BYTES);
    receipt_sign(&receipt, keyring, &certificate);
    cr_expect_not(audit_signed_read(buf_text(&certificate), &keys, &read, &why), "a receipt");
    struct receipt as_receipt;
    cr_expect_null(receipt_verify(buf_text(&jws), &keys, &as_receipt, &why), "as a receipt");
    buf_clear(&jws);
    receipt_sign_claims(TEXT("audit-heads+jwt"),
                        TEXT("{\"jti\":\"AAAAAAAAAAAAAAAAAAAAAA\",\"heads\":[\"x\"],\"iat\":1}"), keyring, &jws);
    cr_expect_not(audit_signed_read(buf_text(&jws), &keys, &read, &why));
    cr_expect_str_eq(why, "its claims are not those of signed heads");
    keyring_destroy(stranger);
}

/* As many as Redis keeps. */
Test(audit_chain, signed_heads_of_many_logs_fit)
{
    struct audit_head *heads = calloc(AUDIT_SIGNED_HEADS_MAX, sizeof *heads);
    struct buf jws CLEANUP(buf_finish);
    struct audit_signed read;

    for (size_t i = 0; i < AUDIT_SIGNED_HEADS_MAX; i++) {
        heads[i] = (struct audit_head){.seq = UINT64_MAX, .mac = AUDIT_NO_MAC};
        snprintf(heads[i].chain, sizeof heads[i].chain, "%016zx", i);
    }
    sign_heads(heads, AUDIT_SIGNED_HEADS_MAX, &jws, &read);
    cr_expect_eq(read.count, AUDIT_SIGNED_HEADS_MAX);
    free(read.digests);
    free(heads);
}

Test(audit_chain, nothing_is_whole_under_another_key)
{
    struct keyring *other = keyring_create(&MASTERS[2], 1);
    struct log log = make_log(1);
    struct audit_verifier *v = audit_verifier_create(other);

    feed(v, "a", &log, 0, log.count);
    expect(v, "changed 1 1 a:1; changed 2 2 a:2");
    v = audit_verifier_create(keyring);
    expect(v, "");
    keyring_destroy(other);
    free_log(&log);
}
