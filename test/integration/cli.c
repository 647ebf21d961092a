#include "cli.h"
#include "base/json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BARE_ARGS_MAX = 24 };

void cli_run(struct fixture *fixture, struct cli_run *ret_run, const char *const *args, const char *input)
{
    ret_run->exit_code = fixture_run(fixture, args, input, &ret_run->out, &ret_run->err);
}

void cli_run_bare(const struct fixture *fixture, struct cli_run *ret_run, const char *const *args)
{
    const char *argv[BARE_ARGS_MAX + 2] = {node_binary()};
    struct process process;

    for (size_t i = 0; args[i] && i < BARE_ARGS_MAX; i++)
        argv[i + 1] = args[i];
    ret_run->exit_code = process_run(&process, fixture->folder, "bare", argv, NULL, PATIENCE_MS);
    ret_run->out = file_read(process.out_path);
    ret_run->err = file_read(process.err_path);
    file_write(process.out_path, "");
    file_write(process.err_path, "");
}

void cli_finish(struct cli_run *run)
{
    free(run->out);
    free(run->err);
}

void cli_member(const char *json, const char *name, char *ret_value, size_t size)
{
    struct json *document = json_parse_object(text_of(json), NULL);
    const struct json *value = document ? json_member(document, name) : NULL;

    cr_assert(value && json_type(value) == JSON_STRING, "no %s in: %s", name, json);
    snprintf(ret_value, size, "%.*s", TEXT_ARG(json_text(value)));
    json_free(document);
}

void cli_expect_refusal(struct cli_run *run, int exit_code, const char *says, const char *what)
{
    const char *newline = strchr(run->err, '\n');

    cr_expect_eq(run->exit_code, exit_code, "%s: exit code %d, %s", what, run->exit_code, run->err);
    cr_expect_str_empty(run->out, "%s", what);
    cr_expect(newline != NULL, "%s: no message", what);
    if (exit_code == 1 && newline)
        cr_expect_eq(newline[1], '\0', "%s: more than one line: %s", what, run->err);
    cr_expect(strstr(run->err, says) != NULL, "%s: lacks \"%s\": %s", what, says, run->err);
    cli_finish(run);
}
