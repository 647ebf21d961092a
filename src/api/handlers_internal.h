/* The handlers named in the mount tables and the route table. */
#pragma once
#include "api/routes.h"

/* Named in the mount tables. */
exchange_handler guard_enter;
exchange_handler check_auth_request, check_forward_auth, check_ext_authz, check_nothing;
exchange_handler ask_enter, introspect;
exchange_handler watch_begin, watch_acknowledge;
exchange_handler liveness_show, liveness_probe, readiness_probe, readiness_show, metrics_show;

/* Named in the route table. The guard has let the request pass: principal and permission are checked, the body is read,
 * and a query is refused unless the row takes one. */

exchange_handler whoami_show;
exchange_handler keys_create, keys_list, keys_show, keys_rename, keys_revoke, keys_revoke_list, keys_certify;
exchange_handler key_end_show, key_end_set, key_end_withdraw, key_replace;
exchange_handler jwks_show;

exchange_handler oauth_metadata_show, device_authorize, device_token, token_revoke;
exchange_handler enrolment_show, enrolment_approve, enrolment_deny;

exchange_handler login_begin, logout_begin, session_show, step_up_begin;
exchange_handler recovery_begin, recovery_confirm;
exchange_handler join_begin, join_start, join_finish;

exchange_handler password_change, new_totp_begin, new_totp_confirm, recovery_codes_make, recovery_codes_show;
exchange_handler own_sessions_list, own_sessions_end, own_session_end;

exchange_handler people_list, person_show, person_set_role, person_disable, person_enable, person_remove, person_reset;
exchange_handler invitation_create, invitations_list, invitation_withdraw;
exchange_handler team_remove;

exchange_handler audit_events_list, audit_heads_show, system_show, usage_show, usage_period_show;
