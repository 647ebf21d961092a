#include "plain_internal.h"

#include <string.h>

/* The least that a node can be told to allow (--target-max-bytes). */
enum { TARGET_MAX_BYTES = 256 };
enum byte_class { BYTE_PATH = 1, BYTE_QUERY = 2, BYTE_BOTH = BYTE_PATH | BYTE_QUERY };

/* A query may have what a request line may, except '#'. */
static const uint8_t CLASSES[256] = {
    ['!'] = BYTE_QUERY,        ['"'] = BYTE_QUERY,         ['$' ... ','] = BYTE_QUERY, ['-'] = BYTE_BOTH,
    ['.'] = BYTE_BOTH,         ['/'] = BYTE_BOTH,          ['0' ... '9'] = BYTE_BOTH,  [':' ... '@'] = BYTE_QUERY,
    ['A' ... 'Z'] = BYTE_BOTH, ['[' ... '^'] = BYTE_QUERY, ['_'] = BYTE_BOTH,          ['`'] = BYTE_QUERY,
    ['a' ... 'z'] = BYTE_BOTH, ['{' ... '}'] = BYTE_QUERY, ['~'] = BYTE_BOTH,
};

static bool path_is_plain(struct text path)
{
    char before = 0;

    if (path.len == 0 || path.ptr[0] != '/' || !(text_classes(path, CLASSES) & BYTE_PATH))
        return false;
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];

        if ((before == '/' && (c == '/' || c == '.')) || (before == '.' && c == '/'))
            return false;
        before = c;
    }
    return before != '.';
}

static bool is_below(struct text path, struct text row)
{
    return text_starts_with(path, row) && (path.len == row.len || path.ptr[row.len] == '/');
}

bool plain_target(struct text target, struct text row)
{
    const char *mark = target.len > 0 ? memchr(target.ptr, '?', target.len) : NULL;
    struct text path = {target.ptr, mark ? (size_t)(mark - target.ptr) : target.len};
    struct text query = text_skip(target, path.len);

    return target.len <= TARGET_MAX_BYTES && is_below(path, row) && path_is_plain(path) &&
           (text_classes(query, CLASSES) & BYTE_QUERY);
}

bool plain_is_row(struct text path)
{
    static const struct text OURS = {"/v1/", 4}, CONSOLE = {"/v1/console", 11};

    return path_is_plain(path) && path.len > OURS.len && text_starts_with(path, OURS) &&
           path.ptr[path.len - 1] != '/' && !is_below(path, CONSOLE);
}

enum plain_method plain_method(struct text method)
{
    static const struct {
        struct text name;
        enum plain_method is;
    } METHODS[] = {{{"GET", 3}, PLAIN_READ},  {{"HEAD", 4}, PLAIN_READ},   {{"POST", 4}, PLAIN_WRITE},
                   {{"PUT", 3}, PLAIN_WRITE}, {{"PATCH", 5}, PLAIN_WRITE}, {{"DELETE", 6}, PLAIN_WRITE}};

    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        if (text_equal(method, METHODS[i].name))
            return METHODS[i].is;
    return PLAIN_OTHER;
}

bool plain_trace(struct text traceparent, char ret_text[TRACEPARENT_CHARS])
{
    struct trace_context context;
    struct buf out = BUF_OVER(ret_text, TRACEPARENT_CHARS);

    if (!trace_context_parse(traceparent, &context))
        return false;
    trace_context_print(&context, &out);
    return true;
}

bool plain_scope(struct text name, scope_set *ret_scope)
{
    *ret_scope = scope_parse(name);
    return *ret_scope != SCOPE_NONE || text_equal(name, TEXT("none"));
}

/* One with a hyphen at its end is the beginning of several. */
static const char *const STEERING[] = {
    "x-auth-",
    "x-authenticated-",
    "x-authentik-",
    "x-webauth-",
    "x-remote-",
    "remote-", /* who */
    "ssl-client-",
    "x-ssl-",
    "client-cert",
    "client-cert-chain",
    "x-client-cert",
    "x-client-verify",
    "x-arr-clientcert",
    "x-amzn-mtls-", /* by which certificate */
    "forwarded",
    "x-forwarded",
    "x-forwarded-", /* from where, to which host, how */
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-azure-clientip",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "fastly-client-ip",
    "fly-client-ip", /* from where */
    "x-host",
    "x-http-host-override",
    "x-original-",
    "x-rewrite-url",
    "x-http-destinationurl",
    "x-script-name",
    "x-scheme",
    "x-url-scheme",
    "front-end-https",
    "x-arr-ssl",
    "cloudfront-forwarded-proto", /* to where, how */
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "http2-settings",
    "proxy", /* a script takes it for its environment's HTTP_PROXY */
};

static bool is_named(struct text name, const char *pattern)
{
    size_t i = 0;

    for (; i < name.len && pattern[i]; i++)
        if ((name.ptr[i] == '_' ? '-' : name.ptr[i]) != pattern[i])
            return false;
    return !pattern[i] && (i == name.len || pattern[i - 1] == '-');
}

bool plain_steers(struct text name)
{
    for (size_t i = 0; i < sizeof STEERING / sizeof *STEERING; i++)
        if (is_named(name, STEERING[i]))
            return true;
    return false;
}
