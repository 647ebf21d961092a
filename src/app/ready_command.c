#include "ready_command.h"

#include "config/tls_files.h"
#include "http/call.h"
#include "http/server.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PATIENCE_MS = 4000, ANSWER_MAX_BYTES = 40 * 1024, WHY_MAX_BYTES = 1024, STATUS_OK = 200 };

#define QUESTION TEXT("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

static const struct option_row READY_ROWS[] = {
    {.name = "internal-listen",
     A_TEXT(offsetof(struct command_line, settings.internal_listen), "ADDRESS"),
     .default_text = SETTINGS_INTERNAL_LISTEN,
     .help = "The --internal-listen address of the node."},
    ROW_TEXT("internal-tls-cert", settings.internal_tls_cert, "PATH,…",
             "The --internal-tls-cert of the node, if it has one. The node must show one of these certificates."),
    ROW_FLAG("or-empty", or_empty,
             "Also accept a node that waits for its first account, so that you can create it from the node's "
             "container. Such a node answers every request with 503."),
};
const struct option_group READY_OPTIONS[] = {OPTIONS_OF(READY_ROWS), {0}};

static bool read_unix(struct text path, struct http_call_peer *ret_peer)
{
    struct sockaddr_un *local = (struct sockaddr_un *)(void *)&ret_peer->address;

    if (path.len == 0 || path.len >= sizeof local->sun_path)
        return false;
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path.ptr, path.len);
    ret_peer->address_bytes = sizeof *local;
    return true;
}

/* If the node listens on all addresses, it is asked at 127.0.0.1, which is there with IPv6 and without. */
static bool read_tcp(struct text text, struct http_call_peer *ret_peer)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&ret_peer->address;
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&ret_peer->address;

    if (http_address_read(text, &ret_peer->address) != 0)
        return false;
    if (ret_peer->address.ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = v6->sin6_port};
    if (ret_peer->address.ss_family == AF_INET6) {
        ret_peer->address_bytes = sizeof *v6;
        return v6->sin6_port != 0;
    }
    ret_peer->address_bytes = sizeof *v4;
    if (v4->sin_addr.s_addr == htonl(INADDR_ANY))
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return v4->sin_port != 0;
}

static bool read_address(struct text text, struct http_call_peer *ret_peer)
{
    if (text_starts_with(text, TEXT("unix:")))
        return read_unix(text_skip(text, TEXT("unix:").len), ret_peer);
    return read_tcp(text, ret_peer);
}

static bool waits_for_account(struct text body)
{
    return text_starts_with(body, TEXT("{\"status\":\"empty\""));
}

/* The body says why a node is not ready. */
static int judge(const struct http_message *answer, const char *name, bool or_empty)
{
    struct text body = buf_text(&answer->body);

    if (answer->status == STATUS_OK || (or_empty && waits_for_account(body)))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "the node at %s is not ready: %.*s", name, TEXT_ARG(body));
}

static int ask(const struct http_call_peer *peer, const char *name, bool or_empty)
{
    struct http_message answer CLEANUP(http_message_finish);
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);

    http_message_init(&answer, HTTP_MESSAGE_RESPONSE, ANSWER_MAX_BYTES);
    if (http_call_make(peer, QUESTION, PATIENCE_MS, &answer, &why) != HTTP_CALL_ANSWERED)
        return command_fail(EXIT_FAILED, "the node at %s does not answer: %.*s", name, TEXT_ARG(buf_text(&why)));
    return judge(&answer, name, or_empty);
}

/* NULL in *ret_tls: the node speaks plain HTTP. */
static bool read_certificates(const struct command_line *line, struct tls_context **ret_tls)
{
    const char *paths = line->settings.internal_tls_cert;
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);

    *ret_tls = NULL;
    if (!paths || text_starts_with(text_of(line->settings.internal_listen), TEXT("unix:")))
        return true;
    *ret_tls = tls_files_open_pinned((struct tls_file_option){"--internal-tls-cert", paths}, &why);
    if (!*ret_tls)
        (void)command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    return *ret_tls;
}

int ready_run(const struct command_line *line)
{
    const char *name = line->settings.internal_listen;
    struct http_call_peer peer = {.host = ""};
    int code;

    if (!read_address(text_of(name), &peer))
        return command_fail(EXIT_USAGE, "--internal-listen must be host:port, [v6]:port or unix:/path, not '%s'", name);
    if (!read_certificates(line, &peer.tls))
        return EXIT_USAGE;
    code = ask(&peer, name, line->or_empty);
    tls_context_release(peer.tls);
    return code;
}
