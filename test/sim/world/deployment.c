#include "deployment.h"
#include "base/check.h"
#include "base/json.h"
#include "base/clock.h"
#include "cluster.h"
#include "core/totp.h"
#include "http.h"
#include "schedule.h"
#include "trace.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ARGS_MAX = 24,
    SETTINGS_MAX = 2,
    NAME_BYTES = 24,
    PATH_BYTES = 300,
    OUT_BYTES = 8192,
    REQUEST_BYTES = 1024,
    TOTP_CODE_BYTES = 8
};

#define NS_PER_US UINT64_C(1000)
#define NS_PER_S UINT64_C(1000000000)
#define LEAST_DELAY_NS (30 * NS_PER_US)
#define MOST_DELAY_NS (400 * NS_PER_US)
#define WITHIN_NS (30 * NS_PER_S)
#define SETTLE_NS (3 * NS_PER_S)
/* The least: keys get in each other's way. */
#define CACHE_ENTRIES "64"
#define TABLE_KEYS "64"

static _Noreturn void give_up(const char *what, const char *said)
{
    sim_trace_tell();
    fprintf(stderr, "%s: %s\n", what, said);
    _Exit(3);
}

/* The store: its address, and what is set for it in every process */

static const char *const URLS[] = {
    [SIM_STORE_SINGLE] = "redis://10.0.0.100:6379",
    [SIM_STORE_CLUSTER] = SIM_CLUSTER_URL,
    [SIM_STORE_SENTINEL] = SIM_REDISES_URL,
};

/* A cluster without replicas is none that the product would take by itself. */
static const char *const *settings_of(const struct sim_deployment *deployment)
{
    static const char *const NONE[] = {NULL};
    static const char *const CLUSTER[] = {"CHATELAINE_PARTITIONS=4", "CHATELAINE_UNSAFE_REDIS=true", NULL};
    static const char *const REPLICAS[][2] = {
        {NULL}, {"CHATELAINE_MIN_REPLICAS=1", NULL}, {"CHATELAINE_MIN_REPLICAS=2", NULL}};

    if (deployment->store == SIM_STORE_SENTINEL)
        return REPLICAS[deployment->min_replicas];
    return deployment->store == SIM_STORE_CLUSTER ? CLUSTER : NONE;
}

/* Commands */

static void command_ended(void *arg, int code)
{
    *(int *)arg = code;
}

static void print_name(const struct sim_deployment *deployment, char *ret_name, size_t size)
{
    snprintf(ret_name, size, "command%u", deployment->commands);
}

void sim_command_start(struct sim_deployment *deployment, const char *const *args, void (*ended)(void *arg, int code),
                       void *arg)
{
    const char *argv[ARGS_MAX] = {"chatelaine"};
    size_t count = 1;
    char name[NAME_BYTES];

    while (*args)
        argv[count++] = *args++;
    if (strcmp(argv[1], "master-key") != 0) {
        argv[count++] = "--redis";
        argv[count++] = URLS[deployment->store];
        argv[count++] = "--master-key-file";
        argv[count++] = deployment->master_key;
    }
    CHECK(count < ARGS_MAX);
    deployment->commands++;
    print_name(deployment, name, sizeof name);
    sim_process_start(&(struct sim_process_plan){.name = name,
                                                 .printed = deployment->is_made ? "commands" : NULL,
                                                 .host = deployment->clients,
                                                 .argv = argv,
                                                 .environment = settings_of(deployment),
                                                 .ended = ended,
                                                 .arg = arg});
}

static void read_out(const struct sim_deployment *deployment, char *ret_out)
{
    char path[PATH_BYTES], name[NAME_BYTES];
    FILE *file;
    size_t len;

    print_name(deployment, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s.out", deployment->folder, name);
    file = fopen(path, "re");
    CHECK(file);
    len = fread(ret_out, 1, OUT_BYTES - 1, file);
    ret_out[len] = 0;
    fclose(file);
}

/* Runs it to its end. */
static void run_command(struct sim_deployment *deployment, const char *const *args, char *ret_out)
{
    int code = -1;

    sim_command_start(deployment, args, command_ended, &code);
    while (code < 0 && sim_step(UINT64_MAX))
        continue;
    read_out(deployment, ret_out);
    if (code != 0)
        give_up(args[0], ret_out);
}

static void copy_after(const char *text, const char *before, char *ret_value, size_t size)
{
    if (!sim_http_copy_after(text, before, ret_value, size))
        give_up(before, text);
}

/* A person signs in, and makes a key */

static int status_of_last;
static char answer_of_last[OUT_BYTES];

static void answered(void *arg, const struct sim_answer *answer)
{
    (void)arg;
    status_of_last = answer->status;
    snprintf(answer_of_last, sizeof answer_of_last, "%s\n%s", answer->head, answer->body);
}

/* Until that is answered. */
static void ask(struct sim_deployment *deployment, const char *target, const char *fields, const char *body, int status)
{
    char bytes[REQUEST_BYTES];
    int len = snprintf(bytes, sizeof bytes,
                       "POST %s HTTP/1.1\r\nHost: console.test\r\nOrigin: " SIM_ORIGIN
                       "\r\nContent-Type: application/json\r\n"
                       "%sContent-Length: %zu\r\n\r\n%s",
                       target, fields, strlen(body), body);

    status_of_last = -1;
    sim_http_ask(&(struct sim_request){.from = deployment->clients,
                                       .to = deployment->nodes[0].host,
                                       .port = SIM_PORT,
                                       .bytes = bytes,
                                       .len = (size_t)len,
                                       .within_ns = WITHIN_NS,
                                       .answered = answered});
    while (status_of_last < 0 && sim_step(UINT64_MAX))
        continue;
    if (status_of_last != status)
        give_up(target, answer_of_last);
}

static void print_code(const char *uri, int step, char *ret_code)
{
    struct totp_secret secret;

    CHECK(totp_parse_uri(text_of(uri), &secret));
    totp_print(secret.bytes, sizeof secret.bytes, totp_step(clock_wall_ms()) + step, TOTP_DIGITS, ret_code);
}

static void print_fields(char *ret_fields, size_t size, const char *csrf)
{
    char token[SIM_SECRET_BYTES] = "";
    const char *cookie = strstr(answer_of_last, "__Host-session=");

    if (cookie)
        snprintf(token, sizeof token, "%.*s", (int)strcspn(cookie, ";"), cookie);
    snprintf(ret_fields, size, "Cookie: %s\r\nX-CSRF-Token: %s\r\n", token, csrf);
}

static void make_manager(struct sim_deployment *deployment, struct sim_account *account, const char *email,
                         const char *totp_uri)
{
    char code[TOTP_CODE_BYTES], body[REQUEST_BYTES / 4], fields[REQUEST_BYTES / 2], csrf[SIM_SECRET_BYTES];

    print_code(totp_uri, -1, code);
    snprintf(body, sizeof body, "{\"email\":\"%s\",\"password\":\"" SIM_PASSWORD "\",\"totp\":\"%s\"}", email, code);
    ask(deployment, "/v1/auth/login", "", body, 200);
    copy_after(answer_of_last, "\"csrf_token\":\"", csrf, sizeof csrf);
    print_fields(fields, sizeof fields, csrf);
    print_code(totp_uri, 0, code);
    snprintf(body, sizeof body, "{\"password\":\"" SIM_PASSWORD "\",\"totp\":\"%s\"}", code);
    ask(deployment, "/v1/console/step_up", fields, body, 200);
    print_fields(fields, sizeof fields, csrf);
    ask(deployment, "/v1/console/api_keys", fields,
        "{\"name\":\"manager\",\"mode\":\"live\",\"scopes\":[\"keys:manage\",\"patients:read\",\"usage:read\",\"audit:"
        "read\"]}",
        201);
    copy_after(answer_of_last, "\"secret\":\"", account->manager, sizeof account->manager);
}

static void write_password(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, SIM_PASSWORD "\n", strlen(SIM_PASSWORD "\n")) > 0);
    close(fd);
}

static void make_user(struct sim_deployment *deployment, const struct sim_account *account, const char *email,
                      const char *password_path, char *ret_uri)
{
    const char *const user[] = {"user", "create", "--account",       account->id,   "--email",
                                email,  "--json", "--password-file", password_path, "--permanent-password",
                                NULL};
    char out[OUT_BYTES];

    run_command(deployment, user, out);
    copy_after(out, "\"totp_uri\":\"", ret_uri, SIM_URI_BYTES);
}

static void make_account(struct sim_deployment *deployment, struct sim_account *account)
{
    const char *const create[] = {"account", "create", "--name", "North Clinic", "--json", NULL};
    char out[OUT_BYTES];

    run_command(deployment, create, out);
    copy_after(out, "\"id\":\"", account->id, sizeof account->id);
}

static void make_people(struct sim_deployment *deployment, const char *password_path)
{
    for (unsigned i = 0; i < SIM_PEOPLE; i++) {
        struct sim_person *person = &deployment->people[i];

        snprintf(person->email, sizeof person->email, "person%u@clinic.test", i + 1);
        make_user(deployment, &deployment->accounts[0], person->email, password_path, person->totp_uri);
    }
}

static void run_for(uint64_t ns)
{
    for (const uint64_t until_ns = sim_now_ns() + ns; sim_step(until_ns);)
        continue;
}

/* Nodes begin once there are accounts. */
static void make_accounts(struct sim_deployment *deployment)
{
    static const char *const EMAILS[SIM_ACCOUNTS] = {"ada@clinic.test", "bob@clinic.test"};
    char password[PATH_BYTES], uris[SIM_ACCOUNTS][SIM_URI_BYTES];

    snprintf(password, sizeof password, "%s/password", deployment->folder);
    write_password(password);
    for (unsigned i = 0; i < SIM_ACCOUNTS; i++) {
        make_account(deployment, &deployment->accounts[i]);
        make_user(deployment, &deployment->accounts[i], EMAILS[i], password, uris[i]);
    }
    make_people(deployment, password);
    for (unsigned i = 0; i < deployment->node_count; i++)
        sim_node_start(&deployment->nodes[i]);
    run_for(SETTLE_NS);
    for (unsigned i = 0; i < SIM_ACCOUNTS; i++)
        make_manager(deployment, &deployment->accounts[i], EMAILS[i], uris[i]);
}

static void make_key(struct sim_deployment *deployment)
{
    char out[OUT_BYTES];

    run_command(deployment, (const char *const[]){"master-key", "--write", deployment->master_key, NULL}, out);
}

/* Nodes */

static void node_ended(void *arg, int code)
{
    struct sim_node *node = arg;

    node->process = NULL;
    if (code != 0)
        give_up(node->host->name, "the node has ended by itself");
}

void sim_table_path(const struct sim_node *node, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s.table", node->deployment->folder, node->host->name);
}

void sim_node_start(struct sim_node *node)
{
    const struct sim_deployment *deployment = node->deployment;
    char listen[64], internal[64], broken[64], table[PATH_BYTES];
    const char *const argv[] = {"chatelaine",
                                "serve",
                                "--listen",
                                listen,
                                "--redis",
                                URLS[deployment->store],
                                "--internal-listen",
                                internal,
                                "--public-origin",
                                SIM_ORIGIN,
                                "--master-key-file",
                                deployment->master_key,
                                "--table",
                                table,
                                "--table-keys",
                                TABLE_KEYS,
                                "--cache-entries",
                                CACHE_ENTRIES,
                                NULL};
    const char *environment[SETTINGS_MAX + 2] = {NULL};
    size_t settings = 0;

    node->starts++;
    snprintf(listen, sizeof listen, "10.0.0.%d:%d", 1 + (int)(node - deployment->nodes), SIM_PORT);
    snprintf(internal, sizeof internal, "10.0.0.%d:%d", 1 + (int)(node - deployment->nodes), SIM_PORT + 1);
    sim_table_path(node, table, sizeof table);
    snprintf(broken, sizeof broken, "CHATELAINE_BREAK=%s", deployment->broken ? deployment->broken : "");
    while ((environment[settings] = settings_of(deployment)[settings]))
        settings++;
    environment[settings] = deployment->broken ? broken : NULL;
    node->process = sim_process_start(&(struct sim_process_plan){.name = node->host->name,
                                                                 .host = node->host,
                                                                 .argv = argv,
                                                                 .environment = environment,
                                                                 .ended = node_ended,
                                                                 .arg = node});
}

void sim_node_kill(struct sim_node *node)
{
    sim_process_kill(node->process);
    node->process = NULL;
}

static void make_hosts(struct sim_deployment *deployment)
{
    struct sim_host *hosts[SIM_NODES_MAX + 1 + SIM_REDISES_HOSTS];
    unsigned count = 0;
    char name[SIM_HOST_NAME_BYTES], ip[32];

    if (deployment->store == SIM_STORE_CLUSTER)
        memcpy(hosts, sim_cluster_hosts(deployment, &count), sizeof *hosts * SIM_MASTERS);
    else if (deployment->store == SIM_STORE_SENTINEL)
        sim_redises_make_hosts(&deployment->redises, hosts);
    else
        hosts[count++] = deployment->redis_host = sim_host_new("redis", "10.0.0.100");
    count += deployment->store == SIM_STORE_SENTINEL ? SIM_REDISES_HOSTS : 0;
    hosts[count++] = deployment->clients = sim_host_new("clients", "10.0.0.50");
    for (unsigned i = 0; i < deployment->node_count; i++) {
        snprintf(name, sizeof name, "node%u", i + 1);
        snprintf(ip, sizeof ip, "10.0.0.%u", i + 1);
        deployment->nodes[i] = (struct sim_node){.host = sim_host_new(name, ip), .deployment = deployment};
        hosts[count++] = deployment->nodes[i].host;
    }
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < count; j++)
            sim_link_delay(hosts[i], hosts[j], i == j ? 0 : LEAST_DELAY_NS, i == j ? 0 : MOST_DELAY_NS);
}

static void start_store(struct sim_deployment *deployment)
{
    switch (deployment->store) {
    case SIM_STORE_SINGLE:
        deployment->redis = sim_server_start(deployment->redis_host);
        return;
    case SIM_STORE_CLUSTER:
        sim_cluster_start(deployment);
        break;
    case SIM_STORE_SENTINEL:
        sim_redises_start(&deployment->redises);
        break;
    }
    run_for(SETTLE_NS);
}

void sim_deployment_start(struct sim_deployment *deployment, const char *image, const char *folder)
{
    snprintf(deployment->folder, sizeof deployment->folder, "%s", folder);
    snprintf(deployment->master_key, sizeof deployment->master_key, "%s/master.key", folder);
    sim_network_begin();
    make_hosts(deployment);
    sim_processes_begin(image, deployment->folder);
    start_store(deployment);
    make_key(deployment);
    make_accounts(deployment);
    deployment->is_made = true;
}
