#include "trace.h"
#include "kernel_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 64, LINE_BYTES = 240, PLACE_BYTES = 40 };

static char lines[LINES][LINE_BYTES];
static uint64_t count, digest, began_ns;
static bool shows;

void sim_trace_begin(bool is_shown)
{
    count = 0;
    digest = UINT64_C(0xcbf29ce484222325);
    began_ns = sim_now_ns();
    shows = is_shown;
}

void sim_trace_add(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++)
        digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
}

void sim_trace(const char *who, const char *format, ...)
{
    char *line = lines[count++ % LINES], text[LINE_BYTES - PLACE_BYTES];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    snprintf(line, LINE_BYTES, "%14.6f %-10.16s %s", (double)(sim_now_ns() - began_ns) / 1e9, who, text);
    sim_trace_add(line, strlen(line));
    if (shows)
        fprintf(stderr, "%s\n", line);
}

uint64_t sim_trace_digest(void)
{
    return digest;
}

void sim_trace_tell(void)
{
    for (uint64_t i = count < LINES || shows ? 0 : count - LINES; !shows && i < count; i++)
        fprintf(stderr, "%s\n", lines[i % LINES]);
}
