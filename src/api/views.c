#include "views_internal.h"
#include "base/clock.h"

static void put_time(struct json_writer *w, const char *name, int64_t wall_ms)
{
    char text[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(wall_ms, text);
    json_put_member(w, name, text_of(text));
}

/* 0 stands for "not yet". */
static void put_time_or_null(struct json_writer *w, const char *name, int64_t wall_ms)
{
    if (wall_ms) {
        put_time(w, name, wall_ms);
        return;
    }
    json_key(w, name);
    json_put_null(w);
}

static void put_text_or_null(struct json_writer *w, const char *name, struct text value)
{
    if (value.len) {
        json_put_member(w, name, value);
        return;
    }
    json_key(w, name);
    json_put_null(w);
}

static void put_scopes(struct json_writer *w, scope_set scopes)
{
    json_key(w, "scopes");
    json_array_begin(w);
    for (unsigned n = 0; n < SCOPE_COUNT && scopes >> n; n++)
        if (scopes & (1U << n))
            json_put_text(w, scope_name(n));
    json_array_end(w);
}

static void put_key_members(struct json_writer *w, const struct key_record *key)
{
    JSON_PUT_WORD(w, "id", id_text(&key->id));
    json_put_member(w, "name", key_name(key));
    json_put_member(w, "last4", text_of(key->last4));
    JSON_PUT_WORD(w, "mode", key_mode_text(key->mode));
    put_scopes(w, key->scopes);
    put_time(w, "created_at", key->created_ms);
    put_time_or_null(w, "last_used_at", key->last_used_ms);
    put_time_or_null(w, "revoked_at", key->revoked_ms);
}

void view_key(struct json_writer *w, const struct key_record *key)
{
    json_object_begin(w);
    put_key_members(w, key);
    json_object_end(w);
}

void view_key_created(struct json_writer *w, const struct key_record *key, struct text secret)
{
    json_object_begin(w);
    put_key_members(w, key);
    json_put_member(w, "secret", secret);
    json_object_end(w);
}

static void list_begin(struct json_writer *w)
{
    json_object_begin(w);
    json_key(w, "data");
    json_array_begin(w);
}

static void list_end(struct json_writer *w, bool has_more)
{
    json_array_end(w);
    json_key(w, "has_more");
    json_put_bool(w, has_more);
    json_object_end(w);
}

void view_keys(struct json_writer *w, const struct key_record *keys, size_t count, bool has_more)
{
    list_begin(w);
    for (size_t i = 0; i < count; i++)
        view_key(w, &keys[i]);
    list_end(w, has_more);
}

void view_whoami(struct json_writer *w, const struct key_record *key)
{
    json_object_begin(w);
    JSON_PUT_WORD(w, "id", id_text(&key->id));
    JSON_PUT_WORD(w, "kind", key_kind_text(key->kind));
    JSON_PUT_WORD(w, "account_id", id_text(&key->account));
    json_put_member(w, "name", key_name(key));
    JSON_PUT_WORD(w, "mode", key_mode_text(key->mode));
    put_scopes(w, key->scopes);
    json_object_end(w);
}

static void put_login_members(struct json_writer *w, const struct session_record *session, struct text csrf_token)
{
    json_key(w, "user");
    json_object_begin(w);
    json_put_member(w, "id", id_text(&session->user.id));
    json_put_member(w, "email", text_of(session->user.email));
    json_put_member(w, "account_id", id_text(&session->user.account));
    json_put_member(w, "account_name", text_of(session->user.account_name));
    json_object_end(w);
    json_put_member(w, "csrf_token", csrf_token);
    put_time(w, "expires_at", session->expires_ms);
}

void view_login(struct json_writer *w, const struct session_record *session, struct text csrf_token)
{
    json_object_begin(w);
    put_login_members(w, session, csrf_token);
    json_object_end(w);
}

void view_session(struct json_writer *w, const struct session_record *session, struct text csrf_token)
{
    json_object_begin(w);
    put_login_members(w, session, csrf_token);
    put_time_or_null(w, "step_up_expires_at", session->step_up_expires_ms);
    json_object_end(w);
}

void view_step_up(struct json_writer *w, const struct session_record *session)
{
    json_object_begin(w);
    put_time_or_null(w, "step_up_expires_at", session->step_up_expires_ms);
    json_object_end(w);
}

static void view_event(struct json_writer *w, const struct audit_event *event)
{
    json_object_begin(w);
    json_put_member(w, "id", id_text(&event->id));
    json_put_member(w, "type", event->type);
    put_time(w, "created_at", event->created_ms);
    put_text_or_null(w, "actor", event->actor);
    put_text_or_null(w, "target", event->target);
    put_text_or_null(w, "ip", event->ip);
    put_text_or_null(w, "request_id", event->request_id);
    json_object_end(w);
}

void view_events(struct json_writer *w, const struct audit_event *events, size_t count, bool has_more)
{
    list_begin(w);
    for (size_t i = 0; i < count; i++)
        view_event(w, &events[i]);
    list_end(w, has_more);
}

static void put_usage_day(struct json_writer *w, const char *date, enum key_mode mode, int64_t requests)
{
    json_object_begin(w);
    json_put_member(w, "date", text_of(date));
    json_put_member(w, "mode", key_mode_text(mode));
    json_key(w, "requests");
    json_put_integer(w, requests);
    json_key(w, "billable");
    json_put_integer(w, mode == MODE_LIVE ? requests : 0);
    json_object_end(w);
}

static void put_usage_key(struct json_writer *w, const struct usage_key_total *total)
{
    json_object_begin(w);
    json_put_member(w, "id", id_text(&total->key));
    json_key(w, "requests");
    json_put_integer(w, total->requests);
    json_object_end(w);
}

void view_usage(struct json_writer *w, const struct usage_day *days, size_t day_count,
                const struct usage_key_total *keys, size_t key_count)
{
    json_object_begin(w);
    json_key(w, "data");
    json_array_begin(w);
    for (size_t i = 0; i < day_count; i++) {
        put_usage_day(w, days[i].date, MODE_TEST, days[i].test_requests);
        put_usage_day(w, days[i].date, MODE_LIVE, days[i].live_requests);
    }
    json_array_end(w);
    json_key(w, "keys");
    json_array_begin(w);
    for (size_t i = 0; i < key_count; i++)
        put_usage_key(w, &keys[i]);
    json_array_end(w);
    json_object_end(w);
}
