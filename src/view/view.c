#include "table.h"

#include "base/clock.h"

void view_put_time(struct json_writer *w, const char *name, int64_t wall_ms)
{
    char text[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(wall_ms, text);
    json_put_member(w, name, text_of(text));
}

/* 0 means "not yet". */
void view_put_time_or_null(struct json_writer *w, const char *name, int64_t wall_ms)
{
    char text[VIEW_TEXT_BYTES];

    view_put_text_or_null(w, name, view_time(&wall_ms, text));
}

void view_put_text_or_null(struct json_writer *w, const char *name, struct text value)
{
    if (value.len) {
        json_put_member(w, name, value);
        return;
    }
    json_key(w, name);
    json_put_null(w);
}

void view_put_scopes(struct json_writer *w, scope_set scopes)
{
    json_key(w, "scopes");
    json_array_begin(w);
    for (scope_set rest = scopes & SCOPE_ALL; rest; rest &= rest - 1)
        JSON_PUT_WORD_ELEMENT(w, scope_name((unsigned)__builtin_ctz(rest)));
    json_array_end(w);
}

int64_t view_billable(bool is_live, int64_t requests)
{
    return is_live ? requests : 0;
}

void view_list_begin(struct json_writer *w)
{
    json_object_begin(w);
    json_key(w, "data");
    json_array_begin(w);
}

void view_list_end(struct json_writer *w, bool has_more)
{
    json_array_end(w);
    json_put_flag(w, "has_more", has_more);
    json_object_end(w);
}

/* Tables */

struct text view_chars(const void *member, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return text_of(member);
}

struct text view_slice(const void *member, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return *(const struct text *)member;
}

struct text view_time(const void *member, char storage[VIEW_TEXT_BYTES])
{
    const int64_t ms = *(const int64_t *)member;

    _Static_assert((int)CLOCK_RFC3339_BYTES <= (int)VIEW_TEXT_BYTES, "a time fits");
    if (ms <= 0)
        return TEXT("");
    clock_print_rfc3339(ms, storage);
    return text_of(storage);
}

void view_put_members(struct json_writer *w, const struct view_member *members, size_t count, const void *record,
                      unsigned reader)
{
    char storage[VIEW_TEXT_BYTES];

    for (const struct view_member *m = members; m < members + count; m++) {
        const void *member = (const char *)record + m->offset;

        if (!(m->readers & reader))
            continue;
        if (m->put)
            m->put(w, member);
        else
            view_put_text_or_null(w, m->name, m->text(member, storage));
    }
}
