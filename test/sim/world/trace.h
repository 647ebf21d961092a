/* What happened, as lines: time, who, what. A digest covers all of them, and all that processes have printed, so that
 * two runs can be compared. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* is_shown: each line is printed on standard output, too. */
void sim_trace_begin(bool is_shown);
__attribute__((format(printf, 2, 3))) void sim_trace(const char *who, const char *format, ...);
/* A line that is only counted for whoever reads: with the next one, so many of `what`, a literal. */
__attribute__((format(printf, 3, 4))) void sim_trace_aside(const char *what, const char *who, const char *format, ...);
/* A time, as lines have it. */
double sim_trace_s(uint64_t at_ns);
/* Counts for the digest, without a line. */
void sim_trace_add(const void *bytes, size_t len);
uint64_t sim_trace_digest(void);
/* Prints the last lines on standard error, unless they are shown. */
void sim_trace_tell(void);
