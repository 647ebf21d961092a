/* JSON (RFC 8259): a strict gate around cJSON, readers driven by a table of fields, and a writer. The only module that
 * includes cJSON.h. It lives in base because the policy file (core), the command line (admin) and the ready file (app)
 * use JSON, not only the API. */
#pragma once
#include "base/attr.h"
#include "base/text.h"
#include <stdint.h>

struct json; /* a value inside a parsed document */

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Parses one JSON object. Stricter than RFC 8259: refuses invalid UTF-8, duplicate members, nesting deeper than 16,
 * "\u0000", lone surrogates, numbers longer than 63 bytes, and anything but white space after the object. NULL on
 * refusal; *ret_why (ret_why may be NULL) is then a constant that says what is wrong. */
MUST_CHECK struct json *json_parse_object(struct text body, const char **ret_why);
/* Where a text that json_parse_object() refuses stops being JSON, counted from 1, in characters. False: it is JSON, but
 * names two members of one object alike. */
MUST_CHECK bool json_find_mistake(struct text body, size_t *ret_line, size_t *ret_column);
/* Wipes every string first (bodies carry passwords), then frees. NULL is fine. */
void json_free(struct json *document);

enum json_type json_type(const struct json *value);
const struct json *json_member(const struct json *object, const char *name); /* NULL when absent */
struct text json_text(const struct json *string);
bool json_bool(const struct json *boolean);
/* False unless the number is an integer of at most 2^53 - 1 in magnitude: a double cannot represent larger ones
 * exactly. */
MUST_CHECK bool json_integer(const struct json *number, int64_t *ret_value);
/* Iteration over arrays and objects, in document order: NULL ends it. */
const struct json *json_first(const struct json *container);
const struct json *json_next(const struct json *value);
/* The member's name, of a value inside an object. */
struct text json_name(const struct json *value);

/* Reading an object into a struct, by a table of fields. */
enum json_field_type {
    JSON_FIELD_TEXT,
    JSON_FIELD_ARRAY,
    JSON_FIELD_BOOL,
    JSON_FIELD_INTEGER,
    JSON_FIELD_WORD
}; /* struct text; const struct json *; bool; int64_t, as json_integer(); struct text: a string, or true or false */
struct json_field {
    const char *name;
    enum json_field_type type;
    bool required;
    size_t offset; /* in the target struct; an absent optional field is left as it was */
};
enum json_read_result { JSON_READ_OK, JSON_READ_MISSING, JSON_READ_WRONG_TYPE, JSON_READ_UNKNOWN };
/* Refuses members that the table does not name. On refusal, ret_name is the member; it points into the table or the
 * document. Views in the target live as long as the document. */
MUST_CHECK enum json_read_result json_read(const struct json *object, const struct json_field *fields, size_t count,
                                           void *target, struct text *ret_name);

/* Writing. The writer adds separators; the buffer's `failed` says whether everything fitted. */
struct json_writer {
    struct buf *out;
    bool need_comma;
};
/* Puts the comma that may be due and returns room for `bytes` after it, or NULL. Call json_end() with the end of what
 * was written there. */
static inline char *json_begin(struct json_writer *w, size_t bytes)
{
    char *at = buf_reserve(w->out, w->need_comma + bytes);
    if (at && w->need_comma)
        *at++ = ',';
    return at;
}
static inline void json_end(struct json_writer *w, const char *end, bool need_comma)
{
    w->out->len = (size_t)(end - w->out->ptr);
    w->need_comma = need_comma;
}
void json_object_begin(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array_begin(struct json_writer *w);
void json_array_end(struct json_writer *w);
/* The name is a constant that needs no escape. Inline, like the words below, because responses to checks are made of
 * literals. */
static ALWAYS_INLINE void json_key(struct json_writer *w, const char *name)
{
    size_t length = strlen(name);
    char *at = json_begin(w, length + 3);
    if (!at)
        return;
    *at++ = '"';
    memcpy(at, name, length);
    memcpy(at + length, "\":", 2);
    json_end(w, at + length + 2, false);
}
/* Invalid bytes of UTF-8 become U+FFFD. Control characters are escaped, including DEL and U+0080 to U+009F. */
void json_put_text(struct json_writer *w, struct text t);
void json_put_integer(struct json_writer *w, int64_t value);
void json_put_bool(struct json_writer *w, bool value);
void json_put_null(struct json_writer *w);
/* A member, or an element of an array, whose value needs no escape: an id, a constant. name is a literal. */
#define JSON_PUT_WORD(w, name, value) json_put_word(w, TEXT("\"" name "\":\""), value)
#define JSON_PUT_WORD_ELEMENT(w, value) json_put_word(w, TEXT("\""), value)
static ALWAYS_INLINE void json_put_word(struct json_writer *w, struct text opening, struct text word)
{
    char *at = json_begin(w, opening.len + word.len + 1);
    if (!at)
        return;
    memcpy(at, opening.ptr, opening.len);
    at += opening.len;
    if (word.len)
        memcpy(at, word.ptr, word.len);
    at[word.len] = '"';
    json_end(w, at + word.len + 1, true);
}
/* A member that is an object or an array: json_key() and its begin. */
void json_key_object(struct json_writer *w, const char *name);
void json_key_array(struct json_writer *w, const char *name);
/* Ends an object that is a line of its own. */
void json_line_end(struct json_writer *w);
/* A member: json_key() and its value. */
void json_put_member(struct json_writer *w, const char *name, struct text value);
/* The same for other values. */
void json_put_number(struct json_writer *w, const char *name, int64_t value);
void json_put_flag(struct json_writer *w, const char *name, bool value);
/* A member whose name is not a constant, and may need escapes. */
void json_put_named(struct json_writer *w, struct text name, struct text value);
