#include "people_view_internal.h"
#include "views_internal.h"

void view_person(struct json_writer *w, const struct person *person)
{
    json_object_begin(w);
    view_put_person(w, person, VIEW_SESSION);
    json_object_end(w);
}

void view_people(struct json_writer *w, const struct person *people, size_t count, bool has_more)
{
    view_list_begin(w);
    for (size_t i = 0; i < count; i++)
        view_person(w, &people[i]);
    view_list_end(w, has_more);
}

static void put_ids(struct json_writer *w, const char *name, const struct id *ids, size_t count)
{
    json_key(w, name);
    json_array_begin(w);
    for (size_t i = 0; i < count; i++)
        json_put_text(w, id_text(&ids[i]));
    json_array_end(w);
}

void view_person_changed(struct json_writer *w, const struct person_changed *changed)
{
    json_object_begin(w);
    json_key(w, "user");
    view_person(w, &changed->person);
    json_put_number(w, "sessions_ended", changed->sessions_ended);
    put_ids(w, "keys_revoked", changed->revoked, changed->revoked_count);
    put_ids(w, "keys_kept", changed->kept, changed->kept_count);
    json_object_end(w);
}

void view_invitation(struct json_writer *w, const struct link_record *link, struct text url)
{
    json_object_begin(w);
    json_put_member(w, "id", id_text(&link->id));
    json_put_member(w, "email", text_of(link->email));
    json_put_member(w, "role", role_text(link->role));
    view_put_time(w, "expires_at", link->expires_ms);
    if (url.len)
        json_put_member(w, "url", url);
    json_object_end(w);
}

void view_invitations(struct json_writer *w, const struct link_record *links, size_t count, bool has_more)
{
    view_list_begin(w);
    for (size_t i = 0; i < count; i++)
        view_invitation(w, &links[i], (struct text){0});
    view_list_end(w, has_more);
}

void view_reset(struct json_writer *w, const struct link_record *link, struct text url, int64_t sessions_ended)
{
    json_object_begin(w);
    json_put_member(w, "url", url);
    view_put_time(w, "expires_at", link->expires_ms);
    json_put_number(w, "sessions_ended", sessions_ended);
    json_object_end(w);
}

void view_print_link(struct text origin, const struct token *code, struct buf *out)
{
    buf_append_text(out, origin);
    buf_append_str(out, "/console/join#");
    buf_append_str(out, code->text);
}
