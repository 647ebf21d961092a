/* account close: for good. Each step can be repeated, so a command that was interrupted is run again. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "records/account_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_row ROWS[] = {
    ROW_TEXT("export", file, "PATH",
             "First write what 'account export' writes to this new file. Nothing is changed if that fails."),
    ROW_FLAG("erase", erase,
             "Also forget the emails of its former people, by which the trail names them, and bury its keys at once "
             "instead of a day later: they have no receipts then. Also for an account that is closed already."),
    ROW_YES,
    ROW_JSON,
};
const struct option_group ACCOUNT_CLOSE_OPTIONS[] = ADMIN_OPTIONS(ROWS);

struct closing {
    struct store_client *client;
    const struct id *account;
    bool is_closed, erases; /* is_closed: before this command */
    struct account_close_step step;
    int64_t keys, people, sessions;
};

static const struct store_refusals REFUSALS = {
    .not_found = "there is no such account; 'chatelaine account list' shows all",
    .conflict = "the account has changed meanwhile: run the command again",
};

static void stepped(void *arg, enum store_result result, const struct account_close_step *step)
{
    struct closing *closing = arg;

    if (step)
        closing->step = *step;
    store_client_answer(closing->client, result);
}

typedef void close_step(struct closing *closing);

static void close_keys(struct closing *closing)
{
    account_store_close_keys(closing->client->store, closing->account, &OPERATOR, stepped, closing);
}

static void close_people(struct closing *closing)
{
    account_store_close_people(closing->client->partitions, closing->account, &OPERATOR, stepped, closing);
}

static int repeat(struct closing *closing, close_step *step, int64_t *count)
{
    int code;

    do {
        step(closing);
        code = store_client_finish(closing->client, &REFUSALS);
        if (code != EXIT_DONE)
            break;
        *count += closing->step.count;
        closing->sessions += closing->step.sessions;
    } while (!closing->step.is_done);
    return code;
}

/* Suspended first: from then on nothing is added, and nothing accepted. */
static int end_all(struct closing *closing)
{
    struct account_suspension suspension;
    int code = account_suspend_now(closing->client, closing->account, true, &suspension);

    if (code == EXIT_DONE)
        code = repeat(closing, close_keys, &closing->keys);
    if (code == EXIT_DONE)
        code = repeat(closing, close_people, &closing->people);
    return code;
}

static int close_all(struct closing *closing)
{
    int code = closing->is_closed ? EXIT_DONE : end_all(closing);

    if (code != EXIT_DONE)
        return code;
    account_store_close(closing->client->store, closing->account, closing->erases, &OPERATOR, store_client_answered,
                        closing->client);
    return store_client_finish(closing->client, &REFUSALS);
}

static int print_closed(const struct command_line *line, const struct closing *closing)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    if (line->json)
        buf_printf(&out,
                   "{\"id\":\"%s\",\"status\":\"closed\",\"keys_revoked\":%" PRId64 ",\"people_removed\":%" PRId64
                   ",\"sessions_ended\":%" PRId64 "}\n",
                   closing->account->text, closing->keys, closing->people, closing->sessions);
    else
        buf_printf(&out,
                   "Account %s is closed: keys revoked: %" PRId64 ", people removed: %" PRId64
                   ", sessions ended: %" PRId64 ".\n",
                   closing->account->text, closing->keys, closing->people, closing->sessions);
    return command_print(buf_text(&out));
}

/* The name must be typed, because "yes" is typed too easily. */
static int confirm(const struct command_line *line, const struct account_row *row)
{
    char answer[ACCOUNT_NAME_MAX_BYTES + 2];
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_OUTPUT_MAX_BYTES);

    if (line->yes)
        return EXIT_DONE;
    if (!isatty(STDIN_FILENO))
        return command_fail(EXIT_USAGE, "closing an account cannot be undone. Without a terminal to ask on, this needs "
                                        "--yes");
    buf_append_printable(&out, text_of(row->name));
    fprintf(stderr,
            "All keys of account %.*s are revoked and its people removed, for good. To close it, type its name: ",
            TEXT_ARG(buf_text(&out)));
    if (!fgets(answer, sizeof answer, stdin))
        answer[0] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    if (strcmp(answer, row->name) != 0)
        return command_fail(EXIT_FAILED, "nothing was changed");
    return EXIT_DONE;
}

static int close_in_store(const struct command_line *line, struct store_client *client, const struct id *account)
{
    struct closing closing = {.client = client, .account = account, .erases = line->erase};
    struct account_row row;
    int code = account_require(client, account, &row);

    closing.is_closed = code == EXIT_DONE && row.status == ACCOUNT_CLOSED;
    if (closing.is_closed && !line->erase)
        return command_fail(EXIT_FAILED, "the account is closed already");
    if (code == EXIT_DONE)
        code = confirm(line, &row);
    if (code == EXIT_DONE && line->file)
        code = account_export_to(client, account, line->file);
    if (code == EXIT_DONE)
        code = close_all(&closing);
    return code == EXIT_DONE ? print_closed(line, &closing) : code;
}

int account_close_run(const struct command_line *line)
{
    return account_run(line, line->file != NULL, close_in_store);
}
