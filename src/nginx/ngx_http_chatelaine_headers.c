/* Headers of requests: those that no client may send are removed before anybody is asked, and those for the backend set
 * on the request itself, so that they hold for each way to a backend. */
#include "module_internal.h"

#include "plain_internal.h"

enum { HEADERS_AT_FIRST = 24 };

/* The record is a cleanup's data, because nginx keeps those through internal redirects. */
static void end_record(UNUSED void *record)
{
}

static struct checked_request *record_of(const ngx_http_request_t *r)
{
    for (ngx_pool_cleanup_t *cleanup = r->pool->cleanup; cleanup; cleanup = cleanup->next)
        if (cleanup->handler == end_record)
            return cleanup->data;
    return NULL;
}

bool headers_are_clean(const ngx_http_request_t *r)
{
    return record_of(r) != NULL;
}

/* Whoever reads the list itself, such as modules that pass it on, sees no more than is pushed to it from now on. */
static ngx_int_t begin_list(ngx_http_request_t *r)
{
    return ngx_list_init(&r->headers_in.headers, r->pool, HEADERS_AT_FIRST, sizeof(ngx_table_elt_t));
}

/* Of an element that was copied: those behind it may not be kept. */
static ngx_table_elt_t *push(ngx_http_request_t *r, const ngx_table_elt_t *header)
{
    ngx_table_elt_t *pushed = ngx_list_push(&r->headers_in.headers);

    if (pushed)
        *pushed = *header;
    return pushed;
}

/* The request keeps those that goes() does not name. from: not the request's own. */
static ngx_int_t keep_headers(ngx_http_request_t *r, const ngx_http_headers_in_t *from, bool (*goes)(struct text name))
{
    if (begin_list(r) != NGX_OK)
        return NGX_ERROR;
    for (const ngx_list_part_t *part = &from->headers.part; part; part = part->next) {
        const ngx_table_elt_t *headers = part->elts;

        for (ngx_uint_t i = 0; i < part->nelts; i++)
            if (!goes((struct text){(const char *)headers[i].lowcase_key, headers[i].key.len}) && !push(r, &headers[i]))
                return NGX_ERROR;
    }
    return NGX_OK;
}

/* nginx's own pointers to headers that were removed. Those to others stay valid. */
static void forget_addresses(ngx_http_headers_in_t *headers)
{
#if (NGX_HTTP_X_FORWARDED_FOR && nginx_version >= 1023000)
    headers->x_forwarded_for = NULL;
#elif (NGX_HTTP_X_FORWARDED_FOR)
    headers->x_forwarded_for.nelts = 0;
#endif
#if (NGX_HTTP_REALIP)
    headers->x_real_ip = NULL;
#endif
    (void)headers;
}

static void forget_credentials(ngx_http_headers_in_t *headers)
{
    headers->authorization = NULL;
    ngx_str_null(&headers->user);
    ngx_str_null(&headers->passwd);
#if (nginx_version >= 1023000)
    headers->cookie = NULL;
#else
    headers->cookies.nelts = 0;
#endif
}

struct checked_request *headers_checked(ngx_http_request_t *r)
{
    struct checked_request *checked = record_of(r);
    ngx_pool_cleanup_t *cleanup;

    if (checked)
        return checked;
    checked = ngx_pcalloc(r->pool, sizeof *checked);
    if (!checked)
        return NULL;
    checked->sent = r->headers_in;
    if (keep_headers(r, &checked->sent, plain_steers) != NGX_OK)
        return NULL;
    forget_addresses(&r->headers_in);
    checked->sent = r->headers_in;
    cleanup = ngx_pool_cleanup_add(r->pool, 0);
    if (!cleanup)
        return NULL;
    cleanup->handler = end_record;
    cleanup->data = checked;
    return checked;
}

static bool is_ours(struct text name)
{
    return text_equal(name, TEXT("authorization")) || text_equal(name, TEXT("cookie")) ||
           text_equal(name, TEXT("x-request-id"));
}

ngx_int_t headers_tell(ngx_http_request_t *r, const struct checked_request *checked,
                       const ngx_str_t values[VARIABLE_COUNT])
{
    if (keep_headers(r, &checked->sent, is_ours) != NGX_OK)
        return NGX_ERROR;
    forget_credentials(&r->headers_in);
    for (int i = 0; i < VARIABLE_TOLD_COUNT; i++) {
        ngx_str_t name = module_variables[i].header;
        ngx_table_elt_t header = {.key = name, .value = values[i], .lowcase_key = name.data};

        header.hash = ngx_hash_key(name.data, name.len);
        if (values[i].len > 0 && !push(r, &header))
            return NGX_ERROR;
    }
    return NGX_OK;
}
