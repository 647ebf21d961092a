#include "watch_peers_internal.h"

#include "base/check.h"

#include <string.h>

enum { NS_PER_S = 1000000000, SHARED_FROM = 4 };
#define WITHIN_NS (WATCH_BROKEN_WITHIN_S * (uint64_t)NS_PER_S)

static bool is_over(const struct watch_peer *peer, uint64_t now_ns)
{
    return now_ns - peer->since_ns >= WITHIN_NS;
}

static bool is_free(const struct watch_peer *peer, uint64_t now_ns)
{
    return peer->watchers == 0 && (peer->broken == 0 || is_over(peer, now_ns));
}

/* Its row, or one that is free; NULL: there is none. */
static struct watch_peer *row_of(struct service *service, struct text name, uint64_t now_ns)
{
    struct watch_peer *room = NULL;

    for (size_t i = 0; i < SERVICE_WATCH_PEERS; i++) {
        struct watch_peer *row = &service->watch_peers[i];

        if (!is_free(row, now_ns) && text_equal(text_of(row->name), name))
            return row;
        if (!room && is_free(row, now_ns))
            room = row;
    }
    if (room) {
        *room = (struct watch_peer){0};
        memcpy(room->name, name.ptr ? name.ptr : "", name.len);
    }
    return room;
}

/* Of a few places one peer may have all: two gateways on one machine are one peer. */
static unsigned share_of(const struct service *service)
{
    return service->watchers_max < SHARED_FROM ? service->watchers_max : (service->watchers_max + 1) / 2;
}

struct watch_peer *watch_peer_enter(struct service *service, struct text peer, uint64_t now_ns)
{
    CHECK(peer.len < SERVICE_PEER_CHARS);
    struct watch_peer *row = row_of(service, peer, now_ns);

    if (!row || row->watchers >= share_of(service))
        return NULL;
    row->watchers++;
    return row;
}

void watch_peer_leave(struct watch_peer *peer)
{
    CHECK(peer->watchers > 0);
    peer->watchers--;
}

void watch_peer_note_broken(struct watch_peer *peer, uint64_t now_ns)
{
    if (peer->broken == 0 || is_over(peer, now_ns)) {
        peer->broken = 0;
        peer->since_ns = now_ns;
    }
    peer->broken++;
}

uint32_t watch_peer_pause_s(const struct watch_peer *peer, uint64_t now_ns)
{
    if (peer->broken < WATCH_BROKEN_MAX || is_over(peer, now_ns))
        return 0;
    return (uint32_t)((peer->since_ns + WITHIN_NS - now_ns + NS_PER_S - 1) / NS_PER_S);
}
