/* Running the program's commands in tests, and looking at what they print. */
#pragma once
#include "fixture.h"

struct cli_run {
    int exit_code;
    char *out;
    char *err;
};

/* Runs a command with --redis and --master-key-file of the fixture. */
#define RUN(fixture, ret_run, ...) cli_run(fixture, ret_run, (const char *const[]){__VA_ARGS__, NULL}, NULL)

void cli_run(struct fixture *fixture, struct cli_run *ret_run, const char *const *args, const char *input);
/* Without --redis and --master-key-file. args: up to a NULL. */
void cli_run_bare(const struct fixture *fixture, struct cli_run *ret_run, const char *const *args);
void cli_finish(struct cli_run *run);
/* The text member of a JSON object; fails the test if there is none. */
void cli_member(const char *json, const char *name, char *ret_value, size_t size);
/* The command failed with this code and a message that contains `says`, and printed nothing else. Frees the run. */
void cli_expect_refusal(struct cli_run *run, int exit_code, const char *says, const char *what);
