/* reader PATH NUMBER HABIT: by the table at that path it checks keys for ever. HABIT: "burst", many at once with the
 * library, then none for a while; or "paused", which is stopped between the steps of a check: of check.h's functions,
 * or within chatelaine_check(), before or after the clock is read. */
#include "reader.h"
#include "chatelaine/library.h"
#include "schedule.h"
#include "table_steps.h"
#include <stdlib.h>

enum { REFRESH_MOST_MS = 100, LONG_MOST_MS = 4000, LONG_ONE_IN = 8, OTHER_SCOPE_ONE_IN = 8, BURST_REST_MS = 200 };
enum { SHORT_PAUSE_MS = 100, LONG_PAUSE_MS = 1500 };

#define NS_PER_MS UINT64_C(1000000)

static struct reader {
    const char *path;
    unsigned number;
    bool is_in_check; /* its look at the clock is slow */
    struct chatelaine_table table;
    struct chatelaine_handle *handle; /* NULL: not by the library */
    struct table_steps steps;
    struct table_step tries[SIM_READER_BATCH];
    bool has_begun[SIM_READER_BATCH];
    uint64_t refresh_ns;
} reader;

static void wait_up_to(uint64_t most_ms)
{
    sim_reader_wait(1 + sim_draw_below(most_ms * NS_PER_MS));
}

/* Mostly short, or about as long as a lease. */
static void pause_for_a_while(void)
{
    wait_up_to(sim_draw_below(2) ? SHORT_PAUSE_MS : LONG_PAUSE_MS);
}

/* The linker's names: the clock as this program reads it. */
int real_clock_gettime(clockid_t id, struct timespec *ret_time) __asm__("__real_clock_gettime");
int read_clock(clockid_t id, struct timespec *ret_time) __asm__("__wrap_clock_gettime");

int read_clock(clockid_t id, struct timespec *ret_time)
{
    int result;

    if (reader.is_in_check && sim_draw_below(2))
        pause_for_a_while();
    result = real_clock_gettime(id, ret_time);
    if (reader.is_in_check && sim_draw_below(2))
        pause_for_a_while();
    return result;
}

/* Now and then it does not look for long: then its node may be another process by now. */
static bool refresh(void)
{
    const uint64_t now_ns = chatelaine_now_ns();

    if (now_ns >= reader.refresh_ns) {
        reader.refresh_ns =
            now_ns + (1 + sim_draw_below(sim_draw_below(LONG_ONE_IN) ? REFRESH_MOST_MS : LONG_MOST_MS)) * NS_PER_MS;
        if (reader.handle)
            (void)chatelaine_refresh(reader.handle);
        else
            (void)chatelaine_table_refresh(&reader.table);
    }
    return reader.handle || reader.table.header;
}

static const char *try_begins(unsigned place)
{
    const char *secret = sim_reader_begin(reader.number, place);

    reader.has_begun[place] = secret != NULL;
    reader.tries[place] = (struct table_step){.scopes = sim_draw_below(OTHER_SCOPE_ONE_IN) ? CHATELAINE_PATIENTS_READ
                                                                                           : CHATELAINE_SANDBOX_MANAGE};
    return secret;
}

static void try_ends(unsigned place)
{
    const struct table_step *step = &reader.tries[place];

    if (reader.has_begun[place])
        sim_reader_end(reader.number, place, step->scopes, step->goes_on ? &step->who : NULL);
}

static void ask_library(struct table_step *step, const char *secret)
{
    struct chatelaine_answer answer;

    step->goes_on = chatelaine_ask(reader.handle, secret, strlen(secret), step->scopes, &answer);
    if (!step->goes_on)
        return;
    step->who.scopes = answer.scopes;
    memcpy(step->who.principal, answer.principal, sizeof step->who.principal);
}

static void check_at_once(unsigned place)
{
    struct table_step *step = &reader.tries[place];
    const char *secret = try_begins(place);

    if (!secret)
        return;
    if (reader.handle)
        ask_library(step, secret);
    else
        step->goes_on = chatelaine_check(&reader.table, secret, strlen(secret), step->scopes, &step->who);
    try_ends(place);
}

/* As many readers that are stopped at the same moment: each step is done for all checks, with pauses between. */
static void check_in_steps(unsigned count)
{
    const char *secret;

    reader.steps.clock_before_ns = chatelaine_now_ns();
    if (reader.steps.broken == READER_CLOCK)
        pause_for_a_while();
    for (unsigned i = 0; i < count; i++)
        if ((secret = try_begins(i)))
            table_steps_find(&reader.steps, &reader.tries[i], secret);
    pause_for_a_while();
    for (unsigned i = 0; i < count; i++)
        table_steps_validate(&reader.steps, &reader.tries[i]);
    pause_for_a_while();
    for (unsigned i = 0; i < count; i++) {
        table_steps_count(&reader.steps, &reader.tries[i]);
        try_ends(i);
    }
}

/* One check, with a clock that is slow to read. */
static void check_within(void)
{
    reader.is_in_check = true;
    check_at_once(0);
    reader.is_in_check = false;
}

static void burst(void)
{
    const unsigned count = 1 + (unsigned)sim_draw_below(SIM_READER_BATCH);

    for (unsigned i = 0; refresh() && i < count; i++)
        check_at_once(i);
    wait_up_to(BURST_REST_MS);
}

static void go_slowly(void)
{
    if (!refresh())
        wait_up_to(SHORT_PAUSE_MS);
    else if (reader.steps.broken == READER_RULE_COUNT && sim_draw_below(2))
        check_within();
    else
        check_in_steps(SIM_READER_BATCH);
    wait_up_to(SHORT_PAUSE_MS);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return EXIT_FAILURE;
    reader.path = argv[1];
    reader.number = (unsigned)strtoul(argv[2], NULL, 10);
    chatelaine_table_init(&reader.table, reader.path, CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    reader.steps = (struct table_steps){.table = &reader.table, .broken = table_steps_broken()};
    if (strcmp(argv[3], "paused") == 0)
        for (;;)
            go_slowly();
    reader.handle = chatelaine_open(reader.path, NULL, -1);
    for (;;)
        burst();
}
