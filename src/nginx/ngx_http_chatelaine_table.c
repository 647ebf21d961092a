/* The worker's table of keys: who is let in without asking a node. */
#include "module_internal.h"

#include "auth/bearer.h"
#include "chatelaine/check.h"
#include "plain_internal.h"

#include <sys/random.h>

enum {
    REFRESH_MS = 1000,
    REFRESH_WITHOUT_TABLE_MS = 200,
    WAITING_IS_TROUBLE_AFTER = 25, /* refreshes: a node answers within a turn of its loop */
    IDS_AHEAD = 64,
    ID_RANDOM_BYTES = 10,
    SCOPES_MAX_BYTES = 256, /* as in nodes */
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

ngx_int_t table_begin(ngx_cycle_t *cycle)
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

void table_end(UNUSED ngx_cycle_t *cycle)
{
    if (worker.timer.timer_set)
        ngx_del_timer(&worker.timer);
    if (worker.timer.handler)
        chatelaine_table_finish(&worker.table);
}

/* --- a request --- */

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
static void print_accepted(struct acceptance *accepted, struct text traceparent, ngx_str_t values[VARIABLE_COUNT])
{
    const struct chatelaine_principal *who = &accepted->who;
    struct buf scopes = BUF_OVER(accepted->scopes, sizeof accepted->scopes);

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
}

static bool is_header(const ngx_table_elt_t *header, struct text name)
{
    return header->key.len == name.len && ngx_strncmp(header->lowcase_key, name.ptr, name.len) == 0;
}

static void read_header(const ngx_table_elt_t *header, struct credentials *credentials)
{
    if (is_header(header, TEXT("authorization"))) {
        credentials->authorization = module_text(header->value);
        credentials->authorizations++;
    } else if (is_header(header, TEXT("traceparent"))) {
        credentials->traceparent = module_text(header->value);
        credentials->traceparents++;
    } else if (is_header(header, TEXT("cookie"))) {
        credentials->cookies++;
    }
}

static struct credentials read_credentials(const ngx_http_headers_in_t *sent)
{
    struct credentials credentials = {.authorizations = 0};

    for (const ngx_list_part_t *part = &sent->headers.part; part; part = part->next)
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
        !plain_target(module_text(r->unparsed_uri), module_text(location->row)))
        return SCOPE_NONE;
    switch (plain_method(module_text(r->method_name))) {
    case PLAIN_READ:
        return location->read;
    case PLAIN_WRITE:
        return location->write;
    case PLAIN_OTHER:
        break;
    }
    return SCOPE_NONE;
}

bool table_accepts(ngx_http_request_t *r, const ngx_http_headers_in_t *sent, const struct location_conf *location,
                   ngx_str_t values[VARIABLE_COUNT])
{
    const struct main_conf *main = ngx_http_get_module_main_conf(r, ngx_http_chatelaine_module);
    scope_set wanted = wanted_scope(r, location);
    struct credentials credentials;
    struct acceptance *accepted;
    struct text token;

    if (wanted == SCOPE_NONE || !main->policy || !has_same_policy(main))
        return false;
    credentials = read_credentials(sent);
    if (credentials.authorizations != 1 || credentials.cookies > 0 ||
        bearer_read(credentials.authorization, &token) != BEARER_TOKEN)
        return false;
    accepted = ngx_palloc(r->pool, sizeof *accepted);
    if (!accepted || !make_request_id(accepted->request_id) ||
        !chatelaine_check(&worker.table, token.ptr, token.len, wanted, &accepted->who))
        return false;
    print_accepted(accepted, credentials.traceparent, values);
    return true;
}
