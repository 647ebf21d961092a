/* scripts/torture: three nodes and a Redis, with a proxy between that cuts, holds and delays, are killed, paused,
 * partitioned and restarted at random from a seed, while clients create, check and revoke keys, people sign in, are
 * removed with the keys that go back to them and replaced, and commands suspend and resume accounts. Or a Redis behind
 * Sentinels, or a Redis Cluster, that fail over again and again. Processes beside each node check keys by its shared
 * table, and are killed and paused, too. What they were told is judged on the way and, whole, at the end. See usage().
 */
#include "aftermath.h"
#include "availability.h"
#include "base/log.h"
#include "core/lease_rules.h"
#include "failover.h"
#include "nemesis.h"
#include "netns.h"
#include "rebalance.h"
#include "self_test.h"
#include "shard_faults.h"
#include "table_reader.h"
#include "table_readers.h"
#include "table_steps.h"
#include "upgrade.h"

#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_VIOLATION = 1, EXIT_USAGE = 2, STEP_MS = 20, LEASE_DEFAULT_MS = 1000, KEYS_PER_SECOND_DEFAULT = 24 };

struct options {
    int seconds;
    unsigned seed;
    unsigned lease_ms;
    unsigned keys_per_second;
    unsigned failovers; /* 0: the faults are the nemesis' */
    unsigned min_replicas;
    bool sentinels, cluster;
    const char *upgrade_from, *old_name, *new_name; /* upgrade_from NULL: no upgrade */
    const char *focus;
    const char *history_path;
    bool netns, first;
};

/* In a cluster each of these people takes longer to make, and removals wait for primaries that are lost. */
enum { UPGRADE_USERS = 6, ENDING_ACCOUNTS = 4, ENDING_PEOPLE_MAX = 400, ENDING_PEOPLE_MAX_IN_CLUSTER = 24 };

struct torture {
    struct options options;
    struct cluster cluster;
    struct history *history;
    struct clients *clients;
    struct nemesis *nemesis;
    struct setbacks *setbacks;
    struct netns *netns;
    struct upgrade *upgrade;
    struct shards shards;
    struct shard_faults shard_faults;
    struct rebalance *rebalance;
    struct availability *availability;
    struct endings *endings; /* NULL: none */
    char board_path[PROCESS_PATH_BYTES];
    struct board *board; /* this and the next: NULL where no tables are shared */
    struct table_readers *readers;
    struct fixture_user users[CLIENTS_USERS_MAX];
    unsigned user_count;
    int64_t took_ms;
};

static int usage(void)
{
    fputs("torture [SECONDS] [SEED] [OPTION...]\n"
          "  --lease-ms N    the nodes' lease, and the unit that the lengths of faults are counted in; 0: no leases\n"
          "  --rate N        keys made and revoked a second\n"
          "  --first         end at the first violation, without looking at what is left afterwards\n"
          "  --focus NAME    only faults of this name; with --failovers and --cluster only\n"
          "                  \"store-goes-back\"\n"
          "  --netns         each node in a network namespace of its own (root)\n"
          "  --history PATH  write every event and fault there\n"
          "  --failovers N   instead of these faults and for as long as they take: N losses of a master that three\n"
          "                  Sentinels watch over, with two replicas\n"
          "  --cluster       instead: a Redis Cluster of three primaries with a replica each, which are lost in turn\n"
          "                  while slots are moved and nodes killed and paused; --netns: primaries are cut off, too\n"
          "  --min-replicas N  with --failovers: how many of these must acknowledge, 1 or 2\n"
          "  --upgrade-from PROGRAM  instead of faults: the nodes are replaced one by one, from that program to this "
          "one\n"
          "                  and back, while a gateway checks and people use the console; --sentinels: with two "
          "replicas\n"
          "                  and Sentinels; --old-name and --new-name: what to call the versions\n"
          "torture --self-test    whether the checker finds planted violations\n"
          "torture --rules        the rules that a build with CHATELAINE_BREAKABLE can break\n"
          "Ends with 0 without a violation, 1 with one.\n",
          stderr);
    return EXIT_USAGE;
}

static int print_rules(void)
{
#define PRINT_RULE(id, name, without) puts(name);
    LEASE_RULES_TABLE(PRINT_RULE)
    TABLE_READER_RULES(PRINT_RULE)
#undef PRINT_RULE
    return EXIT_SUCCESS;
}

static void add_users(struct torture *torture)
{
    if (torture->options.upgrade_from) {
        const struct upgrade_plan plan = {&torture->cluster, torture->history, torture->options.upgrade_from,
                                          torture->options.old_name, torture->options.new_name};
        torture->user_count = UPGRADE_USERS;
        torture->upgrade = upgrade_prepare(&plan, torture->users, torture->user_count);
        return;
    }
    torture->user_count = (unsigned)torture->options.seconds / 20;
    if (torture->user_count > CLIENTS_USERS_MAX)
        torture->user_count = CLIENTS_USERS_MAX;
    /* Before there are faults, one that is slow is only busy. */
    if (setenv("CHATELAINE_REDIS_TIMEOUT_MS", "30000", 1) != 0)
        abort();
    for (unsigned i = 0; i < torture->user_count; i++) {
        char email[32];
        snprintf(email, sizeof email, "user%u@torture.test", i);
        fixture_add_user(&torture->cluster.fixture, email, &torture->users[i]);
    }
    unsetenv("CHATELAINE_REDIS_TIMEOUT_MS");
}

static unsigned unit_ms(const struct torture *torture)
{
    return torture->options.lease_ms ? torture->options.lease_ms : LEASE_DEFAULT_MS;
}

/* Not beside nodes of an earlier version, which know no suspended accounts. */
static void add_endings(struct torture *torture)
{
    unsigned people = (unsigned)torture->options.seconds; /* about one a second is removed */
    unsigned most = torture->options.cluster ? ENDING_PEOPLE_MAX_IN_CLUSTER : ENDING_PEOPLE_MAX;

    if (torture->options.upgrade_from)
        return;
    torture->endings = endings_create(&(struct endings_plan){.cluster = &torture->cluster,
                                                             .history = torture->history,
                                                             .board = torture->board,
                                                             .seed = torture->options.seed,
                                                             .unit_ms = unit_ms(torture),
                                                             .accounts = ENDING_ACCOUNTS,
                                                             .people = people < most ? people : most});
}

static void start_readers(struct torture *torture, const char *folder)
{
    if (torture->board)
        torture->readers = table_readers_start(&(struct table_readers_plan){.cluster = &torture->cluster,
                                                                            .board = torture->board,
                                                                            .board_path = torture->board_path,
                                                                            .history = torture->history,
                                                                            .folder = folder,
                                                                            .seed = torture->options.seed});
}

static void start_clients(struct torture *torture)
{
    torture->clients = clients_start(&(struct clients_plan){.cluster = &torture->cluster,
                                                            .history = torture->history,
                                                            .seed = torture->options.seed,
                                                            .unit_ms = unit_ms(torture),
                                                            .keys_per_second = torture->options.keys_per_second,
                                                            .stop_at_violation = torture->options.first,
                                                            .endings = torture->endings,
                                                            .readers = torture->readers,
                                                            .board = torture->board,
                                                            .availability = torture->availability,
                                                            .users = torture->users,
                                                            .user_count = torture->user_count});
}

static const char SETBACKS[] = "store-goes-back";

static bool is_about_setbacks(const struct torture *torture)
{
    return torture->options.focus && strcmp(torture->options.focus, SETBACKS) == 0;
}

static bool start_nemesis(struct torture *torture)
{
    torture->nemesis =
        nemesis_start(&(struct nemesis_plan){.cluster = &torture->cluster,
                                             .history = torture->history,
                                             .setbacks = torture->setbacks,
                                             .seed = torture->options.seed,
                                             .unit_ms = unit_ms(torture),
                                             .lanes = torture->options.cluster ? 1 : NEMESIS_LANES_MAX,
                                             .focus = torture->options.cluster ? NULL : torture->options.focus});
    return torture->nemesis != NULL;
}

static void find_dead(struct torture *torture)
{
    unsigned dead = cluster_find_dead(&torture->cluster);

    if (dead == CLUSTER_NODES)
        return;
    char *log = node_log(&torture->cluster.fixture.nodes[dead]);
    size_t len = strlen(log);
    fprintf(stderr, "%s\n", len > 4000 ? log + len - 4000 : log);
    test_give_up("seed %u: node %u ended by itself, with code %d", torture->options.seed, dead,
                 process_exit_code(&torture->cluster.fixture.nodes[dead].process));
}

/* Until time is up, the clients have ended, or a node has died of itself. */
static void wait_for_end(struct torture *torture)
{
    int64_t start_ms = deadline_now_ms();
    struct deadline deadline = deadline_in(torture->options.seconds * INT64_C(1000));

    while (deadline_left_ms(deadline) > 0 && !clients_ended(torture->clients)) {
        poll(NULL, 0, STEP_MS);
        find_dead(torture);
    }
    torture->took_ms = deadline_now_ms() - start_ms;
}

static void run_failovers(struct torture *torture)
{
    const struct failover_plan plan = {&torture->cluster, torture->history, torture->setbacks,
                                       is_about_setbacks(torture)};
    int64_t start_ms = deadline_now_ms(), slowest_ms[3] = {0};

    for (unsigned round = 0; round < torture->options.failovers && !clients_ended(torture->clients); round++) {
        struct failover f;

        failover_run(&plan, round, &f);
        printf("round %2u: %-7s of redis %u: redis %u named after %5ld ms, checks %5ld ms, writes %5ld ms, revocations "
               "%5ld ms; back as a replica in %ld ms\n",
               round + 1, f.how, f.from, f.to, (long)f.named_ms, (long)f.times.checks_ms, (long)f.times.writes_ms,
               (long)f.times.revokes_ms, (long)f.returned_ms);
        const int64_t times_ms[] = {f.times.checks_ms, f.times.writes_ms, f.times.revokes_ms};
        for (size_t i = 0; i < 3; i++)
            slowest_ms[i] = times_ms[i] > slowest_ms[i] ? times_ms[i] : slowest_ms[i];
        find_dead(torture);
    }
    torture->took_ms = deadline_now_ms() - start_ms;
    printf("slowest: checks %ld ms, writes %ld ms, revocations %ld ms\n", (long)slowest_ms[0], (long)slowest_ms[1],
           (long)slowest_ms[2]);
}

/* For as long as the time lasts, and the round that is under way then. */
static void run_cluster_faults(struct torture *torture)
{
    int64_t start_ms = deadline_now_ms();
    struct deadline deadline = deadline_in(torture->options.seconds * INT64_C(1000));

    torture->shard_faults = (struct shard_faults){.cluster = &torture->cluster,
                                                  .history = torture->history,
                                                  .setbacks = torture->setbacks,
                                                  .only_setbacks = is_about_setbacks(torture),
                                                  .availability = torture->availability};
    torture->rebalance = rebalance_start(&torture->shards, torture->history, torture->options.seed);
    while (deadline_left_ms(deadline) > 0 && !clients_ended(torture->clients)) {
        shard_faults_run(&torture->shard_faults);
        find_dead(torture);
    }
    rebalance_stop(torture->rebalance);
    torture->took_ms = deadline_now_ms() - start_ms;
}

static void run_upgrade(struct torture *torture)
{
    int64_t start_ms = deadline_now_ms();

    upgrade_run(torture->upgrade);
    torture->took_ms = deadline_now_ms() - start_ms;
}

static void run_faults(struct torture *torture)
{
    if (torture->upgrade)
        run_upgrade(torture);
    else if (torture->options.failovers > 0)
        run_failovers(torture);
    else if (torture->options.cluster)
        run_cluster_faults(torture);
    else
        wait_for_end(torture);
}

static void print_cluster_counts(const struct torture *torture)
{
    shard_faults_print_counts(&torture->shard_faults);
    rebalance_print_counts(torture->rebalance);
    availability_print(torture->availability);
}

static void print_counts(const struct torture *torture)
{
    const struct clients_counts *counts = clients_counts(torture->clients);
    size_t revoked = counts->answered[EVENT_REVOKE] + counts->answered[EVENT_COMMAND];

    printf("%.0f s, seed %u, lease %u ms%s\n", (double)torture->took_ms / 1000, torture->options.seed,
           torture->options.lease_ms, torture->netns ? ", network namespaces" : "");
    if (torture->nemesis)
        nemesis_print_counts(torture->nemesis);
    if (torture->options.cluster)
        print_cluster_counts(torture);
    setbacks_print(torture->setbacks);
    printf("answered: %zu of %zu creations, %zu of %zu revocations (mean %.0f ms, max %ld ms), %zu of %zu by command\n",
           counts->answered[EVENT_CREATE], counts->asked[EVENT_CREATE], counts->answered[EVENT_REVOKE],
           counts->asked[EVENT_REVOKE], revoked ? counts->revoke_ms_sum / (double)revoked : 0.0,
           (long)counts->revoke_ms_max, counts->answered[EVENT_COMMAND], counts->asked[EVENT_COMMAND]);
    printf("of these, %zu of %zu by lists, %zu of %zu together with others, %zu of %zu by secrets\n", counts->lists[1],
           counts->lists[0], counts->together[1], counts->together[0], counts->held[1], counts->held[0]);
    printf("besides, %zu of %zu scheduled, %zu of %zu by replacements; of these %zu repeated: %zu ended an earlier "
           "successor, %zu found it in use\n",
           counts->answered[EVENT_SCHEDULE], counts->asked[EVENT_SCHEDULE], counts->answered[EVENT_REPLACE],
           counts->asked[EVENT_REPLACE], counts->repeated, counts->successors_ended, counts->successors_used);
    printf("keys made by keys that were being revoked: %zu of %zu requests answered; with an inherited end, %zu keys\n",
           counts->answered[EVENT_SUCCESSOR], counts->asked[EVENT_SUCCESSOR], counts->inherited);
    if (torture->endings) {
        const struct endings_counts *ended = endings_counts(torture->endings);

        printf("%zu accounts suspended, %zu resumed, %zu people removed (%zu of them by an attempt that told nobody), "
               "%zu attempts failed; their checks: %zu accepted, %zu refused, %zu after the end was told, %zu by a "
               "session whose end was lost and accepted to be\n",
               ended->suspended, ended->resumed, ended->removed, ended->removed_before, ended->failed, ended->accepted,
               ended->refused, ended->checks, ended->back);
        printf("keys that go back to these people: %zu made, %zu gone with them\n", ended->kin_made, ended->kin_gone);
    }
    printf("checks: %zu accepted, %zu refused, %zu unavailable (503), %zu without an answer, %zu not sent\n",
           counts->accepted, counts->refused, counts->unavailable, counts->unknown, counts->kept_out);
}

static void judge_whole(struct torture *torture)
{
    if (torture->readers)
        (void)table_readers_turn(torture->readers);
    size_t checked, whole = history_judge(torture->history, &checked);

    printf("checks that began after their key's revocation was answered: %zu\n", checked);
    if (whole > history_violations(torture->history))
        history_violation(torture->history, "found in the whole history only", "see above");
}

static void look_at_what_is_left(struct torture *torture)
{
    struct aftermath aftermath;

    aftermath_check(&torture->cluster, torture->history, torture->clients, torture->users, torture->user_count,
                    &aftermath);
    if (torture->endings)
        endings_check_whole(torture->endings);
    printf("afterwards: all nodes served within %ld ms; %u sessions, %zu active keys (%zu of ended nodes, which nobody "
           "knows), %zu pages of audit events; these nodes refreshed %ld cached keys\n",
           (long)aftermath.back_ms, aftermath.sessions, aftermath.active, aftermath.orphans_excused,
           aftermath.audit_pages, aftermath.refreshes);
}

static void write_history(struct torture *torture)
{
    FILE *out = fopen(torture->options.history_path, "we");

    if (!out)
        test_give_up("cannot write %s", torture->options.history_path);
    history_write(torture->history, out);
    fclose(out);
}

static void print_verdict(const struct torture *torture)
{
    size_t violations = history_violations(torture->history);

    if (violations > 0)
        printf("violations: %zu, the first after %.1f s; again with: torture %d %u --lease-ms %u\n", violations,
               (double)history_first_violation_ms(torture->history) / 1000, torture->options.seconds,
               torture->options.seed, torture->options.lease_ms);
    else
        printf("violations: 0\n");
}

/* Without leases nothing is cached, and an earlier version shares nothing. */
static void prepare_tables(struct torture *torture, const char *folder)
{
    if (torture->options.lease_ms == 0 || torture->options.upgrade_from)
        return;
    torture->cluster.has_tables = true;
    snprintf(torture->board_path, sizeof torture->board_path, "%.150s/board", folder);
    torture->board = board_create(torture->board_path, unit_ms(torture));
}

static void start_cluster(struct torture *torture)
{
    if (torture->options.upgrade_from)
        upgrade_begin_with_old(&torture->cluster, torture->options.upgrade_from);
    if (torture->options.cluster) {
        cluster_start_sharded(&torture->cluster, torture->options.lease_ms, &torture->shards, torture->netns);
        torture->availability = availability_create(&torture->shards);
    } else if (torture->options.failovers > 0 || torture->options.sentinels)
        cluster_start_replicated(&torture->cluster, torture->options.lease_ms, torture->options.min_replicas);
    else
        cluster_start(&torture->cluster, torture->options.lease_ms, torture->netns);
}

static void make_namespaces(struct torture *torture, const char *folder)
{
    if (torture->options.netns)
        torture->netns = torture->options.cluster ? netns_create_bridged(folder, CLUSTER_NODES + SHARDS_SERVERS)
                                                  : netns_create(folder, CLUSTER_NODES);
}

static int torture_run(struct torture *torture)
{
    char folder[PROCESS_PATH_BYTES];

    folder_make(folder);
    make_namespaces(torture, folder);
    prepare_tables(torture, folder);
    start_cluster(torture);
    torture->history = history_create();
    torture->setbacks = setbacks_create(&torture->cluster, torture->history);
    add_users(torture);
    add_endings(torture);
    if (torture->options.failovers == 0 && !torture->upgrade && !start_nemesis(torture))
        return usage();
    start_readers(torture, folder);
    start_clients(torture);
    run_faults(torture);
    clients_stop(torture->clients);
    table_readers_stop(torture->readers);
    if (torture->nemesis)
        nemesis_mend(torture->nemesis);

    print_counts(torture);
    if (!torture->options.first || history_violations(torture->history) == 0)
        look_at_what_is_left(torture);
    if (torture->upgrade)
        upgrade_check_newer_schema(torture->upgrade);
    judge_whole(torture);
    table_readers_print_counts(torture->readers);
    if (torture->options.history_path)
        write_history(torture);
    print_verdict(torture);

    int result = history_violations(torture->history) == 0 ? EXIT_SUCCESS : EXIT_VIOLATION;
    cluster_stop(&torture->cluster);
    if (torture->nemesis)
        nemesis_end(torture->nemesis);
    upgrade_destroy(torture->upgrade);
    clients_destroy(torture->clients);
    endings_destroy(torture->endings);
    rebalance_destroy(torture->rebalance);
    availability_destroy(torture->availability);
    table_readers_destroy(torture->readers);
    board_close(torture->board);
    setbacks_destroy(torture->setbacks);
    history_destroy(torture->history);
    netns_destroy(torture->netns);
    folder_remove(folder);
    return result;
}

static unsigned number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || value > 1000000000) {
        fprintf(stderr, "torture: not a number: %s\n", text);
        exit(EXIT_USAGE);
    }
    return (unsigned)value;
}

enum {
    OPTION_LEASE = 1,
    OPTION_RATE,
    OPTION_FIRST,
    OPTION_FOCUS,
    OPTION_NETNS,
    OPTION_HISTORY,
    OPTION_FAILOVERS,
    OPTION_MIN_REPLICAS,
    OPTION_SENTINELS,
    OPTION_CLUSTER,
    OPTION_UPGRADE_FROM,
    OPTION_OLD_NAME,
    OPTION_NEW_NAME,
    OPTION_SELF_TEST,
    OPTION_RULES
};

static const struct option OPTIONS[] = {{"lease-ms", required_argument, NULL, OPTION_LEASE},
                                        {"rate", required_argument, NULL, OPTION_RATE},
                                        {"first", no_argument, NULL, OPTION_FIRST},
                                        {"focus", required_argument, NULL, OPTION_FOCUS},
                                        {"netns", no_argument, NULL, OPTION_NETNS},
                                        {"history", required_argument, NULL, OPTION_HISTORY},
                                        {"failovers", required_argument, NULL, OPTION_FAILOVERS},
                                        {"min-replicas", required_argument, NULL, OPTION_MIN_REPLICAS},
                                        {"sentinels", no_argument, NULL, OPTION_SENTINELS},
                                        {"cluster", no_argument, NULL, OPTION_CLUSTER},
                                        {"upgrade-from", required_argument, NULL, OPTION_UPGRADE_FROM},
                                        {"old-name", required_argument, NULL, OPTION_OLD_NAME},
                                        {"new-name", required_argument, NULL, OPTION_NEW_NAME},
                                        {"self-test", no_argument, NULL, OPTION_SELF_TEST},
                                        {"rules", no_argument, NULL, OPTION_RULES},
                                        {NULL, 0, NULL, 0}};

int main(int argc, char **argv)
{
    static struct torture torture;
    struct options *options = &torture.options;
    int option;

    *options = (struct options){.seconds = 60,
                                .seed = (unsigned)getpid(),
                                .lease_ms = LEASE_DEFAULT_MS,
                                .keys_per_second = KEYS_PER_SECOND_DEFAULT,
                                .min_replicas = 1,
                                .old_name = "old",
                                .new_name = "new"};
    if (argc > 1 && strcmp(argv[1], "--table-reader") == 0)
        return table_reader_run(argc - 2, argv + 2);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    log_configure(LOG_ERROR, LOG_LOGFMT); /* of the fixture's own stores */
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (option) {
        case OPTION_LEASE:
            options->lease_ms = number(optarg);
            break;
        case OPTION_RATE:
            options->keys_per_second = number(optarg);
            break;
        case OPTION_FIRST:
            options->first = true;
            break;
        case OPTION_FOCUS:
            options->focus = optarg;
            break;
        case OPTION_NETNS:
            options->netns = true;
            break;
        case OPTION_HISTORY:
            options->history_path = optarg;
            break;
        case OPTION_FAILOVERS:
            options->failovers = number(optarg);
            break;
        case OPTION_MIN_REPLICAS:
            options->min_replicas = number(optarg);
            break;
        case OPTION_SENTINELS:
            options->sentinels = true;
            break;
        case OPTION_CLUSTER:
            options->cluster = true;
            break;
        case OPTION_UPGRADE_FROM:
            options->upgrade_from = optarg;
            break;
        case OPTION_OLD_NAME:
            options->old_name = optarg;
            break;
        case OPTION_NEW_NAME:
            options->new_name = optarg;
            break;
        case OPTION_SELF_TEST:
            return self_test_passes() ? EXIT_SUCCESS : EXIT_VIOLATION;
        case OPTION_RULES:
            return print_rules();
        default:
            return usage();
        }
    }
    if (optind < argc)
        options->seconds = (int)number(argv[optind++]);
    if (optind < argc)
        options->seed = number(argv[optind++]);
    if (options->failovers > 0 &&
        (options->netns || (options->focus && strcmp(options->focus, SETBACKS) != 0) || options->lease_ms == 0 ||
         options->min_replicas < 1 || options->min_replicas > SENTINELS_REDISES_MAX - 1))
        return usage();
    if (options->upgrade_from ? options->failovers > 0 || options->netns || options->focus : options->sentinels)
        return usage();
    if (options->cluster && ((options->focus && !is_about_setbacks(&torture)) || options->upgrade_from ||
                             options->failovers > 0 || options->lease_ms == 0))
        return usage();
    return optind < argc || options->keys_per_second == 0 ? usage() : torture_run(&torture);
}
