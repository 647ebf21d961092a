/* Records as their readers see them. Each has one table of members (src/view/people.c, key.c, event.c), from which the
 * API, commands and exports print. What is in no table cannot leak. */
#pragma once
#include "base/json.h"
#include "core/scope.h"

struct audit_event;
struct id;
struct key_record;
struct person;
struct user_record;

/* Parts of other views. The _or_null functions write null for 0 ms and for an empty text. */
void view_put_time(struct json_writer *w, const char *name, int64_t wall_ms);
void view_put_time_or_null(struct json_writer *w, const char *name, int64_t wall_ms);
void view_put_text_or_null(struct json_writer *w, const char *name, struct text value);
void view_put_scopes(struct json_writer *w, scope_set scopes);
/* How many of the requests are billed: those in live mode. */
int64_t view_billable(bool is_live, int64_t requests);
void view_list_begin(struct json_writer *w);
void view_list_end(struct json_writer *w, bool has_more);

/* Keys of the API, sessions, and operators, whom commands print for: a bit each. */
enum view_reader { VIEW_KEY = 1, VIEW_SESSION = 2, VIEW_OPERATOR = 4 };

/* The members of an object, without its braces. */
void view_put_person(struct json_writer *w, const struct person *person, enum view_reader reader);
/* A session's own user. */
void view_put_self(struct json_writer *w, const struct user_record *user);
void view_put_key(struct json_writer *w, const struct key_record *key, enum view_reader reader);

/* Whole objects. account: for operators; NULL: the reader knows it. */
void view_event(struct json_writer *w, const struct id *account, const struct audit_event *event);
void view_event_data(struct json_writer *w, const struct audit_event *event);

/* For people, a line for each member: "last sign-in  never". */
void view_print_person(struct buf *out, const struct person *person);
