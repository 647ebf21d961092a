#include "base/json.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "json_internal.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Beyond 2^53 - 1, a double cannot represent every integer. */
#define JSON_INTEGER_MAX 9007199254740991.0

/* A struct json is a cJSON under another name, so that no other file needs cJSON.h. */
static const cJSON *item_of(const struct json *value)
{
    return (const cJSON *)(const void *)value;
}

static const struct json *value_of(const cJSON *item)
{
    return (const struct json *)(const void *)item;
}

/* Documents. cJSON allocates each value and each string. Here these come one behind the other from a few blocks, which
 * are wiped and freed as a whole: a batch of checks has hundreds of them. */

enum { BLOCK_LEAST_BYTES = 512, BLOCK_MOST_BYTES = 64 * 1024, BYTES_PER_BYTE = 4 }; /* of a document per byte of text */

struct block {
    struct block *next;
    size_t used, bytes;
    _Alignas(max_align_t) char memory[]; /* of a document's first block: begins with its root */
};

/* Of the document that this thread is parsing: the first, and the one that has room. */
static _Thread_local struct block *first_block, *last_block;

static void add_block(size_t bytes)
{
    struct block *block = mem_alloc(sizeof *block + bytes);

    block->bytes = bytes;
    if (last_block)
        last_block->next = block;
    else
        first_block = block;
    last_block = block;
}

static void *block_alloc(size_t bytes)
{
    const size_t padded = (bytes + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    char *memory;

    CHECK(last_block && padded >= bytes);
    if (padded > last_block->bytes - last_block->used)
        add_block(padded > BLOCK_MOST_BYTES ? padded : BLOCK_MOST_BYTES);
    memory = last_block->memory + last_block->used;
    last_block->used += padded;
    return memory;
}

static void block_free(void *memory UNUSED)
{
}

static void set_hooks(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){block_alloc, block_free});
}

static void blocks_begin(size_t text_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const size_t wanted = BLOCK_LEAST_BYTES + BYTES_PER_BYTE * text_bytes;

    CHECK(!first_block);
    CHECK(pthread_once(&once, set_hooks) == 0);
    add_block(wanted < BLOCK_MOST_BYTES ? wanted : BLOCK_MOST_BYTES);
}

static struct block *blocks_end(void)
{
    struct block *block = first_block;

    first_block = last_block = NULL;
    return block;
}

static void blocks_free(struct block *block)
{
    while (block) {
        struct block *next = block->next;

        secure_wipe(block->memory, block->used);
        free(block);
        block = next;
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Beyond this many members, they are sorted: a body of many must not cost their square. */
enum { PAIRS_MAX = 8 };

static bool has_twin(const cJSON *item)
{
    for (const cJSON *other = item->next; other; other = other->next)
        if (strcmp(item->string, other->string) == 0)
            return true;
    return false;
}

static bool has_duplicate_names(const cJSON *object)
{
    size_t count = 0, filled = 0;
    bool has_twins = false;
    for (const cJSON *item = object->child; item; item = item->next)
        count++;
    if (count <= PAIRS_MAX) {
        for (const cJSON *item = object->child; item && !has_twins; item = item->next)
            has_twins = has_twin(item);
        return has_twins;
    }
    const char **names = mem_alloc(count * sizeof *names);
    for (const cJSON *item = object->child; item; item = item->next)
        names[filled++] = item->string;
    qsort(names, count, sizeof *names, compare_names);

    bool is_found = false;
    for (size_t i = 1; i < count && !is_found; i++)
        is_found = strcmp(names[i - 1], names[i]) == 0;
    free(names);
    return is_found;
}

/* Recursion in these two is bounded by JSON_DEPTH_MAX. */
static bool has_duplicates_within(const cJSON *container)
{
    if (cJSON_IsObject(container) && has_duplicate_names(container))
        return true;
    for (const cJSON *item = container->child; item; item = item->next)
        if (item->child && has_duplicates_within(item))
            return true;
    return false;
}

static cJSON *parse_object(struct text body, const char **ret_why)
{
    size_t wrong;
    *ret_why = json_scan_object(body, &wrong);
    if (*ret_why)
        return NULL;
    blocks_begin(body.len);
    cJSON *document = cJSON_ParseWithLengthOpts(body.ptr, body.len, NULL, false);
    struct block *blocks = blocks_end();
    if (!document) {
        *ret_why = "out of memory";
        blocks_free(blocks);
    } else if (has_duplicates_within(document)) {
        *ret_why = "an object has two members with the same name";
    }
    CHECK(!document || (char *)document == blocks->memory);
    return document;
}

struct json *json_parse_object(struct text body, const char **ret_why)
{
    const char *why;
    struct json *document = (struct json *)(void *)parse_object(body, &why);
    if (!why)
        return document;
    json_free(document);
    if (ret_why)
        *ret_why = why;
    return NULL;
}

bool json_find_mistake(struct text body, size_t *ret_line, size_t *ret_column)
{
    size_t wrong;
    if (!json_scan_object(body, &wrong))
        return false;
    struct text before = {body.ptr, wrong}, line;
    for (*ret_line = 0; text_next(&before, '\n', &line); ++*ret_line)
        if (!text_count_utf8(line, ret_column))
            *ret_column = line.len;
    if (*ret_line == 0) {
        *ret_line = 1;
        *ret_column = 0;
    }
    ++*ret_column;
    return true;
}

void json_free(struct json *document)
{
    if (document)
        blocks_free((struct block *)(void *)((char *)document - offsetof(struct block, memory)));
}

enum json_type json_type(const struct json *value)
{
    switch (item_of(value)->type & 0xff) {
    case cJSON_False:
    case cJSON_True:
        return JSON_BOOL;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_String:
        return JSON_STRING;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_Object:
        return JSON_OBJECT;
    default:
        return JSON_NULL;
    }
}

const struct json *json_member(const struct json *object, const char *name)
{
    CHECK(json_type(object) == JSON_OBJECT);
    return value_of(cJSON_GetObjectItemCaseSensitive(item_of(object), name));
}

struct text json_text(const struct json *string)
{
    CHECK(json_type(string) == JSON_STRING);
    return text_of(item_of(string)->valuestring);
}

bool json_bool(const struct json *boolean)
{
    CHECK(json_type(boolean) == JSON_BOOL);
    return cJSON_IsTrue(item_of(boolean));
}

bool json_integer(const struct json *number, int64_t *ret_value)
{
    CHECK(json_type(number) == JSON_NUMBER);
    double value = item_of(number)->valuedouble;
    if (!(fabs(value) <= JSON_INTEGER_MAX) || (double)(int64_t)value != value)
        return false;
    *ret_value = (int64_t)value;
    return true;
}

const struct json *json_first(const struct json *container)
{
    return value_of(item_of(container)->child);
}

const struct json *json_next(const struct json *value)
{
    return value_of(item_of(value)->next);
}

struct text json_name(const struct json *value)
{
    return text_of(item_of(value)->string);
}

static const struct json_field *find_field(const struct json_field *fields, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static bool read_field(const struct json_field *field, const struct json *value, void *target)
{
    void *place = (char *)target + field->offset;
    if (field->type == JSON_FIELD_WORD && json_type(value) == JSON_BOOL) {
        *(struct text *)place = json_bool(value) ? TEXT("true") : TEXT("false");
        return true;
    }
    if ((field->type == JSON_FIELD_TEXT || field->type == JSON_FIELD_WORD) && json_type(value) == JSON_STRING) {
        struct text text = json_text(value);
        memcpy(place, &text, sizeof text);
        return true;
    }
    if (field->type == JSON_FIELD_ARRAY && json_type(value) == JSON_ARRAY) {
        memcpy(place, &value, sizeof value);
        return true;
    }
    if (field->type == JSON_FIELD_BOOL && json_type(value) == JSON_BOOL) {
        *(bool *)place = json_bool(value);
        return true;
    }
    if (field->type == JSON_FIELD_INTEGER && json_type(value) == JSON_NUMBER)
        return json_integer(value, place);
    return false;
}

enum json_read_result json_read(const struct json *object, const struct json_field *fields, size_t count, void *target,
                                struct text *ret_name)
{
    for (const struct json *value = json_first(object); value; value = json_next(value)) {
        const struct json_field *field = find_field(fields, count, item_of(value)->string);
        if (field && read_field(field, value, target))
            continue;
        *ret_name = json_name(value);
        return field ? JSON_READ_WRONG_TYPE : JSON_READ_UNKNOWN;
    }
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].required || json_member(object, fields[i].name))
            continue;
        *ret_name = text_of(fields[i].name);
        return JSON_READ_MISSING;
    }
    return JSON_READ_OK;
}
