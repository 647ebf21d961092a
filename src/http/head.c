#include "head_internal.h"

#include "http/request.h"

#include <endian.h>
#include <string.h>

/* RFC 9112 does not limit the method; the longest registered one has 17 characters. */
enum { METHOD_MAX_BYTES = 32, FIELD_NAME_MAX_BYTES = 256, PORT_MAX_DIGITS = 5 };

enum {
    TOKEN = 1,  /* RFC 9110 tchar */
    TARGET = 2, /* may stand in a request target before its query */
    HOST = 4,   /* may stand in a registered name */
    DIGIT = 8,
    HEX = 16,
    QUERY = 32, /* may stand in a query */
};

#define UNRESERVED (TOKEN | TARGET | HOST | QUERY)
#define IN_TARGET (TARGET | QUERY)
#define LETTERS(from, to) [from... to] = UNRESERVED
static const uint8_t CLASSES[256] = {
    LETTERS('g', 'z'),
    LETTERS('G', 'Z'),
    ['0' ... '9'] = UNRESERVED | DIGIT | HEX,
    ['a' ... 'f'] = UNRESERVED | HEX,
    ['A' ... 'F'] = UNRESERVED | HEX,
    ['-'] = UNRESERVED,
    ['.'] = UNRESERVED,
    ['_'] = UNRESERVED,
    ['~'] = UNRESERVED,
    ['!'] = TOKEN | IN_TARGET,
    ['$'] = TOKEN | IN_TARGET,
    ['%'] = TOKEN | IN_TARGET,
    ['&'] = TOKEN | IN_TARGET,
    ['\''] = TOKEN | IN_TARGET,
    ['*'] = TOKEN | IN_TARGET,
    ['+'] = TOKEN | IN_TARGET,
    ['#'] = TOKEN,
    ['^'] = TOKEN | QUERY,
    ['`'] = TOKEN | QUERY,
    ['|'] = TOKEN | QUERY,
    ['('] = IN_TARGET,
    [')'] = IN_TARGET,
    [','] = IN_TARGET,
    ['/'] = IN_TARGET,
    [':'] = IN_TARGET,
    [';'] = IN_TARGET,
    ['='] = IN_TARGET,
    ['?'] = IN_TARGET,
    ['@'] = IN_TARGET,
    ['['] = IN_TARGET,
    [']'] = IN_TARGET,
    ['"'] = QUERY,
    ['<'] = QUERY,
    ['>'] = QUERY,
    ['\\'] = QUERY,
    ['{'] = QUERY,
    ['}'] = QUERY,
};

static bool is_all(struct text t, uint8_t class)
{
    return (text_classes(t, CLASSES) & class) != 0;
}

/* Eight bytes at a time; the last eight may overlap the ones before. */
static bool is_ascii(struct text t)
{
    uint64_t any = 0, word;

    if (t.len < sizeof word) {
        for (size_t i = 0; i < t.len; i++)
            any |= (uint8_t)t.ptr[i];
        return any < 0x80;
    }
    for (size_t at = 0; at + sizeof word < t.len; at += sizeof word) {
        memcpy(&word, t.ptr + at, sizeof word);
        any |= word;
    }
    memcpy(&word, t.ptr + t.len - sizeof word, sizeof word);
    return ((any | word) & UINT64_C(0x8080808080808080)) == 0;
}

static struct text text_between(const char *from, const char *to)
{
    return (struct text){from, (size_t)(to - from)};
}

/* Returns the position of the first control character at or after `at`, or `end`. Eight bytes at a time: the
 * subtraction sets the highest bit of each byte below ' '; it sets others only above such a byte, by a borrow. */
static size_t find_control(const char *bytes, size_t at, size_t end)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t word;

    for (; end - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        word = le64toh(word);
        word = (word - each * ' ') & ~word & each * 0x80;
        if (word)
            return at + (size_t)__builtin_ctzll(word) / 8;
    }
    while (at < end && (uint8_t)bytes[at] >= ' ')
        at++;
    return at;
}

/* Checks the line that ends at `end`: H2, H3 (no empty line before the request line), H12. */
static enum head_scan_result scan_line(struct head_scan *scan, const char *bytes, size_t end,
                                       const struct http_settings *settings, enum http_error *ret_error)
{
    bool is_empty = end == scan->line_start;

    if ((is_empty && scan->lines == 0) || bytes[scan->line_start] == ' ')
        return HEAD_REFUSED;
    scan->scanned = scan->line_start = end + 2;
    if (is_empty)
        return HEAD_WHOLE;
    if (scan->lines++ <= (size_t)settings->limits.fields_max)
        return HEAD_PARTIAL;
    *ret_error = HTTP_ERROR_HEADERS_TOO_LARGE;
    return HEAD_REFUSED;
}

/* The first line, as far as scanned, cannot begin with a method: no need to wait for the rest. */
static bool method_is_endless(const struct head_scan *scan, const char *bytes)
{
    return scan->lines == 0 && scan->scanned > METHOD_MAX_BYTES && !memchr(bytes, ' ', METHOD_MAX_BYTES + 1);
}

enum head_scan_result head_scan(struct head_scan *scan, struct text input, const struct http_settings *settings,
                                size_t *ret_bytes, enum http_error *ret_error)
{
    size_t limit =
        input.len < (size_t)settings->limits.head_max_bytes ? input.len : (size_t)settings->limits.head_max_bytes;
    enum head_scan_result result;

    *ret_error = HTTP_ERROR_BAD_REQUEST;
    while ((scan->scanned = find_control(input.ptr, scan->scanned, limit)) < limit) {
        const char *at = input.ptr + scan->scanned;

        if (*at == '\t' && scan->scanned > scan->line_start) {
            scan->scanned++;
            continue;
        }
        if (*at == '\r' && scan->scanned + 1 == limit)
            break;
        if (*at != '\r' || at[1] != '\n' || method_is_endless(scan, input.ptr))
            return HEAD_REFUSED;
        result = scan_line(scan, input.ptr, scan->scanned, settings, ret_error);
        *ret_bytes = scan->scanned;
        if (result != HEAD_PARTIAL)
            return result;
    }
    if (method_is_endless(scan, input.ptr))
        return HEAD_REFUSED;
    if (limit < (size_t)settings->limits.head_max_bytes)
        return HEAD_PARTIAL;
    *ret_error = scan->lines == 0 ? HTTP_ERROR_URI_TOO_LONG : HTTP_ERROR_HEADERS_TOO_LARGE;
    return HEAD_REFUSED;
}

static bool percent_escapes_are_sound(struct text target)
{
    const char *end = target.ptr + target.len;

    for (const char *p = target.ptr; (p = memchr(p, '%', (size_t)(end - p))); p += 3) {
        bool is_control;

        if (end - p < 3 || !is_all((struct text){p + 1, 2}, HEX))
            return false;
        is_control = p[1] == '0' || p[1] == '1' || (p[1] == '7' && (p[2] == 'f' || p[2] == 'F'));
        if (is_control)
            return false;
    }
    return true;
}

void http_target_split(struct text target, struct text *ret_path, struct text *ret_query)
{
    const char *mark = target.len > 0 ? memchr(target.ptr, '?', target.len) : NULL;
    const size_t path_bytes = mark ? (size_t)(mark - target.ptr) : target.len;

    *ret_path = (struct text){target.ptr, path_bytes};
    *ret_query = mark ? text_skip(target, path_bytes + 1) : (struct text){NULL, 0};
}

/* Escapes in the query are left to its reader: clients send raw '|' and lone '%' to other backends. */
bool http_target_read(struct text target, struct text *ret_path, struct text *ret_query)
{
    http_target_split(target, ret_path, ret_query);
    return target.len > 0 && is_all(*ret_path, TARGET) && is_all(*ret_query, QUERY) &&
           percent_escapes_are_sound(*ret_path);
}

/* absolute-form: "http://authority[/path][?query]". That the authority equals Host is checked later. */
static bool split_absolute_form(struct http_head *head)
{
    static const struct text SCHEMES[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < sizeof SCHEMES / sizeof SCHEMES[0]; i++) {
        struct text rest;
        size_t bytes = 0;

        if (head->target.len < SCHEMES[i].len ||
            !text_equal_nocase((struct text){head->target.ptr, SCHEMES[i].len}, SCHEMES[i]))
            continue;
        rest = text_skip(head->target, SCHEMES[i].len);
        while (bytes < rest.len && rest.ptr[bytes] != '/' && rest.ptr[bytes] != '?')
            bytes++;
        head->authority = (struct text){rest.ptr, bytes};
        http_target_split(text_skip(rest, bytes), &head->path, &head->query);
        if (head->path.len == 0)
            head->path = TEXT("/");
        return bytes > 0;
    }
    return false;
}

/* H4. */
static enum http_error validate_target(struct http_head *head, const struct http_settings *settings)
{
    struct text path, query;

    if (!http_target_read(head->target, &path, &query))
        return HTTP_ERROR_BAD_REQUEST;
    if (head->target.len > (size_t)settings->limits.target_max_bytes)
        return HTTP_ERROR_URI_TOO_LONG;
    head->path = path;
    head->query = query;
    if (text_equal(head->target, TEXT("*")))
        return text_equal(head->method, TEXT("OPTIONS")) ? HTTP_ERROR_NONE : HTTP_ERROR_BAD_REQUEST;
    return head->target.ptr[0] == '/' || split_absolute_form(head) ? HTTP_ERROR_NONE : HTTP_ERROR_BAD_REQUEST;
}

static enum http_error validate_version(struct http_head *head, struct text version)
{
    head->is_http_1_0 = text_equal(version, TEXT("HTTP/1.0"));
    if (head->is_http_1_0 || text_equal(version, TEXT("HTTP/1.1")))
        return HTTP_ERROR_NONE;
    if (version.len == 8 && text_starts_with(version, TEXT("HTTP/")) &&
        is_all((struct text){version.ptr + 5, 1}, DIGIT) && version.ptr[6] == '.' &&
        is_all((struct text){version.ptr + 7, 1}, DIGIT))
        return HTTP_ERROR_VERSION;
    return HTTP_ERROR_BAD_REQUEST;
}

/* The methods that every version of llhttp knows. Later versions know more, but no verdict may depend on the version.
 * Most are not served here, but a gateway may ask about a request with any of them. */
bool http_method_read(struct text name, enum http_method *ret_method)
{
    static const struct {
        struct text name;
        enum http_method method;
    } KNOWN[] = {
        {TEXT("GET"), HTTP_GET},           {TEXT("POST"), HTTP_POST},       {TEXT("HEAD"), HTTP_HEAD},
        {TEXT("PUT"), HTTP_PUT},           {TEXT("DELETE"), HTTP_DELETE},   {TEXT("PATCH"), HTTP_PATCH},
        {TEXT("OPTIONS"), HTTP_OPTIONS},   {TEXT("CONNECT"), HTTP_CONNECT}, {TEXT("TRACE"), HTTP_TRACE},
        {TEXT("ACL"), HTTP_OTHER},         {TEXT("BIND"), HTTP_OTHER},      {TEXT("CHECKOUT"), HTTP_OTHER},
        {TEXT("COPY"), HTTP_OTHER},        {TEXT("LINK"), HTTP_OTHER},      {TEXT("LOCK"), HTTP_OTHER},
        {TEXT("M-SEARCH"), HTTP_OTHER},    {TEXT("MERGE"), HTTP_OTHER},     {TEXT("MKACTIVITY"), HTTP_OTHER},
        {TEXT("MKCALENDAR"), HTTP_OTHER},  {TEXT("MKCOL"), HTTP_OTHER},     {TEXT("MOVE"), HTTP_OTHER},
        {TEXT("NOTIFY"), HTTP_OTHER},      {TEXT("PROPFIND"), HTTP_OTHER},  {TEXT("PROPPATCH"), HTTP_OTHER},
        {TEXT("PURGE"), HTTP_OTHER},       {TEXT("REBIND"), HTTP_OTHER},    {TEXT("REPORT"), HTTP_OTHER},
        {TEXT("SEARCH"), HTTP_OTHER},      {TEXT("SOURCE"), HTTP_OTHER},    {TEXT("SUBSCRIBE"), HTTP_OTHER},
        {TEXT("UNBIND"), HTTP_OTHER},      {TEXT("UNLINK"), HTTP_OTHER},    {TEXT("UNLOCK"), HTTP_OTHER},
        {TEXT("UNSUBSCRIBE"), HTTP_OTHER},
    };

    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        if (!text_equal(KNOWN[i].name, name))
            continue;
        *ret_method = KNOWN[i].method;
        return true;
    }
    return false;
}

enum http_error head_read_request_line(struct http_head *head, struct text whole_head,
                                       const struct http_settings *settings)
{
    const char *end = memchr(whole_head.ptr, '\r', whole_head.len);
    const char *first = memchr(whole_head.ptr, ' ', (size_t)(end - whole_head.ptr));
    const char *second = first ? memchr(first + 1, ' ', (size_t)(end - first - 1)) : NULL;
    enum http_error version_error, target_error;
    enum http_method method = HTTP_OTHER;
    bool is_known;

    head->known_method = HTTP_OTHER;
    if (!second)
        return HTTP_ERROR_BAD_REQUEST;
    head->method = text_between(whole_head.ptr, first);
    is_known = http_method_read(head->method, &method);
    head->known_method = (int)method;
    head->target = text_between(first + 1, second);
    if (head->method.len == 0 || head->method.len > METHOD_MAX_BYTES || !is_all(head->method, TOKEN))
        return HTTP_ERROR_BAD_REQUEST;
    version_error = validate_version(head, text_between(second + 1, end));
    if (version_error == HTTP_ERROR_BAD_REQUEST)
        return HTTP_ERROR_BAD_REQUEST;
    /* CONNECT names an authority instead of a resource, and this is no proxy. */
    if (text_equal(head->method, TEXT("CONNECT")))
        return version_error == HTTP_ERROR_NONE ? HTTP_ERROR_METHOD_NOT_ALLOWED : version_error;
    target_error = validate_target(head, settings);
    if (target_error != HTTP_ERROR_NONE)
        return target_error;
    if (version_error != HTTP_ERROR_NONE)
        return version_error;
    return is_known ? HTTP_ERROR_NONE : HTTP_ERROR_NOT_IMPLEMENTED;
}

static bool port_is_sound(struct text port)
{
    return port.len <= PORT_MAX_DIGITS && is_all(port, DIGIT);
}

/* "name", "name:port", "192.0.2.1:port", "[v6]:port". */
static bool authority_is_sound(struct text authority)
{
    const char *end = authority.ptr + authority.len;
    const char *mark;

    if (authority.len == 0)
        return false;
    if (authority.ptr[0] == '[') {
        mark = memchr(authority.ptr, ']', authority.len);
        if (!mark || mark - authority.ptr < 3)
            return false;
        for (const char *p = authority.ptr + 1; p < mark; p++) {
            if (*p != ':' && *p != '.' && !(CLASSES[(uint8_t)*p] & HEX))
                return false;
        }
        mark++;
        return mark == end || (*mark == ':' && port_is_sound(text_between(mark + 1, end)));
    }
    mark = memchr(authority.ptr, ':', authority.len);
    if (!mark)
        return is_all(authority, HOST);
    return mark > authority.ptr && is_all(text_between(authority.ptr, mark), HOST) &&
           port_is_sound(text_between(mark + 1, end));
}

/* Headers that decide framing, routing or identity may appear once. */
enum single {
    SINGLE_HOST,
    SINGLE_CONTENT_LENGTH,
    SINGLE_TRANSFER_ENCODING,
    SINGLE_EXPECT,
    SINGLE_AUTHORIZATION,
    SINGLE_COOKIE,
    SINGLE_CONTENT_TYPE,
    SINGLE_COUNT,
};

/* In the spelling that most clients use, because equal spellings compare fastest. */
static const struct text SINGLES[SINGLE_COUNT] = {
    [SINGLE_HOST] = {"Host", 4},
    [SINGLE_CONTENT_LENGTH] = {"Content-Length", 14},
    [SINGLE_TRANSFER_ENCODING] = {"Transfer-Encoding", 17},
    [SINGLE_EXPECT] = {"Expect", 6},
    [SINGLE_AUTHORIZATION] = {"Authorization", 13},
    [SINGLE_COOKIE] = {"Cookie", 6},
    [SINGLE_CONTENT_TYPE] = {"Content-Type", 12},
};

static enum single single_of(struct text name)
{
    enum single s = 0;

    while (s < SINGLE_COUNT && !(SINGLES[s].len == name.len && text_equal_nocase(SINGLES[s], name)))
        s++;
    return s;
}

/* H5; and the part of H12 that allows each of these fields once. */
static bool collect_singles(const struct http_head *head, const struct http_field *ret_found[SINGLE_COUNT])
{
    for (size_t i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        enum single s;

        if (field->name.len == 0 || field->name.len > FIELD_NAME_MAX_BYTES || !is_all(field->name, TOKEN))
            return false;
        s = single_of(field->name);
        if (s == SINGLE_COUNT)
            continue;
        /* Other applications' cookies may hold any bytes. */
        if (ret_found[s] || (s != SINGLE_COOKIE && !is_ascii(field->value)))
            return false;
        ret_found[s] = field;
    }
    return true;
}

/* H6. */
static bool host_is_sound(const struct http_head *head, const struct http_field *host)
{
    if (host && !authority_is_sound(host->value))
        return false;
    if (head->authority.len > 0)
        return host && text_equal_nocase(host->value, head->authority);
    return host || head->is_http_1_0;
}

/* H7 and H8. */
static enum http_error validate_framing(struct http_head *head, const struct http_field *const found[SINGLE_COUNT],
                                        const struct http_settings *settings)
{
    const struct http_field *length = found[SINGLE_CONTENT_LENGTH], *coding = found[SINGLE_TRANSFER_ENCODING];

    if (coding) {
        head->is_chunked = true;
        return !length && !head->is_http_1_0 && text_equal_nocase(coding->value, TEXT("chunked"))
                   ? HTTP_ERROR_NONE
                   : HTTP_ERROR_BAD_REQUEST;
    }
    if (!length)
        return HTTP_ERROR_NONE;
    if (length->value.len == 0 || !is_all(length->value, DIGIT) ||
        (length->value.len > 1 && length->value.ptr[0] == '0'))
        return HTTP_ERROR_BAD_REQUEST;
    int64_t most = settings->limits.body_max_bytes > settings->body_raised_max_bytes ? settings->limits.body_max_bytes
                                                                                     : settings->body_raised_max_bytes;
    return text_to_u64(length->value, (uint64_t)most, &head->content_length) ? HTTP_ERROR_NONE
                                                                             : HTTP_ERROR_BODY_TOO_LARGE;
}

enum http_error head_validate_fields(struct http_head *head, const struct http_settings *settings)
{
    const struct http_field *found[SINGLE_COUNT] = {NULL};
    const struct http_field *expect;
    enum http_error error;

    if (!collect_singles(head, found) || !host_is_sound(head, found[SINGLE_HOST]))
        return HTTP_ERROR_BAD_REQUEST;
    error = validate_framing(head, found, settings);
    if (error != HTTP_ERROR_NONE)
        return error;
    expect = found[SINGLE_EXPECT];
    if (expect && !text_equal_nocase(expect->value, TEXT("100-continue")))
        return HTTP_ERROR_EXPECTATION_FAILED;
    /* An HTTP/1.0 client gets no 1xx response (H10). */
    head->expects_continue = expect && !head->is_http_1_0;
    return HTTP_ERROR_NONE;
}
