#include "unknown_settings.h"

#include "app/command_table.h"

#include <stdio.h>
#include <unistd.h>

#define PREFIX TEXT("CHATELAINE_")

enum { OPTION_BYTES = 64 };

/* Read by tests, scripts and compositions, which may run the program with them set. */
static const char *const OF_SCRIPTS[] = {"BINARY", "BIND",       "BREAK", "DEBIAN",          "JOBS",
                                         "NET",    "NO_INSTALL", "PORT",  "PROMETHEUS_PORT", "SOURCE"};

static bool ends_with(struct text t, struct text end)
{
    return t.len >= end.len && text_equal(text_skip(t, t.len - end.len), end);
}

static bool holds(struct text t, const char *part)
{
    return memmem(t.ptr, t.len, part, strlen(part)) != NULL;
}

static bool is_url_of_service(struct text value)
{
    return text_starts_with(value, TEXT("tcp://")) || text_starts_with(value, TEXT("udp://")) ||
           text_starts_with(value, TEXT("sctp://"));
}

/* Kubernetes sets these in every Pod for each Service, as Docker did for links:
 * NAME_SERVICE_HOST, NAME_SERVICE_PORT[_PORTNAME], NAME_PORT=tcp://…, NAME_PORT_8080_TCP[_ADDR|_PORT|_PROTO]. */
static bool is_of_service(struct text name, struct text value)
{
    bool is_of_port = holds(name, "PORT_") && (holds(name, "_TCP") || holds(name, "_UDP") || holds(name, "_SCTP"));

    return is_of_port || ends_with(name, TEXT("SERVICE_HOST")) || holds(name, "SERVICE_PORT") ||
           (ends_with(name, TEXT("PORT")) && is_url_of_service(value));
}

/* name: without the prefix. */
static bool is_left_out(struct text name, struct text value)
{
    for (size_t i = 0; i < sizeof OF_SCRIPTS / sizeof *OF_SCRIPTS; i++)
        if (text_equal(name, text_of(OF_SCRIPTS[i])))
            return true;
    return text_starts_with(name, TEXT("TEST_")) || is_of_service(name, value);
}

/* "LEASE_MS" as "lease-ms". */
static struct text option_of(struct text name, char storage[OPTION_BYTES])
{
    struct buf out;

    buf_init_fixed(&out, storage, OPTION_BYTES);
    for (size_t i = 0; i < name.len && i < OPTION_BYTES; i++)
        buf_append_char(&out, name.ptr[i] == '_'                         ? '-'
                              : name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? (char)(name.ptr[i] - 'A' + 'a')
                                                                         : name.ptr[i]);
    return buf_text(&out);
}

/* Whether an option of any command has the name; if not, *guess has the nearest one. */
static bool is_known(struct text name, struct text_guess *guess)
{
    char storage[OPTION_BYTES];

    guess->written = option_of(name, storage);
    for (size_t c = 0; c < COMMAND_COUNT; c++) {
        for (const struct option_group *group = COMMANDS[c].groups; group->table; group++) {
            for (size_t i = 0; i < group->table->count; i++) {
                struct buf out = BUF_FIXED(OPTION_BYTES);

                options_print_variable(&group->table->rows[i], &out);
                if (text_equal(text_skip(buf_text(&out), PREFIX.len), name))
                    return true;
                text_guess_try(guess, group->table->rows[i].name);
            }
        }
    }
    return false;
}

static void add(struct unknown_settings *unknown, struct text name, const struct text_guess *guess, const char *where)
{
    struct unknown_setting *one = &unknown->of[unknown->count++];
    struct buf out;

    *one = (struct unknown_setting){.where = where};
    snprintf(one->name, sizeof one->name, "%.*s%.*s", TEXT_ARG(PREFIX), TEXT_ARG(name));
    if (!guess->found)
        return;
    buf_init_fixed(&out, one->meant, sizeof one->meant - 1);
    options_print_variable(&(struct option_row){.name = guess->found}, &out);
}

/* name: with the prefix, or something else. */
static void look_at(struct unknown_settings *unknown, struct text name, struct text value, const char *where)
{
    struct text_guess guess = {0};

    if (!text_starts_with(name, PREFIX) || unknown->count == UNKNOWN_SETTINGS_MAX)
        return;
    name = text_skip(name, PREFIX.len);
    if (!(where == NULL && is_left_out(name, value)) && !is_known(name, &guess))
        add(unknown, name, &guess, where);
}

void unknown_settings_find(const struct option_assignments *given, struct unknown_settings *ret_unknown)
{
    ret_unknown->count = 0;
    for (size_t i = 0; i < given->count; i++)
        look_at(ret_unknown, text_of(given->rows[i].name), text_of(given->rows[i].value), given->rows[i].where);
    for (char **at = environ; at && *at; at++) {
        struct text value = text_of(*at), name;

        text_next(&value, '=', &name);
        look_at(ret_unknown, name, value, NULL);
    }
}
