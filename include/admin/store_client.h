/* A short connection to the store, for commands: a loop of its own, on which they wait for one operation after the
 * other. */
#pragma once
#include "admin/command.h"
#include "admin/store_gate.h"

struct store_client {
    uv_loop_t loop;
    struct store *store; /* read-only */
    struct store_gate *gate;
    struct store_settings settings;
    uv_timer_t timer;
    bool is_done; /* the operation under way has called store_client_done() */
};

/* Connects and waits until the store is ready. keyring: what store_settings says of it. EXIT_DONE, or the exit code
 * after printing an error; then nothing is open. */
MUST_CHECK int store_client_open(struct store_client *client, const struct settings *settings, struct keyring *keyring);
/* The same for commands that register other master keys. */
MUST_CHECK int store_client_open_to_rotate(struct store_client *client, const struct settings *settings,
                                           struct keyring *keyring);
/* Connects without waiting, to examine a Redis that may be unfit. */
MUST_CHECK int store_client_open_to_look(struct store_client *client, const struct settings *settings,
                                         struct keyring *keyring);
/* Runs the loop until the callback of the one operation under way has called store_client_done(). */
void store_client_wait(struct store_client *client);
void store_client_done(struct store_client *client);
void store_client_pause(struct store_client *client, uint64_t ms);
void store_client_close(struct store_client *client);

/* The results of a verb as sentences for its user; NULL for results that the verb never gives. */
struct store_refusals {
    const char *not_found, *conflict, *refused;
};
/* EXIT_DONE for STORE_OK, else EXIT_FAILED after printing why. */
MUST_CHECK int store_client_explain(struct store_client *client, enum store_result result,
                                    const struct store_refusals *refusals);
