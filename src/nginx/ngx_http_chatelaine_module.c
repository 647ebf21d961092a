/* Checks in nginx's own process (docker/gateways/README.md#nginx-with-the-module). A plain request whose key is in the
 * table of a node on this machine passes at once; about every other request a node is asked, so refusals are always a
 * node's. Here: directives, variables, and what "nginx -t" refuses. */
#include "module_internal.h"

#include "chatelaine/check.h"
#include "plain_internal.h"

#include <pwd.h>

const struct variable_name module_variables[VARIABLE_COUNT] = {
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

/* A location as the configuration has it. */
struct noted_place {
    const void *server; /* its server, by its settings */
    struct location_conf *settings;
    ngx_str_t name; /* empty: the server itself */
    bool is_exact, is_internal;
};

static ngx_int_t init_main(ngx_conf_t *cf);
static ngx_int_t add_variables(ngx_conf_t *cf);
static void *create_main_conf(ngx_conf_t *cf);
static void *create_location_conf(ngx_conf_t *cf);
static char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child);
static char *read_table(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_check(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static char *read_scope(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

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
    .init_process = table_begin,
    .exit_process = table_end,
};

/* What nginx looks for in a dynamic module. Access modules run from the last to the first: this one is put before
 * auth_request, so that "deny" and passwords are looked at first. */
#define EXPORTED __attribute__((visibility("default")))
EXPORTED ngx_module_t *ngx_modules[] = {&ngx_http_chatelaine_module, NULL};
EXPORTED char *ngx_module_names[] = {"ngx_http_chatelaine_module", NULL};
EXPORTED char *ngx_module_order[] = {"ngx_http_chatelaine_module", "ngx_http_auth_request_module",
                                     "ngx_http_auth_basic_module", "ngx_http_access_module", NULL};

/* --- configuration --- */

static void *create_main_conf(ngx_conf_t *cf)
{
    enum { PLACES_AT_FIRST = 16 };
    struct main_conf *main = ngx_pcalloc(cf->pool, sizeof *main);

    if (main && ngx_array_init(&main->places, cf->temp_pool, PLACES_AT_FIRST, sizeof(struct noted_place)) != NGX_OK)
        return NULL;
    return main;
}

static void *create_location_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(struct location_conf));
}

static char *refuse(ngx_conf_t *cf, const char *what, const ngx_str_t *value)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s \"%V\"", what, value);
    return NGX_CONF_ERROR;
}

/* nginx has no list of locations, but merges each with what is around it. */
static char *note_place(ngx_conf_t *cf, struct location_conf *settings, const ngx_http_core_loc_conf_t *core)
{
    struct main_conf *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_chatelaine_module);
    struct noted_place *place = ngx_array_push(&main->places);

    if (!place)
        return NGX_CONF_ERROR;
    *place = (struct noted_place){.server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module),
                                  .settings = settings,
                                  .name = core->name,
                                  .is_exact = core->exact_match,
                                  .is_internal = core->internal};
    return NGX_CONF_OK;
}

static char *merge_location_conf(ngx_conf_t *cf, void *parent, void *child)
{
    const struct location_conf *outer = parent;
    struct location_conf *inner = child;
    const ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    bool has_scope = inner->row.data != NULL;

    if (!inner->uri.data)
        inner->uri = outer->uri;
    if (!inner->row.data) {
        inner->row = outer->row;
        inner->read = outer->read;
        inner->write = outer->write;
    }
    if (has_scope && inner->uri.len == 0)
        return refuse(cf, "chatelaine_scope without chatelaine_check protects nothing, in location", &core->name);
    return note_place(cf, inner, core);
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

static char *read_table(ngx_conf_t *cf, UNUSED ngx_command_t *cmd, void *conf)
{
    const ngx_str_t *arguments = cf->args->elts;
    struct main_conf *main = conf;
    ngx_str_t value;

    if (main->path.len)
        return "is duplicate";
    if (arguments[1].data[0] != '/' || arguments[1].len >= sizeof((struct chatelaine_table *)NULL)->path)
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

static char *read_check(ngx_conf_t *cf, UNUSED ngx_command_t *cmd, void *conf)
{
    const ngx_str_t *arguments = cf->args->elts;
    struct location_conf *location = conf;

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
    return plain_scope(module_text(name), ret_scope) ? NGX_CONF_OK : refuse(cf, "there is no scope", &name);
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
    if (core->named || core->noname || !plain_is_row(module_text(location->row)))
        return refuse(cf, "not a location of a row for keys, as /v1/patients:", &core->name);
    return NGX_CONF_OK;
}

static char *read_scope(ngx_conf_t *cf, UNUSED ngx_command_t *cmd, void *conf)
{
    const ngx_str_t *arguments = cf->args->elts;
    struct location_conf *location = conf;
    bool has_read = false, has_write = false;
    ngx_str_t value;

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
static ngx_int_t variable_is_unknown(UNUSED ngx_http_request_t *r, ngx_http_variable_value_t *value,
                                     UNUSED uintptr_t data)
{
    value->not_found = 1;
    return NGX_OK;
}

static ngx_int_t add_variables(ngx_conf_t *cf)
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        ngx_str_t name = module_variables[i].name;
        ngx_http_variable_t *variable = ngx_http_add_variable(cf, &name, 0);

        if (!variable)
            return NGX_ERROR;
        variable->get_handler = variable_is_unknown;
    }
    return NGX_OK;
}

/* A subrequest is not checked itself. So a name without a location of its own would lead to that of a backend. */
static struct noted_place *target_of(const struct main_conf *main, const struct noted_place *from)
{
    struct noted_place *places = main->places.elts;

    for (ngx_uint_t i = 0; i < main->places.nelts; i++)
        if (places[i].server == from->server && places[i].is_exact && places[i].is_internal &&
            text_equal(module_text(places[i].name), module_text(from->settings->uri)))
            return &places[i];
    return NULL;
}

static ngx_int_t find_targets(ngx_conf_t *cf, const struct main_conf *main)
{
    const struct noted_place *places = main->places.elts, *target;

    for (ngx_uint_t i = 0; i < main->places.nelts; i++) {
        if (places[i].settings->uri.len == 0)
            continue;
        target = target_of(main, &places[i]);
        if (!target) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "chatelaine_check \"%V\" of location \"%V\": its server has no "
                               "\"location = %V { internal; ... }\"",
                               &places[i].settings->uri, &places[i].name, &places[i].settings->uri);
            return NGX_ERROR;
        }
        places[i].settings->target = target->settings;
    }
    return NGX_OK;
}

static ngx_int_t add_handler(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handle)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_handler_pt *handler = ngx_array_push(&core->phases[phase].handlers);

    if (!handler)
        return NGX_ERROR;
    *handler = handle;
    return NGX_OK;
}

static ngx_int_t init_main(ngx_conf_t *cf)
{
    struct main_conf *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_chatelaine_module);

    if (find_targets(cf, main) != NGX_OK || add_handler(cf, NGX_HTTP_ACCESS_PHASE, check_access) != NGX_OK ||
        add_handler(cf, NGX_HTTP_PRECONTENT_PHASE, check_content) != NGX_OK)
        return NGX_ERROR;
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        ngx_str_t name = module_variables[i].name;

        main->index_of[i] = ngx_http_get_variable_index(cf, &name);
        if (main->index_of[i] == NGX_ERROR)
            return NGX_ERROR;
    }
    return NGX_OK;
}
