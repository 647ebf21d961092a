/* The wall clock (which tests can replace), the clock for deadlines, and printed forms of time. */
#pragma once
#include "base/text.h"
#include <stdint.h>

#define CLOCK_NS_PER_MS UINT64_C(1000000)

enum { CLOCK_RFC3339_BYTES = 25, CLOCK_HTTP_DATE_BYTES = 30, CLOCK_DATE_BYTES = 11 };

/* Milliseconds since 1970-01-01 UTC; may step. For what is shown or stored, never for deadlines. */
int64_t clock_wall_ms(void);
/* Nanoseconds of CLOCK_BOOTTIME: never steps, runs on while the machine sleeps. For deadlines and leases. */
uint64_t clock_boot_ns(void);
/* The first minus the second: it changes only when the wall clock is set. */
int64_t clock_zero_ms(void);
/* NULL restores the real clock. */
void clock_replace_wall_for_test(int64_t (*wall_ms)(void));

/* "2026-01-31T12:00:00.000Z" (RFC 3339). */
void clock_print_rfc3339(int64_t wall_ms, char ret_text[CLOCK_RFC3339_BYTES]);
/* "Sat, 31 Jan 2026 12:00:00 GMT" (RFC 9110 IMF-fixdate). */
void clock_print_http_date(int64_t wall_ms, char ret_text[CLOCK_HTTP_DATE_BYTES]);
/* "2026-01-31", the UTC day. */
void clock_print_date(int64_t wall_ms, char ret_text[CLOCK_DATE_BYTES]);

/* The other way: "2026-01-31T12:00:00Z", with any fraction (cut to ms) and offset (RFC 3339, from 1970 on; a blank may
 * stand for the T). "2026-01-31": the beginning of the UTC day. */
MUST_CHECK bool clock_read_rfc3339(struct text t, int64_t *ret_wall_ms);
MUST_CHECK bool clock_read_date(struct text t, int64_t *ret_wall_ms);
/* As people write times that are past: both of these, "yesterday" or "today" (the beginning of the UTC day), or how
 * long before now_ms: "90d", "24h" (base/quantity.h; a number without a unit is refused). *ret_wall_ms is changed only
 * if true. */
MUST_CHECK bool clock_read_when(struct text t, int64_t now_ms, int64_t *ret_wall_ms);
