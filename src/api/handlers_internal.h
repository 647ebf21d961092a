/* The handlers named in the mount tables and the route table. */
#pragma once

struct exchange;

/* Named in the mount tables. */
void guard_enter(struct exchange *exchange);
void check_auth_request(struct exchange *exchange);
void check_forward_auth(struct exchange *exchange);
void check_ext_authz(struct exchange *exchange);
void check_nothing(struct exchange *exchange);
void watch_begin(struct exchange *exchange);
void watch_acknowledge(struct exchange *exchange);
void liveness_show(struct exchange *exchange);
void liveness_probe(struct exchange *exchange);
void readiness_probe(struct exchange *exchange);
void readiness_show(struct exchange *exchange);
void metrics_show(struct exchange *exchange);

/* Named in the route table. The guard has let the request pass: principal and permission are checked, the body is read,
 * and a query is refused unless the row takes one. */

void whoami_show(struct exchange *exchange);

void keys_create(struct exchange *exchange);
void keys_list(struct exchange *exchange);
void keys_show(struct exchange *exchange);
void keys_revoke(struct exchange *exchange);
void keys_revoke_list(struct exchange *exchange);
void keys_certify(struct exchange *exchange);

void key_end_show(struct exchange *exchange);
void key_end_set(struct exchange *exchange);
void key_end_withdraw(struct exchange *exchange);
void key_replace(struct exchange *exchange);

void jwks_show(struct exchange *exchange);

void oauth_metadata_show(struct exchange *exchange);
void device_authorize(struct exchange *exchange);
void device_token(struct exchange *exchange);
void token_revoke(struct exchange *exchange);
void enrolment_show(struct exchange *exchange);
void enrolment_approve(struct exchange *exchange);
void enrolment_deny(struct exchange *exchange);

void login_begin(struct exchange *exchange);
void logout_begin(struct exchange *exchange);
void session_show(struct exchange *exchange);
void step_up_begin(struct exchange *exchange);
void recovery_begin(struct exchange *exchange);
void recovery_confirm(struct exchange *exchange);

void password_change(struct exchange *exchange);
void new_totp_begin(struct exchange *exchange);
void new_totp_confirm(struct exchange *exchange);
void recovery_codes_make(struct exchange *exchange);
void recovery_codes_show(struct exchange *exchange);
void own_sessions_list(struct exchange *exchange);
void own_sessions_end(struct exchange *exchange);
void own_session_end(struct exchange *exchange);

void people_list(struct exchange *exchange);
void person_show(struct exchange *exchange);
void person_set_role(struct exchange *exchange);
void person_disable(struct exchange *exchange);
void person_enable(struct exchange *exchange);
void person_remove(struct exchange *exchange);
void person_reset(struct exchange *exchange);
void invitation_create(struct exchange *exchange);
void invitations_list(struct exchange *exchange);
void invitation_withdraw(struct exchange *exchange);
void join_begin(struct exchange *exchange);
void join_start(struct exchange *exchange);
void join_finish(struct exchange *exchange);
void team_remove(struct exchange *exchange);

void audit_events_list(struct exchange *exchange);
void audit_heads_show(struct exchange *exchange);
void system_show(struct exchange *exchange);
void usage_show(struct exchange *exchange);
void usage_period_show(struct exchange *exchange);
