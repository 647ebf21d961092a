/* Hands the shared table to readers: they connect to a Unix socket, get both pieces of memory, and keep the connection,
 * which tells each side when the other has ended (chatelaine/check.h). Also counts what they used. */
#pragma once
#include "auth/shared_table.h"
#include <uv.h>

enum { TABLE_READERS_MAX = 1024 };

struct table_listener;

/* round_ms: within it, all uses are counted once. NULL: ret_error is a negative errno, as of unix_socket_listen(). */
struct table_listener *table_listener_create(uv_loop_t *loop, struct shared_table *table, const char *path,
                                             uint32_t round_ms, int *ret_error);
/* Call each second: if the socket's file was removed or replaced, it is made again. */
void table_listener_look(struct table_listener *listener);
/* Ends all connections, removes the file, and counts what can be. closed runs once, later. */
void table_listener_close(struct table_listener *listener, void (*closed)(void *arg), void *arg);
