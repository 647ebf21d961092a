/* Checks of requests: by the table, else by a node, which is asked in a subrequest, as ngx_http_auth_request_module
 * does. Before a worker trusts a location of checks, it sees once that the location refuses a request without a
 * credential. */
#include "module_internal.h"

/* A check by a node, of one request. */
struct question {
    ngx_http_request_t *subrequest;
    ngx_uint_t status;
    u_char status_text[NGX_INT_T_LEN];
    ngx_str_t values[VARIABLE_COUNT];
    bool is_probe; /* without the request's credential */
    bool is_done;
};

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

static void take_header(const ngx_table_elt_t *header, ngx_str_t values[VARIABLE_COUNT])
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        const ngx_str_t *name = &module_variables[i].header;

        if (!values[i].data && name->len && header->hash && header->key.len == name->len &&
            ngx_strncasecmp(header->key.data, name->data, name->len) == 0)
            values[i] = header->value;
    }
}

static void read_answer(struct question *question)
{
    const ngx_http_request_t *subrequest = question->subrequest;
    const ngx_list_part_t *part =
        subrequest->upstream ? &subrequest->upstream->headers_in.headers.part : &subrequest->headers_out.headers.part;
    ngx_str_t *values = question->values;

    for (; part; part = part->next)
        for (ngx_uint_t i = 0; i < part->nelts; i++)
            take_header(&((const ngx_table_elt_t *)part->elts)[i], values);
    values[VARIABLE_STATUS].data = question->status_text;
    values[VARIABLE_STATUS].len =
        (size_t)(ngx_sprintf(question->status_text, "%ui", question->status) - question->status_text);
    values[VARIABLE_FROM] = (ngx_str_t)ngx_string("node");
}

/* --- asking --- */

static ngx_int_t note_answer(ngx_http_request_t *r, void *data, ngx_int_t rc)
{
    struct question *question = data;

    question->is_done = true;
    question->status = r->headers_out.status;
    return rc;
}

/* A probe has no header, and no variable that was computed from one. */
static ngx_int_t take_credential_away(ngx_http_request_t *subrequest)
{
    const ngx_http_core_main_conf_t *core = ngx_http_get_module_main_conf(subrequest, ngx_http_core_module);
    const ngx_http_headers_in_t *sent = &subrequest->headers_in;
    ngx_http_headers_in_t headers = {
        .host = sent->host, .server = sent->server, .content_length_n = -1, .keep_alive_n = -1};

    subrequest->headers_in = headers;
    subrequest->variables = ngx_pcalloc(subrequest->pool, core->variables.nelts * sizeof(ngx_http_variable_value_t));
    if (!subrequest->variables)
        return NGX_ERROR;
    return ngx_list_init(&subrequest->headers_in.headers, subrequest->pool, 1, sizeof(ngx_table_elt_t));
}

static ngx_int_t ask(ngx_http_request_t *r, const struct checked_request *checked, const struct location_conf *location,
                     bool is_probe)
{
    struct question *question = ngx_pcalloc(r->pool, sizeof *question);
    ngx_http_post_subrequest_t *done = ngx_palloc(r->pool, sizeof *done);
    ngx_http_request_t *subrequest;
    ngx_str_t uri = location->uri;

    if (!question || !done)
        return NGX_ERROR;
    *done = (ngx_http_post_subrequest_t){note_answer, question};
    if (ngx_http_subrequest(r, &uri, NULL, &subrequest, done, NGX_HTTP_SUBREQUEST_WAITED) != NGX_OK)
        return NGX_ERROR;
    question->subrequest = subrequest;
    question->is_probe = is_probe;
    subrequest->headers_in = checked->sent;
    if (is_probe && take_credential_away(subrequest) != NGX_OK)
        return NGX_ERROR;
    /* A body of its own, which is empty: the client's is neither read nor closed with the subrequest. */
    subrequest->request_body = ngx_pcalloc(r->pool, sizeof(ngx_http_request_body_t));
    if (!subrequest->request_body)
        return NGX_ERROR;
    subrequest->header_only = 1;
    ngx_http_set_ctx(r, question, ngx_http_chatelaine_module);
    return NGX_AGAIN;
}

/* --- answers --- */

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

static bool is_request_id(ngx_str_t value)
{
    return text_starts_with(module_text(value), TEXT("req_"));
}

/* Whoever asks: a row of the policy is public, or the request is a preflight. */
static bool is_open(const struct question *question)
{
    return text_equal(module_text(question->values[VARIABLE_KIND]), TEXT("none"));
}

/* Only a node says all that: whom it accepts, or that it lets everybody pass. An error page or a backend says 200 at
 * most. */
static bool is_accepted(const struct question *question)
{
    bool has_principal = question->values[VARIABLE_PRINCIPAL].len > 0;

    return question->status == NGX_HTTP_OK && is_open(question) != has_principal &&
           is_request_id(question->values[VARIABLE_REQUEST_ID]);
}

/* For want of a credential: no other refusal depends on it. No other server has that header. */
static bool is_refused_by_node(const struct question *question)
{
    return question->status == NGX_HTTP_UNAUTHORIZED && question->values[VARIABLE_ERROR].len > 0;
}

static ngx_int_t allow(ngx_http_request_t *r, struct checked_request *checked, const struct location_conf *location,
                       const ngx_str_t values[VARIABLE_COUNT])
{
    set_variables(r, values);
    checked->by = location;
    return headers_tell(r, checked, values);
}

static ngx_int_t refuse(ngx_http_request_t *r, const struct question *question)
{
    set_variables(r, question->values);
    if (question->status == NGX_HTTP_FORBIDDEN)
        return NGX_HTTP_FORBIDDEN;
    if (question->status == NGX_HTTP_UNAUTHORIZED)
        return copy_challenge(r, question->subrequest) == NGX_OK ? NGX_HTTP_UNAUTHORIZED : NGX_ERROR;
    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "chatelaine: a check was answered with status %ui%s",
                  question->status,
                  question->status < NGX_HTTP_SPECIAL_RESPONSE
                      ? ", but not by a node, which says whom it accepts: see where chatelaine_check leads"
                      : "");
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
}

/* A location that accepts somebody without a credential accepts everybody, so nobody passes. Every other answer is also
 * the answer to the request itself: it does not depend on the credential. One that is for everybody proves nothing, and
 * an Authorization that cannot be read is refused all the same. */
static ngx_int_t take_probe(ngx_http_request_t *r, struct checked_request *checked,
                            const struct location_conf *location, const struct question *question)
{
    if (is_refused_by_node(question)) {
        location->target->is_proven = true;
        return ask(r, checked, location, false);
    }
    if (!is_accepted(question))
        return refuse(r, question);
    if (is_open(question))
        return checked->sent.authorization ? ask(r, checked, location, false)
                                           : allow(r, checked, location, question->values);
    if (!location->target->has_told)
        ngx_log_error(NGX_LOG_EMERG, r->connection->log, 0,
                      "chatelaine: a check at \"%V\" was accepted without a credential, so no request passes: see "
                      "that this location leads to nodes and sets neither Authorization nor Cookie",
                      &location->uri);
    location->target->has_told = true;
    return NGX_HTTP_INTERNAL_SERVER_ERROR;
}

static ngx_int_t take_answer(ngx_http_request_t *r, struct checked_request *checked,
                             const struct location_conf *location, struct question *question)
{
    if (!question->is_done)
        return NGX_AGAIN;
    read_answer(question);
    if (question->is_probe)
        return take_probe(r, checked, location, question);
    return is_accepted(question) ? allow(r, checked, location, question->values) : refuse(r, question);
}

/* --- phases --- */

/* After an internal redirect: a node was asked about the request as its client sent it, and so would it be again. A
 * location with scopes of its own is another question. */
static bool has_allowed(const struct checked_request *checked, const struct location_conf *location)
{
    const struct location_conf *by = checked->by;

    return by && by->target == location->target &&
           (!location->row.data || (by->row.data && text_equal(module_text(by->row), module_text(location->row)) &&
                                    by->read == location->read && by->write == location->write));
}

/* nginx calls this for main requests only, and anew after an internal redirect, which forgets the question. */
ngx_int_t check_access(ngx_http_request_t *r)
{
    const struct location_conf *location = ngx_http_get_module_loc_conf(r, ngx_http_chatelaine_module);
    struct checked_request *checked;
    struct question *question;
    ngx_str_t values[VARIABLE_COUNT];

    if (location->uri.len == 0)
        return NGX_DECLINED;
    checked = headers_checked(r);
    if (!checked)
        return NGX_ERROR;
    if (has_allowed(checked, location))
        return NGX_OK;
    question = ngx_http_get_module_ctx(r, ngx_http_chatelaine_module);
    if (question)
        return take_answer(r, checked, location, question);
    ngx_memzero(values, sizeof values);
    if (table_accepts(r, &checked->sent, location, values))
        return allow(r, checked, location, values);
    return ask(r, checked, location, !location->target->is_proven);
}

/* With "satisfy any", somebody else may have let a request in that nobody has checked. */
ngx_int_t check_content(ngx_http_request_t *r)
{
    const struct location_conf *location = ngx_http_get_module_loc_conf(r, ngx_http_chatelaine_module);

    if (r != r->main || location->uri.len == 0 || headers_are_clean(r))
        return NGX_DECLINED;
    return headers_checked(r) ? NGX_DECLINED : NGX_ERROR;
}
