/* Records as clients see them. Fields that are not written here cannot leak. */
#pragma once
#include "core/token.h"
#include "core/totp.h"
#include "trail/audit_store.h"
#include "records/device_store.h"
#include "records/key_store.h"
#include "records/session_store.h"
#include "records/usage_store.h"
#include "view/view.h"

/* Device enrolment, for devices (RFC 8628, RFC 8414) and for users. origin: the public origin. asked_at: where the
 * reader may introspect (RFC 7662), a scheme with an authority; empty: nowhere. */
void view_authorization_server(struct json_writer *w, struct text origin, struct text asked_at);
void view_device_codes(struct json_writer *w, const struct token *device, const struct user_code *user,
                       struct text origin);
void view_token(struct json_writer *w, struct text secret, const struct device_poll *poll);
enum { OAUTH_DESCRIPTION_BYTES = 384 }; /* what is longer is cut */
/* RFC 6749 section 5.2 has a description of printable ASCII without quotes and backslashes: others become '. */
void view_oauth_error(struct json_writer *w, const char *error, const char *description);
void view_enrolment(struct json_writer *w, const struct device_enrolment *enrolment, const struct user_code *code);

/* The response to a login, and about the present session (with its step-up). */
struct session_answer {
    const struct session_record *session;
    const struct session_notices *notices;
    struct text csrf_token;
    int64_t idle_expires_ms; /* when the session ends if it is not used again */
};
void view_login(struct json_writer *w, const struct session_answer *answer);
void view_session(struct json_writer *w, const struct session_answer *answer);
/* current: its sid. */
void view_sessions(struct json_writer *w, const struct session_row *sessions, size_t count, const char *current);
void view_step_up(struct json_writer *w, const struct session_record *session);

void view_events(struct json_writer *w, const struct audit_page *page);
void view_usage(struct json_writer *w, const struct usage_day *days, size_t day_count, const struct usage_key *keys,
                size_t key_count);

/* A new authenticator's secret, as its owner sees it once. Two members of an object: totp_uri, the otpauth:// address,
 * and totp_qr, the rows of its QR code. Wipe what they are written to. */
void view_put_totp(struct json_writer *w, const struct totp_secret *secret, struct text email);
