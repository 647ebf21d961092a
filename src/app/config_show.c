#include "config_show.h"

#include "admin/startup_gate.h"
#include "app/serve.h"
#include "base/json.h"

#include <string.h>

static const struct option_row ROWS[] = {ROW_JSON};
const struct option_group CONFIG_SHOW_OPTIONS[] = {OPTIONS_OF(ROWS), SERVE_GROUPS, {0}};

enum { OUTPUT_MAX_BYTES = 256 * 1024, VALUE_MAX_BYTES = 16 * 1024, SOURCE_MAX_BYTES = 4 * 1024 };

static const char *const ORIGINS[] = {
    [OPTION_FROM_DEFAULT] = "default",
    [OPTION_FROM_ENVIRONMENT] = "environment",
    [OPTION_FROM_FILE] = "settings",
    [OPTION_FROM_ARGUMENT] = "option",
};

/* One setting, ready to print. */
struct shown {
    const struct option_row *row;
    const char *origin;
    struct buf value, source; /* source: "--name", "CHATELAINE_NAME", "FILE:LINE", a path, or "default" */
};

/* With the user, and without the password. */
static void show_target(const struct redis_target *target, struct buf *out)
{
    struct buf url = BUF_FIXED(STORE_URL_MAX_BYTES);
    struct text rest, scheme;

    store_target_print(target, &url);
    rest = buf_text(&url);
    if (!target->login.password[0]) {
        buf_append_text(out, rest);
    } else if (target->is_unix) {
        buf_append_text(out, rest);
        buf_append_char(out, target->db > 0 ? '&' : '?');
        buf_printf(out, target->login.user[0] ? "user=%s&" : "%s", target->login.user);
        buf_append_str(out, "password=[hidden]");
    } else if (text_next(&rest, '/', &scheme)) {
        buf_printf(out, "%.*s//%s:[hidden]@%.*s", TEXT_ARG(scheme), target->login.user, TEXT_ARG(text_skip(rest, 1)));
    }
}

/* The address of Redis as it will be used: from --redis-file if that is given, with the password hidden. What is no
 * address may still hold a password anywhere, and so may the reason, which can quote it: neither is shown. */
static void show_redis(const struct command_line *line, struct shown *shown)
{
    struct store_settings store = {0};
    struct buf why = BUF_FIXED(SOURCE_MAX_BYTES);

    buf_clear(&shown->value);
    if (store_settings_read(&line->settings, &store, &why))
        show_target(&store.target, &shown->value);
    else
        buf_append_str(&shown->value, "(invalid: 'chatelaine doctor' says why)");
    store_settings_finish(&store);
    if (!line->settings.redis_file)
        return;
    shown->origin = "file";
    buf_clear(&shown->source);
    buf_append_str(&shown->source, line->settings.redis_file);
}

static void show_source(const struct command_line *line, const struct option_row *row, enum option_origin origin,
                        struct buf *out)
{
    if (origin == OPTION_FROM_ARGUMENT)
        buf_printf(out, "--%s", row->name);
    else if (origin == OPTION_FROM_FILE)
        buf_append_str(out, options_assigned(&line->files.assigned, row)->where);
    else if (origin == OPTION_FROM_ENVIRONMENT)
        options_print_variable(row, out);
    else
        buf_append_str(out, "default");
}

static void put_json(struct json_writer *w, const struct command_line *line, const struct shown *shown)
{
    const void *at = (const char *)line + shown->row->offset;

    json_object_begin(w);
    json_put_member(w, "name", text_of(shown->row->name));
    json_key(w, "value");
    if (shown->row->type == OPTION_FLAG)
        json_put_bool(w, *(const bool *)at);
    else if (shown->row->type == OPTION_INTEGER || shown->row->type == OPTION_TIME || shown->row->type == OPTION_SIZE)
        json_put_integer(w, *(const int64_t *)at);
    else if (shown->row->type == OPTION_TEXT && shown->value.len == 0 && !*(const char *const *)at)
        json_put_null(w);
    else
        json_put_text(w, buf_text(&shown->value));
    json_put_member(w, "origin", text_of(shown->origin));
    json_put_member(w, "source", buf_text(&shown->source));
    json_object_end(w);
}

static void put_line(struct buf *out, const struct shown *shown)
{
    buf_printf(out, "  %-24s ", shown->row->name);
    size_t from = out->len;
    buf_append_printable(out, shown->value.len ? buf_text(&shown->value) : TEXT("-"));
    for (size_t width = out->len - from; width < 32; width++)
        buf_append_char(out, ' ');
    buf_append_str(out, "  ");
    buf_append_printable(out, buf_text(&shown->source));
    buf_append_char(out, '\n');
}

struct printing {
    const struct command_line *line;
    struct json_writer json;
    struct buf *out;
};

static void put_setting(struct printing *printing, const struct option_row *row, enum option_origin origin)
{
    const struct command_line *line = printing->line;
    struct shown shown = {.row = row, .origin = ORIGINS[origin]};

    buf_init(&shown.value, VALUE_MAX_BYTES);
    buf_init(&shown.source, SOURCE_MAX_BYTES);
    show_source(line, row, origin, &shown.source);
    options_print_value(row, line, &shown.value);
    if (row->offset == offsetof(struct command_line, settings.redis))
        show_redis(line, &shown);
    if (line->json)
        put_json(&printing->json, line, &shown);
    else
        put_line(printing->out, &shown);
    buf_wipe(&shown.value);
    buf_finish(&shown.source);
}

static void put_groups(struct printing *printing)
{
    const uint8_t *origin = printing->line->origins + sizeof ROWS / sizeof *ROWS;

    for (const struct option_group *group = CONFIG_SHOW_OPTIONS + 1; group->table; group++) {
        if (group->title && !printing->line->json)
            buf_printf(printing->out, "%s%s:\n", printing->out->len ? "\n" : "", group->title);
        for (size_t i = 0; i < group->table->count; i++)
            put_setting(printing, &group->table->rows[i], (enum option_origin) * origin++);
    }
}

static void put_unknown(struct printing *printing)
{
    const struct unknown_settings *unknown = &printing->line->unknown;

    if (unknown->count > 0)
        buf_append_str(printing->out, "\nWithout effect:\n");
    for (size_t i = 0; i < unknown->count; i++) {
        buf_append_str(printing->out, "  ");
        unknown_setting_print(&unknown->of[i], printing->out);
        buf_append_char(printing->out, '\n');
    }
}

static void put_unknown_json(struct printing *printing)
{
    const struct unknown_settings *unknown = &printing->line->unknown;
    struct json_writer *w = &printing->json;

    json_key_array(w, "unknown");
    for (size_t i = 0; i < unknown->count; i++) {
        const struct unknown_setting *one = &unknown->of[i];

        json_object_begin(w);
        json_put_member(w, "name", text_of(one->name));
        json_put_member(w, "meant", text_of(one->meant));
        json_put_member(w, "source", text_of(one->where ? one->where : "environment"));
        json_object_end(w);
    }
    json_array_end(w);
}

int config_show_run(const struct command_line *line)
{
    struct buf out CLEANUP(buf_wipe) = BUF_UP_TO(OUTPUT_MAX_BYTES);
    struct printing printing = {.line = line, .json.out = &out, .out = &out};

    if (!line->json) {
        put_groups(&printing);
        put_unknown(&printing);
        return command_print(buf_text(&out));
    }
    json_object_begin(&printing.json);
    json_key_array(&printing.json, "settings");
    put_groups(&printing);
    json_array_end(&printing.json);
    put_unknown_json(&printing);
    json_line_end(&printing.json);
    return command_print(buf_text(&out));
}
