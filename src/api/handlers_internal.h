/* The handlers that the route table names. Each has been let through by the guard: principal, permission, body and
 * query (where the row takes none) are settled. */
#pragma once

struct call;

void whoami_show(struct call *call);

void keys_create(struct call *call);
void keys_list(struct call *call);
void keys_show(struct call *call);
void keys_revoke(struct call *call);

void device_keys_list(struct call *call);
void device_keys_revoke(struct call *call);

void oauth_metadata_show(struct call *call);
void device_authorize(struct call *call);
void device_token(struct call *call);
void enrolment_show(struct call *call);
void enrolment_approve(struct call *call);
void enrolment_deny(struct call *call);

void login_begin(struct call *call);
void logout_begin(struct call *call);
void session_show(struct call *call);
void step_up_begin(struct call *call);

void audit_events_list(struct call *call);
void usage_show(struct call *call);
