/* The administrative commands and their options. */
#pragma once
#include "admin/command.h"
#include "core/keyring.h"

extern const struct option_group ACCOUNT_CREATE_OPTIONS[], ACCOUNT_LIST_OPTIONS[], ACCOUNT_SUSPEND_OPTIONS[],
    ACCOUNT_RESUME_OPTIONS[], ACCOUNT_CLOSE_OPTIONS[], ACCOUNT_EXPORT_OPTIONS[], USER_CREATE_OPTIONS[],
    USER_LIST_OPTIONS[], USER_INVITE_OPTIONS[], USER_SHOW_OPTIONS[], USER_ROLE_OPTIONS[], USER_END_OPTIONS[],
    USER_RESET_OPTIONS[], USER_UNLOCK_OPTIONS[], USER_RESET_TOTP_OPTIONS[], USER_RESET_PASSWORD_OPTIONS[],
    KEY_LIST_OPTIONS[], KEY_SHOW_OPTIONS[], KEY_FIND_OPTIONS[], KEY_VERIFY_OPTIONS[], DEVICE_LIST_OPTIONS[],
    DEVICE_REVOKE_OPTIONS[], SESSION_LIST_OPTIONS[], SESSION_END_OPTIONS[], AUDIT_TAIL_OPTIONS[], KEY_REVOKE_OPTIONS[],
    TOTP_OPTIONS[], MASTER_KEY_OPTIONS[], MASTER_KEY_ROTATE_OPTIONS[], DOCTOR_OPTIONS[], STATUS_OPTIONS[],
    STORE_ACCEPT_LOSS_OPTIONS[], STORE_UPGRADE_OPTIONS[], STORE_LOWER_LEASE_OPTIONS[], STORE_COPY_OPTIONS[],
    STORE_SETTLE_TIME_OPTIONS[], RECEIPT_VERIFY_OPTIONS[], RECEIPT_KEYS_OPTIONS[], RECEIPT_SHOW_OPTIONS[];

int account_create_run(const struct command_line *line);
int account_list_run(const struct command_line *line);
int account_suspend_run(const struct command_line *line);
int account_resume_run(const struct command_line *line);
int account_close_run(const struct command_line *line);
int account_export_run(const struct command_line *line);
int user_create_run(const struct command_line *line);
int user_list_run(const struct command_line *line);
int user_invite_run(const struct command_line *line);
int user_show_run(const struct command_line *line);
int user_role_run(const struct command_line *line);
int user_disable_run(const struct command_line *line);
int user_enable_run(const struct command_line *line);
int user_remove_run(const struct command_line *line);
int user_reset_run(const struct command_line *line);
int user_unlock_run(const struct command_line *line);
int user_reset_totp_run(const struct command_line *line);
int user_reset_password_run(const struct command_line *line);
int key_list_run(const struct command_line *line);
int key_show_run(const struct command_line *line);
int key_find_run(const struct command_line *line);
int key_revoke_run(const struct command_line *line);
int key_verify_run(const struct command_line *line);
int device_list_run(const struct command_line *line);
int device_revoke_run(const struct command_line *line);
int session_list_run(const struct command_line *line);
int session_end_run(const struct command_line *line);
extern const struct option_group AUDIT_VERIFY_OPTIONS[];
int audit_verify_run(const struct command_line *line);
int audit_tail_run(const struct command_line *line);
int receipt_verify_run(const struct command_line *line);
int receipt_keys_run(const struct command_line *line);
int receipt_show_run(const struct command_line *line);
int totp_run(const struct command_line *line);
int master_key_run(const struct command_line *line);
int master_key_rotate_run(const struct command_line *line);
/* For the private store of `dev`: adopts and seals records that an earlier version left, if there are any. */
int master_key_adopt_own(const struct settings *settings, struct keyring *keyring);
int store_accept_loss_run(const struct command_line *line);
int store_upgrade_run(const struct command_line *line);
int store_lower_lease_run(const struct command_line *line);
int store_copy_run(const struct command_line *line);
int store_settle_time_run(const struct command_line *line);
int status_run(const struct command_line *line);
int gateway_echo_run(const struct command_line *line);
