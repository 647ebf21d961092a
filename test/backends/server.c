/* A service that asks by docker/backends/c about each request: answers with who asked. A thread for each connection,
 * whose requests come one after the other and have no body. backend_c SOCKET */
#include "chatelaine.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_MAX_BYTES = 16384, ANSWER_MAX_BYTES = 4096 };

static const char *socket_path;

static const char *text_of_member(const cJSON *answer, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, name));

    return text ? text : "";
}

static int print_admitted(cJSON *verdict, char *out, size_t size)
{
    char *scopes = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(verdict, "scopes")), body[1024];

    snprintf(body, sizeof body,
             "{\"account\":\"%s\",\"principal\":\"%s\",\"kind\":\"%s\",\"mode\":\"%s\",\"scopes\":%s}",
             text_of_member(verdict, "account_id"), text_of_member(verdict, "id"), text_of_member(verdict, "kind"),
             text_of_member(verdict, "mode"), scopes);
    cJSON_free(scopes);
    return snprintf(out, size, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
}

static int print_refused(const cJSON *verdict, char *out, size_t size)
{
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(verdict, "status");
    const char *challenge = text_of_member(verdict, "www_authenticate");
    char body[1024];

    snprintf(body, sizeof body, "{\"error\":{\"code\":\"%s\"}}", text_of_member(verdict, "code"));
    return snprintf(out, size, "HTTP/1.1 %d Refused\r\n%s%s%sContent-Length: %zu\r\n\r\n%s",
                    cJSON_IsNumber(status) ? status->valueint : 503, challenge[0] ? "WWW-Authenticate: " : "",
                    challenge, challenge[0] ? "\r\n" : "", strlen(body), body);
}

/* Ends the word and returns what comes behind it. */
static char *cut(char *text, const char *separator)
{
    char *end = strstr(text, separator);

    if (!end)
        return text + strlen(text);
    *end = '\0';
    return end + strlen(separator);
}

static int answer_request(char *head, char *out, size_t size)
{
    char *path = cut(head, " "), *line = cut(cut(path, " "), "\r\n"), *authorization = NULL, *next;
    size_t times = 0;

    for (; *line; line = next) {
        next = cut(line, "\r\n");
        if (strncasecmp(line, "Authorization:", 14) == 0) {
            authorization = line + 14 + strspn(line + 14, " ");
            times++;
        }
    }
    cJSON *verdict = chatelaine_ask(socket_path, authorization, times, head, path, "127.0.0.1");
    const bool is_valid = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(verdict, "valid"));
    const int length = is_valid ? print_admitted(verdict, out, size) : print_refused(verdict, out, size);
    cJSON_Delete(verdict);
    return length;
}

static void *serve(void *arg)
{
    const int client = (int)(intptr_t)arg;
    char head[HEAD_MAX_BYTES + 1], out[ANSWER_MAX_BYTES];
    size_t have = 0;
    ssize_t more;

    while (have < HEAD_MAX_BYTES && (more = recv(client, head + have, HEAD_MAX_BYTES - have, 0)) > 0) {
        head[have += (size_t)more] = '\0';
        if (!strstr(head, "\r\n\r\n"))
            continue;
        const int length = answer_request(head, out, sizeof out);
        if (send(client, out, (size_t)length, MSG_NOSIGNAL) != length)
            break;
        have = 0;
    }
    close(client);
    return NULL;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    pthread_t thread;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (argc < 2 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return EXIT_FAILURE;
    socket_path = argv[1];
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        return EXIT_FAILURE;
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    for (int client; (client = accept(listener, NULL, NULL)) >= 0;)
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)client) != 0 || pthread_detach(thread) != 0)
            return EXIT_FAILURE;
    return EXIT_FAILURE;
}
