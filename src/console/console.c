#include "console/console.h"

#include "assets_internal.h"
#include "base/check.h"
#include "http/response.h"

/* Pages may only load their own files and talk to their own origin: no inline script or style, no markup from strings
 * (Trusted Types), no framing. */
static const char PAGE_HEADERS[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Permissions-Policy: camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n";

/* The page that loads a file decides what the file may do. Opened by itself, it may do nothing. */
static const char FILE_HEADERS[] = "Cache-Control: public, max-age=31536000, immutable\r\n"
                                   "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
                                   "Cross-Origin-Resource-Policy: same-origin\r\n"
                                   "Referrer-Policy: no-referrer\r\n"
                                   "X-Content-Type-Options: nosniff\r\n";

static struct text make_headers(char storage[CONSOLE_HEADERS_MAX_BYTES], const char *headers, bool is_https)
{
    struct buf out;

    buf_init_fixed(&out, storage, CONSOLE_HEADERS_MAX_BYTES);
    buf_append_str(&out, headers);
    if (is_https)
        buf_append_str(&out, "Strict-Transport-Security: max-age=63072000; includeSubDomains\r\n");
    CHECK(!out.failed);
    return buf_text(&out);
}

void console_init(struct console *console, bool is_https)
{
    console->localhost_goes_to = (struct text){0};
    console->page_headers = make_headers(console->page_storage, PAGE_HEADERS, is_https);
    console->file_headers = make_headers(console->file_storage, FILE_HEADERS, is_https);
}

void console_redirect_localhost(struct console *console, struct text origin)
{
    console->localhost_goes_to = origin;
}

/* Negotiation */

/* True for "gzip", unless its weight is 0 (RFC 9110 section 12.5.3). */
static bool coding_is_gzip(struct text coding)
{
    struct text part;

    if (!text_next(&coding, ';', &part) || !text_equal_nocase(text_trim(part), TEXT("gzip")))
        return false;
    while (text_next(&coding, ';', &part)) {
        part = text_trim(part);
        if (!text_starts_with(part, TEXT("q=0")) && !text_starts_with(part, TEXT("Q=0")))
            continue;
        part = text_skip(part, sizeof "q=0" - 1);
        while (part.len > 0 && (part.ptr[0] == '.' || part.ptr[0] == '0'))
            part = text_skip(part, 1);
        if (part.len == 0)
            return false;
    }
    return true;
}

static bool takes_gzip(const struct http_request *request)
{
    size_t count;
    struct text codings = http_request_header(request, TEXT("Accept-Encoding"), &count), coding;

    while (count == 1 && text_next(&codings, ',', &coding))
        if (coding_is_gzip(text_trim(coding)))
            return true;
    return false;
}

/* If-None-Match compares weakly: with or without W/ (RFC 9110 section 13.1.2). */
static bool client_has(const struct http_request *request, struct text etag)
{
    size_t count;
    struct text known = http_request_header(request, TEXT("If-None-Match"), &count), tag;

    while (count == 1 && text_next(&known, ',', &tag)) {
        tag = text_trim(tag);
        if (text_starts_with(tag, TEXT("W/")))
            tag = text_skip(tag, 2);
        if (text_equal(tag, etag) || text_equal(tag, TEXT("*")))
            return true;
    }
    return false;
}

/* Answers */

static void reply_form(struct http_request *request, const struct console_asset *asset, bool is_gzip, int status)
{
    http_response_header(request, TEXT("Vary"), TEXT("Accept-Encoding"));
    if (is_gzip)
        http_response_header(request, TEXT("Content-Encoding"), TEXT("gzip"));
    http_reply_lasting(request, status, asset->type, is_gzip ? asset->gzip : asset->plain);
}

static void reply_page(const struct console *console, struct http_request *request, const struct console_asset *page,
                       int status)
{
    bool is_gzip = takes_gzip(request);
    struct text etag = is_gzip ? page->etag_gzip : page->etag;

    http_response_fixed_headers(request, console->page_headers);
    http_response_header(request, TEXT("Cache-Control"), TEXT("no-cache"));
    http_response_header(request, TEXT("ETag"), etag);
    if (status == 200 && client_has(request, etag)) {
        http_response_header(request, TEXT("Vary"), TEXT("Accept-Encoding"));
        http_reply(request, 304, (struct text){0}, (struct text){0});
    } else {
        reply_form(request, page, is_gzip, status);
    }
}

static void reply_asset(const struct console *console, struct http_request *request, const struct console_asset *asset)
{
    if (asset->etag.len > 0) {
        reply_page(console, request, asset, 200);
        return;
    }
    http_response_fixed_headers(request, console->file_headers); /* content-addressed: cached forever */
    reply_form(request, asset, takes_gzip(request), 200);
}

static void redirect(const struct console *console, struct http_request *request, struct text location)
{
    http_response_fixed_headers(request, console->page_headers);
    http_response_header(request, TEXT("Cache-Control"), TEXT("no-store"));
    http_response_header(request, TEXT("Location"), location);
    http_reply(request, 302, (struct text){0}, (struct text){0});
}

/* True if the request came to http://localhost, at the port of the origin. */
static bool is_at_localhost(const struct console *console, const struct http_request *request)
{
    const struct text origin = console->localhost_goes_to, name = TEXT("localhost");
    size_t count;
    struct text host = http_request_header(request, TEXT("Host"), &count), port;

    if (origin.len == 0 || count != 1 || host.len < name.len ||
        !text_equal_nocase((struct text){host.ptr, name.len}, name))
        return false;
    port = text_skip(host, name.len);
    return (port.len == 0 || port.ptr[0] == ':') && origin.len > port.len &&
           text_equal(text_skip(origin, origin.len - port.len), port);
}

static void redirect_from_localhost(const struct console *console, struct http_request *request)
{
    const struct text origin = console->localhost_goes_to;
    struct text target = http_request_target(request);
    struct buf location;

    if (!text_starts_with(target, TEXT("/"))) /* in absolute form */
        target = http_request_path(request);
    buf_init_fixed(&location, http_request_alloc(request, origin.len + target.len), origin.len + target.len);
    buf_append_text(&location, origin);
    buf_append_text(&location, target);
    redirect(console, request, buf_text(&location));
}

static void refuse_method(struct http_request *request)
{
    http_response_header(request, TEXT("Allow"), TEXT("GET, HEAD"));
    http_refuse(request, HTTP_ERROR_METHOD_NOT_ALLOWED);
}

static const struct console_asset *find_asset(struct text path)
{
    for (size_t i = 0; i < CONSOLE_ASSET_COUNT; i++)
        if (text_equal(CONSOLE_ASSETS[i].path, path))
            return &CONSOLE_ASSETS[i];
    return NULL;
}

/* Each thing with a page of its own has an address below a name that ends with '_', such as "keys/key_". */
static bool name_fits(struct text name, struct text page)
{
    const struct text id = text_skip(name, page.len);

    if (page.len == 0 || page.ptr[page.len - 1] != '_')
        return text_equal(name, page);
    return name.ptr && text_starts_with(name, page) && !memchr(id.ptr, '/', id.len);
}

/* The scripts show the page; here its name decides only the status. */
static bool is_page(struct text name)
{
    for (size_t i = 0; i < CONSOLE_PAGE_COUNT; i++)
        if (name_fits(name, CONSOLE_PAGES[i]))
            return true;
    return false;
}

/* Its scripts read the description of the API and show it; no other address below "/docs" is a page. */
static bool is_docs(struct text path)
{
    return text_equal(path, TEXT("/docs")) || text_equal(path, TEXT("/docs/errors"));
}

static void answer_path(const struct console *console, struct http_request *request, struct text path)
{
    const struct text folder = TEXT("/console/"), name = text_skip(path, folder.len);
    const struct console_asset *asset = find_asset(path);

    if (is_docs(path))
        reply_page(console, request, find_asset(TEXT("/docs")), 200);
    else if (asset)
        reply_asset(console, request, asset);
    else if (!text_starts_with(path, folder))
        http_refuse(request, HTTP_ERROR_NOT_FOUND);
    else if (memchr(name.ptr, '/', name.len) && !is_page(name)) /* for example, a file of another version */
        http_refuse(request, HTTP_ERROR_NOT_FOUND);
    else
        reply_page(console, request, find_asset(folder), is_page(name) ? 200 : 404);
}

void console_answer(const struct console *console, struct http_request *request)
{
    struct text path = http_request_path(request);
    bool is_entrance = text_equal(path, TEXT("/")) || text_equal(path, TEXT("/console"));
    bool is_description = text_equal(path, TEXT("/openapi.json"));
    enum http_method method = http_request_method(request);

    if (method != HTTP_GET && method != HTTP_HEAD)
        refuse_method(request);
    else if (!is_description && is_at_localhost(console, request))
        redirect_from_localhost(console, request);
    else if (is_entrance)
        redirect(console, request, TEXT("/console/"));
    else
        answer_path(console, request, path);
}
