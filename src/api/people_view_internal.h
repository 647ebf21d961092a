/* People and invitations as clients see them. */
#pragma once
#include "base/json.h"
#include "records/link_store.h"
#include "records/people_store.h"

void view_person(struct json_writer *w, const struct person *person);
void view_people(struct json_writer *w, const struct person *people, size_t count, bool has_more);
/* What disabling and removing did. */
void view_person_changed(struct json_writer *w, const struct person_changed *changed);

/* url: the link; empty when it is not shown. */
void view_invitation(struct json_writer *w, const struct link_record *link, struct text url);
void view_invitations(struct json_writer *w, const struct link_record *links, size_t count, bool has_more);

void view_reset(struct json_writer *w, const struct link_record *link, struct text url, int64_t sessions_ended);

/* https://console.example.org/console/join#<code>. The code is in the fragment, which browsers send to nobody. */
enum { LINK_URL_MAX_BYTES = 1024 };
void view_print_link(struct text origin, const struct token *code, struct buf *out);
