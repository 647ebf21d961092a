/* Checks in nginx's own process (docker/gateways/README.md#nginx-with-the-module). A plain request whose key is in the
 * table of a node on this machine passes at once; about every other request a node is asked by a subrequest, as
 * ngx_http_auth_request_module does, so refusals are always a node's. Names follow nginx: NGX_OK, r, cf. */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "auth/bearer.h"
#include "base/text.h"
#include "chatelaine/check.h"
#include "core/scope.h"
#include "plain_internal.h"

#include <pwd.h>
#include <stdint.h>
#include <sys/random.h>

enum {
    REFRESH_MS = 1000,
    REFRESH_WITHOUT_TABLE_MS = 200,
    WAITING_IS_TROUBLE_AFTER = 25, /* refreshes: a node answers within a turn of its loop */
    IDS_AHEAD = 64,
    ID_RANDOM_BYTES = 10,
    SCOPES_MAX_BYTES = 256, /* as in nodes */
};

enum variable {
    VARIABLE_ACCOUNT,
    VARIABLE_PRINCIPAL,
    VARIABLE_KIND,
    VARIABLE_MODE,
    VARIABLE_ROLE,
    VARIABLE_SCOPES,
    VARIABLE_BILLABLE,
    VARIABLE_ERROR,
    VARIABLE_REQUEST_ID,
    VARIABLE_TRACEPARENT,
    VARIABLE_CHALLENGE,
    VARIABLE_ALLOW,
    VARIABLE_RETRY_AFTER,
    VARIABLE_TRANSPORT,
    VARIABLE_STATUS,
    VARIABLE_FROM,
    VARIABLE_COUNT,
};

static const struct {
    ngx_str_t name, header; /* header: of the node's response, in lower case; empty: it has none */
} VARIABLES[VARIABLE_COUNT] = {
    [VARIABLE_ACCOUNT] = {ngx_string("chatelaine_account"), ngx_string("x-auth-account")},
    [VARIABLE_PRINCIPAL] = {ngx_string("chatelaine_principal"), ngx_string("x-auth-principal")},
    [VARIABLE_KIND] = {ngx_string("chatelaine_kind"), ngx_string("x-auth-kind")},
    [VARIABLE_MODE] = {ngx_string("chatelaine_mode"), ngx_string("x-auth-mode")},
    [VARIABLE_ROLE] = {ngx_string("chatelaine_role"), ngx_string("x-auth-role")},
    [VARIABLE_SCOPES] = {ngx_string("chatelaine_scopes"), ngx_string("x-auth-scopes")},
    [VARIABLE_BILLABLE] = {ngx_string("chatelaine_billable"), ngx_string("x-auth-billable")},
    [VARIABLE_ERROR] = {ngx_string("chatelaine_error"), ngx_string("x-auth-error")},
    [VARIABLE_REQUEST_ID] = {ngx_string("chatelaine_request_id"), ngx_string("x-request-id")},
    [VARIABLE_TRACEPARENT] = {ngx_string("chatelaine_traceparent"), ngx_string("traceparent")},
    [VARIABLE_CHALLENGE] = {ngx_string("chatelaine_challenge"), ngx_string("www-authenticate")},
    [VARIABLE_ALLOW] = {ngx_string("chatelaine_allow"), ngx_string("allow")},
    [VARIABLE_RETRY_AFTER] = {ngx_string("chatelaine_retry_after"), ngx_string("retry-after")},
    [VARIABLE_TRANSPORT] = {ngx_string("chatelaine_transport"), ngx_string("strict-transport-security")},
    [VARIABLE_STATUS] = {ngx_string("chatelaine_status"), ngx_null_string},
    [VARIABLE_FROM] = {ngx_string("chatelaine_from"), ngx_null_string},
};

struct main_conf {
    ngx_str_t path;       /* empty: no table */
    ngx_str_t deployment; /* NUL-terminated; empty: any */
    uid_t owner;
    /* The node's policy that the scopes of this configuration are meant for: the first one that any of its workers has
     * seen; 0: none yet. In memory that the master makes, so that a worker that is started again has the same. */
    _Atomic uint32_t *policy;
    ngx_int_t index_of[VARIABLE_COUNT];
};

struct location_conf {
    ngx_str_t uri;         /* data NULL: not said; empty: off */
    ngx_str_t row;         /* of the policy; data NULL: no scope was said */
    scope_set read, write; /* SCOPE_NONE: ask a node */
};

/* A check by a node, of one request. */
struct question {
    ngx_http_request_t *subrequest;
    ngx_uint_t status;
    u_char status_text[NGX_INT_T_LEN];
    unsigned is_done;
};

/* What an accepted request's variables point to; in its pool. */
struct acceptance {
    struct chatelaine_principal who;
    char request_id[32], scopes[SCOPES_MAX_BYTES], traceparent[TRACEPARENT_CHARS];
};

/* What is read of a request's header fields. */
struct credentials {
    struct text authorization, traceparent;
    unsigned authorizations, traceparents, cookies;
};

/* The worker's own. Nothing in here points into a configuration, because it outlives them. */
static struct {
    struct chatelaine_table table;
    char deployment[CHATELAINE_DEPLOYMENT_BYTES];
    ngx_event_t timer;
    ngx_uint_t waited;            /* refreshes in a row that a node did not answer */
    enum chatelaine_trouble told; /* the trouble that was last logged */
    int told_error;
    bool has_told_of_policy; /* that it has changed */
    uint8_t random[IDS_AHEAD][ID_RANDOM_BYTES];
    size_t random_left;
} worker;

static ngx_int_t init_main(ngx_conf_t *cf);
static ngx_int_t add_variables(ngx_conf_t *cf);
static void *create_main_conf(ngx_conf_t *cf);
static void *create_location_conf(ngx_conf_t *cf);
static char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child);
static char *read_table(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_check(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_scope(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static ngx_int_t begin_worker(ngx_cycle_t *cycle);
static void end_worker(ngx_cycle_t *cycle);
static ngx_int_t check_access(ngx_http_request_t *r);

static ngx_command_t commands[] = {
    {ngx_string("chatelaine_table"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE123, read_table, NGX_HTTP_MAIN_CONF_OFFSET, 0,
     NULL},
    {ngx_string("chatelaine_check"), NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,
     read_check, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL},
    {ngx_string("chatelaine_scope"), NGX_HTTP_LOC_CONF | NGX_CONF_TAKE12, read_scope, NGX_HTTP_LOC_CONF_OFFSET, 0,
     NULL},
    ngx_null_command,
};

static ngx_http_module_t context = {
    .preconfiguration = add_variables,
    .postconfiguration = init_main,
    .create_main_conf = create_main_conf,
    .create_loc_conf = create_location_conf,
    .merge_loc_conf = merge_location_conf,
};

ngx_module_t ngx_http_chatelaine_module = {
    NGX_MODULE_V1,
    .ctx = &context,
    .commands = commands,
    .type = NGX_HTTP_MODULE,
    .init_process = begin_worker,
    .exit_process = end_worker,
};

/* What nginx looks for in a dynamic module. Access modules run from the last to the first: this one is put before
 * auth_request, so that "deny" and passwords are looked at first. */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED ngx_module_t *ngx_modules[] = {&ngx_http_chatelaine_module, NULL};
EXPORTED char *ngx_module_names[] = {"ngx_http_chatelaine_module", NULL};
EXPORTED char *ngx_module_order[] = {"ngx_http_chatelaine_module", "ngx_http_auth_request_module",
                                     "ngx_http_auth_basic_module", "ngx_http_access_module", NULL};

static struct text text_of_str(ngx_str_t str)
{
    return (struct text){(const char *)str.data, str.len};
}

/* --- configuration --- */

static void *create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(struct main_conf));
}

static void *create_location_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(struct location_conf));
}

static char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child)
{
    const struct location_conf *outer = parent;
    struct location_conf *inner = child;

    (void)cf;
    if (!inner->uri.data)
        inner->uri = outer->uri;
    if (!inner->row.data) {
        inner->row = outer->row;
        inner->read = outer->read;
        inner->write = outer->write;
    }
    return NGX_CONF_OK;
}

static char *refuse(ngx_conf_t *cf, const char *what, const ngx_str_t *value)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s \"%V\"", what, value);
    return NGX_CONF_ERROR;
}

/* The part of "NAME=VALUE" behind "NAME="; false: it is another argument. */
static bool has_name(const ngx_str_t *argument, const char *name, ngx_str_t *ret_value)
{
    size_t length = ngx_strlen(name);

    if (argument->len < length || ngx_strncmp(argument->data, name, length) != 0)
        return false;
    *ret_value = (ngx_str_t){argument->len - length, argument->data + length};
    return true;
}

/* A user's name or number. Arguments of directives are NUL-terminated. */
static bool read_owner(ngx_str_t value, uid_t *ret_owner)
{
    const struct passwd *user = getpwnam((const char *)value.data);
    ngx_int_t number = user ? NGX_ERROR : ngx_atoi(value.data, value.len);

    *ret_owner = user ? user->pw_uid : (uid_t)number;
    return user || (number >= 0 && number < (ngx_int_t)UINT32_MAX);
}

static void free_policy(void *policy)
{
    munmap(policy, sizeof(uint32_t));
}

static bool make_policy(ngx_conf_t *cf, struct main_conf *main)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    void *memory = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!cleanup || memory == MAP_FAILED)
        return false;
    cleanup->handler = free_policy;
    cleanup->data = main->policy = memory;
    return true;
}

static char *read_table(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    const ngx_str_t *arguments = cf->args->elts;
    struct main_conf *main = conf;
    ngx_str_t value;

    (void)cmd;
    if (main->path.len)
        return "is duplicate";
    if (arguments[1].data[0] != '/' || arguments[1].len >= sizeof worker.table.path)
        return refuse(cf, "not an absolute path that a unix socket can have:", &arguments[1]);
    if (!make_policy(cf, main))
        return NGX_CONF_ERROR;
    main->path = arguments[1];
    main->owner = CHATELAINE_OWNER_OF_FOLDER;
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++) {
        if (has_name(&arguments[i], "owner=", &value)) {
            if (!read_owner(value, &main->owner))
                return refuse(cf, "there is no user", &value);
        } else if (has_name(&arguments[i], "deployment=", &value)) {
            if (value.len == 0 || value.len >= CHATELAINE_DEPLOYMENT_BYTES)
                return refuse(cf, "not the name of a deployment:", &value);
            main->deployment = value;
        } else {
            return refuse(cf, "unknown parameter", &arguments[i]);
        }
    }
    return NGX_CONF_OK;
}

static char *read_check(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    const ngx_str_t *arguments = cf->args->elts;
    struct location_conf *location = conf;

    (void)cmd;
    if (location->uri.data)
        return "is duplicate";
    if (arguments[1].data[0] != '/' && ngx_strcmp(arguments[1].data, "off") != 0)
        return refuse(cf, "neither a URI nor \"off\":", &arguments[1]);
    location->uri = arguments[1];
    if (arguments[1].data[0] != '/')
        location->uri.len = 0;
    return NGX_CONF_OK;
}

static char *read_scope_of(ngx_conf_t *cf, ngx_str_t name, scope_set *ret_scope)
{
    return plain_scope(text_of_str(name), ret_scope) ? NGX_CONF_OK : refuse(cf, "there is no scope", &name);
}

/* Scopes are of a row of the policy, which begins at whole segments; so the location says which row. */
static char *read_row(ngx_conf_t *cf, struct location_conf *location)
{
    const ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    location->row = core->name;
    if (location->row.len > 1 && location->row.data[location->row.len - 1] == '/')
        location->row.len--;
    if (location->read == SCOPE_NONE && location->write == SCOPE_NONE)
        return NGX_CONF_OK;
#if (NGX_PCRE)
    if (core->regex)
        return refuse(cf, "scopes belong into the location of a row of the policy, not into the expression",
                      &core->name);
#endif
    if (core->named || core->noname || !plain_is_row(text_of_str(location->row)))
        return refuse(cf, "not a location of a row for keys, as /v1/patients:", &core->name);
    return NGX_CONF_OK;
}

static char *read_scope(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    const ngx_str_t *arguments = cf->args->elts;
    struct location_conf *location = conf;
    bool has_read = false, has_write = false;
    ngx_str_t value;

    (void)cmd;
    if (location->row.data)
        return "is duplicate";
    for (ngx_uint_t i = 1; i < cf->args->nelts; i++) {
        bool is_read = has_name(&arguments[i], "read=", &value);
        bool *has = is_read ? &has_read : &has_write;

        if (*has || (!is_read && !has_name(&arguments[i], "write=", &value)))
            return refuse(cf, "unknown or repeated parameter", &arguments[i]);
        *has = true;
        if (read_scope_of(cf, value, is_read ? &location->read : &location->write) != NGX_CONF_OK)
            return NGX_CONF_ERROR;
    }
    return read_row(cf, location);
}

/* Before the check, and where there is none. */
static ngx_int_t variable_is_unknown(ngx_http_request_t *r, ngx_http_variable_value_t *value, uintptr_t data)
{
    (void)r;
    (void)data;
    value->not_found = 1;
    return NGX_OK;
}

static ngx_int_t add_variables(ngx_conf_t *cf)
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        ngx_str_t name = VARIABLES[i].name;
        ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, 0);

        if (!variable)
            return NGX_ERROR;
        variable->get_handler = variable_is_unknown;
    }
    return NGX_OK;
}

static ngx_int_t init_main(ngx_conf_t *cf)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    struct main_conf *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_chatelaine_module);
    ngx_http_handler_pt *handler = ngx_array_push(&core->phases[NGX_HTTP_ACCESS_PHASE].handlers);

    if (!handler)
        return NGX_ERROR;
    *handler = check_access;
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        ngx_str_t name = VARIABLES[i].name;

        main->index_of[i] = ngx_http_get_variable_index(cf, &name);
        if (main->index_of[i] == NGX_ERROR)
            return NGX_ERROR;
    }
    return NGX_OK;
}

/* --- the table: one for each worker --- */

/* The node may have been given another policy since. False: only it knows which scopes it asks for. */
static bool has_same_policy(const struct main_conf *main)
{
    uint32_t current = chatelaine_table_policy(&worker.table), meant = 0;

    return current == 0 || atomic_compare_exchange_strong(main->policy, &meant, current) || meant == current;
}

static void tell_of_policy(void)
{
    const struct main_conf *main = ngx_http_cycle_get_module_main_conf(ngx_cycle, ngx_http_chatelaine_module);
    bool has_changed = main && main->policy && !has_same_policy(main);

    if (has_changed && !worker.has_told_of_policy)
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "chatelaine: every check goes to a node, because its policy has changed since nginx read its "
                      "configuration: see that each chatelaine_scope still fits, then reload");
    worker.has_told_of_policy = has_changed;
}

/* Says once what has changed. A node that was just connected to has not answered yet: that is told only if it lasts. */
static void tell_of_table(void)
{
    const struct chatelaine_table *table = &worker.table;

    worker.waited = table->trouble == CHATELAINE_WAITING ? worker.waited + 1 : 0;
    if (table->trouble == CHATELAINE_WAITING && worker.waited < WAITING_IS_TROUBLE_AFTER)
        return;
    if (table->trouble == worker.told && table->error == worker.told_error)
        return;
    worker.told = table->trouble;
    worker.told_error = table->error;
    if (table->trouble == CHATELAINE_FINE) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0, "chatelaine: keys are checked by the table of %s",
                      table->path);
    } else {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, table->error,
                      "chatelaine: every check goes to a node, because there is no table at %s: %s", table->path,
                      chatelaine_trouble_text(table->trouble));
    }
}

static void refresh_table(ngx_event_t *timer)
{
    bool has_table = chatelaine_table_refresh(&worker.table);

    tell_of_table();
    tell_of_policy();
    ngx_add_timer(timer, has_table ? REFRESH_MS : REFRESH_WITHOUT_TABLE_MS);
}

/* The master, and helpers that serve no requests, have no table. */
static bool serves_requests(void)
{
    return ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE;
}

static ngx_int_t begin_worker(ngx_cycle_t *cycle)
{
    const struct main_conf *main = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_chatelaine_module);
    const char *deployment = CHATELAINE_ANY_DEPLOYMENT;

    if (!main || !main->path.len || !serves_requests())
        return NGX_OK;
    if (main->deployment.len) {
        ngx_cpystrn((u_char *)worker.deployment, main->deployment.data, sizeof worker.deployment);
        deployment = worker.deployment;
    }
    chatelaine_table_init(&worker.table, (const char *)main->path.data, deployment, main->owner);
    worker.told = worker.table.trouble;
    worker.timer.handler = refresh_table;
    worker.timer.log = cycle->log;
    worker.timer.data = &worker.timer;
    worker.timer.cancelable = 1; /* a worker that is to end does not wait for it */
    refresh_table(&worker.timer);
    return NGX_OK;
}

static void end_worker(ngx_cycle_t *cycle)
{
    (void)cycle;
    if (worker.timer.timer_set)
        ngx_del_timer(&worker.timer);
    if (worker.timer.handler)
        chatelaine_table_finish(&worker.table);
}

/* --- variables --- */

/* Sets them for good, so that they are still known after an internal redirect. data NULL: unknown. */
static void set_variables(ngx_http_request_t *r, const ngx_str_t values[VARIABLE_COUNT])
{
    const struct main_conf *main = ngx_http_get_module_main_conf(r, ngx_http_chatelaine_module);

    for (int i = 0; i < VARIABLE_COUNT; i++) {
        ngx_http_variable_value_t *variable = &r->variables[main->index_of[i]];

        ngx_memzero(variable, sizeof *variable);
        variable->valid = values[i].data != NULL;
        variable->not_found = !variable->valid;
        variable->len = values[i].len & 0xfffffff; /* a field of 28 bits */
        variable->data = values[i].data;
    }
}

static ngx_str_t str_of(const char *text)
{
    return (ngx_str_t){ngx_strlen(text), (u_char *)(uintptr_t)text};
}

/* "req_" and a ULID, as nodes make them. */
static bool make_request_id(char ret_text[32])
{
    const ngx_time_t *now = ngx_timeofday();
    uint64_t ms = (uint64_t)now->sec * 1000 + now->msec, high = 0, low = 0;
    const uint8_t *bytes;

    if (worker.random_left == 0 && getrandom(worker.random, sizeof worker.random, 0) != sizeof worker.random)
        return false;
    if (worker.random_left == 0)
        worker.random_left = IDS_AHEAD;
    bytes = worker.random[--worker.random_left];
    high = ms << 16 | (uint64_t)bytes[0] << 8 | bytes[1];
    for (int i = 2; i < ID_RANDOM_BYTES; i++)
        low = low << 8 | bytes[i];
    chatelaine_print_id("req_", high, low, ret_text);
    return true;
}

/* As a node answers the same request (src/api/check.c: allow). */
static void set_accepted(ngx_http_request_t *r, struct acceptance *accepted, struct text traceparent)
{
    const struct chatelaine_principal *who = &accepted->who;
    ngx_str_t values[VARIABLE_COUNT];
    struct buf scopes;

    ngx_memzero(values, sizeof values);
    buf_init_fixed(&scopes, accepted->scopes, sizeof accepted->scopes);
    scope_print(who->scopes & SCOPE_ALL, ' ', &scopes);
    values[VARIABLE_ACCOUNT] = str_of(who->account);
    values[VARIABLE_PRINCIPAL] = str_of(who->principal);
    values[VARIABLE_KIND] = str_of(who->is_device ? "device_key" : "api_key");
    values[VARIABLE_MODE] = str_of(who->is_live ? "live" : "test");
    values[VARIABLE_SCOPES] = (ngx_str_t){scopes.len, (u_char *)accepted->scopes};
    values[VARIABLE_BILLABLE] = str_of(who->is_live ? "true" : "false");
    values[VARIABLE_FROM] = str_of("table");
    values[VARIABLE_REQUEST_ID] = str_of(accepted->request_id);
    if (traceparent.len && plain_trace(traceparent, accepted->traceparent))
        values[VARIABLE_TRACEPARENT] = (ngx_str_t){TRACEPARENT_CHARS, (u_char *)accepted->traceparent};
    set_variables(r, values);
}

static void take_header(const ngx_table_elt_t *header, ngx_str_t values[VARIABLE_COUNT])
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        const ngx_str_t *name = &VARIABLES[i].header;

        if (!values[i].data && name->len && header->hash && header->key.len == name->len &&
            ngx_strncasecmp(header->key.data, name->data, name->len) == 0)
            values[i] = header->value;
    }
}

static void set_answered(ngx_http_request_t *r, struct question *question)
{
    const ngx_http_request_t *subrequest = question->subrequest;
    const ngx_list_part_t *part =
        subrequest->upstream ? &subrequest->upstream->headers_in.headers.part : &subrequest->headers_out.headers.part;
    ngx_str_t values[VARIABLE_COUNT];

    ngx_memzero(values, sizeof values);
    for (; part; part = part->next)
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            take_header(&((const ngx_table_elt_t *)part->elts)[i], values);
    values[VARIABLE_STATUS].data = question->status_text;
    values[VARIABLE_STATUS].len =
        (size_t)(ngx_sprintf(question->status_text, "%ui", question->status) - question->status_text);
    values[VARIABLE_FROM] = str_of("node");
    set_variables(r, values);
}

/* --- the check --- */

static bool is_header(const ngx_table_elt_t *header, struct text name)
{
    return header->key.len == name.len && ngx_strncmp(header->lowcase_key, name.ptr, name.len) == 0;
}

static void read_header(const ngx_table_elt_t *header, struct credentials *credentials)
{
    if (is_header(header, TEXT("authorization"))) {
        credentials->authorization = text_of_str(header->value);
        credentials->authorizations++;
    } else if (is_header(header, TEXT("traceparent"))) {
        credentials->traceparent = text_of_str(header->value);
        credentials->traceparents++;
    } else if (is_header(header, TEXT("cookie"))) {
        credentials->cookies++;
    }
}

static struct credentials read_credentials(ngx_http_request_t *r)
{
    struct credentials credentials = {.authorizations = 0};

    for (ngx_list_part_t *part = &r->headers_in.headers.part; part; part = part->next)
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            read_header(&((const ngx_table_elt_t *)part->elts)[i], &credentials);
    if (credentials.traceparents != 1)
        credentials.traceparent = (struct text){NULL, 0};
    return credentials;
}

/* SCOPE_NONE: the table does not decide about this request. */
static scope_set wanted_scope(ngx_http_request_t *r, const struct location_conf *location)
{
    if (!worker.table.header || !location->row.data ||
        !plain_target(text_of_str(r->unparsed_uri), text_of_str(location->row)))
        return SCOPE_NONE;
    switch (plain_method(text_of_str(r->method_name))) {
    case PLAIN_READ:
        return location->read;
    case PLAIN_WRITE:
        return location->write;
    case PLAIN_OTHER:
        break;
    }
    return SCOPE_NONE;
}

/* Whether the table accepts the request, which counts as a use of its key. All that can fail comes before that. */
static bool table_accepts(ngx_http_request_t *r, const struct location_conf *location)
{
    const struct main_conf *main = ngx_http_get_module_main_conf(r, ngx_http_chatelaine_module);
    scope_set wanted = wanted_scope(r, location);
    struct credentials credentials;
    struct acceptance *accepted;
    struct text token;

    if (wanted == SCOPE_NONE || !main->policy || !has_same_policy(main))
        return false;
    credentials = read_credentials(r);
    if (credentials.authorizations != 1 || credentials.cookies > 0 ||
        bearer_read(credentials.authorization, &token) != BEARER_TOKEN)
        return false;
    accepted = ngx_palloc(r->pool, sizeof *accepted);
    if (!accepted || !make_request_id(accepted->request_id) ||
        !chatelaine_check(&worker.table, token.ptr, token.len, wanted, &accepted->who))
        return false;
    set_accepted(r, accepted, credentials.traceparent);
    return true;
}

static ngx_int_t note_answer(ngx_http_request_t *r, void *data, ngx_int_t rc)
{
    struct question *question = data;

    question->is_done = 1;
    question->status = r->headers_out.status;
    return rc;
}

static ngx_int_t ask_node(ngx_http_request_t *r, const struct location_conf *location)
{
    struct question *question = ngx_pcalloc(r->pool, sizeof *question);
    ngx_http_post_subrequest_t *done = ngx_palloc(r->pool, sizeof *done);
    ngx_str_t uri = location->uri;

    if (!question || !done)
        return NGX_ERROR;
    *done = (ngx_http_post_subrequest_t){note_answer, question};
    if (ngx_http_subrequest(r, &uri, NULL, &question->subrequest, done, NGX_HTTP_SUBREQUEST_WAITED) != NGX_OK)
        return NGX_ERROR;
    /* A body of its own, which is empty: the client's is neither read nor closed with the subrequest. */
    question->subrequest->request_body = ngx_pcalloc(r->pool, sizeof(ngx_http_request_body_t));
    if (!question->subrequest->request_body)
        return NGX_ERROR;
    question->subrequest->header_only = 1;
    ngx_http_set_ctx(r, question, ngx_http_chatelaine_module);
    return NGX_AGAIN;
}

/* A 401 keeps the node's WWW-Authenticate. */
static ngx_int_t copy_challenge(ngx_http_request_t *r, ngx_http_request_t *subrequest)
{
    ngx_table_elt_t *from = subrequest->headers_out.www_authenticate, *to;
#if nginx_version >= 1023000
    ngx_table_elt_t **end = &r->headers_out.www_authenticate;
#endif

    if (!from && subrequest->upstream)
        from = subrequest->upstream->headers_in.www_authenticate;
    while (from) {
        to = ngx_list_push(&r->headers_out.headers);
        if (!to)
            return NGX_ERROR;
        *to = *from;
#if nginx_version >= 1023000
        *end = to;
        end = &to->next;
        from = from->next;
#else
        r->headers_out.www_authenticate = to;
        break;
#endif
    }
#if nginx_version >= 1023000
    *end = NULL;
#endif
    return NGX_OK;
}

/* As auth_request reads statuses. */
static ngx_int_t take_answer(ngx_http_request_t *r, struct question *question)
{
    if (!question->is_done)
        return NGX_AGAIN;
    set_answered(r, question);
    if (question->status == NGX_HTTP_FORBIDDEN)
        return NGX_HTTP_FORBIDDEN;
    if (question->status == NGX_HTTP_UNAUTHORIZED)
        return copy_challenge(r, question->subrequest) == NGX_OK ? NGX_HTTP_UNAUTHORIZED : NGX_ERROR;
    if (question->status >= NGX_HTTP_OK && question->status < NGX_HTTP_SPECIAL_RESPONSE)
        return NGX_OK;
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "chatelaine: a check was answered with status %ui",
                  question->status);
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
}

/* nginx calls this for main requests only, and anew after an internal redirect, which forgets the question. */
static ngx_int_t check_access(ngx_http_request_t *r)
{
    const struct location_conf *location = ngx_http_get_module_loc_conf(r, ngx_http_chatelaine_module);
    struct question *question;

    if (location->uri.len == 0)
        return NGX_DECLINED;
    question = ngx_http_get_module_ctx(r, ngx_http_chatelaine_module);
    if (question)
        return take_answer(r, question);
    return table_accepts(r, location) ? NGX_OK : ask_node(r, location);
}
