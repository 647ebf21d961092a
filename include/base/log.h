/* Structured log lines on stderr, logfmt or JSON: time, level, message, fields. The code that ends an error logs it;
 * code below returns it. No field ever carries a secret, a cookie, a code, a password or a whole header. */
#pragma once
#include "base/text.h"
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_LOGFMT, LOG_JSON };

struct log_field {
    const char *name; /* NULL ends a list */
    struct text text;
    int64_t integer;
    bool is_integer;
    bool is_absent; /* the line leaves it out */
};

/* LOG(LOG_INFO, "node serves", log_text("address", a), log_int("pid", p)); at least one field. */
#define LOG(level, message, ...)                                                     \
    do {                                                                             \
        if ((level) >= log_threshold)                                                \
            log_write(level, message, (const struct log_field[]){__VA_ARGS__, {0}}); \
    } while (0)

extern enum log_level log_threshold;

void log_configure(enum log_level threshold, enum log_format format);
struct log_field log_text(const char *name, struct text value);
struct log_field log_str(const char *name, const char *value);
/* Leaves the field out if the value is empty. */
struct log_field log_given(const char *name, struct text value);
struct log_field log_int(const char *name, int64_t value);
/* Limits a repeated line to one per pause. suppressed: lines dropped since the previous one. Starts zeroed. */
struct log_pause {
    uint64_t until_ms;
    int64_t suppressed, counting;
};
/* Whether the line may be written now; if so, starts the next pause. now_ms: of any clock that does not step. */
bool log_pause_is_over(struct log_pause *pause, uint64_t now_ms, uint32_t pause_ms);
/* Escapes control characters and quotes, and cuts a line at 4 KiB. A slow or broken stderr never blocks or stops the
 * node: the line is dropped and counted. */
void log_write(enum log_level level, const char *message, const struct log_field *fields);
