#include "trace.h"
#include "kernel_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES = 64, LINE_BYTES = 320, PLACE_BYTES = 40, ASIDES = 8 };

static char lines[LINES][LINE_BYTES];
static uint64_t count, digest, began_ns;
static FILE *story, *teller; /* the program's own, whoever runs; story: NULL, nobody reads it */
static struct {
    const char *what;
    unsigned count;
} asides[ASIDES];

void sim_trace_begin(bool is_shown)
{
    count = 0;
    digest = UINT64_C(0xcbf29ce484222325);
    began_ns = sim_now_ns();
    story = is_shown ? stdout : NULL;
    teller = stderr;
    memset(asides, 0, sizeof asides);
}

double sim_trace_s(uint64_t at_ns)
{
    return (double)(at_ns - began_ns) / 1e9;
}

void sim_trace_add(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++)
        digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
}

__attribute__((format(printf, 3, 0))) static void print_line(char ret_line[LINE_BYTES], const char *who,
                                                             const char *format, va_list values)
{
    char text[LINE_BYTES - PLACE_BYTES];

    vsnprintf(text, sizeof text, format, values);
    snprintf(ret_line, LINE_BYTES, "%14.6f %-10.16s %s", sim_trace_s(sim_now_ns()), who, text);
}

static void show(const char *line)
{
    if (story)
        fprintf(story, "%s\n", line);
}

/* What was said aside since the last line. */
static void show_asides(void)
{
    char *line;
    int len;

    if (asides[0].count == 0)
        return;
    line = lines[count++ % LINES];
    len = snprintf(line, LINE_BYTES, "%14s", "");
    for (size_t i = 0; i < ASIDES && asides[i].count > 0; i++)
        len += snprintf(line + len, LINE_BYTES - (size_t)len, "%s %s: %u", i > 0 ? "," : "", asides[i].what,
                        asides[i].count);
    memset(asides, 0, sizeof asides);
    show(line);
}

void sim_trace(const char *who, const char *format, ...)
{
    char *line;
    va_list values;

    show_asides();
    line = lines[count++ % LINES];
    va_start(values, format);
    print_line(line, who, format, values);
    va_end(values);
    sim_trace_add(line, strlen(line));
    show(line);
}

void sim_trace_aside(const char *what, const char *who, const char *format, ...)
{
    char line[LINE_BYTES];
    size_t i = 0;
    va_list values;

    va_start(values, format);
    print_line(line, who, format, values);
    va_end(values);
    sim_trace_add(line, strlen(line));
    while (i < ASIDES - 1 && asides[i].count > 0 && strcmp(asides[i].what, what) != 0)
        i++;
    asides[i].what = what;
    asides[i].count++;
}

uint64_t sim_trace_digest(void)
{
    return digest;
}

void sim_trace_tell(void)
{
    show_asides();
    for (uint64_t i = count < LINES ? 0 : count - LINES; !story && i < count; i++)
        fprintf(teller, "%s\n", lines[i % LINES]);
}
