/* A program of the build: writes the Lua scripts as a table in C, and their names.
 *   embed SOURCES TABLE.c NAMES.h SCRIPT.lua...
 * SOURCES is src. Each script is a function that the epilogue calls, behind those definitions of the prelude that it
 * needs, because every call creates all functions in a script, and Redis compiles and keeps its text. A first line
 * "#!lua flags=..." stays first, because Redis looks for it only there.
 *   embed SOURCES --locals SCRIPT.lua...
 * Prints the locals of each script's arguments, for scripts/check-lua.
 *
 * A script's comment "-- ARGV: prefix, NAME..." declares its arguments; it goes on in lines that begin with "--   ".
 * Each becomes a local, if the script uses it:
 *   account ('' for any)   a text; what stands in brackets is for people
 *   #limit                 a number
 *   source {actor, ip}     several in a table; members that are words are locals, too
 *   [after, limit]         the last ones: all of them are there, or none
 *   keys... {id, digest}   the last ones: any number of groups; FIRST: where they begin, EACH: the size of one */
#include "core/key_line.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LUA_MAX_BYTES = 512 * 1024, DEFINITIONS_MAX = 1024, PATH_MAX_BYTES = 4096 };

struct lua {
    size_t len;
    char text[LUA_MAX_BYTES];
};

/* A statement of the prelude at the margin. */
struct definition {
    const char *text, *names; /* from its line feed on; "a, b" of "local a, b =", "K.a" of "function K.a(" */
    size_t len, names_len;
    bool is_needed, uses[DEFINITIONS_MAX]; /* uses: earlier ones */
};

static struct lua prelude, epilogue, body;
static struct definition definitions[DEFINITIONS_MAX];
static size_t definition_count;

/* Of a script: its source, what declares its arguments, and the locals that this makes. */
static struct lua source, declaration, local_names, local_values, value;
/* The next argument; how many must be there; in which steps there may be more. */
static size_t next, least, each;
static bool is_list, is_for_check;

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    fputs("embed: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

static void append(struct lua *lua, const char *text, size_t len)
{
    if (len >= sizeof lua->text - lua->len)
        fail("a text has more than %d bytes", LUA_MAX_BYTES);
    memcpy(lua->text + lua->len, text, len);
    lua->len += len;
    lua->text[lua->len] = '\0';
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);

    if (!file)
        fail("cannot open %s", path);
    return file;
}

static __attribute__((format(printf, 2, 3))) void appendf(struct lua *lua, const char *format, ...)
{
    char text[1024];
    va_list list;

    va_start(list, format);
    if (vsnprintf(text, sizeof text, format, list) >= (int)sizeof text)
        fail("a line has more than %zu bytes", sizeof text);
    va_end(list);
    append(lua, text, strlen(text));
}

/* Appends the file, behind a line feed. */
static void append_file(struct lua *lua, const char *path)
{
    FILE *file = open_file(path, "r");
    char part[4096];

    append(lua, "\n", 1);
    for (size_t len; (len = fread(part, 1, sizeof part, file)) > 0;)
        append(lua, part, len);
    fclose(file);
}

/* Takes comments and empty lines out, so that a name in a comment does not count as a use. No string in a script
 * contains two hyphens. */
static void strip(struct lua *lua)
{
    const char *from = lua->text, *end = lua->text + lua->len;

    lua->len = 0;
    while (from < end) {
        if (from[0] == '-' && from[1] == '-') {
            from += strcspn(from, "\n");
            while (lua->len > 0 && lua->text[lua->len - 1] == ' ')
                lua->len--;
        } else if (*from == '\n' && lua->len > 0 && lua->text[lua->len - 1] == '\n')
            from++;
        else
            lua->text[lua->len++] = *from++;
    }
    lua->text[lua->len] = '\0';
}

static void clear(struct lua *lua)
{
    lua->text[lua->len = 0] = '\0';
}

static bool is_of_word(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* Skips the word if it is there. */
static const char *skip(const char *at, const char *word)
{
    return strncmp(at, word, strlen(word)) == 0 ? at + strlen(word) : at;
}

static bool uses_name(const char *text, size_t len, const char *name, size_t name_len)
{
    const char *end = text + len;

    for (const char *at = text; (at = memmem(at, (size_t)(end - at), name, name_len)); at++)
        if ((at == text || (!is_of_word(at[-1]) && at[-1] != '\'')) &&
            (at + name_len == end || !is_of_word(at[name_len])))
            return true;
    return false;
}

static bool uses(const char *text, size_t len, const struct definition *definition)
{
    const char *names = definition->names, *end = names + definition->names_len;

    for (size_t name_len; names < end; names += name_len + strspn(names + name_len, ", ")) {
        name_len = strcspn(names, ",(= \n");
        if (uses_name(text, len, names, name_len))
            return true;
    }
    return false;
}

/* Whether a line goes on with the statement before it. */
static bool is_inside(const char *line)
{
    return strchr(" )}\n", *line) || (strncmp(line, "end", 3) == 0 && !is_of_word(line[3]));
}

/* "local function a(", "local a, b =", "function K.a(" */
static void add_definition(const char *text)
{
    struct definition *definition = &definitions[definition_count++];
    const char *line = text + 1, *end = line;

    definition->text = text;
    definition->names = skip(skip(line, "local "), "function ");
    if (definition->names == line || definition_count == DEFINITIONS_MAX)
        fail("the prelude has a statement that is no definition: %.60s", line);
    definition->names_len =
        strspn(definition->names, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_., ");
    while ((end = strchr(end, '\n')) && is_inside(end + 1) && end[1])
        end++;
    definition->len = end && end[1] ? (size_t)(end - text) : strlen(text);
    for (size_t i = 0; i + 1 < definition_count; i++)
        definition->uses[i] = uses(text, definition->len, &definitions[i]);
}

static void replace(struct lua *lua, const char *word, const char *by)
{
    static struct lua rest;
    char *at = strstr(lua->text, word);

    if (!at)
        return;
    rest.len = 0;
    append(&rest, at + strlen(word), strlen(at + strlen(word)));
    lua->len = (size_t)(at - lua->text);
    append(lua, by, strlen(by));
    append(lua, rest.text, rest.len);
}

static void read_prelude(const char *sources)
{
#define QUOTED(name) ", '" #name "'"
    char path[PATH_MAX_BYTES], part[256];
    FILE *list;

    snprintf(path, sizeof path, "%s/engine/lua/prelude.list", sources);
    list = open_file(path, "r");
    while (fscanf(list, "%255s", part) == 1) {
        snprintf(path, sizeof path, "%s/%s", sources, part);
        append_file(&prelude, path);
    }
    fclose(list);
    strip(&prelude);
    replace(&prelude, "@KEY_FIELDS@", &KEY_LINE_FIELDS(QUOTED)[2]);
    for (const char *at = prelude.text; *at && at[1]; at += definitions[definition_count - 1].len)
        add_definition(at);
    snprintf(path, sizeof path, "%s/engine/lua/epilogue.lua", sources);
    append_file(&epilogue, path);
    strip(&epilogue);
}

/* Arguments */

static void add_local(const char *name, size_t len, bool is_wanted, const char *its_value)
{
    if (!is_wanted && !uses_name(body.text, body.len, name, len))
        return;
    appendf(&local_names, "%s%.*s", local_names.len > 0 ? ", " : "", (int)len, name);
    appendf(&local_values, "%s%s", local_values.len > 0 ? ", " : "", its_value);
}

static size_t word_len(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
}

/* "{actor, ip}" at text: makes its value, and adds its members. Returns what is behind it. */
static const char *read_members(const char *text, bool is_number, size_t *ret_count)
{
    char member[32];
    size_t count = 0, len;

    clear(&value);
    for (text++; (len = strcspn(text, ",}")) > 0; text += len + strspn(text + len, ", "), count++) {
        snprintf(member, sizeof member, is_number ? "tonumber(ARGV[%zu])" : "ARGV[%zu]", next + count);
        appendf(&value, "%s%s", count > 0 ? ", " : "{", member);
        if (!is_list && word_len(text) == len)
            add_local(text, len, false, member);
    }
    appendf(&value, "}");
    *ret_count = count;
    return text + (*text == '}');
}

/* Returns what is behind the explanation, if there is one. */
static const char *skip_explanation(const char *text)
{
    int depth = 0;

    do
        depth += (*text == '(') - (*text == ')');
    while (*text++ && depth > 0);
    return text - 1 + (text[-1] == ')');
}

static const char *read_argument(const char *text, const char *path)
{
    bool is_number = *text == '#';
    const char *name = text + is_number;
    size_t len = word_len(name), count = 1;

    text = name + len;
    is_list = strncmp(text, "...", 3) == 0;
    text += strspn(text, ". ");
    clear(&value);
    appendf(&value, is_number ? "tonumber(ARGV[%zu])" : "ARGV[%zu]", next);
    if (*text == '{')
        text = read_members(text, is_number, &count);
    text = skip_explanation(text + strspn(text, " "));
    if (len == 0 || count == 0 || !strchr(",] ", *text) || (is_list && text[strspn(text, " ")]))
        fail("%s declares no argument by: %.60s", path, name);
    if (!is_list)
        add_local(name, len, is_for_check, value.text);
    each = is_list ? count : each;
    next += is_list ? 0 : count;
    return text;
}

static void read_arguments(const char *path)
{
    size_t first_optional = 0;
    char number[24];

    next = 2;
    is_list = false;
    for (const char *at = declaration.text; at[strspn(at, ",] ")];) {
        at += strspn(at, ",] ");
        first_optional = *at == '[' ? next : first_optional;
        at = read_argument(at + (*at == '['), path);
    }
    least = (first_optional ? first_optional : next) - 2;
    snprintf(number, sizeof number, "%zu", next);
    if (is_list)
        add_local("FIRST", 5, false, number);
    snprintf(number, sizeof number, "%zu", each);
    if (is_list)
        add_local("EACH", 4, false, number);
    else
        each = first_optional ? next - first_optional : 1;
}

static void read_script(const char *path)
{
    static const char HEAD[] = "\n-- ARGV: prefix", MORE[] = "\n--   ";
    const char *line;

    clear(&source);
    append_file(&source, path);
    clear(&body);
    append(&body, source.text, source.len);
    strip(&body);
    clear(&declaration);
    clear(&local_names);
    clear(&local_values);
    line = strstr(source.text, HEAD);
    if (!line)
        fail("%s does not declare its arguments: \"-- ARGV: prefix, ...\"", path);
    for (size_t skipped = sizeof HEAD - 1; skipped > 0; skipped = strncmp(line, MORE, 6) == 0 ? 6 : 0) {
        line += skipped;
        appendf(&declaration, "%.*s ", (int)strcspn(line, "\n"), line);
        line += strcspn(line, "\n");
    }
    read_arguments(path);
    if (local_names.len > 0)
        appendf(&local_names, " = ");
    append(&local_names, local_values.text, local_values.len);
}

static void put_bytes(FILE *out, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        fprintf(out, "0x%02x,", (unsigned char)bytes[i]);
}

static void put_needed(FILE *out)
{
    for (size_t i = definition_count; i-- > 0;) {
        definitions[i].is_needed =
            uses(body.text, body.len, &definitions[i]) || uses(epilogue.text, epilogue.len, &definitions[i]);
        for (size_t user = i + 1; user < definition_count; user++)
            definitions[i].is_needed |= definitions[user].is_needed && definitions[user].uses[i];
    }
    for (size_t i = 0; i < definition_count; i++)
        if (definitions[i].is_needed)
            put_bytes(out, definitions[i].text, definitions[i].len);
}

static void put_script(FILE *out, const char *name, int name_len)
{
    static const char RUN[] = "\nlocal function run()", LOCAL[] = "\nlocal ", END[] = "end\n";
    size_t flags_len = strncmp(body.text, "\n#!", 3) == 0 ? strcspn(body.text + 1, "\n") + 1 : 0;

    fprintf(out, "static const char %.*s[] = {", name_len, name);
    put_bytes(out, body.text + 1, flags_len);
    put_needed(out);
    put_bytes(out, RUN, sizeof RUN - 1);
    put_bytes(out, LOCAL, local_names.len > 0 ? sizeof LOCAL - 1 : 0);
    put_bytes(out, local_names.text, local_names.len);
    put_bytes(out, body.text + flags_len, body.len - flags_len);
    put_bytes(out, END, sizeof END - 1);
    put_bytes(out, epilogue.text, epilogue.len);
    fputs("0};\n", out);
}

static void finish(FILE *file, const char *path)
{
    bool is_written = !ferror(file);

    if (fclose(file) != 0 || !is_written)
        fail("cannot write %s", path);
}

static const char *base_of(const char *path, int *ret_len)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

    *ret_len = (int)strcspn(base, ".");
    return base;
}

static void embed(char **argv)
{
    static struct lua rows;
    FILE *table = open_file(argv[2], "w"), *enumeration = open_file(argv[3], "w");
    const char *name;
    int len;

    read_prelude(argv[1]);
    fputs("/* Generated by embed.c. */\n#include \"engine/lua_scripts.h\"\n\n", table);
    fputs("/* Generated by embed.c. */\n#pragma once\nenum script {\n", enumeration);
    for (char **path = &argv[4]; *path; path++) {
        name = base_of(*path, &len);
        read_script(*path);
        put_script(table, name, len);
        fprintf(enumeration, "    SCRIPT_%.*s,\n", len, name);
        appendf(&rows, "    {\"%.*s\", {%.*s, sizeof %.*s - 1}, %zu, ", len, name, len, name, len, name, least);
        if (is_list)
            appendf(&rows, "SIZE_MAX, %zu},\n", each);
        else
            appendf(&rows, "%zu, %zu},\n", next - 2, each);
    }
    fprintf(table, "\nconst struct lua_script LUA_SCRIPTS[SCRIPT_COUNT] = {\n%s};\n", rows.text);
    fputs("    SCRIPT_COUNT\n};\n", enumeration);
    finish(table, argv[2]);
    finish(enumeration, argv[3]);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        fail("usage: embed SOURCES {TABLE.c NAMES.h | --locals} SCRIPT.lua...");
    is_for_check = strcmp(argv[2], "--locals") == 0;
    if (!is_for_check)
        embed(argv);
    for (char **path = &argv[3]; is_for_check && *path; path++) {
        read_script(*path);
        printf("%s %s\n", *path, local_names.text);
    }
    return 0;
}
