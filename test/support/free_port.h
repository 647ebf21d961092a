/* Ports for servers whose port must be known before they start. */
#pragma once
#include <stdint.h>

/* A port of 127.0.0.1 that was free a moment ago. No other test of this user gets it soon: see free-port. */
uint16_t free_port(void);
