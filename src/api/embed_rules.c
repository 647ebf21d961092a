/* A program of the build: writes what openapi.json says of each parameter as tables in C (param_rule_internal.h).
 *   embed_rules OPENAPI.json TABLE.c
 * A rule is worded by the schema's "x-must", or else by its type, bounds, words and format. "x-secret": the value is
 * never repeated. The document's "x-instead" are the names that other services have for what is called otherwise here.
 */
#include <cjson/cJSON.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUST_BYTES = 512, DEPTH_MAX = 16 };

static const cJSON *document;
static FILE *table;
static unsigned word_lists;

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    fputs("embed_rules: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static const cJSON *first_of(const cJSON *container)
{
    return container ? container->child : NULL;
}

static const char *string(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(member(object, name));
}

/* What "#/components/schemas/Name" names. */
static const cJSON *follow(const char *reference)
{
    const cJSON *at = document;
    const char *part = reference + strlen("#");

    while (at && *part == '/') {
        char name[MUST_BYTES];

        part++;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(part, "/"), part);
        part += strlen(name);
        at = member(at, name);
    }
    if (!at)
        fail("%s: there is no such thing", reference);
    return at;
}

static const cJSON *resolve(const cJSON *value)
{
    for (int depth = 0; string(value, "$ref"); depth++) {
        if (depth == DEPTH_MAX)
            fail("%s refers to itself", string(value, "$ref"));
        value = follow(string(value, "$ref"));
    }
    return value;
}

/* Of a schema, or of what it refers to: the nearest one counts. */
static const cJSON *fact(const cJSON *schema, const char *name)
{
    const cJSON *found = member(schema, name);

    return found || !string(schema, "$ref") ? found : fact(follow(string(schema, "$ref")), name);
}

static const char *words_of(const cJSON *schema, const char *name)
{
    return cJSON_GetStringValue(fact(schema, name));
}

static void print_literal(const char *text)
{
    fputc('"', table);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', table);
        fputc(*text, table);
    }
    fputc('"', table);
}

/* The strings of a list, up to NULL. Returns its number. */
static unsigned print_words(const cJSON *list)
{
    const cJSON *word;

    fprintf(table, "static const char *const WORDS_%u[] = {", word_lists);
    for (word = first_of(list); word; word = word->next)
        if (cJSON_IsString(word)) {
            print_literal(word->valuestring);
            fputs(", ", table);
        }
    fputs("NULL};\n", table);
    return word_lists++;
}

/* "\"a\", \"b\" or \"c\"" */
static void word_list(const cJSON *list, char *ret, size_t size)
{
    size_t used = 0, left = (size_t)cJSON_GetArraySize(list);
    const cJSON *word;

    for (word = first_of(list); word; word = word->next) {
        const char *after = left == 1 ? "" : left == 2 ? " or " : ", ";

        used += (size_t)snprintf(ret + used, size - used, "\"%s\"%s", word->valuestring, after);
        if (used >= size)
            fail("a list of words is too long");
        left--;
    }
}

static void string_rule(const cJSON *schema, const char *place, char *ret, size_t size)
{
    const char *format = words_of(schema, "format");
    const cJSON *most = fact(schema, "maxLength"), *least = fact(schema, "minLength");

    if (format && strcmp(format, "date-time") == 0)
        snprintf(ret, size, "a time such as 2026-01-31T12:00:00Z (RFC 3339%s)",
                 strcmp(place, "query") == 0 ? "; write + as %2B" : "");
    else if (format && strcmp(format, "date") == 0)
        snprintf(ret, size, "a day such as 2026-01-31");
    else if (most && least)
        snprintf(ret, size, "a string of %d to %d characters", least->valueint, most->valueint);
    else
        snprintf(ret, size, "a string");
}

static int bound(const cJSON *schema, const char *name)
{
    const cJSON *number = fact(schema, name);

    if (!cJSON_IsNumber(number))
        fail("a schema of the type integer needs a %s", name);
    return number->valueint;
}

static void rule_of(const cJSON *schema, const char *place, char *ret, size_t size)
{
    const char *must = words_of(schema, "x-must"), *type = words_of(schema, "type");
    const cJSON *words = fact(schema, "enum");

    if (must)
        snprintf(ret, size, "%s", must);
    else if (words)
        word_list(words, ret, size);
    else if (type && strcmp(type, "integer") == 0)
        snprintf(ret, size, "a whole number from %d to %d", bound(schema, "minimum"), bound(schema, "maximum"));
    else if (type && strcmp(type, "boolean") == 0)
        snprintf(ret, size, "true or false");
    else if (type && strcmp(type, "string") == 0)
        string_rule(schema, place, ret, size);
    else
        fail("a schema of the type %s needs an x-must", type ? type : "(none)");
}

/* The rows are printed after all lists of words, so they are kept. */
struct rule_row {
    const char *method, *path, *place, *name;
    const cJSON *schema;
    int words; /* -1: none */
};

enum { ROWS_MAX = 1024 };
static struct rule_row rows[ROWS_MAX];
static size_t row_count;

static void add_row(const char *method, const char *path, const char *place, const char *name, const cJSON *schema)
{
    const cJSON *words = fact(schema, "enum");

    if (row_count == ROWS_MAX)
        fail("there are more than %d parameters", (int)ROWS_MAX);
    rows[row_count++] = (struct rule_row){method, path, place, name, schema, words ? (int)print_words(words) : -1};
}

static void add_query(const char *method, const char *path, const cJSON *parameters)
{
    const cJSON *parameter;

    for (parameter = first_of(parameters); parameter; parameter = parameter->next) {
        const cJSON *found = resolve(parameter);

        if (strcmp(string(found, "in"), "query") == 0)
            add_row(method, path, "query", string(found, "name"), member(found, "schema"));
    }
}

static void add_body(const char *method, const char *path, const cJSON *body)
{
    const cJSON *schema = member(member(member(body, "content"), "application/json"), "schema"), *property;

    if (!schema)
        return;
    for (property = first_of(fact(schema, "properties")); property; property = property->next)
        add_row(method, path, "body", property->string, property);
}

static void add_operations(const cJSON *path)
{
    static const char *const METHODS[] = {"get", "post", "put", "patch", "delete"};

    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        const cJSON *operation = member(path, METHODS[i]), *body = member(operation, "requestBody");

        if (!operation)
            continue;
        add_query(METHODS[i], path->string, member(path, "parameters"));
        add_query(METHODS[i], path->string, member(operation, "parameters"));
        if (body)
            add_body(METHODS[i], path->string, resolve(body));
    }
}

/* "/v1/console/sessions/{session_id}" as ROUTES has it: "{id}". */
static void print_path(const char *path)
{
    const char *open = strchr(path, '{');

    if (open)
        fprintf(table, "\"%.*s{id}%s\"", (int)(open - path), path, strchr(open, '}') + 1);
    else
        print_literal(path);
}

static void print_row(const struct rule_row *row)
{
    const cJSON *least = fact(row->schema, "minimum"), *most = fact(row->schema, "maximum");
    char must[MUST_BYTES];

    fputs("    {HTTP_", table);
    for (const char *c = row->method; *c; c++)
        fputc(*c - 'a' + 'A', table);
    fputs(", ", table);
    print_path(row->path);
    fprintf(table, ", PARAM_IN_%s, ", strcmp(row->place, "query") == 0 ? "QUERY" : "BODY");
    print_literal(row->name);
    fputs(", ", table);
    rule_of(row->schema, row->place, must, sizeof must);
    print_literal(must);
    if (row->words >= 0)
        fprintf(table, ", WORDS_%d", row->words);
    else
        fputs(", NULL", table);
    fprintf(table, ", %d, %d, %s},\n", least ? least->valueint : 0, most ? most->valueint : 0,
            cJSON_IsTrue(fact(row->schema, "x-secret")) ||
                    (words_of(row->schema, "format") && strcmp(words_of(row->schema, "format"), "password") == 0)
                ? "true"
                : "false");
}

static void print_rules(void)
{
    fputs("const struct param_rule PARAM_RULES[] = {\n", table);
    for (size_t i = 0; i < row_count; i++)
        print_row(&rows[i]);
    fputs("};\nconst size_t PARAM_RULE_COUNT = sizeof PARAM_RULES / sizeof *PARAM_RULES;\n", table);
}

static void print_insteads(const cJSON *list)
{
    const unsigned first = word_lists;
    unsigned words = first;
    const cJSON *row;

    for (row = first_of(list); row; row = row->next)
        print_words(member(row, "written"));
    fputs("const struct param_instead PARAM_INSTEADS[] = {\n", table);
    for (row = first_of(list); row; row = row->next) {
        const char *without = string(row, "without");

        fprintf(table, "    {WORDS_%u, ", words++);
        print_literal(string(row, "where"));
        fputs(", ", table);
        if (without)
            print_literal(without);
        else
            fputs("NULL", table);
        fputs(", ", table);
        print_literal(string(row, "say"));
        fputs("},\n", table);
    }
    fputs("};\nconst size_t PARAM_INSTEAD_COUNT = sizeof PARAM_INSTEADS / sizeof *PARAM_INSTEADS;\n", table);
}

static char *read_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    char *text;
    long size;

    if (!file || fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        fail("%s cannot be read", name);
    text = calloc((size_t)size + 1, 1);
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size)
        fail("%s cannot be read", name);
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    cJSON *parsed;
    const cJSON *path;
    char *text;

    if (argc != 3)
        fail("OPENAPI.json TABLE.c");
    text = read_file(argv[1]);
    parsed = cJSON_Parse(text);
    free(text);
    table = fopen(argv[2], "w");
    if (!parsed || !table)
        fail("%s is not JSON, or %s cannot be written", argv[1], argv[2]);
    document = parsed;
    fputs("/* Made by embed_rules from openapi.json. */\n#include \"param_rule_internal.h\"\n\n", table);
    for (path = first_of(member(document, "paths")); path; path = path->next)
        add_operations(path);
    print_rules();
    print_insteads(member(document, "x-instead"));
    cJSON_Delete(parsed);
    if (fclose(table) != 0)
        fail("%s cannot be written", argv[2]);
    return 0;
}
