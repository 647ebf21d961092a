/* bench_table TABLE SECRETS SECONDS [PER_SECOND]: checks the file's keys in turn, in a scattered order, through a
 * node's shared table, as often as it can or that often, and prints the CPU time of one and how many the table decided.
 * The file's lines are secrets. */
#include <chatelaine/check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SECRET_BYTES = 128,
    BATCH = 1024,
    PATIENCE_S = 10,
    STRIDE = 7919 /* a prime: neighbours in the file do not come together */
};

struct secrets {
    char (*lines)[SECRET_BYTES];
    size_t count;
};

static struct secrets read_secrets(const char *path)
{
    FILE *file = fopen(path, "re");
    struct secrets secrets = {0};
    char line[SECRET_BYTES];
    size_t room = 0;

    while (file && fgets(line, sizeof line, file)) {
        if (secrets.count == room) {
            room = room ? 2 * room : 1024;
            secrets.lines = realloc(secrets.lines, room * sizeof *secrets.lines);
            if (!secrets.lines)
                abort();
        }
        line[strcspn(line, "\n")] = '\0';
        memcpy(secrets.lines[secrets.count++], line, sizeof line);
    }
    if (file)
        fclose(file);
    return secrets;
}

static double clock_s(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t check_batch(struct chatelaine_table *table, const struct secrets *secrets, size_t *at)
{
    struct chatelaine_principal who;
    size_t accepted = 0;

    for (int i = 0; i < BATCH; i++) {
        const char *secret = secrets->lines[*at];
        accepted += chatelaine_check(table, secret, strlen(secret), CHATELAINE_PATIENTS_READ, &who);
        *at = (*at + STRIDE) % secrets->count;
    }
    return accepted;
}

/* Waits until that many checks are due. */
static void keep_pace(size_t checks, double per_second, double began_s)
{
    double early_s = began_s + (double)checks / per_second - clock_s(CLOCK_MONOTONIC);

    if (early_s > 0)
        poll(NULL, 0, (int)(early_s * 1000));
}

/* The node hands its table out in a turn of its own. */
static void await_table(struct chatelaine_table *table)
{
    double until_s = clock_s(CLOCK_MONOTONIC) + PATIENCE_S;

    while (!chatelaine_table_refresh(table)) {
        if (clock_s(CLOCK_MONOTONIC) > until_s) {
            fprintf(stderr, "no table: %s\n", chatelaine_trouble_text(table->trouble));
            exit(1);
        }
        poll(NULL, 0, 1);
    }
}

int main(int argc, char **argv)
{
    struct chatelaine_table table;
    size_t at = 0, checks = 0, accepted = 0;

    if (argc != 4 && argc != 5)
        return 2;
    const double per_second = argc == 5 ? strtod(argv[4], NULL) : 0;
    struct secrets secrets = read_secrets(argv[2]);
    if (secrets.count == 0) {
        fprintf(stderr, "no secrets in %s\n", argv[2]);
        return 1;
    }
    chatelaine_table_init(&table, argv[1], CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    await_table(&table);
    double began_s = clock_s(CLOCK_MONOTONIC), now = began_s, refreshed_s = began_s;
    const double spent_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    while (now - began_s < strtod(argv[3], NULL)) {
        if (now - refreshed_s >= 1) {
            await_table(&table);
            refreshed_s = now;
        }
        accepted += check_batch(&table, &secrets, &at);
        checks += BATCH;
        if (per_second > 0)
            keep_pace(checks, per_second, began_s);
        now = clock_s(CLOCK_MONOTONIC);
    }
    printf("%.0f ns of CPU a check, %.2f %% of %zu by the table\n",
           (clock_s(CLOCK_PROCESS_CPUTIME_ID) - spent_s) * 1e9 / (double)checks,
           100 * (double)accepted / (double)checks, checks);
    chatelaine_table_finish(&table);
    free(secrets.lines);
    return 0;
}
