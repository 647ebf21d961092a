/* The administrative commands and their options. */
#pragma once
#include "admin/command.h"
#include "core/keyring.h"

extern const struct option_group JSON_OPTIONS[]; /* of commands that have no other options of their own */
extern const struct option_group ACCOUNT_CREATE_OPTIONS[], ACCOUNT_CLOSE_OPTIONS[], ACCOUNT_EXPORT_OPTIONS[],
    USER_CREATE_OPTIONS[], USER_LIST_OPTIONS[], USER_INVITE_OPTIONS[], USER_SHOW_OPTIONS[], USER_ROLE_OPTIONS[],
    USER_END_OPTIONS[], USER_RESET_OPTIONS[], USER_RESET_TOTP_OPTIONS[], USER_RESET_PASSWORD_OPTIONS[],
    KEY_LIST_OPTIONS[], KEY_FIND_OPTIONS[], KEY_VERIFY_OPTIONS[], DEVICE_LIST_OPTIONS[], DEVICE_REVOKE_OPTIONS[],
    SESSION_LIST_OPTIONS[], SESSION_END_OPTIONS[], AUDIT_TAIL_OPTIONS[], KEY_REVOKE_OPTIONS[], TOTP_OPTIONS[],
    MASTER_KEY_OPTIONS[], MASTER_KEY_ROTATE_OPTIONS[], DOCTOR_OPTIONS[], STORE_UPGRADE_OPTIONS[],
    STORE_LOWER_LEASE_OPTIONS[], STORE_COPY_OPTIONS[], STORE_SETTLE_TIME_OPTIONS[], RECEIPT_VERIFY_OPTIONS[],
    RECEIPT_KEYS_OPTIONS[], USAGE_EXPORT_OPTIONS[], RECEIPT_SHOW_OPTIONS[], AUDIT_VERIFY_OPTIONS[];

command_run account_create_run, account_list_run, account_suspend_run, account_resume_run, account_close_run,
    account_export_run, user_create_run, user_list_run, user_invite_run, user_show_run, user_role_run, user_disable_run,
    user_enable_run, user_remove_run, user_reset_run, user_unlock_run, user_reset_totp_run, user_reset_password_run,
    key_list_run, key_show_run, key_find_run, key_rename_run, key_revoke_run, key_verify_run, device_list_run,
    device_revoke_run, session_list_run, session_end_run, audit_verify_run, audit_tail_run, receipt_verify_run,
    receipt_keys_run, receipt_show_run, usage_export_run, totp_run, master_key_run, master_key_rotate_run,
    store_accept_loss_run, store_upgrade_run, store_lower_lease_run, store_copy_run, store_settle_time_run, status_run,
    gateway_echo_run;
/* For the private store of `dev`: adopts and seals records that an earlier version left, if there are any. */
int master_key_adopt_own(const struct settings *settings, struct keyring *keyring);
