/* What each peer may take of watching revocations: no more than half of the places, and no waiting for it once it has
 * often not kept what it was waited for. Each subscription with `acknowledge=1` that ends makes revocations wait, so a
 * peer that begins and leaves them would slow down all of them for nothing. */
#pragma once
#include "api/service.h"

enum { WATCH_BROKEN_MAX = 8, WATCH_BROKEN_WITHIN_S = 600 };

/* NULL: it has half of the places, rounded up; or there are more peers than can be counted. Otherwise it has one more
 * watcher, until watch_peer_leave(). */
struct watch_peer *watch_peer_enter(struct service *service, struct text peer, uint64_t now_ns);
void watch_peer_leave(struct watch_peer *peer);
/* One that was waited for has ended, and not because this node shuts down. */
void watch_peer_note_broken(struct watch_peer *peer, uint64_t now_ns);
/* 0: it is waited for. Otherwise it has broken WATCH_BROKEN_MAX within WATCH_BROKEN_WITHIN_S, and may ask again after
 * so many seconds. */
uint32_t watch_peer_pause_s(const struct watch_peer *peer, uint64_t now_ns);
