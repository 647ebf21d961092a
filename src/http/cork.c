/* Answers that leave together. To send one wakes its reader, on another core mostly: that costs more than to print it,
 * and less where the reader has not had the time to fall asleep again since the one before. */
#include "conn_internal.h"

void http_server_cork(struct http_server *server)
{
    server->is_corked = true;
}

bool cork_hold(struct conn *conn, size_t from)
{
    struct http_server *server = conn->server;

    if (!server->is_corked || server->corked_count == CORKED_MAX)
        return false;
    server->corked[server->corked_count++] = (struct corked){conn, from, server->scratch.len - from};
    return true;
}

void cork_forget(struct conn *conn)
{
    struct http_server *server = conn->server;

    for (size_t i = 0; i < server->corked_count; i++)
        if (server->corked[i].conn == conn)
            server->corked[i].conn = NULL;
}

/* The scratch may move while an answer is sent: one that is printed meanwhile is appended. */
void http_server_uncork(struct http_server *server)
{
    server->is_corked = false;
    while (server->uncorked_count < server->corked_count) {
        const struct corked next = server->corked[server->uncorked_count++];

        if (next.conn)
            conn_send_answer(next.conn, (struct text){server->scratch.ptr + next.from, next.bytes},
                             (struct text){NULL, 0});
    }
    if (server->corked_count > 0)
        server_cut_scratch(server, 0);
    server->corked_count = server->uncorked_count = 0;
}
