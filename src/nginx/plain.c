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
    struct buf out;

    if (!trace_context_parse(traceparent, &context))
        return false;
    buf_init_fixed(&out, ret_text, TRACEPARENT_CHARS);
    trace_context_print(&context, &out);
    return true;
}

bool plain_scope(struct text name, scope_set *ret_scope)
{
    *ret_scope = scope_parse(name);
    return *ret_scope != SCOPE_NONE || text_equal(name, TEXT("none"));
}
