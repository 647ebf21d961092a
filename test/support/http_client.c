#include "http_client.h"
#include "base/json.h"
#include "process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static bool try_connect(struct http_client *client, const struct sockaddr *address, socklen_t bytes)
{
    client->start = client->end = 0;
    client->layer = NULL;
    client->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd >= 0 && connect(client->fd, address, bytes) == 0)
        return true;
    http_client_close(client);
    return false;
}

bool http_client_try_connect(struct http_client *client, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    if (!try_connect(client, (const struct sockaddr *)&address, sizeof address))
        return false;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return true;
}

void http_client_connect(struct http_client *client, uint16_t port)
{
    if (!http_client_try_connect(client, port))
        test_give_up("connect to port %u: %s", port, strerror(errno));
}

void http_client_connect_socket(struct http_client *client, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >= (int)sizeof address.sun_path ||
        !try_connect(client, (const struct sockaddr *)&address, sizeof address))
        test_give_up("connect to %s: %s", path, strerror(errno));
}

void http_client_close(struct http_client *client)
{
    if (client->fd >= 0 && client->layer)
        client->layer->close(client);
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

void http_client_reset(struct http_client *client)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    http_client_close(client);
}

void http_client_half_close(struct http_client *client)
{
    shutdown(client->fd, SHUT_WR);
}

bool http_client_send(struct http_client *client, const char *bytes, size_t len)
{
    return client->layer ? client->layer->send(client, bytes, len) : http_client_send_raw(client, bytes, len);
}

bool http_client_send_raw(struct http_client *client, const char *bytes, size_t len)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (len > 0) {
        ssize_t sent = send(client->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        } else if (errno == EAGAIN) {
            struct pollfd writable = {.fd = client->fd, .events = POLLOUT};

            if (poll(&writable, 1, deadline_left_ms(deadline)) == 0)
                test_give_up("the server takes no more bytes");
        } else {
            return false;
        }
    }
    return true;
}

/* Makes at least one byte available. */
static enum http_client_result fill(struct http_client *client, struct deadline deadline)
{
    struct pollfd readable = {.fd = client->fd, .events = POLLIN};
    ssize_t got;

    if (client->start == client->end)
        client->start = client->end = 0;
    if (client->layer)
        return client->layer->fill(client, deadline);
    if (poll(&readable, 1, deadline_left_ms(deadline)) <= 0)
        return HTTP_CLIENT_TIMEOUT;
    got = recv(client->fd, client->buffer + client->end, sizeof client->buffer - client->end, 0);
    if (got <= 0)
        return HTTP_CLIENT_CLOSED; /* a reset after the answer is an end too */
    client->end += (size_t)got;
    return HTTP_CLIENT_ANSWER;
}

static enum http_client_result next_byte(struct http_client *client, struct deadline deadline, char *ret_byte)
{
    if (client->start == client->end) {
        enum http_client_result result = fill(client, deadline);

        if (result != HTTP_CLIENT_ANSWER)
            return result;
    }
    *ret_byte = client->buffer[client->start++];
    return HTTP_CLIENT_ANSWER;
}

static enum http_client_result read_head(struct http_client *client, struct deadline deadline,
                                         struct http_answer *answer)
{
    size_t len = 0;

    while (len < 4 || memcmp(answer->head + len - 4, "\r\n\r\n", 4) != 0) {
        enum http_client_result result = next_byte(client, deadline, answer->head + len);

        if (result != HTTP_CLIENT_ANSWER && len == 0)
            return result;
        if (result != HTTP_CLIENT_ANSWER)
            test_give_up("the answer ends within its head: %.*s", (int)len, answer->head);
        if (++len == sizeof answer->head)
            test_give_up("the answer's head is too long");
    }
    answer->head[len] = '\0';
    return HTTP_CLIENT_ANSWER;
}

static bool has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

static void read_bytes(struct http_client *client, struct deadline deadline, struct http_answer *answer, size_t count)
{
    const size_t expected = answer->body_len + count;

    if (expected >= sizeof answer->body)
        test_give_up("a body of more than %zu bytes", sizeof answer->body);
    while (answer->body_len < expected) {
        if (next_byte(client, deadline, answer->body + answer->body_len) != HTTP_CLIENT_ANSWER)
            test_give_up("the body ends after %zu of %zu bytes", answer->body_len, expected);
        answer->body_len++;
    }
}

/* Reads a line of a chunked body; its CRLF is dropped. */
static void read_line(struct http_client *client, struct deadline deadline, char *ret_line, size_t size)
{
    size_t len = 0;

    while (len < 2 || memcmp(ret_line + len - 2, "\r\n", 2) != 0) {
        if (len + 1 >= size || next_byte(client, deadline, ret_line + len) != HTTP_CLIENT_ANSWER)
            test_give_up("the chunks end in the midst of a line");
        len++;
    }
    ret_line[len - 2] = '\0';
}

static void read_chunks(struct http_client *client, struct deadline deadline, struct http_answer *answer)
{
    unsigned long bytes;

    do {
        char line[32], *end;

        read_line(client, deadline, line, sizeof line);
        bytes = strtoul(line, &end, 16);
        if (end == line || *end != '\0')
            test_give_up("no size of a chunk: %s", line);
        read_bytes(client, deadline, answer, bytes);
        read_line(client, deadline, line, sizeof line);
        if (line[0] != '\0')
            test_give_up("a chunk is longer than it says");
    } while (bytes > 0);
}

static void read_body(struct http_client *client, struct deadline deadline, struct http_answer *answer)
{
    char length[32];
    char *end;
    unsigned long expected;

    if (http_answer_field(answer, "transfer-encoding", length, sizeof length)) {
        read_chunks(client, deadline, answer);
        return;
    }
    if (!http_answer_field(answer, "content-length", length, sizeof length))
        test_give_up("no Content-Length in: %s", answer->head);
    expected = strtoul(length, &end, 10);
    if (*end != '\0')
        test_give_up("unexpected Content-Length: %s", length);
    read_bytes(client, deadline, answer, expected);
}

enum http_client_result http_client_read(struct http_client *client, bool without_body, int timeout_ms,
                                         struct http_answer *ret_answer)
{
    struct deadline deadline = deadline_in(timeout_ms);
    enum http_client_result result = read_head(client, deadline, ret_answer);

    ret_answer->body_len = 0;
    ret_answer->body[0] = '\0';
    if (result != HTTP_CLIENT_ANSWER)
        return result;
    if (strncmp(ret_answer->head, "HTTP/1.1 ", 9) != 0)
        test_give_up("not an HTTP/1.1 status line: %s", ret_answer->head);
    ret_answer->status = (int)strtol(ret_answer->head + 9, NULL, 10);
    if (!without_body && has_body(ret_answer->status))
        read_body(client, deadline, ret_answer);
    ret_answer->body[ret_answer->body_len] = '\0';
    return HTTP_CLIENT_ANSWER;
}

bool http_client_ended(struct http_client *client, int timeout_ms)
{
    return client->start == client->end && fill(client, deadline_in(timeout_ms)) == HTTP_CLIENT_CLOSED;
}

__attribute__((format(printf, 2, 3))) static void add(FILE *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
}

void http_client_send_call(struct http_client *client, const struct http_call *call)
{
    char *bytes = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&bytes, &len);

    add(out, "%s %s HTTP/1.1\r\nHost: api.test\r\n", call->method ? call->method : "GET", call->target);
    if (call->bearer)
        add(out, "Authorization: Bearer %s\r\n", call->bearer);
    if (call->cookie)
        add(out, "Cookie: __Host-session=%s\r\n", call->cookie);
    if (call->csrf)
        add(out, "X-CSRF-Token: %s\r\n", call->csrf);
    if (call->origin)
        add(out, "Origin: %s\r\n", call->origin);
    const char *body = call->json ? call->json : call->form;
    if (body)
        add(out, "Content-Type: application/%s\r\nContent-Length: %zu\r\n",
            call->json ? "json" : "x-www-form-urlencoded", strlen(body));
    add(out, "%s\r\n%s", call->fields ? call->fields : "", body ? body : "");
    fclose(out);
    http_client_send(client, bytes, len);
    free(bytes);
}

void http_client_call(struct http_client *client, const struct http_call *call, struct http_answer *ret_answer)
{
    bool is_head = call->method && strcmp(call->method, "HEAD") == 0;

    http_client_send_call(client, call);
    if (http_client_read(client, is_head, PATIENCE_MS, ret_answer) != HTTP_CLIENT_ANSWER)
        test_give_up("no answer to %s %s", call->method ? call->method : "GET", call->target);
}

int http_call(uint16_t port, const struct http_call *call, struct http_answer *ret_answer)
{
    struct http_client client;

    http_client_connect(&client, port);
    http_client_call(&client, call, ret_answer);
    http_client_close(&client);
    return ret_answer->status;
}

bool http_answer_field(const struct http_answer *answer, const char *name, char *ret_value, size_t size)
{
    size_t name_len = strlen(name);
    const char *line = strstr(answer->head, "\r\n");

    for (; line && line[2] != '\r'; line = strstr(line + 2, "\r\n")) {
        const char *value = line + 2 + name_len + 1;

        if (strncasecmp(line + 2, name, name_len) != 0 || line[2 + name_len] != ':')
            continue;
        value += strspn(value, " \t");
        snprintf(ret_value, size, "%.*s", (int)strcspn(value, "\r"), value);
        return true;
    }
    return false;
}

static const struct json *element(const struct json *array, unsigned long index)
{
    const struct json *value = json_type(array) == JSON_ARRAY ? json_first(array) : NULL;

    while (value && index-- > 0)
        value = json_next(value);
    return value;
}

static const struct json *descend(const struct json *value, const char *path)
{
    while (value && *path) {
        char name[64];
        size_t len = strcspn(path, ".");

        snprintf(name, sizeof name, "%.*s", (int)len, path);
        if (name[0] >= '0' && name[0] <= '9')
            value = element(value, strtoul(name, NULL, 10));
        else
            value = json_type(value) == JSON_OBJECT ? json_member(value, name) : NULL;
        path += len + (path[len] == '.');
    }
    return value;
}

static void print_value(const struct json *value, FILE *out)
{
    int64_t integer;

    switch (json_type(value)) {
    case JSON_STRING:
        fprintf(out, "%.*s", TEXT_ARG(json_text(value)));
        break;
    case JSON_NUMBER:
        if (json_integer(value, &integer))
            fprintf(out, "%lld", (long long)integer);
        break;
    case JSON_BOOL:
        fputs(json_bool(value) ? "true" : "false", out);
        break;
    case JSON_NULL:
        fputs("null", out);
        break;
    case JSON_ARRAY:
        for (const struct json *item = json_first(value); item; item = json_next(item)) {
            if (json_type(item) == JSON_STRING)
                fprintf(out, "%s%.*s", item == json_first(value) ? "" : " ", TEXT_ARG(json_text(item)));
        }
        break;
    case JSON_OBJECT:
        fputs("{}", out);
        break;
    }
}

static struct json *parse(const struct http_answer *answer)
{
    return json_parse_object((struct text){answer->body, answer->body_len}, NULL);
}

bool http_answer_json(const struct http_answer *answer, const char *path, char *ret_value, size_t size)
{
    struct json *document = parse(answer);
    const struct json *value = document ? descend(document, path) : NULL;
    FILE *out;

    if (value) {
        memset(ret_value, 0, size);
        out = fmemopen(ret_value, size, "w");
        setvbuf(out, NULL, _IOFBF, 65536);
        print_value(value, out);
        fclose(out);
        ret_value[size - 1] = '\0';
    }
    json_free(document);
    return value != NULL;
}

int http_answer_json_count(const struct http_answer *answer, const char *path)
{
    struct json *document = parse(answer);
    const struct json *array = document ? descend(document, path) : NULL;
    int count = -1;

    if (array && json_type(array) == JSON_ARRAY) {
        count = 0;
        for (const struct json *item = json_first(array); item; item = json_next(item))
            count++;
    }
    json_free(document);
    return count;
}

const char *http_answer_code(const struct http_answer *answer)
{
    static char code[64];

    if (!http_answer_json(answer, "error.code", code, sizeof code))
        code[0] = '\0';
    return code;
}

bool machine_has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0)
        close(fd);
    return has;
}

void machine_lose_ipv6(void)
{
    /* The lower half of the first argument. */
    enum { FAMILY = offsetof(struct seccomp_data, args[0]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0) };
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FAMILY),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        test_give_up("seccomp: %s", strerror(errno));
    if (socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 || errno != EAFNOSUPPORT)
        test_give_up("IPv6 is still there");
}
