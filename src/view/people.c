#include "records/people_store.h"
#include "table.h"

/* A session's own user; its record is the first member of a person. */
enum { SELF = VIEW_OPERATOR << 1 };
enum { CLIENTS = VIEW_KEY | VIEW_SESSION, ALL = CLIENTS | VIEW_OPERATOR };
_Static_assert(offsetof(struct person, user) == 0, "a user's members are where a person's are");

static struct text role_of(const void *member, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return role_text(*(const enum role *)member);
}

static struct text status_of(const void *person, UNUSED char storage[VIEW_TEXT_BYTES])
{
    return text_of(person_status(person));
}

#define USER(member) offsetof(struct person, user.member)
static const struct view_member PERSON[] = {
    {"id", ALL | SELF, view_chars, USER(id.text), NULL, NULL},
    {"account_id", VIEW_OPERATOR, view_chars, USER(account.text), NULL, "account"},
    {"email", ALL | SELF, view_chars, USER(email), NULL, NULL},
    {"role", ALL | SELF, role_of, USER(role), NULL, NULL},
    {"account_id", SELF, view_chars, USER(account.text), NULL, NULL},
    {"account_name", SELF, view_chars, USER(account_name), NULL, NULL},
    {"status", ALL, status_of, 0, NULL, NULL},
    {"created_at", ALL, view_time, USER(created_ms), NULL, "created"},
    {"last_sign_in_at", ALL, view_time, offsetof(struct person, last_sign_in_ms), NULL, "last sign-in"},
    {"disabled_at", ALL, view_time, USER(disabled_ms), NULL, "disabled"},
};

void view_put_person(struct json_writer *w, const struct person *person, enum view_reader reader)
{
    VIEW_PUT(w, PERSON, person, reader);
}

void view_put_self(struct json_writer *w, const struct user_record *user)
{
    VIEW_PUT(w, PERSON, user, SELF);
}

void view_print_person(struct buf *out, const struct person *person)
{
    char storage[VIEW_TEXT_BYTES];

    for (size_t i = 0; i < sizeof PERSON / sizeof *PERSON; i++) {
        const struct view_member *m = &PERSON[i];
        const struct text found = m->text((const char *)person + m->offset, storage),
                          shown = found.len ? found : TEXT("never");

        if (m->readers & VIEW_OPERATOR)
            buf_printf(out, "%-13s %.*s\n", m->label ? m->label : m->name, TEXT_ARG(shown));
    }
}
