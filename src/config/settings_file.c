#include "config/settings_file.h"

#include "base/mem.h"
#include "config/key_file.h"

#include <stdlib.h>

enum { FILE_MAX_BYTES = 1024 * 1024, WHY_MAX_BYTES = 4096 + 256 };

#define BYTE_ORDER_MARK TEXT("\xef\xbb\xbf")
#define VARIABLES TEXT("CHATELAINE_")
#define OWN_VARIABLE TEXT("CHATELAINE_SETTINGS")

/* A line of a file. */
struct place {
    struct settings_files *files;
    const char *path;
    unsigned line;
    struct buf *why;
    bool has_failed;
};

static struct buf *mistake(struct place *at)
{
    if (at->why->len > 0)
        buf_append_char(at->why, '\n');
    at->has_failed = true;
    buf_printf(at->why, "%s:%u: ", at->path, at->line);
    return at->why;
}

static void refuse(struct place *at, const char *sentence)
{
    buf_append_str(mistake(at), sentence);
}

static bool has_any_of(struct text t, const char *bytes)
{
    for (size_t i = 0; i < t.len; i++)
        if (strchr(bytes, t.ptr[i]))
            return true;
    return false;
}

static bool has_control(struct text line)
{
    for (size_t i = 0; i < line.len; i++)
        if (((unsigned char)line.ptr[i] < ' ' && line.ptr[i] != '\t') || line.ptr[i] == 0x7f)
            return true;
    return false;
}

static bool is_name(struct text name)
{
    bool is_first = true;

    for (size_t i = 0; i < name.len; i++, is_first = false) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

        if (!is_letter && (is_first || c < '0' || c > '9'))
            return false;
    }
    return name.len > 0;
}

/* Takes the quotes off a value. NULL, or why shell and systemd would not agree on it. */
static const char *unquote(struct text *value)
{
    char first = value->len > 0 ? value->ptr[0] : '\0';

    if (first == '\'' || first == '"') {
        if (value->len < 2 || value->ptr[value->len - 1] != first)
            return "the value begins with a quote and does not end with it: quote all of it, or nothing.";
        *value = (struct text){value->ptr + 1, value->len - 2};
        return has_any_of(*value, first == '"' ? "\"\\$`" : "'\\")
                   ? "a value in quotes must not hold that quote or a backslash, and in double quotes no $ or `."
                   : NULL;
    }
    if (has_any_of(*value, " \t"))
        return "there is text behind the value: comments have lines of their own, and a value with blanks stands in "
               "single quotes.";
    return first == '~' || has_any_of(*value, "'\"\\$`;&|<>()")
               ? "a value with ~ in front or with one of \\ $ ` ; & | < > ( ) or a quote stands in single quotes."
               : NULL;
}

static void add(struct place *at, struct text name, struct text value)
{
    struct settings_files *files = at->files;
    struct buf where = BUF_FIXED(512);

    files->assigned.rows =
        mem_grow(files->assigned.rows, files->assigned.count, &files->room, sizeof *files->assigned.rows);
    buf_printf(&where, "%.480s:%u", at->path, at->line);
    files->assigned.rows[files->assigned.count++] =
        (struct option_assignment){.name = arena_copy(&files->memory, name).ptr,
                                   .value = arena_copy(&files->memory, value).ptr,
                                   .where = arena_copy(&files->memory, buf_text(&where)).ptr};
}

static void read_assignment(struct place *at, struct text line)
{
    struct text value = line, name;
    const char *why;

    text_next(&value, '=', &name);
    if (text_starts_with(line, TEXT("export ")) || text_starts_with(line, TEXT("export\t"))) {
        refuse(at, "write NAME=value, without export.");
    } else if (!value.ptr) {
        refuse(at, "this is neither a comment nor NAME=value.");
    } else if (!text_equal(text_trim(name), name) || (value.len > 0 && text_is_blank(value.ptr[0]))) {
        refuse(at, "write NAME=value, without blanks around =.");
    } else if (!is_name(name)) {
        refuse(at, "in front of = stands no name of a setting.");
    } else if (!text_starts_with(name, VARIABLES)) {
        buf_printf(mistake(at),
                   "%.*s is no setting: only names that begin with CHATELAINE_ stand here. A drop-in of the unit sets "
                   "other variables (Environment=).",
                   (int)(name.len < 64 ? name.len : 64), name.ptr);
    } else if (text_equal(name, OWN_VARIABLE)) {
        refuse(at, "CHATELAINE_SETTINGS names settings files, so it cannot stand in one.");
    } else if ((why = unquote(&value)) != NULL) {
        buf_printf(mistake(at), "%.*s: %s", (int)(name.len < 64 ? name.len : 64), name.ptr, why);
    } else {
        add(at, name, value);
    }
}

static void read_line(struct place *at, struct text line)
{
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (has_control(line)) {
        refuse(at, "there is a control character.");
        return;
    }
    line = text_trim(line);
    if (line.len == 0)
        return;
    if (line.ptr[0] == ';')
        refuse(at, "a comment begins with #.");
    else if (line.ptr[0] == '#' && line.ptr[line.len - 1] == '\\')
        refuse(at, "a comment must not end with a backslash, which would make the next line a part of it for systemd.");
    else if (line.ptr[0] != '#')
        read_assignment(at, line);
}

static bool read_file(struct settings_files *files, const char *path, struct buf *ret_why)
{
    struct place at = {.files = files, .path = path, .why = ret_why};
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(FILE_MAX_BYTES);
    struct text rest, line;

    if (!whole_file_read(path, &content, &why)) {
        buf_printf(ret_why, "%s--settings: %.*s.", ret_why->len > 0 ? "\n" : "", TEXT_ARG(buf_text(&why)));
        return false;
    }
    rest = buf_text(&content);
    if (text_starts_with(rest, TEXT("\xff\xfe")) || text_starts_with(rest, TEXT("\xfe\xff"))) {
        at.line = 1;
        refuse(&at, "this is UTF-16: save the file as UTF-8.");
        return false;
    }
    if (text_starts_with(rest, BYTE_ORDER_MARK))
        rest = text_skip(rest, BYTE_ORDER_MARK.len);
    while (text_next(&rest, '\n', &line)) {
        at.line++;
        read_line(&at, line);
    }
    return !at.has_failed;
}

bool settings_files_read(struct settings_files *files, const char *paths, struct buf *ret_why)
{
    struct text rest = text_of(paths), part;
    bool are_read = true;

    while (text_next(&rest, ',', &part)) {
        char *path = mem_copy_text(part.ptr, part.len);

        are_read &= read_file(files, path, ret_why);
        free(path);
    }
    return are_read;
}

void settings_files_finish(struct settings_files *files)
{
    free(files->assigned.rows);
    arena_finish(&files->memory);
    *files = (struct settings_files){0};
}
