#include "views_internal.h"
#include "base/secure.h"
#include "core/qr.h"

#include <stdio.h>

static void put_notices(struct json_writer *w, const struct session_notices *notices)
{
    json_key(w, "notices");
    json_object_begin(w);
    view_put_time_or_null(w, "last_sign_in_at", notices->last_sign_in_ms);
    view_put_text_or_null(w, "last_sign_in_ip", text_of(notices->last_sign_in_ip));
    json_put_number(w, "failed_sign_ins", notices->failed_sign_ins);
    json_key(w, "new_browsers");
    json_array_begin(w);
    for (size_t i = 0; i < notices->browser_count; i++) {
        json_object_begin(w);
        json_put_member(w, "browser", text_of(notices->browsers[i].name));
        view_put_text_or_null(w, "ip", text_of(notices->browsers[i].ip));
        view_put_time(w, "signed_in_at", notices->browsers[i].at_ms);
        json_object_end(w);
    }
    json_array_end(w);
    view_put_time_or_null(w, "recovery_used_at", notices->recovered_ms);
    view_put_time_or_null(w, "attacked_at", notices->attacked_ms);
    json_object_end(w);
}

static void put_login_members(struct json_writer *w, const struct session_answer *answer)
{
    const struct session_record *session = answer->session;
    int64_t idle_ms = answer->idle_expires_ms;

    json_key(w, "user");
    json_object_begin(w);
    view_put_self(w, &session->user);
    json_object_end(w);
    json_put_member(w, "csrf_token", answer->csrf_token);
    view_put_time(w, "expires_at", session->expires_ms);
    view_put_time(w, "idle_expires_at", idle_ms < session->expires_ms ? idle_ms : session->expires_ms);
    json_put_flag(w, "password_change_required", session->password_expired);
    put_notices(w, answer->notices);
}

void view_login(struct json_writer *w, const struct session_answer *answer)
{
    json_object_begin(w);
    put_login_members(w, answer);
    view_put_time_or_null(w, "attacked_at", answer->session->attacked_ms);
    json_object_end(w);
}

void view_session(struct json_writer *w, const struct session_answer *answer)
{
    json_object_begin(w);
    put_login_members(w, answer);
    view_put_time_or_null(w, "step_up_expires_at", answer->session->step_up_expires_ms);
    json_object_end(w);
}

static void put_session_row(struct json_writer *w, const struct session_row *row, bool is_current)
{
    char id[sizeof SESSION_PREFIX + ID_TEXT_BYTES];

    snprintf(id, sizeof id, SESSION_PREFIX "%s", row->sid);
    json_object_begin(w);
    json_put_member(w, "id", text_of(id));
    view_put_time(w, "created_at", row->created_ms);
    view_put_time(w, "last_seen_at", row->seen_ms);
    view_put_text_or_null(w, "ip", text_of(row->ip));
    json_put_member(w, "browser", row->browser[0] ? text_of(row->browser) : TEXT("Unknown browser"));
    json_put_flag(w, "current", is_current);
    json_object_end(w);
}

void view_sessions(struct json_writer *w, const struct session_row *sessions, size_t count, const char *current)
{
    view_list_begin(w);
    for (size_t i = 0; i < count; i++)
        put_session_row(w, &sessions[i], text_equal(text_of(sessions[i].sid), text_of(current)));
    view_list_end(w, false);
}

void view_step_up(struct json_writer *w, const struct session_record *session)
{
    json_object_begin(w);
    view_put_time_or_null(w, "step_up_expires_at", session->step_up_expires_ms);
    json_object_end(w);
}

void view_events(struct json_writer *w, const struct audit_page *page)
{
    view_list_begin(w);
    for (size_t i = 0; i < page->count; i++)
        view_event(w, NULL, &page->events[i]);
    json_array_end(w);
    json_put_flag(w, "has_more", page->has_more);
    view_put_text_or_null(w, "next_starting_after", id_text(&page->next));
    json_object_end(w);
}

static void put_usage_day(struct json_writer *w, const char *date, enum key_mode mode, int64_t requests,
                          int64_t refused)
{
    json_object_begin(w);
    json_put_member(w, "date", text_of(date));
    json_put_member(w, "mode", key_mode_text(mode));
    json_put_number(w, "requests", requests);
    json_put_number(w, "billable", view_billable(mode == MODE_LIVE, requests));
    json_put_number(w, "refused", refused);
    json_object_end(w);
}

static void put_refused(struct json_writer *w, const int64_t refused[USAGE_REASONS])
{
    static const char *const NAMES[USAGE_REASONS] = {
        [USAGE_REVOKED] = "revoked",
        [USAGE_SCOPE] = "insufficient_scope",
        [USAGE_MODE] = "mode_not_permitted",
        [USAGE_SUSPENDED] = "account_suspended",
    };
    int64_t sum = 0;

    for (size_t i = 0; i < USAGE_REASONS; i++)
        sum += refused[i];
    json_put_number(w, "refused", sum);
    json_key(w, "refused_reasons");
    json_object_begin(w);
    for (size_t i = 0; i < USAGE_REASONS; i++) {
        json_put_number(w, NAMES[i], refused[i]);
    }
    json_object_end(w);
}

static void put_usage_key(struct json_writer *w, const struct usage_key *key, size_t day_count)
{
    json_object_begin(w);
    json_put_member(w, "id", id_text(&key->key));
    view_put_text_or_null(w, "name", key->name);
    view_put_text_or_null(w, "mode", key->mode);
    json_put_number(w, "requests", key->requests);
    put_refused(w, key->refused);
    if (key->by_day) {
        json_key(w, "by_day");
        json_array_begin(w);
        for (size_t i = 0; i < day_count; i++)
            json_put_integer(w, key->by_day[i]);
        json_array_end(w);
    }
    json_object_end(w);
}

void view_usage(struct json_writer *w, const struct usage_day *days, size_t day_count, const struct usage_key *keys,
                size_t key_count)
{
    json_object_begin(w);
    json_key(w, "data");
    json_array_begin(w);
    for (size_t i = 0; i < day_count; i++) {
        put_usage_day(w, days[i].date, MODE_TEST, days[i].test_requests, days[i].test_refused);
        put_usage_day(w, days[i].date, MODE_LIVE, days[i].live_requests, days[i].live_refused);
    }
    json_array_end(w);
    json_key(w, "keys");
    json_array_begin(w);
    for (size_t i = 0; i < key_count; i++)
        put_usage_key(w, &keys[i], day_count);
    json_array_end(w);
    json_object_end(w);
}

/* Enrolment of devices */

enum { ADDRESS_MAX_BYTES = 1024 };

static void put_address(struct json_writer *w, const char *name, struct text origin, const char *path, const char *more)
{
    struct buf out = BUF_FIXED(ADDRESS_MAX_BYTES);

    buf_append_text(&out, origin);
    buf_append_str(&out, path);
    buf_append_str(&out, more);
    json_put_member(w, name, buf_text(&out));
}

/* value: empty for an empty list. */
static void put_list_of_one(struct json_writer *w, const char *name, struct text value)
{
    json_key(w, name);
    json_array_begin(w);
    if (value.len)
        json_put_text(w, value);
    json_array_end(w);
}

void view_authorization_server(struct json_writer *w, struct text origin, struct text asked_at)
{
    json_object_begin(w);
    json_put_member(w, "issuer", origin);
    put_address(w, "token_endpoint", origin, "/v1/auth/token", "");
    put_address(w, "device_authorization_endpoint", origin, "/v1/auth/device_authorization", "");
    put_address(w, "revocation_endpoint", origin, "/v1/auth/revoke", "");
    put_address(w, "jwks_uri", asked_at.len > 0 ? asked_at : origin, "/.well-known/jwks.json", "");
    put_list_of_one(w, "scopes_supported", TEXT("documents:write"));
    put_list_of_one(w, "response_types_supported", TEXT(""));
    put_list_of_one(w, "grant_types_supported", DEVICE_GRANT_TYPE);
    put_list_of_one(w, "token_endpoint_auth_methods_supported", TEXT("none"));
    put_list_of_one(w, "revocation_endpoint_auth_methods_supported", TEXT("none"));
    if (asked_at.len > 0) {
        put_address(w, "introspection_endpoint", asked_at, "/check/introspect", "");
        put_list_of_one(w, "introspection_endpoint_auth_methods_supported", TEXT("none"));
        put_list_of_one(w, "introspection_signing_alg_values_supported", TEXT("EdDSA"));
    }
    json_object_end(w);
}

void view_device_codes(struct json_writer *w, const struct token *device, const struct user_code *user,
                       struct text origin)
{
    char query[sizeof "?user_code=" + USER_CODE_CHARS];

    snprintf(query, sizeof query, "?user_code=%s", user->text);
    json_object_begin(w);
    json_put_member(w, "device_code", text_of(device->text));
    json_put_member(w, "user_code", text_of(user->text));
    put_address(w, "verification_uri", origin, "/console/activate", "");
    put_address(w, "verification_uri_complete", origin, "/console/activate", query);
    json_put_number(w, "expires_in", DEVICE_LIFETIME_S);
    json_put_number(w, "interval", DEVICE_INTERVAL_S);
    json_object_end(w);
}

/* A user of any account may have entered the code, so the response names the account. */
void view_token(struct json_writer *w, struct text secret, const struct device_poll *poll)
{
    struct buf scope = BUF_FIXED(256);

    scope_print(poll->scopes, ' ', &scope);
    json_object_begin(w);
    json_put_member(w, "access_token", secret);
    json_put_member(w, "token_type", TEXT("Bearer"));
    json_put_member(w, "scope", buf_text(&scope));
    json_put_member(w, "account_name", text_of(poll->account_name));
    json_object_end(w);
}

void view_oauth_error(struct json_writer *w, const char *error, const char *description)
{
    char storage[OAUTH_DESCRIPTION_BYTES];

    snprintf(storage, sizeof storage, "%s", description);
    for (char *c = storage; *c; c++)
        if (*c == '"' || *c == '\\' || *c < ' ' || *c > '~')
            *c = '\'';
    json_object_begin(w);
    json_put_member(w, "error", text_of(error));
    json_put_member(w, "error_description", text_of(storage));
    json_object_end(w);
}

void view_enrolment(struct json_writer *w, const struct device_enrolment *enrolment, const struct user_code *code)
{
    static const char *const STATUSES[] = {
        [DEVICE_IS_PENDING] = "pending",
        [DEVICE_IS_APPROVED] = "approved",
        [DEVICE_IS_DENIED] = "denied",
    };

    json_object_begin(w);
    json_put_member(w, "user_code", text_of(code->text));
    json_put_member(w, "client_id", enrolment->client);
    json_put_member(w, "device_name", enrolment->name);
    view_put_scopes(w, enrolment->scopes);
    json_put_member(w, "ip", enrolment->ip);
    view_put_time(w, "created_at", enrolment->created_ms);
    view_put_time(w, "expires_at", enrolment->expires_ms);
    json_put_member(w, "status", text_of(STATUSES[enrolment->status]));
    json_object_end(w);
}

void view_put_totp(struct json_writer *w, const struct totp_secret *secret, struct text email)
{
    char uri[TOTP_URI_MAX_BYTES];
    struct buf out;

    buf_init_fixed(&out, uri, sizeof uri - 1);
    totp_print_uri(secret, TOTP_ISSUER, email, &out);
    uri[out.len] = '\0';
    json_put_member(w, "totp_uri", text_of(uri));
    json_key(w, "totp_qr");
    qr_put_rows(w, uri);
    secure_wipe(uri, sizeof uri);
}
