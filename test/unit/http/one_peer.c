#include "one_peer.h"

struct fixture fixture;
struct peer peer;

void start_with(const struct http_settings *settings)
{
    fixture_start(&fixture, settings, "127.0.0.1:0");
    peer_connect(&peer, &fixture);
}

void start(void)
{
    struct http_settings settings = fixture_settings();

    start_with(&settings);
}

void finish(void)
{
    peer_close(&peer);
    fixture_finish(&fixture);
}

bool is_told(void *arg)
{
    return ((struct fixture *)arg)->told != TOLD_NOTHING;
}
