/* doctor --gateway: whom it attacks, with which keys. What it asks is in gateway_examine.c. */
#include "gateway_internal.h"

#include "admin_internal.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/random.h"
#include "base/secure.h"
#include "config/tls_files.h"
#include "core/address.h"

#include <stdio.h>
#include <uv.h>

enum {
    PATIENCE_MS = 10 * 1000,
    PATIENCE_ALL_MS = 5 * 60 * 1000,
    HOST_BYTES = 256,
    PORT_BYTES = 8,
    PATH_MAX_BYTES = 512
};

static const struct option_row ROWS[] = {
    {.name = "gateway",
     A_TEXT(COMMAND_OFFSET(gateway), "URL"),
     .help =
         "Attack this gateway, as a client would, in place of checking Redis and settings. The URL's path is one of "
         "your backend that the key may read. Up to 60 requests, all GET but two uploads without a key."},
    ROW_TEXT("gateway-ca", gateway_ca, "PATH",
             "CA certificates that the gateway's certificate must lead to. Default: those of the system."),
    ROW_TEXT("key-file", key_file, "PATH",
             "A file with a key for the attacks that need one ('-': standard input). Take a test key: an attack that "
             "succeeds acts with it."),
    ROW_TEXT("revoked-key-file", revoked_key_file, "PATH", "A file with a revoked key, which must be refused."),
};
const struct option_table GATEWAY_TABLE = OPTION_TABLE(ROWS);

struct gateway_url {
    char origin[HOST_BYTES + sizeof "https://"];
    char host[HOST_BYTES]; /* without brackets */
    char port[PORT_BYTES];
    const char *authority, *path;
    bool is_https;
};

static int refuse_url(const char *url, const char *why)
{
    return command_fail(EXIT_USAGE, "--gateway '%s': %s", url, why);
}

/* Host and port of an origin that is well-formed. */
static void split_authority(struct gateway_url *url)
{
    struct text authority = text_of(url->authority);
    const char *colon = strrchr(url->authority, ':'), *bracket = strrchr(url->authority, ']');
    bool has_port = colon && colon > bracket;
    struct text host = {authority.ptr, has_port ? (size_t)(colon - authority.ptr) : authority.len};

    if (host.ptr[0] == '[')
        host = (struct text){host.ptr + 1, host.len - 2};
    snprintf(url->host, sizeof url->host, "%.*s", TEXT_ARG(host));
    snprintf(url->port, sizeof url->port, "%s", has_port ? colon + 1 : url->is_https ? "443" : "80");
}

static bool is_path(const char *path)
{
    size_t length = strlen(path);

    for (size_t i = 0; i < length; i++)
        if (path[i] <= ' ' || path[i] > '~' || strchr("?#\"<>\\^`{|}", path[i]))
            return false;
    return length > 1 && length <= PATH_MAX_BYTES && path[0] == '/' && path[length - 1] != '/';
}

static int read_url(const char *given, struct gateway_url *ret_url)
{
    const char *scheme_end = strstr(given, "://"), *path = scheme_end ? strchr(scheme_end + 3, '/') : NULL;
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    if (!path || !is_path(path))
        return refuse_url(given, "name a path of your backend that the key may read, without query, as in "
                                 "https://gateway.example/v1/patients");
    if ((size_t)(path - given) >= sizeof ret_url->origin)
        return refuse_url(given, "the host is too long");
    snprintf(ret_url->origin, sizeof ret_url->origin, "%.*s", (int)(path - given), given);
    if (!settings_validate_origin(ret_url->origin, &why))
        return refuse_url(given, "begin with scheme://host or scheme://host:port in lower case, without the scheme's "
                                 "own port");
    ret_url->path = path;
    ret_url->is_https = settings_origin_is_https(ret_url->origin);
    ret_url->authority = ret_url->origin + (scheme_end + 3 - given);
    split_authority(ret_url);
    return EXIT_DONE;
}

static int read_key(const char *option, const char *path, char ret_key[GATEWAY_KEY_BYTES])
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(GATEWAY_KEY_BYTES);
    enum key_kind kind;
    enum key_mode mode;
    struct text secret;

    if (!path)
        return EXIT_DONE;
    if (secret_has_shape(text_of(path)))
        return command_fail(EXIT_USAGE, KEY_AS_ARGUMENT);
    if (!private_file_read(option, path, &content, &why))
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    secret = text_trim(buf_text(&content));
    if (!secret_parse(secret, &kind, &mode) || kind != KEY_API)
        return command_fail(EXIT_USAGE, "%s %s has no API key: 'chatelaine key verify' says why", option, path);
    snprintf(ret_key, GATEWAY_KEY_BYTES, "%.*s", TEXT_ARG(secret));
    return EXIT_DONE;
}

static int read_keys(const struct command_line *line, struct gateway_site *site)
{
    int code = read_key("--key-file", line->key_file, site->key);

    return code == EXIT_DONE ? read_key("--revoked-key-file", line->revoked_key_file, site->revoked_key) : code;
}

static int open_tls(const struct command_line *line, const struct gateway_url *url, struct gateway_site *site)
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    if (!url->is_https)
        return line->gateway_ca ? refuse_url(line->gateway, "--gateway-ca needs https://") : EXIT_DONE;
    site->peer.tls =
        tls_files_open_client((struct tls_file_option){"--gateway-ca", line->gateway_ca},
                              (struct tls_file_option){"", NULL}, (struct tls_file_option){"", NULL}, &why);
    return site->peer.tls ? EXIT_DONE : command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
}

/* Takes the first address that answers. False, with a phrase in ret_why: there is none. */
static bool reach_any(struct gateway_site *site, const struct addrinfo *found, char ret_why[GATEWAY_WHY_BYTES])
{
    static const struct gateway_probe HELLO = {.method = "GET", .target = "$"};
    struct gateway_answer answer;
    bool is_reached = false;

    for (const struct addrinfo *at = found; at && !is_reached; at = at->ai_next) {
        memcpy(&site->peer.address, at->ai_addr, at->ai_addrlen);
        site->peer.address_bytes = at->ai_addrlen;
        gateway_ask(site, &HELLO, &answer);
        is_reached = answer.result == HTTP_CALL_ANSWERED;
        memcpy(ret_why, answer.why, GATEWAY_WHY_BYTES);
        gateway_answer_finish(&answer);
    }
    return is_reached;
}

static bool reach(struct gateway_site *site, const struct gateway_url *url, char ret_why[GATEWAY_WHY_BYTES])
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    uv_getaddrinfo_t request;
    uv_loop_t loop;
    bool is_reached = false;
    int error = uv_loop_init(&loop);

    if (error == 0) {
        error = uv_getaddrinfo(&loop, &request, NULL, url->host, url->port, &hints);
        if (error == 0) {
            is_reached = reach_any(site, request.addrinfo, ret_why);
            uv_freeaddrinfo(request.addrinfo);
        }
        (void)uv_loop_close(&loop);
    }
    if (error != 0)
        snprintf(ret_why, GATEWAY_WHY_BYTES, "%s", uv_strerror(error));
    return is_reached;
}

static void examine(struct gateway_site *site, const struct gateway_url *url, struct doctor_report *report)
{
    static const char NO_TLS[] = "Keys cross the network in clear text: use https://.";
    char why[GATEWAY_WHY_BYTES] = "";
    struct address address;
    bool is_local = strcmp(url->host, "localhost") == 0 ||
                    (address_parse(text_of(url->host), &address) && address_is_loopback(&address));

    if (!reach(site, url, why)) {
        doctor_add(report, "gateway", DOCTOR_FAIL, "Correct --gateway, or --gateway-ca. Nothing else was asked.",
                   "%s: %s", url->authority, why);
        return;
    }
    doctor_add(report, "gateway", url->is_https || is_local ? DOCTOR_OK : DOCTOR_WARN, NO_TLS, "%s",
               url->is_https ? "answers; its certificate is verified"
               : is_local    ? "answers; no TLS, on this machine"
                             : "answers; no TLS");
    gateway_examine(site, report);
}

int doctor_gateway_run(const struct command_line *line)
{
    struct gateway_site site = {.patience_ms = PATIENCE_MS,
                                .until_ns = clock_boot_ns() + (uint64_t)PATIENCE_ALL_MS * CLOCK_NS_PER_MS};
    struct doctor_report report = {.count = 0};
    struct gateway_url url = {0};
    uint8_t marker[(GATEWAY_MARKER_BYTES - 1) / 2];
    struct buf marker_text;
    int code = read_url(line->gateway, &url);

    if (code == EXIT_DONE)
        code = open_tls(line, &url, &site);
    if (code == EXIT_DONE)
        code = read_keys(line, &site);
    if (code == EXIT_DONE) {
        random_public(marker, sizeof marker);
        buf_init_fixed(&marker_text, site.marker, sizeof site.marker - 1);
        encode_hex(&marker_text, marker, sizeof marker);
        secret_mint(KEY_API, MODE_TEST, &site.wrong_key);
        site.authority = url.authority;
        site.path = url.path;
        site.peer.host = url.host;
        examine(&site, &url, &report);
        code = doctor_tell(line, &report);
    }
    tls_context_release(site.peer.tls);
    secure_wipe(&site, sizeof site);
    return code;
}
