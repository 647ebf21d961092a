/* Each embedded script has those definitions of the prelude that it needs, and no other (src/engine/lua/embed.c). */
#include "leak_guard.h"
#include "process.h"
#include "engine/lua_scripts.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(lua_texts, .fini = leak_guard);

enum { NAMES_MAX = 512, NAME_BYTES = 64 };

struct names {
    char list[NAMES_MAX][NAME_BYTES];
    size_t count;
};

static bool is_of_word(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

static void add_name(struct names *names, const char *name, size_t len)
{
    cr_assert(names->count < NAMES_MAX && len > 0 && len < NAME_BYTES, "%zu: %.*s", names->count, (int)len, name);
    snprintf(names->list[names->count++], NAME_BYTES, "%.*s", (int)len, name);
}

/* Adds what the lines that begin at the margin define: "local function a(…)", "local a, b = …", "function K.a(…)". */
static void find_defined(const char *text, struct names *names)
{
    static const char LOCAL[] = "local ", FUNCTION[] = "function ";

    for (const char *line = text; line; line = strchr(line, '\n')) {
        bool is_local, is_function;

        line += *line == '\n';
        is_local = strncmp(line, LOCAL, sizeof LOCAL - 1) == 0;
        line += is_local ? sizeof LOCAL - 1 : 0;
        is_function = strncmp(line, FUNCTION, sizeof FUNCTION - 1) == 0;
        line += is_function ? sizeof FUNCTION - 1 : 0;
        if (is_function)
            add_name(names, line, strcspn(line, "("));
        else if (is_local)
            for (size_t len; (len = strcspn(line, ",= \n")) > 0; line += len + strspn(line + len, ", "))
                add_name(names, line, len);
    }
}

static size_t count_uses(const char *text, const char *name)
{
    size_t uses = 0, len = strlen(name);

    for (const char *at = text; (at = strstr(at, name)); at += len)
        uses += (at == text || (!is_of_word(at[-1]) && at[-1] != '\'' /* text */)) && !is_of_word(at[len]);
    return uses;
}

static bool has_name(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

static void check_script(const struct lua_script *script, const struct names *all)
{
    static const char RUN[] = "\nlocal function run()\n";
    char *text = strndup(script->body.ptr, script->body.len), *body = strstr(text, RUN), *front;
    struct names defined = {.count = 0};

    cr_assert(body, "%s", script->name);
    front = strndup(text, (size_t)(body - text));
    find_defined(front, &defined);
    for (size_t i = 0; i < all->count; i++)
        cr_expect(count_uses(text, all->list[i]) == 0 || has_name(&defined, all->list[i]), "%s has no %s", script->name,
                  all->list[i]);
    for (size_t i = 0; i < defined.count; i++) {
        cr_expect(has_name(all, defined.list[i]), "%s: the prelude has no %s", script->name, defined.list[i]);
        cr_expect(count_uses(text, defined.list[i]) > 1, "%s does not need %s", script->name, defined.list[i]);
    }
    free(front);
    free(text);
}

static char *read_source(const char *name)
{
    char path[PROCESS_PATH_BYTES];

    snprintf(path, sizeof path, "%s/src/%s", getenv("CHATELAINE_SOURCE"), name);
    return file_read(path);
}

Test(lua_texts, have_what_they_need)
{
    char *list = read_source("engine/lua/prelude.list"), *rest = list, *name, *part;
    struct names all = {.count = 0};

    while ((name = strsep(&rest, "\n")) && *name) {
        part = read_source(name);
        find_defined(part, &all);
        free(part);
    }
    free(list);
    cr_assert_gt(all.count, 150);
    for (size_t i = 0; i < SCRIPT_COUNT; i++)
        check_script(&LUA_SCRIPTS[i], &all);
}
