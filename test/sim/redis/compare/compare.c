/* Holds simredis to redis-server: the same random commands and scripts to both, under one clock that stands between
 * steps.
 *
 *   simredis_compare [STEPS [SEED [DIFFERENCES [cluster]]]]
 *
 * Replies are compared byte by byte, and every DUMP_STEPS steps the whole key space; of what a set, a hash or SCAN
 * returns the order is left out. Each script must be "ok" once in 5,000 steps. Tells a difference with the steps before
 * it, and ends with the first, or with that many; after each of the others both servers are emptied. "cluster": each is
 * the only member of a cluster. */
#include "internal.h"
#include "process.h"
#include "reply.h"
#include "scripts.h"
#include "sides.h"
#include "stories.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DUMP_STEPS = 250,
    FLUSH_STEPS = 500,
    STORY_STEPS = 30,    /* until one begins */
    STEPS_OF_ONE = 5000, /* a script is "ok" that often at least */
    DUMP_CLIENT = CLIENTS - 1,
    TOLD_MAX = 12,
    SHOWN_BYTES = 1500,
    SCRIPTS_MAX = 256
};

static struct {
    uint64_t step, unix_us, scripts_run, done;
    char *told[TOLD_MAX]; /* the last steps */
    size_t in_other_order[SCRIPTS_MAX], done_by_script[SCRIPTS_MAX];
    uint64_t differences_left;
    bool has_differed;
} walk;

static void print_word(FILE *out, struct text word)
{
    size_t script = script_of(word);

    if (script != SIZE_MAX) {
        fprintf(out, " @%s", script_name_of(script));
        return;
    }
    fputs(word.len == 0 ? " ''" : " ", out);
    for (size_t i = 0; i < word.len && i < SHOWN_BYTES; i++) {
        unsigned char c = (unsigned char)word.ptr[i];

        if (c == '\n')
            fputs("\\n", out);
        else if (c == ' ')
            fputc('+', out);
        else
            fprintf(out, c < 32 || c > 126 ? "\\x%02x" : "%c", c);
    }
}

/* Remembers the step for a report. */
static void tell(size_t client, const struct line *line)
{
    size_t size, place = walk.step % TOLD_MAX;
    FILE *out;

    free(walk.told[place]);
    out = open_memstream(&walk.told[place], &size);
    fprintf(out, "%" PRIu64 " at %" PRIu64 " client %zu:", walk.step, walk.unix_us, client);
    for (size_t i = 0; i < line->argc; i++)
        print_word(out, line->argv[i]);
    fclose(out);
}

static void empty(void);

static void report(const char *what, struct text simulated, struct text real)
{
    size_t at = 0;

    while (at < simulated.len && at < real.len && simulated.ptr[at] == real.ptr[at])
        at++;
    at = at > 200 ? at - 200 : 0;
    for (size_t i = 1; i <= TOLD_MAX; i++)
        if (walk.told[(walk.step + i) % TOLD_MAX])
            printf("%s\n", walk.told[(walk.step + i) % TOLD_MAX]);
    printf("%s differs at step %" PRIu64 ", from byte %zu:\n  simredis:", what, walk.step, at);
    print_word(stdout, text_skip(simulated, at));
    printf("\n  redis:   ");
    print_word(stdout, text_skip(real, at));
    printf("\n");
    fflush(stdout);
    walk.has_differed = true;
    if (--walk.differences_left == 0) {
        sides_stop();
        exit(1);
    }
    empty();
}

/* Whether it is a step of SCAN and its kin that need not return everything. */
static bool is_part_of_scan(const struct line *line)
{
    static const struct {
        const char *name;
        size_t cursor;
    } SCANS[] = {{"SCAN", 1}, {"SSCAN", 2}, {"HSCAN", 2}};
    bool is_whole = false;

    for (size_t i = 0; i < sizeof SCANS / sizeof *SCANS; i++) {
        size_t cursor = SCANS[i].cursor;

        if (line->argc <= cursor || !text_equal_nocase(line->argv[0], text_of(SCANS[i].name)))
            continue;
        for (size_t at = cursor; at + 1 < line->argc; at++)
            is_whole |= text_equal(line->argv[at], TEXT("COUNT")) && text_equal(line->argv[at + 1], TEXT("5000"));
        return !is_whole || !text_equal(line->argv[cursor], TEXT("0"));
    }
    return false;
}

/* What is left open by Redis, by the name of a command. */
static enum order order_of(const struct line *line)
{
    static const struct {
        const char *name;
        enum order order;
    } ORDERS[] = {{"HGETALL", ORDER_ANY_PAIRS},
                  {"HKEYS", ORDER_ANY},
                  {"HVALS", ORDER_ANY},
                  {"SMEMBERS", ORDER_ANY},
                  {"KEYS", ORDER_ANY},
                  {"DBSIZE", ORDER_KIND},
                  {"SCAN", ORDER_ANY},
                  {"SSCAN", ORDER_ANY},
                  {"HSCAN", ORDER_ANY},
                  {"PUBSUB", ORDER_ANY},
                  {"UNSUBSCRIBE", ORDER_CHOICE},
                  {"PUNSUBSCRIBE", ORDER_CHOICE},
                  {"SUNSUBSCRIBE", ORDER_CHOICE},
                  {"HRANDFIELD", ORDER_CHOICE},
                  {"SRANDMEMBER", ORDER_CHOICE},
                  {"ZRANDMEMBER", ORDER_CHOICE},
                  {"EVAL", ORDER_ANY},
                  {"EVALSHA", ORDER_ANY}};

    if (!line)
        return ORDER_FRAMES; /* messages for several patterns */
    if (is_part_of_scan(line))
        return ORDER_KIND;
    for (size_t i = 0; line->argc > 0 && i < sizeof ORDERS / sizeof *ORDERS; i++)
        if (text_equal_nocase(line->argv[0], text_of(ORDERS[i].name)))
            return ORDERS[i].order;
    return ORDER_GIVEN;
}

static bool are_same(size_t client, enum order order)
{
    struct buf printed[2] = {BUF_UP_TO(SIZE_MAX / 2), BUF_UP_TO(SIZE_MAX / 2)};
    bool are_whole = true;

    for (size_t side = 0; side < 2; side++)
        are_whole = replies_print(&printed[side], sides_replies(client, side), order) && are_whole;
    bool are = are_whole && text_equal(buf_text(&printed[0]), buf_text(&printed[1]));
    buf_finish(&printed[0]);
    buf_finish(&printed[1]);
    return are;
}

static void compare_replies(const char *what, size_t client, const struct line *line)
{
    struct text simulated = sides_replies(client, 0), real = sides_replies(client, 1);
    enum order order = order_of(line);
    size_t script = line && line->argc > 1 ? script_of(line->argv[1]) : SIZE_MAX;

    if (text_equal(simulated, real))
        return;
    if (!are_same(client, order) && !are_same(client, ORDER_FRAMES))
        report(what, simulated, real);
    if (script < SCRIPTS_MAX)
        walk.in_other_order[script]++;
}

static void ask(size_t client, const struct line *line)
{
    if (sides_hear(client, false))
        compare_replies("what has come", client, NULL);
    tell(client, line);
    if (!sides_send(client, line))
        report("what becomes of the connection", sides_replies(client, 0), sides_replies(client, 1));
    compare_replies("the reply", client, line);
}

static void resolve_script(struct line *line)
{
    struct text name = line->argc > 1 ? line->argv[1] : (struct text){0};

    if (!text_starts_with(name, TEXT("=")))
        return;
    line->argv[1] = (struct text){mem_copy_text(script_sha(script_named(text_skip(name, 1))), 40), 40};
    free((char *)(uintptr_t)name.ptr);
}

/* Asks both outside of the walk. The form is without chance, has + for a blank, and may
 * begin with =, which stands for EVALSHA of a script. */
static void ask_form(size_t client, const char *form)
{
    struct line line = {0};
    struct text rest = text_of(form), word;

    if (form[0] == '=')
        line_add(&line, TEXT("EVALSHA"));
    while (text_next(&rest, ' ', &word)) {
        line_add(&line, word);
        for (char *at = (char *)(uintptr_t)line.argv[line.argc - 1].ptr; *at; at++)
            *at = *at == '+' ? ' ' : *at;
    }
    resolve_script(&line);
    (void)!sides_send(client, &line);
    compare_replies(form, client, &line);
    line_finish(&line);
}

static struct text dumped[4096];
static size_t dumped_count;

static void note_name(struct text text)
{
    if (dumped_count < sizeof dumped / sizeof *dumped)
        dumped[dumped_count++] = (struct text){mem_copy_text(text.len > 0 ? text.ptr : "", text.len), text.len};
}

static void compare_value(struct text name, const char *const *words)
{
    struct line line = {0};

    for (; *words; words++)
        line_add(&line, words[0][0] == '?' ? name : text_of(*words));
    (void)!sides_send(DUMP_CLIENT, &line);
    tell(DUMP_CLIENT, &line);
    compare_replies("the key space", DUMP_CLIENT, &line);
    line_finish(&line);
}

/* All that there is of a key. Those that are for another type are errors, in both the same. */
static void compare_key(struct text name)
{
    static const char *const WORDS[][6] = {{"TYPE", "?"},
                                           {"PEXPIRETIME", "?"},
                                           {"GET", "?"},
                                           {"HGETALL", "?"},
                                           {"SMEMBERS", "?"},
                                           {"ZRANGE", "?", "0", "-1", "WITHSCORES"},
                                           {"LRANGE", "?", "0", "-1"},
                                           {"XRANGE", "?", "-", "+"},
                                           {"XINFO", "STREAM", "?"}};
    static const struct {
        const char *type;
        size_t first, count;
    } OF_TYPES[] = {{"string", 2, 1}, {"hash", 3, 1}, {"set", 4, 1}, {"zset", 5, 1}, {"list", 6, 1}, {"stream", 7, 2}};

    compare_value(name, WORDS[0]);
    struct text type = sides_replies(DUMP_CLIENT, 0);
    if (!type.ptr)
        return;
    for (size_t i = 0; i < sizeof OF_TYPES / sizeof *OF_TYPES; i++)
        if (text_starts_with(text_skip(type, 1), text_of(OF_TYPES[i].type))) {
            for (size_t at = 0; at < OF_TYPES[i].count; at++)
                compare_value(name, WORDS[OF_TYPES[i].first + at]);
            break;
        }
    compare_value(name, WORDS[1]);
}

static void compare_key_space(void)
{
    for (size_t client = 0; client < DUMP_CLIENT; client++) {
        (void)!sides_hear(client, true);
        compare_replies("what has come", client, NULL);
    }
    for (int db = 0; db < 4; db++) {
        char form[16];

        snprintf(form, sizeof form, "SELECT %d", db);
        ask_form(DUMP_CLIENT, form);
        ask_form(DUMP_CLIENT, "KEYS *");
        dumped_count = 0;
        replies_visit(sides_replies(DUMP_CLIENT, 0), note_name);
        for (size_t i = 0; i + 1 < dumped_count; i++) /* the last is the answer to PING */
            compare_key(dumped[i]);
        for (size_t i = 0; i < dumped_count; i++)
            free((char *)(uintptr_t)dumped[i].ptr);
    }
}

/* Mostly on, sometimes far, and sometimes back. */
static void move_clock(void)
{
    static const int64_t MOVES_MS[] = {60000, 3600000, 86400000, 600000, -1000, -3600000, 5000, 30000};
    uint64_t chance = words_random(200);

    if (chance < 100)
        walk.unix_us += words_random(30000);
    else if (chance < 120)
        walk.unix_us += words_random(3000000);
    else if (chance == 120)
        walk.unix_us += (uint64_t)(MOVES_MS[words_random(sizeof MOVES_MS / sizeof *MOVES_MS)] * 1000);
    if (chance > 120)
        return;
    sides_set_clock(walk.unix_us);
    words_set_clock(walk.unix_us);
}

static void load_scripts(void)
{
    for (size_t i = 0; i < scripts_count(); i++) {
        struct line line = {0};

        line_add(&line, TEXT("SCRIPT"));
        line_add(&line, TEXT("LOAD"));
        line_add(&line, script_body(i));
        (void)!sides_send(DUMP_CLIENT, &line);
        compare_replies("SCRIPT LOAD", DUMP_CLIENT, &line);
        line_finish(&line);
    }
}

static void found(void)
{
    static const char *const FORMS[] = {
        "=account_create 1 t:no_store t: acct_A North 1 aa 1 0",
        "=account_create 1 t:no_store t: acct_B South 1 aa 1 0",
        "=email_claim 1 t:no_store t: a@b.test usr_U usr_U+acct_A+mac ",
        "=email_claim 1 t:no_store t: v@b.test usr_V usr_V+acct_A+mac ",
        "=user_create 1 t:no_store t: usr_U acct_A a@b.test hash sealed 5 operator   100 mac owner 0",
        "=user_create 1 t:no_store t: usr_V acct_A v@b.test hash sealed 5 operator   100 mac auditor 0",
        "=user_create 1 t:no_store t: usr_W acct_B w@b.test hash sealed 5 operator   100 mac owner 0",
        "=key_insert 1 t:no_store t: d1 key_1+acct_A+live+wxyz+3+7+-+Name\nby=usr_U\nm=mac usr_U   100  0 0",
        "=key_insert 1 t:no_store t: d2 key_2+acct_A+live+wxyz+3+7+-+Name\nby=key_1\nm=mac usr_U   100  0 0",
        "=node_heartbeat 1 t:no_store t: n000000000000001 1 2000 7 0 0 0 "};

    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        ask_form(DUMP_CLIENT, FORMS[i]);
}

/* What would keep the first client from the scripts. */
static void do_elsewhere(void)
{
    static const char *const FORMS[] = {"SUBSCRIBE {ch}", "PSUBSCRIBE {pat}", "SSUBSCRIBE {ch} {ch}", "UNSUBSCRIBE",
                                        "PUNSUBSCRIBE",   "SUNSUBSCRIBE",     "UNSUBSCRIBE {ch}",     "QUIT",
                                        "UNSUBSCRIBE",    "PUNSUBSCRIBE",     "SUNSUBSCRIBE",         "SELECT {0-3}",
                                        "SELECT 0",       "SELECT {i}"};
    struct line line = {0};

    line_add_form(&line, text_of(FORMS[words_random(sizeof FORMS / sizeof *FORMS)]));
    ask(1 + words_random(DUMP_CLIENT - 1), &line);
    line_finish(&line);
}

/* What has to be undone. */
static void do_rarely(void)
{
    static const char *const FORMS[] = {"SCRIPT FLUSH",           "FLUSHDB *{flushopt}",    "FLUSHALL *{flushopt}",
                                        "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "CONFIG SET maxmemory 0",
                                        "CONFIG SET maxmemory 0"};
    struct line line = {0};

    line_add_form(&line, text_of(FORMS[words_random(sizeof FORMS / sizeof *FORMS)]));
    ask(0, &line);
    if (text_equal(line.argv[0], TEXT("SCRIPT")))
        load_scripts();
    if (text_starts_with(line.argv[0], TEXT("FLUSH")))
        found();
    line_finish(&line);
}

static void keep_some(struct text text)
{
    if (words_random(6) == 0)
        words_keep(text);
}

/* Seldom one after which most others are refused. Never account_close_people, whose events are in the order in which
 * SRANDMEMBER finds people: in a story, the account has one. */
static size_t choose_script(void)
{
    static const char *const ENDING[] = {"account_close", "account_suspend", "store_leave",
                                         "store_upgrade", "user_void",       "person_remove"};
    size_t index = words_random(scripts_count());

    for (size_t i = 0; i < sizeof ENDING / sizeof *ENDING; i++)
        if (text_starts_with(text_of(script_name_of(index)), text_of(ENDING[i])) && words_random(8) > 0)
            return choose_script();
    if (index == script_named(TEXT("account_close_people")))
        return choose_script();
    return index;
}

static void note_done(size_t script, struct text replies)
{
    bool is_done = memmem(replies.ptr, replies.len, "$2\r\nok", 6);

    walk.done += is_done;
    walk.done_by_script[script] += is_done;
}

static void finish_step(size_t client, struct line *line)
{
    ask(client, line);
    if (line->argc > 1 && script_of(line->argv[1]) != SIZE_MAX)
        note_done(script_of(line->argv[1]), sides_replies(client, 0));
    replies_visit(sides_replies(client, 0), keep_some);
    line_finish(line);
}

/* Mostly the next step of a story, if one is being told. */
static bool go_on(void)
{
    struct line line = {0};

    if (words_random(STORY_STEPS) == 0)
        story_begin();
    else if (words_random(8) == 0)
        return false;
    if (!line_add_story(&line))
        return false;
    walk.scripts_run += text_equal(line.argv[0], TEXT("EVALSHA"));
    finish_step(0, &line);
    return true;
}

static void make_step(void)
{
    struct line line = {0};
    size_t client = words_random(10) < 8 ? 0 : words_random(DUMP_CLIENT);
    uint64_t chance = words_random(100);

    if (go_on())
        return;
    if (chance < 2) {
        do_elsewhere();
        return;
    }
    if (chance == 2 && words_random(3) == 0) {
        do_rarely();
        return;
    }
    if (chance < 60) {
        line_add_script(&line, choose_script());
        walk.scripts_run++;
    } else {
        line_add_command(&line);
        resolve_script(&line);
    }
    finish_step(client, &line);
}

static void empty(void)
{
    ask_form(DUMP_CLIENT, "CONFIG SET maxmemory 0");
    ask_form(DUMP_CLIENT, "FLUSHALL");
    ask_form(DUMP_CLIENT, "SELECT 0");
    found();
}

static uint64_t number_of(const char *text, uint64_t usual)
{
    uint64_t number;

    return text && text_to_u64(text_of(text), INT64_MAX, &number) ? number : usual;
}

/* False: a script was done too seldom for so long a walk. */
static bool tell_end(uint64_t steps, uint64_t seed)
{
    bool is_wide = true;

    printf("simredis and redis-server %s: %" PRIu64 " steps of seed %" PRIu64 ", %" PRIu64 " of them scripts, %" PRIu64
           " of these \"ok\"\n",
           walk.has_differed ? "differ" : "agree", steps, seed, walk.scripts_run, walk.done);
    for (size_t i = 0; i < scripts_count(); i++)
        if (walk.in_other_order[i] > 0)
            printf("  in another order: %s, %zu times\n", script_name_of(i), walk.in_other_order[i]);
    printf("  \"ok\":");
    for (size_t i = 0; i < scripts_count(); i++)
        printf(" %s %zu", script_name_of(i), walk.done_by_script[i]);
    printf("\n");
    for (size_t i = 0; i < scripts_count(); i++) {
        if (walk.done_by_script[i] >= steps / STEPS_OF_ONE)
            continue;
        printf("  too seldom \"ok\": %s\n", script_name_of(i));
        is_wide = false;
    }
    return is_wide;
}

int main(int argc, char **argv)
{
    uint64_t steps = number_of(argc > 1 ? argv[1] : NULL, 1000), seed = number_of(argc > 2 ? argv[2] : NULL, 1);

    walk.differences_left = number_of(argc > 3 ? argv[3] : NULL, 1);
    words_seed(seed);
    scripts_read(SOURCES);
    walk.unix_us = UINT64_C(1795000000000000);
    sides_start(walk.unix_us, seed, argc > 4 && strcmp(argv[4], "cluster") == 0);
    words_set_clock(walk.unix_us);
    load_scripts();
    found();
    ask_form(DUMP_CLIENT, "DEBUG SET-ACTIVE-EXPIRE 0"); /* by chance, and at its own time */
    for (walk.step = 1; walk.step <= steps; walk.step++) {
        move_clock();
        make_step();
        if (walk.step % DUMP_STEPS == 0 || walk.step == steps)
            compare_key_space();
        if (walk.step % FLUSH_STEPS == 0)
            empty();
    }
    bool is_wide = tell_end(steps, seed);
    sides_stop();
    words_finish();
    stories_finish();
    return walk.has_differed || !is_wide ? 1 : 0;
}
