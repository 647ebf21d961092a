#include "losses.h"

#include "cli.h"
#include "deadline.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* It did not crash; and a sentence is missing only if Redis told it of the nodes. */
static bool has_judged(const struct cli_run *run, bool is_said)
{
    bool is_listed = strstr(run->out, ", longest lease ") && !strstr(run->out, ", longest lease unknown\n");

    return (run->exit_code == 0 || run->exit_code == 3) && strncmp(run->out, "Redis: ", strlen("Redis: ")) == 0 &&
           (is_said || is_listed);
}

static void await(struct fixture *fixture, const char *says, bool is_said)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct cli_run run;

    for (;;) {
        RUN(fixture, &run, "status");
        if (has_judged(&run, is_said) && (strstr(run.out, says) != NULL) == is_said)
            break;
        cr_assert_gt(deadline_left_ms(deadline), 0, "\"%s\" is %s: %s%s", says, is_said ? "missing" : "there", run.out,
                     run.err);
        cli_finish(&run);
        poll(NULL, 0, 100);
    }
    cr_expect(!is_said || run.exit_code == 3, "%d: %s", run.exit_code, run.out);
    cli_finish(&run);
}

void losses_await_status(struct fixture *fixture, const char *says)
{
    await(fixture, says, true);
}

void losses_await_end(struct fixture *fixture, const char *says)
{
    await(fixture, says, false);
}

/* doctor prints what it says in lines of bounded length, and --json whole. */
void losses_expect_told(struct fixture *fixture, enum loss loss, const char *sample)
{
    const struct loss_row *row = &LOSSES[loss];
    char detail[512];
    struct cli_run run;

    losses_await_status(fixture, row->sentence);
    cr_expect_eq(fixture_metric(fixture, 0, sample), 1);
    cr_expect(file_contains(fixture->nodes[0].process.err_path, row->message));
    RUN(fixture, &run, "doctor", "--json", "--public-origin", NODE_ORIGIN);
    snprintf(detail, sizeof detail, "\"name\":\"%s\",\"status\":\"warn\",\"detail\":\"1 of 1 nodes: %s\"", row->name,
             row->sentence);
    cr_expect_not_null(strstr(run.out, detail), "%s%s", run.out, run.err);
    cli_finish(&run);
}
