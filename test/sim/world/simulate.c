/* simulate [--seed N] [--seconds S] [--nodes N] [--rate N] [--store single|sentinel|cluster] [--min-replicas N]
 * [--break RULE] [--no-faults]
 * [--without LIST]
 * [--trace] [--first]: a deployment under a seed; see README.md. Prints one line. Exit status: 0 nothing was found, 1
 * the promise was broken, 2 wrong usage, 3 the simulation failed, or a process did. */
#include "base/check.h"
#include "calm.h"
#include "core/lease_rules.h"
#include "faults.h"
#include "judge.h"
#include "load.h"
#include "people.h"
#include "plan.h"
#include "readers.h"
#include "schedule.h"
#include "table_steps.h"
#include "trace.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
/* Clocks begin here: 15 January 2027. */
#define FIRST_MONOTONIC_NS (1000 * NS_PER_S)
#define FIRST_REAL_NS (1800000000 * NS_PER_S)

enum { NODES = 3, RATE = 10, SECONDS = 60, FOUND = 1, USAGE = 2 };

struct options {
    uint64_t seed, seconds, nodes, rate, min_replicas;
    const char *broken;
    enum sim_store store;
    bool no_faults, is_traced, stops_at_first;
};

static struct sim_deployment deployment;

/* Addresses are the same in each run. */
static void fix_addresses(char **argv)
{
    const int now = personality(UINT32_MAX);

    if (now < 0 || (now & ADDR_NO_RANDOMIZE) || personality((unsigned)now | ADDR_NO_RANDOMIZE) < 0)
        return;
    execv("/proc/self/exe", argv);
}

static uint64_t number_of(const char *text)
{
    char *end;
    const uint64_t number = text ? strtoull(text, &end, 10) : 0;

    if (!text || !*text || *end) {
        fprintf(stderr, "not a number: %s\n", text ? text : "nothing");
        exit(USAGE);
    }
    return number;
}

static bool is_rule(const char *name)
{
#define NAME(id, text, what) text,
    static const char *const NAMES[] = {LEASE_RULES_TABLE(NAME) TABLE_READER_RULES(NAME)};
#undef NAME

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i], name) == 0)
            return true;
    return false;
}

static enum sim_store store_of(const char *name)
{
    if (strcmp(name, "cluster") == 0)
        return SIM_STORE_CLUSTER;
    if (strcmp(name, "sentinel") == 0)
        return SIM_STORE_SENTINEL;
    if (strcmp(name, "single") == 0)
        return SIM_STORE_SINGLE;
    fprintf(stderr, "no such store: %s\n", name);
    exit(USAGE);
}

static void read_options(struct options *options, char **argv)
{
    const struct {
        const char *name;
        uint64_t *number;
        bool *flag;
    } known[] = {{"--seed", &options->seed, NULL},           {"--seconds", &options->seconds, NULL},
                 {"--nodes", &options->nodes, NULL},         {"--rate", &options->rate, NULL},
                 {"--trace", NULL, &options->is_traced},     {"--first", NULL, &options->stops_at_first},
                 {"--no-faults", NULL, &options->no_faults}, {"--min-replicas", &options->min_replicas, NULL}};
    size_t i;

    while (*++argv) {
        for (i = 0; i < sizeof known / sizeof *known && strcmp(*argv, known[i].name) != 0; i++)
            continue;
        if (strcmp(*argv, "--break") == 0 && argv[1]) {
            options->broken = *++argv;
        } else if (strcmp(*argv, "--without") == 0 && argv[1]) {
            if (!sim_plan_leave_out(*++argv))
                exit(USAGE);
        } else if (strcmp(*argv, "--store") == 0 && argv[1]) {
            options->store = store_of(*++argv);
        } else if (i == sizeof known / sizeof *known) {
            fprintf(stderr, "no such option: %s\n", *argv);
            exit(USAGE);
        } else if (known[i].flag) {
            *known[i].flag = true;
        } else {
            *known[i].number = number_of(argv[1]);
            argv++;
        }
    }
    if (options->broken && !is_rule(options->broken)) {
        fprintf(stderr,
                "no such rule: %s; their names are in include/core/lease_rules.h and test/torture/table_steps.h\n",
                options->broken);
        exit(USAGE);
    }
    if (options->min_replicas < 1 || options->min_replicas >= SIM_WATCHED || options->nodes < 1 ||
        options->nodes > SIM_NODES_MAX || options->rate < 1)
        exit(USAGE);
}

static double cpu_s(void)
{
    struct timespec time;

    /* The C library's own, for the kernel's clocks are virtual here. */
    CHECK(SYSTEM(clock_gettime)(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
    return (double)time.tv_sec + (double)time.tv_nsec / (double)NS_PER_S;
}

/* False: it stops, at the first violation. */
static bool run_for(const struct options *options, uint64_t seconds)
{
    const uint64_t until_ns = sim_now_ns() + seconds * NS_PER_S;

    while (sim_step(until_ns))
        if (options->stops_at_first && sim_counts.violations > 0)
            return false;
    return true;
}

static void print_result(const struct options *options, double began_s)
{
    const double virtual_s = (double)sim_spent_ns() / (double)NS_PER_S, cpu = cpu_s() - began_s;

    printf("seed %llu: %llu violations; %u faults; %llu created, %llu revoked (%.0f ms, at most %.0f); checks: %llu "
           "accepted, "
           "%llu refused, %llu unavailable, %llu unknown; by tables %llu of %llu; %.1f s in %.2f s of CPU (%.0f "
           "times); digest "
           "%016llx\n",
           (unsigned long long)options->seed, (unsigned long long)sim_counts.violations, sim_plan_count(),
           (unsigned long long)sim_counts.created, (unsigned long long)sim_counts.revoked,
           sim_counts.revoked > 0 ? (double)sim_counts.revoke_ns_sum / (double)sim_counts.revoked / 1e6 : 0.0,
           (double)sim_counts.revoke_ns_max / 1e6, (unsigned long long)sim_counts.accepted,
           (unsigned long long)sim_counts.refused, (unsigned long long)sim_counts.unavailable,
           (unsigned long long)sim_counts.unknown, (unsigned long long)sim_counts.table_accepted,
           (unsigned long long)sim_counts.table_checks, virtual_s, cpu, virtual_s / cpu,
           (unsigned long long)sim_trace_digest());
}

static void simulate(const struct options *options, const char *folder)
{
    sim_kernel_enter_at(FIRST_MONOTONIC_NS, FIRST_REAL_NS);
    sim_schedule_begin(options->seed);
    sim_trace_begin(options->is_traced);
    sim_judge_begin(options->broken);
    deployment = (struct sim_deployment){.node_count = (unsigned)options->nodes,
                                         .broken = options->broken,
                                         .store = options->store,
                                         .min_replicas = (unsigned)options->min_replicas};
    sim_deployment_start(&deployment, IMAGE, folder);
    sim_load_start(&deployment, (unsigned)options->rate);
    sim_readers_start(&deployment, READER_IMAGE);
    sim_people_start(&deployment);
    if (options->no_faults) {
        run_for(options, options->seconds);
        return;
    }
    sim_faults_start(&deployment, options->seed);
    if (run_for(options, options->seconds))
        sim_calm_run(&deployment, options->stops_at_first);
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *file;

    CHECK(folder);
    while ((file = readdir(folder)))
        if (file->d_name[0] != '.')
            CHECK(unlinkat(dirfd(folder), file->d_name, 0) == 0);
    closedir(folder);
    CHECK(rmdir(path) == 0);
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1, .seconds = SECONDS, .nodes = NODES, .rate = RATE, .min_replicas = 2};
    char folder[] = "/tmp/simulate.XXXXXX";
    double began_s;

    (void)argc;
    read_options(&options, argv);
    fix_addresses(argv);
    signal(SIGPIPE, SIG_IGN);
    CHECK(mkdtemp(folder));
    began_s = cpu_s();
    simulate(&options, folder);
    print_result(&options, began_s);
    if (sim_counts.violations > 0) {
        sim_trace_tell();
        fprintf(stderr, "what the nodes printed is in %s\n", folder);
    } else {
        remove_folder(folder);
    }
    fflush(NULL);
    _Exit(sim_counts.violations > 0 ? FOUND : 0); /* images cannot be unloaded */
}
