/* One server and one client, which is all that most tests need. */
#pragma once
#include "server_fixture.h"

#define HELLO "GET /hello?hi HTTP/1.1\r\nHost: t\r\n\r\n"

extern struct fixture fixture;
extern struct peer peer;

void start_with(const struct http_settings *settings);
void start(void);
/* Closes both. */
void finish(void);
/* For fixture_until(): whether the delivery is known. */
bool is_told(void *arg);
