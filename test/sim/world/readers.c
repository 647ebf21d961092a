#include "readers.h"
#include "base/check.h"
#include "load_internal.h"
#include "process_internal.h"
#include "reader.h"
#include "suspension.h"
#include "trace.h"
#include "uses.h"
#include <stdio.h>
#include <string.h>

enum {
    AT_NODE = 2,
    READERS_MAX = SIM_NODES_MAX * AT_NODE,
    TROUBLE_MOST_MS = 1500,
    KILL_ONE_IN = 4,
    PAUSE_MOST_MS = 2000
};
enum { SUSPENDED_ONE_IN = 4 };

/* A check under way. */
struct check {
    const struct sim_verdict *verdict; /* NULL: none is */
    struct sim_life *life;             /* NULL: the suspended account's key */
    uint64_t begun_ns;
};

static struct reader {
    const struct sim_node *node;
    struct sim_process *process; /* NULL: its machine is off */
    struct check checks[SIM_READER_BATCH];
    struct sim_event resumes;
} readers[READERS_MAX];

static struct sim_deployment *of;
static const char *image_path;
static unsigned count;
static struct sim_event trouble;

/* What they ask */

static struct sim_life *draw_life(void)
{
    struct list *node;
    size_t lives = 0;

    for (node = sim_lives.next; node != &sim_lives; node = node->next)
        lives++;
    if (lives == 0)
        return NULL;
    node = sim_lives.next;
    for (uint64_t i = sim_draw_below(lives); i > 0; i--)
        node = node->next;
    return LIST_ENTRY(node, struct sim_life, of_lives);
}

const char *sim_reader_begin(unsigned number, unsigned place)
{
    struct check *check = &readers[number].checks[place];
    struct sim_life *life = sim_draw_below(SUSPENDED_ONE_IN) ? draw_life() : NULL;

    CHECK(!check->verdict);
    *check = (struct check){.verdict = life ? &life->verdict : sim_suspension_verdict(), .life = life};
    if (life)
        life->open++;
    check->begun_ns = sim_now_ns();
    return life ? life->secret : sim_suspension_secret();
}

/* may_count: it is perhaps counted as a use, as long as a node looks after the table. */
static void check_free(struct check *check, bool may_count)
{
    if (check->life && may_count)
        sim_uses_note(check->life->uses, 0, check->begun_ns);
    if (check->life)
        check->life->open--;
    *check = (struct check){0};
}

void sim_reader_end(unsigned number, unsigned place, uint32_t scopes, const struct chatelaine_principal *who)
{
    const struct reader *reader = &readers[number];
    struct check *check = &readers[number].checks[place];
    const char *name = check->life ? check->life->name : "the suspended account's key";
    char table[SIM_HOST_NAME_BYTES + sizeof "'s table"];

    CHECK(check->verdict);
    snprintf(table, sizeof table, "%s's table", reader->node->host->name);
    sim_counts.table_checks++;
    sim_counts.table_accepted += who != NULL;
    sim_judge_use(check->verdict, name, table, check->begun_ns, who != NULL);
    if (who && check->life && strcmp(who->principal, check->life->id) != 0)
        sim_judge_violation("%s takes %s for %s", table, name, who->principal);
    if (who && ((scopes | who->scopes) & CHATELAINE_SANDBOX_MANAGE))
        sim_judge_violation("%s gives %s a scope that it has not", table, name);
    check_free(check, who != NULL);
}

void sim_reader_wait(uint64_t ns)
{
    sim_world->wait(sim_now_ns() + ns);
}

/* Programs */

static void reader_start(struct reader *reader)
{
    const unsigned number = (unsigned)(reader - readers);
    char name[32], path[300], text[16], broken[64];
    const char *const argv[] = {"reader", path, text, number % AT_NODE ? "burst" : "paused", NULL};
    const char *const environment[] = {of->broken ? broken : NULL, NULL};

    snprintf(name, sizeof name, "reader%u", number + 1);
    sim_table_path(reader->node, path, sizeof path);
    snprintf(text, sizeof text, "%u", number);
    snprintf(broken, sizeof broken, "CHATELAINE_BREAK=%s", of->broken ? of->broken : "");
    reader->process = sim_process_start(&(struct sim_process_plan){
        .image = image_path, .name = name, .host = reader->node->host, .argv = argv, .environment = environment});
}

static void reader_kill(struct reader *reader)
{
    sim_event_cancel(&reader->resumes);
    sim_process_kill(reader->process);
    reader->process = NULL;
    for (unsigned i = 0; i < SIM_READER_BATCH; i++)
        check_free(&reader->checks[i], true);
}

static void on_resume(struct sim_event *event)
{
    sim_process_resume(LIST_ENTRY(event, struct reader, resumes)->process);
}

static void on_trouble(struct sim_event *event)
{
    struct reader *reader = &readers[sim_draw_below(count)];

    if (reader->process && sim_draw_below(KILL_ONE_IN) == 0) {
        reader_kill(reader);
        reader_start(reader);
    } else if (reader->process && !sim_event_waits(&reader->resumes)) {
        sim_process_pause(reader->process);
        sim_event_in(&reader->resumes, sim_draw_between(1, PAUSE_MOST_MS) * SIM_NS_PER_MS);
    }
    sim_event_in(event, sim_draw_between(1, TROUBLE_MOST_MS) * SIM_NS_PER_MS);
}

void sim_readers_trouble(bool is_on)
{
    if (is_on)
        sim_event_in(&trouble, sim_draw_between(1, TROUBLE_MOST_MS) * SIM_NS_PER_MS);
    else
        sim_event_cancel(&trouble);
}

void sim_readers_power(const struct sim_node *node, bool is_on)
{
    for (struct reader *reader = readers; reader < readers + count; reader++) {
        if (reader->node != node)
            continue;
        if (is_on)
            reader_start(reader);
        else
            reader_kill(reader);
    }
}

void sim_readers_start(struct sim_deployment *deployment, const char *image)
{
    of = deployment;
    image_path = image;
    trouble = (struct sim_event){.run = on_trouble};
    count = AT_NODE * deployment->node_count;
    for (unsigned i = 0; i < count; i++) {
        readers[i] = (struct reader){.node = &deployment->nodes[i / AT_NODE], .resumes.run = on_resume};
        reader_start(&readers[i]);
    }
}
