#include "bus.h"
#include "actor.h"
#include "base/mem.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = sizeof(uint32_t) };

/* One connection: this server's to another one, or another one's to it. */
struct line {
    struct list of_bus;
    struct sim_bus *bus;
    struct sim_socket *socket;
    struct in_addr to;
    bool is_ours, is_up;
    struct buf in;
};

struct sim_bus {
    struct sim_host *host;
    void (*heard)(void *arg, const char *bytes, size_t length);
    void *arg;
    struct sim_socket *listener;
    struct list lines;
};

static struct line *line_new(struct sim_bus *bus, struct sim_socket *socket)
{
    struct line *line = mem_alloc(sizeof *line);

    *line = (struct line){.bus = bus, .socket = socket, .is_up = true};
    buf_init(&line->in, SIZE_MAX / 2);
    list_append(&bus->lines, &line->of_bus);
    return line;
}

static void line_free(struct line *line)
{
    list_remove(&line->of_bus);
    buf_finish(&line->in);
    free(line);
}

static void on_knock(struct sim_socket *socket, void *arg)
{
    sim_actor_is(socket, line_new(arg, socket));
}

static void on_connected(struct sim_socket *socket, void *arg)
{
    (void)socket;
    ((struct line *)arg)->is_up = true;
}

static void on_received(struct sim_socket *socket, void *arg, const char *bytes, size_t length)
{
    struct line *line = arg;
    uint32_t whole;

    (void)socket;
    buf_append(&line->in, bytes, length);
    while (line->in.len >= LENGTH_BYTES) {
        memcpy(&whole, line->in.ptr, LENGTH_BYTES);
        if (line->in.len < LENGTH_BYTES + whole)
            return;
        line->bus->heard(line->bus->arg, line->in.ptr + LENGTH_BYTES, whole);
        buf_consume(&line->in, LENGTH_BYTES + whole);
    }
}

static void on_closed(struct sim_socket *socket, void *arg)
{
    (void)socket;
    line_free(arg);
}

static const struct sim_actor LISTENER = {.connected = on_knock, .received = on_received, .closed = on_closed};
static const struct sim_actor CALLER = {.connected = on_connected, .received = on_received, .closed = on_closed};

struct sim_bus *sim_bus_start(struct sim_host *host, void (*heard)(void *arg, const char *bytes, size_t length),
                              void *arg)
{
    struct sim_bus *bus = mem_alloc(sizeof *bus);

    *bus = (struct sim_bus){.host = host, .heard = heard, .arg = arg};
    list_init(&bus->lines);
    bus->listener = sim_actor_listen(host, SIM_BUS_PORT, &LISTENER, bus);
    return bus;
}

static struct line *line_to(struct sim_bus *bus, struct in_addr to)
{
    for (struct list *node = bus->lines.next; node != &bus->lines; node = node->next) {
        struct line *line = LIST_ENTRY(node, struct line, of_bus);

        if (line->is_ours && line->to.s_addr == to.s_addr)
            return line;
    }
    return NULL;
}

void sim_bus_tell(struct sim_bus *bus, struct in_addr to, const char *bytes, size_t length)
{
    struct line *line = line_to(bus, to);
    const uint32_t whole = (uint32_t)length;
    struct buf out;

    if (!line) {
        line = line_new(bus, NULL);
        line->is_ours = true;
        line->is_up = false;
        line->to = to;
        line->socket = sim_actor_connect(bus->host, to, SIM_BUS_PORT, &CALLER, line);
    }
    if (!line->is_up)
        return;
    buf_init(&out, SIZE_MAX / 2);
    buf_append(&out, &whole, LENGTH_BYTES);
    buf_append(&out, bytes, length);
    sim_actor_send(line->socket, out.ptr, out.len);
    buf_finish(&out);
}

void sim_bus_stop(struct sim_bus *bus)
{
    struct list *node;

    sim_actor_close(bus->listener);
    while ((node = list_first(&bus->lines))) {
        struct line *line = LIST_ENTRY(node, struct line, of_bus);

        sim_actor_close(line->socket);
        line_free(line);
    }
    free(bus);
}
