/* Whether this server follows another one. It is told by name alone: see README.md. */
#include "commands.h"
#include "internal.h"

#include <stdlib.h>

void cmd_replicaof(struct call *call)
{
    struct simredis *server = call->server;
    int64_t port = 0;
    bool is_none = arg_is(call, 1, "NO") && arg_is(call, 2, "ONE");

    if (server->cluster) {
        say_error(call, "ERR REPLICAOF not allowed in cluster mode.");
        return;
    }
    if (!is_none && (!number_parse_i64(call->argv[2], &port) || port < 0 || port > 65535)) {
        say_error(call, "ERR Invalid master port");
        return;
    }
    free(server->master_host);
    server->master_host = is_none ? NULL : mem_copy_text(call->argv[1].ptr, call->argv[1].len);
    server->master_port = (uint16_t)port;
    say_ok(call);
}

void cmd_role(struct call *call)
{
    const struct simredis *server = call->server;

    if (server->master_host) {
        say_array(call, 5);
        say_text(call, TEXT("slave"));
        say_text(call, text_of(server->master_host));
        say_integer(call, server->master_port);
        say_text(call, TEXT("connect"));
        say_integer(call, -1);
        return;
    }
    say_array(call, 3);
    say_text(call, TEXT("master"));
    say_integer(call, 0);
    say_array(call, 0);
}

void replica_info(const struct simredis *server, struct buf *out)
{
    buf_append_str(out, "# Replication\r\n");
    if (server->master_host)
        buf_printf(out, "role:slave\r\nmaster_host:%s\r\nmaster_port:%u\r\nmaster_link_status:down\r\n",
                   server->master_host, server->master_port);
    else
        buf_append_str(out, "role:master\r\n");
    buf_printf(out, "connected_slaves:0\r\nmaster_replid:%s\r\nmaster_repl_offset:0\r\n", server->run_id);
}
