#include "client.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COMPLAINTS_MAX = 5, HEAD_BYTES = 8192 };
static const char SERVER_NAME[] = "localhost";

volatile sig_atomic_t client_stopped;

static void on_signal(int number)
{
    (void)number;
    client_stopped = 1;
}

static void complain(uint16_t port, const char *what)
{
    static atomic_int complaints;
    unsigned long error = ERR_get_error();
    const char *reason = error ? ERR_reason_error_string(error) : errno ? strerror(errno) : "connection closed";

    if (atomic_fetch_add(&complaints, 1) < COMPLAINTS_MAX && !client_stopped)
        fprintf(stderr, "tls_load: port %u: %s: %s\n", port, what, reason ? reason : "unknown error");
    ERR_clear_error();
}

static int on_ticket(SSL *ssl, SSL_SESSION *ticket)
{
    struct client *client = SSL_get_app_data(ssl);

    SSL_SESSION_free(client->ticket);
    client->ticket = ticket;
    return 1; /* the reference is ours now */
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

SSL_CTX *client_context(void)
{
    const char *ca = variable("TLS_CA"), *certificate = variable("TLS_CERT"), *key = variable("TLS_KEY");
    const char *version = variable("TLS_VERSION");
    struct sigaction stop = {.sa_handler = on_signal};
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    bool fine = context != NULL;

    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, on_ticket);
    if (ca) {
        fine = fine && SSL_CTX_load_verify_locations(context, ca, NULL) == 1;
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    }
    if (certificate && key)
        fine = fine && SSL_CTX_use_certificate_chain_file(context, certificate) == 1 &&
               SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1;
    if (version && strcmp(version, "1.2") == 0)
        fine = fine && SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION) == 1;
    if (!fine) {
        complain(0, "TLS_CA, TLS_CERT or TLS_KEY");
        exit(EXIT_FAILURE);
    }
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    return context;
}

const char *client_request(void)
{
    static char request[CLIENT_REQUEST_BYTES];
    const char *path = variable("TLS_PATH"), *bearer = variable("TLS_BEARER");
    int bytes =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", path ? path : "/", SERVER_NAME,
                 bearer ? "Authorization: Bearer " : "", bearer ? bearer : "", bearer ? "\r\n" : "");

    if (bytes < 0 || (size_t)bytes >= sizeof request) {
        fputs("tls_load: TLS_PATH or TLS_BEARER is too long\n", stderr);
        exit(EXIT_FAILURE);
    }
    return request;
}

int client_connect(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = CLIENT_PATIENCE_S};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

bool client_open(struct client *client, SSL_CTX *context, uint16_t port, SSL_SESSION *ticket)
{
    errno = 0;
    client->fd = client_connect(port);
    if (client->fd < 0) {
        complain(port, "connect");
        return false;
    }
    client->ssl = SSL_new(context);
    SSL_set_app_data(client->ssl, client);
    SSL_set_fd(client->ssl, client->fd);
    SSL_set_tlsext_host_name(client->ssl, SERVER_NAME);
    SSL_set1_host(client->ssl, SERVER_NAME);
    if (ticket)
        SSL_set_session(client->ssl, ticket);
    if (SSL_connect(client->ssl) == 1)
        return true;
    complain(port, "handshake");
    client_reset(client);
    return false;
}

static bool read_more(struct client *client, char *bytes, size_t room, size_t *count)
{
    size_t got;

    if (*count >= room || SSL_read_ex(client->ssl, bytes + *count, room - *count, &got) != 1)
        return false;
    *count += got;
    return true;
}

/* The bytes of a body, by its head; there is no other kind than those with a length. */
static size_t body_bytes(const char *head)
{
    const char *field = strcasestr(head, "\r\ncontent-length:");

    return field ? strtoul(field + sizeof "\r\ncontent-length:" - 1, NULL, 10) : 0;
}

/* Reads what is missing of the body, and forgets it. */
static bool skip(struct client *client, size_t bytes)
{
    char room[HEAD_BYTES];

    while (bytes > 0) {
        size_t got;

        if (SSL_read_ex(client->ssl, room, bytes < sizeof room ? bytes : sizeof room, &got) != 1)
            return false;
        bytes -= got;
    }
    return true;
}

static int read_response(struct client *client)
{
    char bytes[HEAD_BYTES + 1];
    size_t count = 0, whole;
    char *end;

    do {
        if (!read_more(client, bytes, HEAD_BYTES, &count))
            return 0;
        bytes[count] = '\0';
        end = strstr(bytes, "\r\n\r\n");
    } while (!end);
    whole = (size_t)(end + 4 - bytes) + body_bytes(bytes);
    if (strncmp(bytes, "HTTP/1.1 ", 9) != 0 || count > whole || !skip(client, whole - count))
        return 0;
    return (int)strtol(bytes + 9, NULL, 10);
}

static uint16_t port_of(const struct client *client)
{
    struct sockaddr_in peer = {0};
    socklen_t bytes = sizeof peer;

    getpeername(client->fd, (struct sockaddr *)&peer, &bytes);
    return ntohs(peer.sin_port);
}

int client_ask(struct client *client, const char *request)
{
    size_t sent;
    int status = 0;

    errno = 0;
    if (SSL_write_ex(client->ssl, request, strlen(request), &sent) == 1)
        status = read_response(client);
    if (status == 0)
        complain(port_of(client), "request");
    return status;
}

void client_close(struct client *client)
{
    if (!client->ssl)
        return;
    (void)SSL_shutdown(client->ssl);
    SSL_free(client->ssl);
    close(client->fd);
    client->ssl = NULL;
    ERR_clear_error();
}

void client_reset_socket(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

void client_reset(struct client *client)
{
    if (!client->ssl)
        return;
    SSL_free(client->ssl);
    client_reset_socket(client->fd);
    client->ssl = NULL;
    ERR_clear_error();
}
