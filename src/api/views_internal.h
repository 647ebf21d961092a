/* Records as clients see them. A field that is not written here cannot leak. */
#pragma once
#include "base/json.h"
#include "core/token.h"
#include "store/audit_store.h"
#include "store/device_store.h"
#include "store/key_store.h"
#include "store/session_store.h"
#include "store/usage_store.h"

/* for_people: in the console API keys also tell who made them. */
void view_key(struct json_writer *w, const struct key_record *key, bool for_people);
/* The key object with its secret: the one answer that has it. */
void view_key_created(struct json_writer *w, const struct key_record *key, bool for_people, struct text secret);
void view_keys(struct json_writer *w, const struct key_record *keys, size_t count, bool for_people, bool has_more);
/* Enrolment of devices, for devices (RFC 8628, RFC 8414) and for users. origin: the public one. */
void view_authorization_server(struct json_writer *w, struct text origin);
void view_device_codes(struct json_writer *w, const struct token *device, const struct user_code *user,
                       struct text origin);
void view_token(struct json_writer *w, struct text secret, const struct device_poll *poll);
void view_oauth_error(struct json_writer *w, const char *error, const char *description);
void view_enrolment(struct json_writer *w, const struct device_enrolment *enrolment, const struct user_code *code);

void view_whoami(struct json_writer *w, const struct key_principal *key);

/* The answer of a login. idle_expires_ms: when the session ends if it is not used again. */
void view_login(struct json_writer *w, const struct session_record *session, struct text csrf_token,
                int64_t idle_expires_ms);
/* The same, with the step-up. */
void view_session(struct json_writer *w, const struct session_record *session, struct text csrf_token,
                  int64_t idle_expires_ms);
void view_step_up(struct json_writer *w, const struct session_record *session);

void view_events(struct json_writer *w, const struct audit_event *events, size_t count, bool has_more);
void view_usage(struct json_writer *w, const struct usage_day *days, size_t day_count, const struct usage_key *keys,
                size_t key_count);
