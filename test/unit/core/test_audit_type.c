#include "core/audit_type.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 1024 * 1024, NAMES_MAX = 100 };

TestSuite(audit_type, .fini = leak_guard);

Test(audit_type, knows_types_and_families)
{
    static const char *const KNOWN[] = {"api_key.created", "api_key.", "api_key", "user.joined", "login"};
    static const char *const UNKNOWN[] = {
        "",          ".",        "api_key.create",   "api_key.createdx", "api_key..", "API_KEY", "api_ke",
        "api_keys.", ".created", "api_key.created.", "device_ke",        "user.jo",   "log.head"};

    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        cr_expect(audit_type_is_known(text_of(KNOWN[i])), "%s", KNOWN[i]);
    for (size_t i = 0; i < sizeof UNKNOWN / sizeof *UNKNOWN; i++)
        cr_expect_not(audit_type_is_known(text_of(UNKNOWN[i])), "%s", UNKNOWN[i]);
}

/* The caller frees it. */
static char *read_source(const char *name)
{
    char path[512], *content = calloc(1, FILE_MAX_BYTES);
    const char *source = getenv("CHATELAINE_SOURCE");

    cr_assert(source, "CHATELAINE_SOURCE is not set");
    snprintf(path, sizeof path, "%s/%s", source, name);
    FILE *file = fopen(path, "re");
    cr_assert(file, "%s", path);
    cr_assert_gt(fread(content, 1, FILE_MAX_BYTES - 1, file), 0);
    fclose(file);
    return content;
}

/* The quoted words between two marks. Points into content, which is changed. */
static size_t read_names(char *content, const char *from, const char *to, char *ret_names[NAMES_MAX])
{
    char *at = strstr(content, from), *end;
    size_t count = 0;

    cr_assert(at, "%s", from);
    end = strstr(at += strlen(from), to);
    cr_assert(end, "%s", to);
    *end = '\0';
    while ((at = strchr(at, '"'))) {
        char *close = strchr(at + 1, '"');

        cr_assert(close && count < NAMES_MAX);
        *close = '\0';
        ret_names[count++] = at + 1;
        at = close + 1;
    }
    return count;
}

Test(audit_type, are_those_of_the_document)
{
    char *document = read_source("src/api/openapi.json"), *code = read_source("src/core/audit_type.c");
    char *schema = strstr(document, "\"description\": \"What happened:"), *documented[NAMES_MAX], *known[NAMES_MAX];

    cr_assert(schema);
    size_t count = read_names(schema, "\"enum\": [", "]", documented);
    cr_assert_eq(read_names(code, "TYPES[] = {", "};", known), count);
    for (size_t i = 0; i < count; i++)
        cr_expect(audit_type_is_known(text_of(documented[i])) && strchr(documented[i], '.'), "%s", documented[i]);
    free(document);
    free(code);
}
