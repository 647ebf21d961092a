/* Each embedded script has those definitions of the prelude that it needs, and no other, and is called with as many
 * arguments as it declares (src/engine/lua/embed.c). */
#include "leak_guard.h"
#include "process.h"
#include "store_fixture.h"
#include "engine/lua_scripts.h"
#include "engine/script.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <signal.h>
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

TestSuite(lua_arguments, .init = fixture_start, .fini = fixture_stop);

static void on_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)reply;
    answer_done(arg, result);
}

/* Returns whether it was run. */
static bool call_with(enum script script, size_t argc)
{
    const struct text argv[9] = {TEXT(""), TEXT(""), TEXT(""), TEXT(""), TEXT(""),
                                 TEXT(""), TEXT(""), TEXT(""), TEXT("")};
    struct answer answer = {.is_done = false};

    store_call_script(fixture.store, script, SCRIPT_READS, argc, argv, on_called, &answer);
    return answer_wait(&answer) != STORE_UNAVAILABLE;
}

Test(lua_arguments, as_declared)
{
    cr_expect(call_with(SCRIPT_email_find, 1));
    cr_expect(call_with(SCRIPT_account_list, 0));
    cr_expect(call_with(SCRIPT_node_leave, 0));
    cr_expect(call_with(SCRIPT_node_leave, 9));
}

Test(lua_arguments, too_few_abort, .signal = SIGABRT)
{
    call_with(SCRIPT_email_find, 0);
}

Test(lua_arguments, too_many_abort, .signal = SIGABRT)
{
    call_with(SCRIPT_email_find, 2);
}

Test(lua_arguments, some_of_those_that_come_together_abort, .signal = SIGABRT)
{
    call_with(SCRIPT_account_list, 1);
}

Test(lua_arguments, a_part_of_a_group_aborts, .signal = SIGABRT)
{
    call_with(SCRIPT_node_leave, 4);
}
