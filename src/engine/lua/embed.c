/* A program of the build: writes the Lua scripts as a table in C, and their names.
 *   embed SOURCES TABLE.c NAMES.h SCRIPT.lua...
 * SOURCES is src. Each script is a function that the epilogue calls, behind those definitions of the prelude that it
 * needs, because every call creates all functions in a script, and Redis compiles and keeps its text. A first line
 * "#!lua flags=..." stays first, because Redis looks for it only there. */
#include "core/key_line.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LUA_MAX_BYTES = 512 * 1024, DEFINITIONS_MAX = 1024 };

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

static void read_lua(struct lua *lua, const char *path)
{
    lua->len = 0;
    append_file(lua, path);
    strip(lua);
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
    char path[4096], part[256];
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

static void put_script(FILE *out, const char *name, int name_len, const char *path)
{
    static const char RUN[] = "\nlocal function run()", END[] = "end\n";
    size_t flags_len;

    read_lua(&body, path);
    flags_len = strncmp(body.text, "\n#!", 3) == 0 ? strcspn(body.text + 1, "\n") + 1 : 0;
    fprintf(out, "static const char %.*s[] = {", name_len, name);
    put_bytes(out, body.text + 1, flags_len);
    put_needed(out);
    put_bytes(out, RUN, sizeof RUN - 1);
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

int main(int argc, char **argv)
{
    char path[4096];
    FILE *table, *names;
    const char *name;
    int len;

    if (argc < 5)
        fail("usage: embed SOURCES TABLE.c NAMES.h SCRIPT.lua...");
    read_prelude(argv[1]);
    snprintf(path, sizeof path, "%s/engine/lua/epilogue.lua", argv[1]);
    read_lua(&epilogue, path);
    table = open_file(argv[2], "w");
    names = open_file(argv[3], "w");
    fprintf(table, "/* Generated by embed.c. */\n#include \"engine/lua_scripts.h\"\n\n");
    fprintf(names, "/* Generated by embed.c. */\n#pragma once\nenum script {\n");
    for (int i = 4; i < argc; i++) {
        name = base_of(argv[i], &len);
        put_script(table, name, len, argv[i]);
        fprintf(names, "    SCRIPT_%.*s,\n", len, name);
    }
    fputs("\nconst struct lua_script LUA_SCRIPTS[SCRIPT_COUNT] = {\n", table);
    for (int i = 4; i < argc; i++) {
        name = base_of(argv[i], &len);
        fprintf(table, "    {\"%.*s\", {%.*s, sizeof %.*s - 1}},\n", len, name, len, name, len, name);
    }
    fputs("};\n", table);
    fputs("    SCRIPT_COUNT\n};\n", names);
    finish(table, argv[2]);
    finish(names, argv[3]);
    return 0;
}
