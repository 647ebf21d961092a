#include "output_internal.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"

#include <stdlib.h>
#include <string.h>

struct piece {
    struct list in_waiting;
    struct text rest; /* what the socket has not taken yet, in memory or in lasting bytes */
    size_t bytes;     /* in memory */
    char memory[];
};

void output_init(struct output *output, struct socket *socket)
{
    output->socket = socket;
    list_init(&output->waiting);
}

static void piece_free(struct output *output, struct piece *piece)
{
    INVARIANT(output->memory_bytes >= sizeof *piece + piece->bytes);
    list_remove(&piece->in_waiting);
    output->memory_bytes -= sizeof *piece + piece->bytes;
    secure_wipe(piece->memory, piece->bytes);
    free(piece);
}

static struct piece *piece_first(struct output *output)
{
    struct list *node = list_first(&output->waiting);

    return node ? LIST_ENTRY(node, struct piece, in_waiting) : NULL;
}

void output_drop(struct output *output)
{
    struct piece *piece;

    while ((piece = piece_first(output)))
        piece_free(output, piece);
    output->waiting_bytes = 0;
}

static void queue(struct output *output, struct text copied, struct text lasting)
{
    struct piece *piece = mem_alloc(sizeof *piece + copied.len);

    REQUIRE(copied.len > 0 || lasting.len > 0);
    if (copied.ptr && copied.len > 0)
        memcpy(piece->memory, copied.ptr, copied.len);
    piece->bytes = copied.len;
    piece->rest = copied.len > 0 ? (struct text){piece->memory, copied.len} : lasting;
    list_append(&output->waiting, &piece->in_waiting);
    output->waiting_bytes += piece->rest.len;
    output->memory_bytes += sizeof *piece + piece->bytes;
}

/* Queues what the socket has not taken. */
static void queue_rest(struct output *output, struct text rest, struct text lasting)
{
    size_t lasting_bytes = lasting.len < rest.len ? lasting.len : rest.len;

    if (rest.len > lasting_bytes)
        queue(output, (struct text){rest.ptr, rest.len - lasting_bytes}, (struct text){NULL, 0});
    if (lasting_bytes > 0)
        queue(output, (struct text){NULL, 0}, text_skip(lasting, lasting.len - lasting_bytes));
}

static ssize_t send_now(struct output *output, struct text bytes)
{
    ssize_t taken = socket_send(output->socket, bytes);

    if (taken > 0)
        output->taken_bytes += (size_t)taken;
    return taken;
}

enum output_result output_send(struct output *output, struct text bytes, struct text lasting)
{
    ssize_t taken = list_empty(&output->waiting) ? send_now(output, bytes) : UV_EAGAIN;

    if (taken >= 0 && (size_t)taken == bytes.len)
        return OUTPUT_TAKEN;
    if (taken < 0 && taken != UV_EAGAIN)
        return OUTPUT_FAILED;
    queue_rest(output, text_skip(bytes, taken < 0 ? 0 : (size_t)taken), lasting);
    return OUTPUT_WAITING;
}

enum output_result output_go_on(struct output *output)
{
    struct piece *piece;

    while ((piece = piece_first(output))) {
        ssize_t taken = send_now(output, piece->rest);

        if (taken < 0)
            return taken == UV_EAGAIN ? OUTPUT_WAITING : OUTPUT_FAILED;
        INVARIANT(output->waiting_bytes >= piece->rest.len && piece->rest.len >= (size_t)taken);
        output->waiting_bytes -= (size_t)taken;
        piece->rest = text_skip(piece->rest, (size_t)taken);
        if (piece->rest.len > 0)
            return OUTPUT_WAITING;
        piece_free(output, piece);
    }
    ENSURE(output->waiting_bytes == 0 && output->memory_bytes == 0);
    return OUTPUT_TAKEN;
}
