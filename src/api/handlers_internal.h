/* The handlers that the route table names. Each has been let through by the guard: principal, permission, body and
 * query (where the row takes none) are settled. */
#pragma once

struct exchange;

void whoami_show(struct exchange *exchange);

void keys_create(struct exchange *exchange);
void keys_list(struct exchange *exchange);
void keys_show(struct exchange *exchange);
void keys_revoke(struct exchange *exchange);

void device_keys_list(struct exchange *exchange);
void device_keys_revoke(struct exchange *exchange);

void oauth_metadata_show(struct exchange *exchange);
void device_authorize(struct exchange *exchange);
void device_token(struct exchange *exchange);
void enrolment_show(struct exchange *exchange);
void enrolment_approve(struct exchange *exchange);
void enrolment_deny(struct exchange *exchange);

void login_begin(struct exchange *exchange);
void logout_begin(struct exchange *exchange);
void session_show(struct exchange *exchange);
void step_up_begin(struct exchange *exchange);

void audit_events_list(struct exchange *exchange);
void usage_show(struct exchange *exchange);
