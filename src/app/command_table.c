#include "app/command_table.h"

#include "admin/commands.h"
#include "app/dev.h"
#include "app/serve.h"
#include "completion.h"
#include "conf.h"
#include "config_show.h"
#include "doctor_command.h"
#include "node_settings.h"
#include "ready_command.h"

static const struct option_group NO_OPTIONS[] = {{0}};

const struct command COMMANDS[] = {
    {.name = "serve",
     .summary = "Run one node",
     .text = "Serves the public and the internal listener. SIGTERM or SIGINT lets requests finish, then stops\nthe "
             "node; a second one stops it at once. SIGHUP rereads the policy file and reopens the\nrevocation log. "
             "While Redis is unreachable, requests are answered 503. The node refuses to serve\nfrom a Redis that "
             "could lose a revocation.",
     .examples =
         "chatelaine serve --public-origin https://console.example.org --master-key-file /etc/chatelaine/master.key\n"
         "chatelaine serve --public-origin https://console.example.org --redis-file redis.url --cache-bytes 256MiB",
     .groups = SERVE_OPTIONS,
     .shows_connection = true,
     .run = serve_command,
     .judge = node_settings_judge,
     .keys = COMMAND_KEYS_KNOWN,
     .logs = true},
    {.name = "dev",
     .summary = "Run one node with a private Redis, to try things out",
     .text = "Starts a private redis-server in a folder, creates a master key, an account and a user the first\ntime, "
             "shows how to sign in, and serves. Later starts reuse everything. Not for production: the\nfolder "
             "contains the password. Load its guide.sh into a shell for commands to try.",
     .examples = "chatelaine dev\n"
                 "chatelaine dev --dir /tmp/try --listen 127.0.0.1:9000\n"
                 "chatelaine dev --cluster --dir /tmp/cluster",
     .groups = DEV_OPTIONS,
     .shows_connection = true,
     .run = dev_command,
     .logs = true},
    {.name = "ready",
     .summary = "Ask the node on this machine whether it is ready",
     .text = "Exit status 0: the node serves and its Redis answers. 1: it does not. For health checks of\ncontainers.",
     .examples = "chatelaine ready\n"
                 "chatelaine ready --internal-listen 127.0.0.1:9081 --or-empty",
     .groups = READY_OPTIONS,
     .run = ready_run},
    {.name = "config show",
     .summary = "Print the settings that a node would have, and where each comes from",
     .text = "Takes the options of 'serve', and reads the same environment. Prints each setting's value and its\n"
             "source: an option, a variable, a file or the default. The password in the address of Redis is\n"
             "hidden. Only the settings themselves are checked; 'doctor' checks what they lead to.",
     .examples = "chatelaine config show\n"
                 "chatelaine config show --lease-ms 500ms --json",
     .groups = CONFIG_SHOW_OPTIONS,
     .shows_connection = true,
     .run = config_show_run},
    {.name = "account create",
     .summary = "Create an account",
     .examples = "chatelaine account create --name 'North Clinic'",
     .groups = ACCOUNT_CREATE_OPTIONS,
     .run = account_create_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "account list",
     .summary = "List the accounts",
     .examples = "chatelaine account list\n"
                 "chatelaine account list --json",
     .groups = JSON_OPTIONS,
     .run = account_list_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "account suspend",
     .operands = "ID",
     .summary = "Suspend an account: none of its keys and sessions is accepted",
     .text = "Once this exits with 0, every node answers 403 account_suspended to the account's keys and sessions,\n"
             "for requests that arrive later. Keys, people and data stay as they are, and nothing new can be\n"
             "created. 'account resume' undoes it.",
     .examples = "chatelaine account suspend acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F",
     .groups = JSON_OPTIONS,
     .run = account_suspend_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "account resume",
     .operands = "ID",
     .summary = "Resume a suspended account",
     .text = "Its keys are accepted again, but for those revoked, and its sessions, but for those that expired.",
     .examples = "chatelaine account resume acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F",
     .groups = JSON_OPTIONS,
     .run = account_resume_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "account close",
     .operands = "ID",
     .summary = "Close an account for good: its keys revoked, its people removed",
     .text = "Suspends the account, revokes all of its keys, removes its people and their sessions, and marks it\n"
             "closed. Emails are free again. Events and usage stay; revoked keys and their receipts stay for a day.\n"
             "Cannot be undone. Asks for the name of the account, unless --yes is given. If it is interrupted, run\n"
             "it again.",
     .examples = "chatelaine account close acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --export north-clinic.ndjson\n"
                 "chatelaine account close acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --yes --json",
     .groups = ACCOUNT_CLOSE_OPTIONS,
     .run = account_close_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "account export",
     .operands = "ID",
     .summary = "Write what is stored about an account, without secrets",
     .text = "One JSON object a line, with its type: account, user, key, event, usage. Read a page at a time, so\n"
             "changes made meanwhile may be missing. If Redis is lost in between, the exit status is 1.",
     .examples = "chatelaine account export acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --output north-clinic.ndjson\n"
                 "chatelaine account export acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F | gzip > north-clinic.ndjson.gz",
     .groups = ACCOUNT_EXPORT_OPTIONS,
     .run = account_export_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user create",
     .summary = "Create a user who can sign in to the console",
     .text = "Prints a link, as 'user invite' does. The user becomes an owner unless --role says otherwise.\n"
             "With --password-file the user exists at once, and the secret for one-time codes is printed as\n"
             "an address and a QR code, only once. Give both to the user, who must then change the password.",
     .examples = "chatelaine user create --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --email ada@clinic.example\n"
                 "chatelaine user create --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --email ada@clinic.example "
                 "--password-file -",
     .groups = USER_CREATE_OPTIONS,
     .run = user_create_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user list",
     .summary = "List the users",
     .text = "Shows role and status (active, invited, locked or disabled), newest users first, then the\n"
             "invitations that nobody has used yet.",
     .examples = "chatelaine user list\n"
                 "chatelaine user list --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --json",
     .groups = USER_LIST_OPTIONS,
     .run = user_list_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "user invite",
     .summary = "Make a link by which somebody joins an account",
     .text = "The recipient chooses the password and authenticator; operators never see them. The link works\n"
             "once, for 72 hours. Until then the email stays free.",
     .examples = "chatelaine user invite --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --email ada@clinic.example",
     .groups = USER_INVITE_OPTIONS,
     .run = user_invite_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user show",
     .summary = "Show a user: account, role, status, last sign-in",
     .examples = "chatelaine user show --email ada@clinic.example",
     .groups = USER_SHOW_OPTIONS,
     .run = user_show_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user role",
     .summary = "Give a user another role",
     .text =
         "In effect on every node before the command ends. An account keeps an owner who can sign in. Names the keys\n"
         "that go back to the user, which do not change with the role.",
     .examples = "chatelaine user role --email ada@clinic.example --role responder\n"
                 "chatelaine user role --email ada@clinic.example --role auditor --revoke-keys",
     .groups = USER_ROLE_OPTIONS,
     .run = user_role_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user disable",
     .summary = "Disable a user: no sign-in, no session",
     .text = "Once this exits with 0, no node accepts a session of the user, nor, with --revoke-keys, a key that "
             "goes\nback to the user. Names the keys that are kept. Asks first, unless --yes is given.",
     .examples = "chatelaine user disable --email ada@clinic.example --revoke-keys",
     .groups = USER_END_OPTIONS,
     .run = user_disable_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user enable",
     .summary = "Let a disabled user sign in again",
     .text = "Sessions, links and revoked keys do not come back.",
     .examples = "chatelaine user enable --email ada@clinic.example",
     .groups = USER_SHOW_OPTIONS,
     .run = user_enable_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user remove",
     .summary = "Remove a user",
     .text = "As 'user disable', for good. The email is free again; the trail keeps it.",
     .examples = "chatelaine user remove --email ada@clinic.example --revoke-keys --yes",
     .groups = USER_END_OPTIONS,
     .run = user_remove_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user reset",
     .summary = "Make a link by which a user sets password and authenticator anew",
     .text = "The old ones, known browsers, recovery codes and all sessions end now, and the user is unlocked. Asks\n"
             "first, unless --yes is given.",
     .examples = "chatelaine user reset --email ada@clinic.example --public-origin https://console.example.org",
     .groups = USER_RESET_OPTIONS,
     .run = user_reset_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user unlock",
     .summary = "Unlock a user, and reset the count of failed attempts",
     .text = "A user is locked after 100 wrong codes in a row with the right password. Somebody else then knows\nthe "
             "password, so use 'user reset-password', which also unlocks. Unlocking also clears strangers'\nfailed "
             "attempts, which block sign-in from new browsers.",
     .examples = "chatelaine user unlock --email ada@clinic.example",
     .groups = USER_SHOW_OPTIONS,
     .run = user_unlock_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user reset-totp",
     .summary = "Give a user a new secret for one-time codes",
     .text = "The old secret stops working, all sessions of the user end, and the user is unlocked. Asks first,\n"
             "unless --yes is given.",
     .examples = "chatelaine user reset-totp --email ada@clinic.example",
     .groups = USER_RESET_TOTP_OPTIONS,
     .run = user_reset_totp_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "user reset-password",
     .summary = "Give a user a new password",
     .text = "All sessions of the user end, and the user is unlocked.",
     .examples = "chatelaine user reset-password --email ada@clinic.example",
     .groups = USER_RESET_PASSWORD_OPTIONS,
     .run = user_reset_password_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "usage export",
     .summary = "Print the usage of accounts by day and mode as CSV, for billing",
     .text = "The columns: account, date, mode, requests, billable, refused. The sums are those of GET /v1/usage:\n"
             "only requests in live mode are billable. Days without requests have no row. Nodes report usage\n"
             "within a second, so a day is complete soon after it has ended (UTC). If Redis is lost in between,\n"
             "the exit status is 1, and the CSV is cut short.",
     .examples = "chatelaine usage export > last-month.csv\n"
                 "chatelaine usage export --from 2026-01-01 --to 2026-03-31 --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F",
     .groups = USAGE_EXPORT_OPTIONS,
     .run = usage_export_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "key list",
     .summary = "List API keys and keys of devices",
     .text = "Newest first within each account: id, account, mode, status, when it was made and last used, last "
             "four\ncharacters, name. Options that select keys apply together, and are those of 'key revoke'. The "
             "store\nis read a page at a time. If Redis is lost in mid list, the exit status is 1, and the JSON is "
             "cut short.",
     .examples = "chatelaine key list --status active\n"
                 "chatelaine key list --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --mode live --json\n"
                 "chatelaine key list --status active --unused-since 90d --scope patients:read",
     .groups = KEY_LIST_OPTIONS,
     .run = key_list_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "key show",
     .operands = "ID",
     .summary = "Show a key: account, scopes, who made it, when it was last used",
     .text = "Never its secret, of which Redis has only a digest.",
     .examples = "chatelaine key show key_01KAWT0E8G3M7Q5V9X2Z4B6D8F",
     .groups = JSON_OPTIONS,
     .run = key_show_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "key find",
     .summary = "Find the keys that secrets belong to",
     .text = "Reads secrets from a file, one in a line ('-': standard input), and shows each key as 'key show' does.\n"
             "Works with the secrets of API keys and devices. Needs the master keys.",
     .examples = "chatelaine key find --secret-file found.secret\n"
                 "chatelaine key find --secret-file - --json < found.secret",
     .groups = KEY_FIND_OPTIONS,
     .run = key_find_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "key verify",
     .operands = "FILE",
     .summary = "Look at a secret: is it whole, and of which kind and mode",
     .text = "Reads the secret from a file ('-': standard input), and checks its form and checksum. Asks neither\na "
             "node nor Redis, so it does not tell whether the key exists or is revoked.",
     .examples = "chatelaine key verify key.secret\n"
                 "chatelaine key verify - < key.secret",
     .groups = KEY_VERIFY_OPTIONS,
     .run = key_verify_run},
    {.name = "key rename",
     .operands = "ID NAME",
     .operand_count = 2,
     .summary = "Give an API key another name",
     .text = "Works for a key of any account, also a revoked one. Nothing that is checked changes. The audit trail\n"
             "keeps both names.",
     .examples = "chatelaine key rename key_01KAWT0E8G3M7Q5V9X2Z4B6D8F 'Lab importer, leaked in November'",
     .groups = JSON_OPTIONS,
     .run = key_rename_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "key revoke",
     .operands = "ID|FILE...",
     .optional_operand = true,
     .many_operands = true,
     .summary = "Revoke a key of any account, keys by their secrets, all that options select or that logs name",
     .text = "Once this exits with 0, no node accepts the key for a request that arrives later. Options that\n"
             "select keys apply together: the command prints the keys that match all of them, asks, and revokes\n"
             "them with one wait for all nodes. With --secret-file, the keys and devices' keys whose secrets the\n"
             "file has are revoked; this needs the master keys. The exit status is 1 if a line is no secret of a\n"
             "key; the others are revoked all the same. With --from-log, the operands are revocation logs that\n"
             "nodes wrote (--revocation-log; '-': standard input), and every key named in them is revoked. Do this\n"
             "after restoring a backup of Redis, before nodes serve again. The command can be repeated, and keys\n"
             "may occur more than once.",
     .examples = "chatelaine key revoke key_01KAWT0E8G3M7Q5V9X2Z4B6D8F\n"
                 "chatelaine key revoke --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F --unused-since 90d --dry-run\n"
                 "chatelaine key revoke --created-by usr_01KAWT0E8G3M7Q5V9X2Z4B6D8F --yes\n"
                 "chatelaine key revoke --created-by key_01KAWT0E8G3M7Q5V9X2Z4B6D8F --descendants\n"
                 "chatelaine key revoke --secret-file found.secret\n"
                 "chatelaine key revoke --from-log /var/log/chatelaine/revocations.log",
     .groups = KEY_REVOKE_OPTIONS,
     .run = key_revoke_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "device list",
     .summary = "List the keys of devices",
     .examples = "chatelaine device list --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F",
     .groups = DEVICE_LIST_OPTIONS,
     .run = device_list_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "device revoke",
     .operands = "ID",
     .summary = "Revoke the key of a device",
     .text = "As 'key revoke': once this exits with 0, no node accepts the key for a request that arrives later.",
     .examples = "chatelaine device revoke dev_01KAWT0E8G3M7Q5V9X2Z4B6D8F",
     .groups = DEVICE_REVOKE_OPTIONS,
     .run = device_revoke_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "session list",
     .summary = "List the console sessions",
     .text = "Each with its id, account, beginning, last use and user. Nodes note a use every ten seconds at most.",
     .examples = "chatelaine session list\n"
                 "chatelaine session list --user ada@clinic.example --json",
     .groups = SESSION_LIST_OPTIONS,
     .run = session_list_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "session end",
     .operands = "ID",
     .optional_operand = true,
     .summary = "End a console session, or all of a user",
     .text = "Once this exits with 0, no node accepts the session for a request that arrives later. The event in\nthe "
             "audit trail names the operator.",
     .examples = "chatelaine session end sess_Zm9vYmFyYmF6cXV4Zm9vYg\n"
                 "chatelaine session end --user ada@clinic.example",
     .groups = SESSION_END_OPTIONS,
     .run = session_end_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "audit tail",
     .summary = "Print the newest events of the audit trail, and follow it",
     .text = "Oldest first: time, account, event, target, actor, address, request id.",
     .examples = "chatelaine audit tail\n"
                 "chatelaine audit tail -f --account acct_01KAWT0E8G3M7Q5V9X2Z4B6D8F\n"
                 "chatelaine audit tail -n 1000 --json > events.ndjson",
     .groups = AUDIT_TAIL_OPTIONS,
     .run = audit_tail_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "audit verify",
     .operands = "FILE...",
     .many_operands = true,
     .summary = "Check audit logs: is a line changed, missing, out of order, or cut off",
     .text = "The operands are audit logs that nodes wrote (--audit-log; '-': standard input): of one node or "
             "several,\nrotated pieces too, in any order. With --redis (or CHATELAINE_REDIS), their ends are compared "
             "with what\nnodes publish there each minute; without it, a cut end only shows if another node's log is "
             "among them. Needs\nthe master key, and retired ones for older lines. The exit status is 1 if anything is "
             "wrong, and 3 if something\ncould not be proven: a beginning or an end that nothing confirms, or Redis "
             "could not be "
             "asked.",
     .examples = "chatelaine audit verify --redis redis://10.0.0.1 --master-key-file master.key audit.log\n"
                 "chatelaine audit verify --master-key-file master.key node1/audit.log* node2/audit.log*",
     .groups = AUDIT_VERIFY_OPTIONS,
     .run = audit_verify_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "receipt verify",
     .operands = "FILE",
     .summary = "Verify the certificate of a revocation, and print what it says",
     .text = "The operand is what GET /v1/api_keys/{id}/revocation answered ('-': standard input). Asks nobody. The "
             "exit\nstatus is 1 if anything in it was changed, or if none of the keys signed it.",
     .examples = "chatelaine receipt verify --jwks jwks.json revocation.jws\n"
                 "chatelaine receipt verify --master-key-file master.key revocation.jws",
     .groups = RECEIPT_VERIFY_OPTIONS,
     .run = receipt_verify_run},
    {.name = "receipt show",
     .operands = "ID",
     .summary = "Print the certificate of a revoked key, or of a suspended or closed account",
     .text = "The operand is the id of an API key (key_…), a device key (dev_…) or an account (acct_…). The output is "
             "what\nGET /v1/api_keys/{id}/revocation answers, also for accounts whose keys and people are refused.",
     .examples = "chatelaine receipt show key_01KAWT0E8G3M7Q5V9X2Z4B6D8F > revocation.jws",
     .groups = RECEIPT_SHOW_OPTIONS,
     .run = receipt_show_run,
     .keys = COMMAND_KEYS_KNOWN},
    {.name = "receipt keys",
     .summary = "Print the public keys that verify certificates of revocations",
     .text = "A JWK set, as nodes publish it at /.well-known/jwks.json. Keep it with the certificates: whoever has "
             "it\nneeds no master key to verify them, also after a rotation.",
     .examples = "chatelaine receipt keys --master-key-file master.key > jwks.json",
     .groups = RECEIPT_KEYS_OPTIONS,
     .run = receipt_keys_run},
    {.name = "totp",
     .operands = "URI|SECRET|FILE",
     .optional_operand = true,
     .summary = "Print the current one-time code of a TOTP secret that you pass",
     .text = "The operand is an otpauth:// address, a base32 secret, a file with one of them (also as @FILE), or\n'-' "
             "for standard input. Users' secrets in Redis cannot be read with it.",
     .examples = "chatelaine totp --file totp.secret\n"
                 "chatelaine totp --next @totp.secret",
     .groups = TOTP_OPTIONS,
     .run = totp_run},
    {.name = "master-key rotate",
     .summary = "Reseal stored data with the current master key, and count what needs others",
     .text = "Registers --master-key-file in Redis and reseals with it whatever retired master keys sealed.\nBefore "
             "this, give the new key to every node as a retired one; afterwards, make it their current\none. An API "
             "key needs the master key that made its digest until that API key is replaced; a\npassword needs it until "
             "its user signs in.",
     .examples = "chatelaine master-key rotate --master-key-file new.key --retired-master-key-file old.keys",
     .groups = MASTER_KEY_ROTATE_OPTIONS,
     .run = master_key_rotate_run,
     .keys = COMMAND_KEYS_ROTATE},
    {.name = "master-key",
     .summary = "Print a new random master key",
     .examples = "chatelaine master-key --write /etc/chatelaine/master-key",
     .groups = MASTER_KEY_OPTIONS,
     .run = master_key_run},
    {.name = "status",
     .summary = "Show the nodes, Redis, and what is degraded",
     .text = "Nodes tell Redis about themselves every ten seconds: version, lease, how long revocations took, what\n"
             "is wrong. Pass the options that the nodes have. Exit status 0: all is well, 3: something is\ndegraded "
             "(also if Redis cannot be reached or no node runs), 1 or 2: status could not run.",
     .examples = "chatelaine status\n"
                 "chatelaine status --json | jq .problems",
     .groups = JSON_OPTIONS,
     .run = status_run,
     .keys = COMMAND_KEYS_JUDGED},
    {.name = "doctor",
     .summary = "Check whether Redis and these settings, or a gateway, are fit for production",
     .text = "Takes the options of 'serve', and reads the same environment: what 'serve' would refuse fails here.\n"
             "Connects to Redis and the Sentinels, not to nodes, and listens on nothing. Prints one line per check,\n"
             "with a remedy unless it is ok. Exit status 0: no check failed (there may be warnings), 3: at least\n"
             "one failed, 1 or 2: doctor could not run. With --gateway, it sends known attacks to a gateway\n"
             "instead, and reads neither Redis nor settings. A check that could not tell is marked \"?\"; the exit\n"
             "status is then 3 too. What reaches a backend can be seen only if 'gateway-echo' stands in its place.",
     .examples = "chatelaine doctor --redis-file redis.url --master-key-file master.key --public-origin "
                 "https://console.example.org\n"
                 "chatelaine doctor --gateway https://api.example.org/v1/patients --key-file test.key "
                 "--revoked-key-file revoked.key",
     .groups = DOCTOR_OPTIONS,
     .shows_connection = true,
     .run = doctor_command,
     .judge = node_settings_judge,
     .keys = COMMAND_KEYS_JUDGED},
    {.name = "gateway-echo",
     .operands = "ADDRESS",
     .summary = "Stand in for a backend, and tell what reaches it, for 'doctor --gateway'",
     .text = "Answers each HTTP request with its bytes as they arrived, as message/http. Give a copy of your\n"
             "gateway's configuration this address in place of the backend's. It tells whoever asks, so let only\n"
             "the gateway reach it. Runs until it is ended.",
     .examples = "chatelaine gateway-echo 127.0.0.1:9000",
     .groups = NO_OPTIONS,
     .run = gateway_echo_run},
    {.name = "store accept-loss",
     .summary = "Let nodes continue with a Redis that has lost acknowledged changes",
     .text = "If Redis has lost changes that a node acknowledged (a lagging replica was promoted, a backup "
             "was\nrestored), the node answers 503 and says how many. It repeats the revocations of the last "
             "ten\nminutes by itself. If another Redis has the other changes, bring that one back. Otherwise "
             "replay\nthe revocation logs ('key revoke --from-log'), then accept the loss with this command.",
     .examples = "chatelaine store accept-loss --redis redis://new-master.example:6379",
     .groups = JSON_OPTIONS,
     .run = store_accept_loss_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "store upgrade",
     .summary = "Let the store be used as only this version and later ones can",
     .text = "New stores need no upgrade. Run it once every node has this version: earlier ones refuse the store from\n"
             "then on, and answer 503. Nodes of this version go on without a pause. Needed before an account can be\n"
             "suspended. Asks first, unless --yes is given.",
     .examples = "chatelaine store upgrade\n"
                 "chatelaine store upgrade --yes --json",
     .groups = STORE_UPGRADE_OPTIONS,
     .run = store_upgrade_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "store lower-lease",
     .summary = "Lower the longest lease that revocations wait for",
     .text = "Redis keeps the longest lease that any node ever had, and revocations wait for it. Once all nodes have\n"
             "been restarted with a lower --lease-ms, this command lowers it. It waits until every longer lease of a\n"
             "node that has ended is over, and refuses while a node with a longer lease runs. A node that comes\n"
             "later with a longer lease raises it again. chatelaine-as-node takes --lease-ms from the nodes' settings.",
     .examples = "chatelaine store lower-lease --lease-ms 500ms\n"
                 "chatelaine store lower-lease --lease-ms 500ms --json",
     .groups = STORE_LOWER_LEASE_OPTIONS,
     .run = store_lower_lease_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "store settle-time",
     .summary = "Let scheduled revocations go by Redis' clock again, after that was set",
     .text = "Scheduled revocations take effect by a time that is Redis' clock until nodes find that it was set, or\n"
             "that a Redis whose clock differs took over; then by the nodes' own clocks. 'chatelaine doctor' says\n"
             "how far the two are apart. If Redis' clock is right, this command makes it the time again: keys that\n"
             "end in between are revoked at once if the clock is ahead, and later if it is behind. A key that has\n"
             "ended stays revoked. Asks first, unless --yes is given. Nodes follow within 4 s.",
     .examples = "chatelaine store settle-time --dry-run\n"
                 "chatelaine store settle-time --yes --json",
     .groups = STORE_SETTLE_TIME_OPTIONS,
     .run = store_settle_time_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "store copy",
     .summary = "Copy a stopped store to another Redis or number of partitions",
     .text = "Stop all nodes first. The target must be empty, or be where this store was copied from before; until\n"
             "the copy is whole and compared, no node serves it. At the end the source says where the store has\n"
             "moved to, and nodes and commands refuse it; copying back undoes that. A copy that was interrupted\n"
             "starts over when it is run again. Ids, secrets, sessions and links stay valid. Enrolments under way\n"
             "and throttles are left behind. Needs no master key.",
     .examples =
         "chatelaine store copy --from redis://old.example:6379 --to redis://new.example:6379 --to-partitions 16",
     .groups = STORE_COPY_OPTIONS,
     .shows_connection = true,
     .run = store_copy_run,
     .keys = COMMAND_KEYS_ANY},
    {.name = "completion",
     .operands = "SHELL",
     .summary = "Print a script that completes commands and options in bash, zsh or fish",
     .text = "The packages install these scripts.",
     .examples = ". <(chatelaine completion bash)",
     .groups = NO_OPTIONS,
     .run = completion_run},
    {.name = "conf", .summary = "Print chatelaine.conf", .groups = NO_OPTIONS, .run = conf_run, .hidden = true},
    {.name = "conf-man",
     .summary = "Print the man page of chatelaine.conf",
     .groups = NO_OPTIONS,
     .run = conf_man_run,
     .hidden = true},
    {.name = "man", .summary = "Print the man page", .groups = NO_OPTIONS, .run = man_run, .hidden = true},
    {.name = "dev-redis",
     .operands = "CONFIG",
     .summary = "Become the redis-server of 'dev'",
     .groups = NO_OPTIONS,
     .run = dev_redis_run,
     .hidden = true},
    {0},
};
const size_t COMMAND_COUNT = sizeof COMMANDS / sizeof *COMMANDS - 1;
