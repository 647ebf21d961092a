/* What a node makes of its settings before anything runs. Whatever can be wrong with them is found here, without
 * listening and without a change, by 'serve' and by 'doctor' alike. */
#pragma once
#include "admin/startup_gate.h"
#include "core/address.h"
#include "core/route_policy.h"

struct node_settings {
    struct store_settings store;
    bool has_store; /* it was read */
    struct keyring *keyring;
    struct route_policy *policy;
    struct address_ranges *trusted_proxies; /* NULL: none */
};

/* Parts that a caller judges itself. */
enum node_settings_part {
    NODE_SETTINGS_ORIGIN = 1,
    NODE_SETTINGS_KEYS = 2,
    NODE_SETTINGS_CERTIFICATES = 4,
    NODE_SETTINGS_FOLDERS = 8, /* of sockets: a node without them is started again until they are there */
};

/* Reads all parts but those, whatever is wrong with others. False with a line in ret_why for each mistake, behind what
 * it has already. ret_node gets what could be read; finish it in both cases, or take it over. */
MUST_CHECK bool node_settings_read(const struct settings *settings, unsigned but, struct node_settings *ret_node,
                                   struct buf *ret_why);
void node_settings_finish(struct node_settings *node);
/* Of a line of mistakes, for struct command. */
void node_settings_judge(const struct settings *settings, struct buf *mistakes);

/* NULL, with one sentence in ret_why, if there is something wrong with the file. path NULL: the built-in policy. */
struct route_policy *node_policy_load(const char *path, struct buf *ret_why);
