#include "admin/doctor.h"

#include "admin/commands.h"

#include "admin_internal.h"
#include "doctor_internal.h"
#include "examine_internal.h"
#include "status_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "config/tls_files.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MS_PER_S = 1000 };

static const struct option_row DOCTOR_ROWS[] = {ROW_JSON};
const struct option_group DOCTOR_OPTIONS[] = {OPTIONS_OF(DOCTOR_ROWS), SERVE_GROUPS, {"Gateway", &GATEWAY_TABLE}, {0}};

static bool is_of_this_machine(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
    return (ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> IN_CLASSA_NSHIFT) ==
           IN_LOOPBACKNET;
}

/* Ignores a name that does not resolve: the connection reports it. */
static void count_addresses(struct store_client *client, struct doctor_evidence *evidence)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    const struct redis_target *target = &client->settings.target;
    uv_getaddrinfo_t request;

    if (target->is_unix || target->found != REDIS_AT_HOST ||
        uv_getaddrinfo(&client->loop, &request, NULL, target->host, NULL, &hints) != 0)
        return;
    for (const struct addrinfo *at = request.addrinfo; at; at = at->ai_next) {
        if (is_of_this_machine(at->ai_addr))
            continue;
        *(at->ai_family == AF_INET6 ? &evidence->addresses_v6 : &evidence->addresses_v4) += 1;
    }
    uv_freeaddrinfo(request.addrinfo);
}

static bool is_this_machine(const char *host)
{
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* How the connections to Redis are protected. */
static void examine_transport(const struct store_client *client, struct doctor_evidence *evidence)
{
    const struct redis_target *target = &client->settings.target;

    evidence->has_tls = target->tls;
    evidence->is_elsewhere = !target->is_unix && evidence->addresses_v4 + evidence->addresses_v6 > 0;
    for (unsigned i = 0; i < target->seed_count; i++)
        evidence->is_elsewhere |= !is_this_machine(target->seeds[i].host);
    evidence->now_s = clock_wall_ms() / 1000;
    if (!target->tls)
        return;
    struct tls_context *context = client->settings.tls->context(client->settings.tls);
    evidence->certificate_not_after_s = tls_context_not_after_s(context);
    tls_context_release(context);
}

struct evidence_call {
    struct store_client *client;
    struct doctor_evidence *evidence;
};

static void on_backlog(void *arg, enum store_result result, const struct audit_backlog *backlog)
{
    struct evidence_call *call = arg;

    struct audit_backlog *all = &call->evidence->backlog;

    call->evidence->has_backlog &= result == STORE_OK;
    all->count += backlog->count;
    all->dropped += backlog->dropped;
    all->has_logs |= backlog->has_logs;
    if (backlog->oldest_ms > all->oldest_ms)
        all->oldest_ms = backlog->oldest_ms;
    store_client_done(call->client);
}

static void on_nodes(void *arg, enum store_result result, const struct node_list *list)
{
    struct evidence_call *call = arg;
    struct status_node *node = mem_alloc(sizeof *node);

    for (size_t i = 0; result == STORE_OK && i < list->node_count; i++) {
        status_read_node(&list->nodes[i], node);
        if (node->age_ms > STATUS_SILENT_MS)
            continue;
        call->evidence->nodes++;
        for (enum loss loss = 0; loss < LOSS_COUNT; loss++)
            call->evidence->losses[loss] += node->has_lost[loss];
    }
    free(node);
    store_client_done(call->client);
}

/* Nodes write their reports to the first partition. */
static void examine_nodes(struct store_client *client, struct doctor_evidence *evidence)
{
    node_store_list(partitions_at(client->partitions, 0), on_nodes, &(struct evidence_call){client, evidence});
    store_client_wait(client);
}

/* Collects the evidence from Redis. trouble holds the text that evidence->trouble points to, and has a byte more than
 * its maximum. */
static int examine_redis(struct doctor_evidence *evidence, struct keyring *keyring, struct buf *trouble)
{
    struct store_client client;
    int code = store_client_open_to_look(&client, evidence->settings, keyring);

    if (code != EXIT_DONE)
        return code;
    evidence->is_reachable = redis_examine(&client, &evidence->facts, &evidence->partitions_well);
    count_addresses(&client, evidence);
    examine_transport(&client, evidence);
    if (evidence->is_reachable && evidence->facts.keys == STORE_KEYS_FIT)
        evidence->is_counted = key_census_take(&client, keyring, CENSUS_COUNTS, &evidence->census) == EXIT_DONE;
    evidence->partitions = partitions_count(client.partitions);
    evidence->has_backlog = evidence->is_counted;
    for (unsigned i = 0; i < evidence->partitions && evidence->is_counted; i++) {
        audit_backlog_read(partitions_at(client.partitions, i), on_backlog, &(struct evidence_call){&client, evidence});
        store_client_wait(&client);
    }
    if (evidence->is_reachable)
        examine_nodes(&client, evidence);
    partitions_trouble(client.partitions, trouble);
    trouble->ptr[trouble->len] = '\0';
    evidence->trouble = trouble->ptr;
    store_client_close(&client);
    return EXIT_DONE;
}

/* NULL if the master keys cannot be loaded. */
static struct keyring *examine_key(struct doctor_evidence *evidence, struct buf *trouble)
{
    struct keyring *keyring = key_file_load(evidence->settings, trouble);

    buf_append_char(trouble, '\0');
    evidence->key_trouble = keyring ? NULL : trouble->ptr;
    return keyring;
}

static void examine_origin(struct doctor_evidence *evidence, struct buf *trouble)
{
    const char *origin = evidence->settings->public_origin;
    bool is_fit = !origin || settings_validate_origin(origin, trouble);

    buf_append_char(trouble, '\0');
    evidence->origin_trouble = is_fit ? NULL : trouble->ptr;
}

static void examine_tls(struct tls_file_option certificates, struct tls_file_option keys,
                        struct tls_file_option client_ca, struct doctor_tls *ret_tls)
{
    const struct tls_server_settings settings = {.service = TEXT("doctor")};
    struct tls_context *context;
    struct buf why;

    ret_tls->is_on = certificates.paths || keys.paths;
    if (!ret_tls->is_on)
        return;
    buf_init_fixed(&why, ret_tls->trouble, sizeof ret_tls->trouble - 1);
    context = tls_files_open_server(certificates, keys, client_ca, &settings, &why);
    if (context && tls_context_outdated(context))
        buf_append_text(&why, text_of(tls_context_outdated(context)));
    ret_tls->trouble[why.len] = '\0';
    if (context)
        ret_tls->left_s = tls_context_not_after_s(context) - clock_wall_ms() / MS_PER_S;
    tls_context_release(context);
}

#define UNIX TEXT("unix:") /* such a listener stays plain */

static void examine_certificates(struct doctor_evidence *evidence)
{
    const struct settings *s = evidence->settings;

    if (!text_starts_with(text_of(s->listen), UNIX))
        examine_tls((struct tls_file_option){"--tls-cert", s->tls_cert},
                    (struct tls_file_option){"--tls-key", s->tls_key}, (struct tls_file_option){"", NULL},
                    &evidence->tls);
    if (!text_starts_with(text_of(s->internal_listen), UNIX))
        examine_tls((struct tls_file_option){"--internal-tls-cert", s->internal_tls_cert},
                    (struct tls_file_option){"--internal-tls-key", s->internal_tls_key},
                    (struct tls_file_option){"--internal-client-ca", s->internal_client_ca}, &evidence->internal_tls);
}

int doctor_run(const struct command_line *line, const struct doctor_found *found)
{
    char redis_trouble[ADMIN_WHY_MAX_BYTES];
    struct buf redis, key = BUF_FIXED(ADMIN_WHY_MAX_BYTES), origin = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    struct doctor_evidence evidence = {
        .settings = &line->settings, .mistakes = found->mistakes, .trouble = "not asked: its settings are wrong"};
    struct doctor_report report;
    struct rlimit files;
    int code = EXIT_DONE;

    if (line->gateway)
        return doctor_gateway_run(line);
    buf_init_fixed(&redis, redis_trouble, sizeof redis_trouble - 1);
    struct keyring *keyring = examine_key(&evidence, &key);
    if (found->has_redis)
        code = examine_redis(&evidence, keyring, &redis);
    keyring_destroy(keyring);
    if (code != EXIT_DONE)
        return code;
    examine_origin(&evidence, &origin);
    examine_certificates(&evidence);
    evidence.file_limit = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_max : 0;

    doctor_evaluate(&evidence, &report);
    return doctor_tell(line, &report);
}
