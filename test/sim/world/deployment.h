/* What runs: a Redis or a cluster, nodes, and clients on hosts of their own; with accounts, and a key of each that may
 * manage keys, made by the product's commands and its console. */
#pragma once
#include "process.h"
#include "redises.h"
#include "server.h"

enum sim_store { SIM_STORE_SINGLE, SIM_STORE_CLUSTER, SIM_STORE_SENTINEL };

enum {
    SIM_NODES_MAX = 5,
    SIM_MASTERS = 3,
    SIM_ACCOUNTS = 2,
    SIM_PEOPLE = 4,
    SIM_SECRET_BYTES = 128,
    SIM_ID_BYTES = 64,
    SIM_PORT = 8080,
    SIM_URI_BYTES = 512
};

#define SIM_ORIGIN "http://console.test"
#define SIM_PASSWORD "glacier umbrella tornado 51 quill"

struct sim_node {
    struct sim_host *host;
    struct sim_process *process; /* NULL: it does not run */
    unsigned starts;             /* of it, so far */
    struct sim_deployment *deployment;
};

struct sim_account {
    char id[SIM_ID_BYTES], manager[SIM_SECRET_BYTES]; /* manager: the key's secret */
};

/* A primary of a cluster. */
struct sim_master {
    struct sim_host *host;
    struct sim_server *server;
    char ip[16], id[41];
    unsigned first_slot, last_slot; /* at the beginning */
};

/* Of the first account. */
struct sim_person {
    char email[32], totp_uri[SIM_URI_BYTES];
};

struct sim_deployment {
    char folder[256], master_key[300];
    const char *broken; /* the rule that its nodes break; NULL: none */
    enum sim_store store;
    struct sim_host *redis_host, *clients; /* redis_host, redis: of one Redis; else NULL */
    struct sim_server *redis;
    struct sim_master masters[SIM_MASTERS]; /* of a cluster */
    struct sim_redises redises;             /* with SIM_STORE_SENTINEL */
    unsigned min_replicas;                  /* likewise: of its two replicas, how many must acknowledge */
    struct sim_node nodes[SIM_NODES_MAX];
    unsigned node_count;
    struct sim_account accounts[SIM_ACCOUNTS];
    struct sim_person people[SIM_PEOPLE];
    unsigned commands; /* that were begun */
    bool is_made;      /* from then on commands print into the same files */
};

/* folder: empty. Of the deployment, store, min_replicas, node_count and broken are the caller's. Once it returns, all
 * nodes serve. */
void sim_deployment_start(struct sim_deployment *deployment, const char *image, const char *folder);
/* Runs a command of the product with this store. args: after the program's name, ending with NULL. */
void sim_command_start(struct sim_deployment *deployment, const char *const *args, void (*ended)(void *arg, int code),
                       void *arg);
void sim_node_start(struct sim_node *node);
void sim_node_kill(struct sim_node *node);
/* Of the socket at which it hands its shared table to readers. */
void sim_table_path(const struct sim_node *node, char *ret_path, size_t size);
