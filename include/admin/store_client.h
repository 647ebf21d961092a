/* A short-lived store connection for commands. It has its own loop and runs one operation at a time. */
#pragma once
#include "admin/command.h"
#include "admin/startup_gate.h"

struct store_client {
    uv_loop_t loop;
    struct partitions *partitions;
    struct store *store; /* the partition that operations concern: the first one, unless chosen */
    struct startup_gate *gate;
    struct store_settings settings;
    struct keyring *keyring; /* loaded by command_open(); NULL: none */
    uv_timer_t timer, notice;
    unsigned told;            /* by store_client_tell_all(): partitions that answered STORE_OK, from the first on */
    enum store_result result; /* of the last operation that called store_client_answer() */
    bool is_done;             /* the current operation has called store_client_done() */
    bool has_said_it_waits;   /* for leases of nodes; once is enough */
    const char *waits_for;    /* how it says so; NULL: as for a change that was stored */
};

/* Connects and waits until the store is ready. For keyring, see struct store_settings. Returns EXIT_DONE, or an exit
 * code after printing an error; nothing is open then. */
MUST_CHECK int store_client_open(struct store_client *client, const struct settings *settings, struct keyring *keyring);
/* The same, with any master key: for commands that register new ones. */
MUST_CHECK int store_client_open_to_rotate(struct store_client *client, const struct settings *settings,
                                           struct keyring *keyring);
/* Connects without waiting for readiness, to examine a Redis that may be unfit. */
MUST_CHECK int store_client_open_to_look(struct store_client *client, const struct settings *settings,
                                         struct keyring *keyring);
/* The same for the target of a copy, which may lie in one Redis with the source. */
MUST_CHECK int store_client_open_to_copy(struct store_client *client, const struct settings *settings);
/* Turns to the partition of that account. */
void store_client_choose(struct store_client *client, const struct id *account);
/* Asks the partitions in turn, until one answers STORE_OK. Otherwise the result is STORE_NOT_FOUND if all answered
 * that, or else what one of them answered instead, which stays chosen. */
enum store_result store_client_ask_each(struct store_client *client,
                                        enum store_result (*ask)(struct store_client *client, void *arg), void *arg);
/* Runs an operation in every partition, until one does not answer STORE_OK. */
enum store_result store_client_tell_all(struct store_client *client,
                                        enum store_result (*tell)(struct store_client *client, void *arg), void *arg);
/* If a change failed there: prints in which partitions it was made before, if in any. The error comes next. */
void store_client_tell_done(const struct store_client *client, enum store_result result);
/* Runs the loop until the callback of the current operation calls store_client_done(). If the operation waits for
 * leases of nodes, it says so, once, on standard error. */
void store_client_wait(struct store_client *client);
void store_client_done(struct store_client *client);
/* The same, for an operation with a result, which the client keeps. */
void store_client_answer(struct store_client *client, enum store_result result);
/* The callback (store_done) of an operation that has nothing but its result. */
void store_client_answered(void *client, enum store_result result);
/* Waits; returns the result. */
enum store_result store_client_result(struct store_client *client);
void store_client_pause(struct store_client *client, uint64_t ms);
void store_client_close(struct store_client *client);

/* The messages for each result of an operation; NULL for results that are unexpected. */
struct store_refusals {
    const char *not_found, *conflict, *refused;
};
/* Returns EXIT_DONE for STORE_OK; otherwise prints why and returns EXIT_FAILED. refusals: NULL if all are unexpected.
 */
MUST_CHECK int store_client_explain(struct store_client *client, enum store_result result,
                                    const struct store_refusals *refusals);
/* Waits, and explains the result. */
MUST_CHECK int store_client_finish(struct store_client *client, const struct store_refusals *refusals);
/* store_client_tell_all(), store_client_tell_done() and store_client_explain(). */
MUST_CHECK int store_client_change_all(struct store_client *client,
                                       enum store_result (*tell)(struct store_client *client, void *arg), void *arg,
                                       const struct store_refusals *refusals);
