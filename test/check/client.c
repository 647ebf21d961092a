/* A service in C that lets a Chatelaine node decide about API keys, and needs no HTTP for those that the node has in
 * its table. Build it by `cc -std=gnu11 -D_GNU_SOURCE client.c -o client`, run it by
 * `client /run/chatelaine/table.sock 8081`: the node's table, and the port of this machine where its internal listener
 * is. It reads API keys from stdin, one in a line, each as if a request GET /v1/patients had come with it, and prints
 * what was decided, and by whom. */
#include <chatelaine/check.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define PATH "/v1/patients"

enum { SCOPES = CHATELAINE_PATIENTS_READ, ANSWER_BYTES = 16384, REFRESH_S = 1 };

struct verdict {
    int status; /* of HTTP; 0: the node did not answer */
    char account[32], principal[32];
};

static void copy_field(const char *answer, const char *name, char ret_value[32])
{
    size_t length = strlen(name);

    ret_value[0] = '\0';
    for (const char *line = strstr(answer, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, length) == 0) {
            snprintf(ret_value, 32, "%.*s", (int)strcspn(line + 2 + length, "\r"), line + 2 + length);
            return;
        }
}

static size_t exchange(int port, const char *request, char *ret_answer)
{
    struct sockaddr_in node = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length = 0;
    ssize_t got = 0;

    node.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(connection, (const struct sockaddr *)&node, sizeof node) == 0 &&
        write(connection, request, strlen(request)) == (ssize_t)strlen(request))
        while (length < ANSWER_BYTES - 1 &&
               (got = read(connection, ret_answer + length, ANSWER_BYTES - 1 - length)) > 0)
            length += (size_t)got;
    close(connection);
    ret_answer[length] = '\0';
    return length;
}

/* The node's answer is final: what it refuses is refused. */
static void ask_node(int port, const char *secret, struct verdict *ret_verdict)
{
    char request[1024], answer[ANSWER_BYTES];

    memset(ret_verdict, 0, sizeof *ret_verdict);
    snprintf(request, sizeof request,
             "GET /check/auth-request HTTP/1.1\r\nHost: chatelaine\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"
             "X-Original-Method: GET\r\nX-Original-URI: " PATH "\r\n\r\n",
             secret);
    if (exchange(port, request, answer) == 0)
        return;
    ret_verdict->status = (int)strtol(answer + strcspn(answer, " "), NULL, 10);
    copy_field(answer, "X-Auth-Account: ", ret_verdict->account);
    copy_field(answer, "X-Auth-Principal: ", ret_verdict->principal);
}

static void decide(const struct chatelaine_table *table, int port, const char *secret)
{
    struct chatelaine_principal who;
    struct verdict verdict;

    if (chatelaine_check(table, secret, strlen(secret), SCOPES, &who)) {
        printf("table 200 %s %s\n", who.account, who.principal);
        return;
    }
    ask_node(port, secret, &verdict);
    printf("http %d %s %s\n", verdict.status, verdict.account, verdict.principal);
}

int main(int argc, char **argv)
{
    struct chatelaine_table table;
    char line[512];
    time_t refreshed = 0, now;

    if (argc != 3)
        return 2;
    setlinebuf(stdout);
    chatelaine_table_init(&table, argv[1], CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    while (fgets(line, sizeof line, stdin)) {
        /* A service with a loop does this by a timer. */
        now = time(NULL);
        if (!table.header || now - refreshed >= REFRESH_S) {
            if (!chatelaine_table_refresh(&table))
                fprintf(stderr, "no table: %s\n", chatelaine_trouble_text(table.trouble));
            refreshed = now;
        }
        line[strcspn(line, "\n")] = '\0';
        decide(&table, (int)strtol(argv[2], NULL, 10), line);
    }
    chatelaine_table_finish(&table);
    return 0;
}
