#include "scripts.h"

#include "engine/lua_scripts.h"
#include "internal.h"
#include "process.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARGUMENTS_MAX = 40, NAME_BYTES = 100 };

struct argument {
    char name[NAME_BYTES]; /* as a row of words.def has it */
};

static struct declared {
    struct argument arguments[ARGUMENTS_MAX];
    size_t count, first_of_list, last_of_least; /* first_of_list: SIZE_MAX: no list; last_of_least: without [...] */
    char sha[41];
} scripts[SCRIPT_COUNT];

size_t scripts_count(void)
{
    return SCRIPT_COUNT;
}

const char *script_name_of(size_t index)
{
    return LUA_SCRIPTS[index].name;
}

struct text script_body(size_t index)
{
    return LUA_SCRIPTS[index].body;
}

const char *script_sha(size_t index)
{
    return scripts[index].sha;
}

size_t script_of(struct text sha_or_body)
{
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        if (text_equal(sha_or_body, text_of(scripts[i].sha)) || text_equal(sha_or_body, LUA_SCRIPTS[i].body))
            return i;
    return SIZE_MAX;
}

size_t script_named(struct text name)
{
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        if (text_equal(name, text_of(LUA_SCRIPTS[i].name)))
            return i;
    test_give_up("there is no script %.*s", TEXT_ARG(name));
    return SIZE_MAX;
}

/* The script's text from its file. */
static char *read_source(const char *sources, const char *name)
{
    static const char *const FOLDERS[] = {"engine/lua", "trail", "records", "records/*"};

    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
        char pattern[PROCESS_PATH_BYTES];
        glob_t found;

        snprintf(pattern, sizeof pattern, "%s/src/%s/%s.lua", sources, FOLDERS[i], name);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        char *text = file_read(found.gl_pathv[0]);
        globfree(&found);
        return text;
    }
    test_give_up("no source of %s", name);
    return NULL;
}

/* "-- ARGV:" and the lines that go on, without what is in brackets. The caller frees it. */
static char *read_declaration(const char *source, const char *name)
{
    const char *at = strstr(source, "-- ARGV:");
    char *text = mem_alloc(strlen(source) + 1);
    size_t len = 0, depth = 0;

    if (!at)
        test_give_up("%s declares no arguments", name);
    for (at += strlen("-- ARGV:"); *at; at++) {
        if (*at == '\n' && strncmp(at, "\n--   ", 6) != 0)
            break;
        if (*at == '\n') {
            at += 5;
            text[len++] = ' ';
            continue;
        }
        depth += *at == '(';
        if (depth == 0)
            text[len++] = *at;
        depth -= *at == ')';
    }
    return text;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '#' || c == '.';
}

static void add_argument(struct declared *script, const char *script_name, struct text name)
{
    struct argument *argument = &script->arguments[script->count];
    char own[2 * NAME_BYTES];

    while (name.len > 0 && is_blank(name.ptr[0]))
        name = text_skip(name, 1);
    while (name.len > 0 && is_blank(name.ptr[name.len - 1]))
        name.len--;
    if (name.len == 0 || text_equal(name, TEXT("prefix")))
        return;
    if (script->count == ARGUMENTS_MAX || name.len >= NAME_BYTES)
        test_give_up("%s has too many arguments, or one with a long name", script_name);
    snprintf(own, sizeof own, "%s.%.*s", script_name, TEXT_ARG(name));
    bool has_own = strlen(own) < NAME_BYTES && words_have(own);
    snprintf(argument->name, sizeof argument->name, "%.*s", NAME_BYTES - 1,
             own + (has_own ? 0 : strlen(script_name) + 1));
    script->count++;
}

/* Those that stand for several in braces are no arguments themselves. */
static void read_arguments(struct declared *script, const char *script_name, const char *declaration)
{
    const char *begin = declaration;

    script->first_of_list = script->last_of_least = SIZE_MAX;
    for (const char *at = declaration;; at++) {
        struct text name = {begin, (size_t)(at - begin)};
        bool is_list = name.len > 3 && memmem(name.ptr, name.len, "...", 3);

        if (*at != '\0' && !strchr(",{}[]", *at))
            continue;
        if (is_list)
            script->first_of_list = script->count;
        if (*at != '{')
            add_argument(script, script_name, name);
        if (*at == '[')
            script->last_of_least = script->count;
        if (*at == '\0')
            return;
        begin = at + 1;
    }
}

void scripts_read(const char *sources)
{
    bool is_whole = true;

    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        char *source = read_source(sources, LUA_SCRIPTS[i].name);
        char *declaration = read_declaration(source, LUA_SCRIPTS[i].name);

        read_arguments(&scripts[i], LUA_SCRIPTS[i].name, declaration);
        script_name(scripts[i].sha, LUA_SCRIPTS[i].body);
        for (size_t at = 0; at < scripts[i].count; at++) {
            if (words_have(scripts[i].arguments[at].name))
                continue;
            fprintf(stderr, "words.def has no word \"%s\" for %s\n", scripts[i].arguments[at].name,
                    LUA_SCRIPTS[i].name);
            is_whole = false;
        }
        free(declaration);
        free(source);
    }
    if (!is_whole)
        test_give_up("words.def is not whole");
}

static void add_arguments(struct line *line, const struct declared *script, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        line_add_word(line, script->arguments[i].name);
}

void line_add_script(struct line *line, size_t index)
{
    const struct declared *script = &scripts[index];
    bool is_logged = words_random(8) == 0;
    size_t least = script->first_of_list != SIZE_MAX   ? script->first_of_list
                   : script->last_of_least != SIZE_MAX ? script->last_of_least
                                                       : script->count;

    line_add(line, text_of(words_random(20) > 0 ? "EVALSHA" : "EVAL"));
    line_add(line, text_equal(line->argv[0], TEXT("EVAL")) ? LUA_SCRIPTS[index].body : text_of(script->sha));
    line_add(line, is_logged ? TEXT("2") : TEXT("1"));
    line_add_form(line, is_logged ? TEXT("{script_key} {log_key}") : TEXT("{script_key}"));
    line_add(line, words_random(40) > 0 ? TEXT("t:") : TEXT("t{3}:"));
    add_arguments(line, script, 0, least);
    if (script->first_of_list == SIZE_MAX && words_random(2) == 0)
        add_arguments(line, script, least, script->count);
    for (size_t groups = script->first_of_list == SIZE_MAX ? 0 : words_random(4); groups > 0; groups--)
        add_arguments(line, script, least, script->count);
    if (words_random(100) == 0 && line->argc > 6)
        free((char *)(uintptr_t)line->argv[--line->argc].ptr);
}
