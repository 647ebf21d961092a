/* Request bodies through the JSON gate. What is accepted, written again and read again, is the same document. */
#include "base/check.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void write_value(struct json_writer *w, const struct json *value)
{
    int64_t number;
    char name[64 * 1024];

    switch (json_type(value)) {
    case JSON_NULL:
        json_put_null(w);
        break;
    case JSON_BOOL:
        json_put_bool(w, json_bool(value));
        break;
    case JSON_NUMBER:
        json_put_integer(w, json_integer(value, &number) ? number : 0);
        break;
    case JSON_STRING:
        json_put_text(w, json_text(value));
        break;
    case JSON_ARRAY:
        json_array_begin(w);
        for (const struct json *item = json_first(value); item; item = json_next(item))
            write_value(w, item);
        json_array_end(w);
        break;
    case JSON_OBJECT:
        json_object_begin(w);
        for (const struct json *item = json_first(value); item; item = json_next(item)) {
            struct text item_name = json_name(item);

            CHECK(item_name.len < sizeof name);
            memcpy(name, item_name.ptr, item_name.len);
            name[item_name.len] = '\0';
            CHECK(json_member(value, name) == item);
            json_key(w, name);
            write_value(w, item);
        }
        json_object_end(w);
        break;
    }
}

static void print(const struct json *document, struct buf *out)
{
    struct json_writer writer = {.out = out};

    buf_init(out, 1024 * 1024);
    write_value(&writer, document);
    CHECK(!out->failed);
}

static void read_as_key_draft(const struct json *document)
{
    static const struct json_field FIELDS[] = {
        {"name", JSON_FIELD_TEXT, true, 0},
        {"scopes", JSON_FIELD_ARRAY, false, sizeof(struct text)},
    };
    struct {
        struct text name;
        const struct json *scopes;
    } draft = {0};
    struct text at_fault;

    if (json_read(document, FIELDS, 2, &draft, &at_fault) == JSON_READ_OK && draft.scopes)
        CHECK(json_type(draft.scopes) == JSON_ARRAY);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    enum { LARGEST_BODY_BYTES = 64 * 1024 - 1 };
    struct json *document, *again;
    struct buf first, second;
    const char *why = NULL;
    char *copy;

    if (count > LARGEST_BODY_BYTES)
        return 0;
    copy = mem_alloc(count + 1);
    if (count > 0)
        memcpy(copy, bytes, count);
    document = json_parse_object((struct text){copy, count}, &why);
    free(copy);
    CHECK(document || why);
    if (!document)
        return 0;
    read_as_key_draft(document);
    print(document, &first);
    again = json_parse_object(buf_text(&first), NULL);
    CHECK(again);
    print(again, &second);
    CHECK(text_equal(buf_text(&first), buf_text(&second)));
    buf_finish(&first);
    buf_finish(&second);
    json_free(document);
    json_free(again);
    return 0;
}
