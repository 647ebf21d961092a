#include "lost_rows.h"

#define MADE_KEY "{\"name\":\"made\",\"mode\":\"live\",\"scopes\":[\"usage:read\"]}"
#define SUCCESSOR "{\"overlap_seconds\":3600,\"name\":\"successor\"}"
#define DEVICE "client_id=desktop-agent&device_name=Ward+PC"
#define TOKEN \
    "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=<device_code>&client_id=desktop-agent"
#define UNTIL "{\"revoke_at\":\"<until>\"}"
#define RENAMED "{\"name\":\"renamed\"}"
#define IDS "{\"ids\":[\"<key>\"]}"
#define PROOF "{\"password\":\"<password>\",\"totp\":\"<totp>\"}"
#define LOGIN "{\"email\":\"<self_email>\",\"password\":\"<password>\",\"totp\":\"<totp>\"}"
#define RECOVERY "{\"email\":\"<self_email>\",\"password\":\"<password>\",\"recovery_code\":\"<recovery_code>\"}"
#define TICKET "{\"ticket\":\"<ticket>\",\"totp\":\"<new_totp>\"}"
#define NEW_CODE "{\"totp\":\"<new_totp>\"}"
#define NEW_PASSWORD "{\"current_password\":\"<password>\",\"totp\":\"<totp>\",\"new_password\":\"<new_password>\"}"
#define INVITED "{\"email\":\"<invited_email>\",\"role\":\"auditor\"}"
#define CODE "{\"code\":\"<code>\"}"
#define JOIN "{\"code\":\"<code>\",\"password\":\"<new_password>\",\"totp\":\"<new_totp>\"}"

/* Before */
static const struct lost_ask END_KEY = {BY_OWNER, "PUT", "/v1/console/api_keys/<key>/scheduled_revocation",
                                        UNTIL,    NULL,  200};
static const struct lost_ask MAKE_CODES = {BY_SELF, "POST", "/v1/console/recovery_codes", NULL, NULL, 201};
static const struct lost_ask BEGIN_TOTP = {BY_SELF, "POST", "/v1/console/totp", PROOF, NULL, 200};
static const struct lost_ask ENROL = {BY_ANYONE, "POST", "/v1/auth/device_authorization", NULL, DEVICE, 200};
static const struct lost_ask APPROVE = {BY_OWNER, "POST", "/v1/console/device_enrolments/<user_code>/approve",
                                        NULL,     NULL,   200};
static const struct lost_ask DISABLE = {BY_OWNER, "POST", "/v1/console/users/<person>/disable", "{}", NULL, 200};
static const struct lost_ask INVITE = {BY_OWNER, "POST", "/v1/console/invitations", INVITED, NULL, 201};
static const struct lost_ask START = {BY_ANYONE, "POST", "/v1/auth/join/start", CODE, NULL, 200};

/* Before, or afterwards */
static const struct lost_ask RECOVER = {BY_ANYONE, "POST", "/v1/auth/recover", RECOVERY, NULL, 200};

/* Afterwards: what the last answer gave is good for something, or what was asked for is so. */
static const struct lost_ask USE_KEY = {BY_MADE_KEY, "GET", "/v1/whoami", NULL, NULL, 200};
static const struct lost_ask SEE_SESSION = {BY_SELF, "GET", "/v1/console/session", NULL, NULL, 200};
static const struct lost_ask SIGN_IN = {BY_ANYONE, "POST", "/v1/auth/login", LOGIN, NULL, 200};
static const struct lost_ask SIGN_IN_BY_NEW_PASSWORD = {
    BY_ANYONE,
    "POST",
    "/v1/auth/login",
    "{\"email\":\"<self_email>\",\"password\":\"<new_password>\",\"totp\":\"<totp>\"}",
    NULL,
    200};
static const struct lost_ask SIGN_IN_BY_NEW_CODE = {
    BY_ANYONE,
    "POST",
    "/v1/auth/login",
    "{\"email\":\"<self_email>\",\"password\":\"<password>\",\"totp\":\"<new_totp>\"}",
    NULL,
    200};
static const struct lost_ask SIGN_IN_AS_INVITED = {
    BY_ANYONE,
    "POST",
    "/v1/auth/login",
    "{\"email\":\"<invited_email>\",\"password\":\"<new_password>\",\"totp\":\"<new_totp>\"}",
    NULL,
    200};
static const struct lost_ask CONFIRM_TOTP = {BY_SELF, "POST", "/v1/console/totp/confirm", NEW_CODE, NULL, 204};
static const struct lost_ask CONFIRM_RECOVERY = {BY_ANYONE, "POST", "/v1/auth/recover/confirm", TICKET, NULL, 204};
static const struct lost_ask OPEN = {BY_ANYONE, "POST", "/v1/auth/join/begin", CODE, NULL, 200};
static const struct lost_ask JOIN_BY_LINK = {BY_ANYONE, "POST", "/v1/auth/join", JOIN, NULL, 200};

#define KEY_REVOKED "+key made live usage:read revoked", "+event api_key.revoked"
#define KEY_KEPT "+key made live usage:read active"
/* The end that a successor set is withdrawn with it, and set again by the next. */
#define SUCCESSOR_REVOKED \
    "+key successor live keys:manage revoked", "+event api_key.revoked", "+event api_key.revocation_withdrawn"

const struct lost_row LOST_ROWS[] = {
    /* A key whose secret surely did not arrive is revoked. Nobody can know what became of one that may have arrived. */
    {HTTP_POST, "/v1/api_keys", BY_KEY, .json = MADE_KEY, .status = 201, .undelivered = {KEY_REVOKED},
     .delivered = {KEY_KEPT}, .then = &USE_KEY, .shows = true, .killed = true},
    {HTTP_POST, "/v1/console/api_keys", BY_OWNER, .json = MADE_KEY, .status = 201, .undelivered = {KEY_REVOKED},
     .delivered = {KEY_KEPT}, .then = &USE_KEY, .shows = true, .killed = true},
    /* The old key lives, and of its successors one, whether or not the first arrived. */
    {HTTP_POST, "/v1/api_keys/{id}/replacement", BY_KEY, "<key>", .json = SUCCESSOR, .status = 201, .needs = NEEDS_KEY,
     .undelivered = {SUCCESSOR_REVOKED}, .then = &USE_KEY, .shows = true, .killed = true},
    {HTTP_POST, "/v1/console/api_keys/{id}/replacement", BY_OWNER, "<key>", .json = SUCCESSOR, .status = 201,
     .needs = NEEDS_KEY, .undelivered = {SUCCESSOR_REVOKED}, .then = &USE_KEY, .shows = true, .killed = true},

    {HTTP_PATCH, "/v1/api_keys/{id}", BY_KEY, "<key>", .json = RENAMED, .status = 200, .needs = NEEDS_KEY,
     .shows = true, .killed = true},
    {HTTP_PATCH, "/v1/console/api_keys/{id}", BY_OWNER, "<key>", .json = RENAMED, .status = 200, .needs = NEEDS_KEY,
     .shows = true, .killed = true},

    {HTTP_DELETE, "/v1/api_keys/{id}", BY_KEY, "<key>", .status = 200, .needs = NEEDS_KEY, .waits = true, .shows = true,
     .killed = true},
    {HTTP_DELETE, "/v1/console/api_keys/{id}", BY_OWNER, "<key>", .status = 200, .needs = NEEDS_KEY, .waits = true,
     .shows = true, .killed = true},
    {HTTP_POST, "/v1/api_keys/revoke", BY_KEY, .json = IDS, .status = 200, .needs = NEEDS_KEY, .waits = true,
     .shows = true, .killed = true},
    {HTTP_POST, "/v1/console/api_keys/revoke", BY_OWNER, .json = IDS, .status = 200, .needs = NEEDS_KEY, .waits = true,
     .shows = true, .killed = true},
    {HTTP_POST, "/v1/auth/revoke", BY_ANYONE, .form = "token=<secret>", .status = 200, .needs = NEEDS_KEY,
     .waits = true, .shows = true, .killed = true},
    {HTTP_DELETE, "/v1/console/device_keys/{id}", BY_OWNER, "<device>", .status = 200, .needs = NEEDS_DEVICE,
     .waits = true, .shows = true, .killed = true},

    {HTTP_PUT, "/v1/api_keys/{id}/scheduled_revocation", BY_KEY, "<key>", .json = UNTIL, .status = 200,
     .needs = NEEDS_KEY, .waits = true, .shows = true, .killed = true},
    {HTTP_PUT, "/v1/console/api_keys/{id}/scheduled_revocation", BY_OWNER, "<key>", .json = UNTIL, .status = 200,
     .needs = NEEDS_KEY, .waits = true, .shows = true, .killed = true},
    /* A key moves no end later, however often it asks. */
    {HTTP_DELETE, "/v1/api_keys/{id}/scheduled_revocation", BY_KEY, "<key>", .status = 403, .needs = NEEDS_KEY,
     .first = {&END_KEY}},
    {HTTP_DELETE, "/v1/console/api_keys/{id}/scheduled_revocation", BY_OWNER, "<key>", .status = 200,
     .needs = NEEDS_KEY, .first = {&END_KEY}, .shows = true, .killed = true},

    /* A session that nobody has ends as it would anyway, and can be ended by its user. Passwords are hashed by several
     * threads: if the repetition overtakes the lost request, that one's code is an old one, and it fails. */
    {HTTP_POST, "/v1/auth/login", BY_ANYONE, .json = LOGIN, .status = 200, .needs = NEEDS_SELF,
     .undelivered = {"+session of self", "+event browser.new", "+event login.failed"}, .then = &SEE_SESSION,
     .killed = true},
    {HTTP_POST, "/v1/auth/logout", BY_SELF, .status = 204, .needs = NEEDS_SELF, .again = 401,
     .again_code = "invalid_session", .shows = true},
    /* No code is spent before the confirmation. */
    {HTTP_POST, "/v1/auth/recover", BY_ANYONE, .json = RECOVERY, .status = 200, .needs = NEEDS_SELF,
     .first = {&MAKE_CODES}, .then = &CONFIRM_RECOVERY},
    {HTTP_POST, "/v1/auth/recover/confirm", BY_ANYONE, .json = TICKET, .status = 204, .needs = NEEDS_SELF,
     .first = {&MAKE_CODES, &RECOVER}, .again = 404, .again_code = "authenticator_not_found",
     .then = &SIGN_IN_BY_NEW_CODE, .shows = true},
    /* The old token is dead, and the new one with nobody: the user signs in again. */
    {HTTP_POST, "/v1/console/step_up", BY_SELF, .json = PROOF, .status = 200, .needs = NEEDS_SELF, .again = 401,
     .again_code = "invalid_session", .then = &SIGN_IN},
    /* Here nobody is left who could list that user's sessions. */
    {HTTP_POST, "/v1/console/password", BY_SELF, .json = NEW_PASSWORD, .status = 200, .needs = NEEDS_SELF, .again = 401,
     .again_code = "invalid_session", .undelivered = {"-session of self", "-0 recovery codes"},
     .then = &SIGN_IN_BY_NEW_PASSWORD},
    {HTTP_POST, "/v1/console/totp", BY_SELF, .json = PROOF, .status = 200, .needs = NEEDS_SELF, .then = &CONFIRM_TOTP},
    {HTTP_POST, "/v1/console/totp/confirm", BY_SELF, .json = NEW_CODE, .status = 204, .needs = NEEDS_SELF,
     .first = {&BEGIN_TOTP}, .again = 404, .again_code = "authenticator_not_found", .then = &SIGN_IN_BY_NEW_CODE,
     .shows = true},
    {HTTP_POST, "/v1/console/recovery_codes", BY_SELF, .status = 201, .needs = NEEDS_SELF, .then = &RECOVER,
     .shows = true},
    {HTTP_DELETE, "/v1/console/sessions", BY_SELF, .status = 200, .needs = NEEDS_SELF, .shows = true},
    {HTTP_DELETE, "/v1/console/sessions/{id}", BY_SELF, "<other>", .status = 204, .needs = NEEDS_SELF, .again = 404,
     .again_code = "session_not_found", .shows = true},

    /* An enrolment that no device follows expires after ten minutes. */
    {HTTP_POST, "/v1/auth/device_authorization", BY_ANYONE, .form = DEVICE, .status = 200, .then = &APPROVE},
    {HTTP_POST, "/v1/console/device_enrolments/{id}/approve", BY_OWNER, "<user_code>", .status = 200,
     .first = {&ENROL}},
    {HTTP_POST, "/v1/console/device_enrolments/{id}/deny", BY_OWNER, "<user_code>", .status = 200, .first = {&ENROL}},
    /* A device code makes one key, ever: the device begins again, and the key, if it may have arrived, stays. */
    {HTTP_POST, "/v1/auth/token", BY_ANYONE, .form = TOKEN, .status = 200, .first = {&ENROL, &APPROVE}, .again = 400,
     .again_code = "invalid_grant",
     .undelivered = {"-device Ward PC active", "+device Ward PC revoked", "+event device_key.revoked"}, .killed = true},

    {HTTP_DELETE, "/v1/console/users/{id}", BY_OWNER, "<person>", "?revoke_keys=all", .status = 200,
     .needs = NEEDS_PERSON, .waits = true, .shows = true, .killed = true},
    {HTTP_DELETE, "/v1/team/{id}", BY_KEY, "<person>", "?revoke_keys=all", .status = 200, .needs = NEEDS_PERSON,
     .waits = true, .shows = true, .killed = true},
    {HTTP_POST, "/v1/console/users/{id}/role", BY_OWNER, "<person>",
     .json = "{\"role\":\"auditor\",\"revoke_keys\":\"all\"}", .status = 200, .needs = NEEDS_PERSON, .waits = true,
     .shows = true, .killed = true},
    {HTTP_POST, "/v1/console/users/{id}/disable", BY_OWNER, "<person>", .json = "{\"revoke_keys\":\"all\"}",
     .status = 200, .needs = NEEDS_PERSON, .waits = true, .shows = true, .killed = true},
    {HTTP_POST, "/v1/console/users/{id}/enable", BY_OWNER, "<person>", .status = 200, .needs = NEEDS_PERSON,
     .first = {&DISABLE}, .shows = true},
    /* The second link ends the first. */
    {HTTP_POST, "/v1/console/users/{id}/reset", BY_OWNER, "<person>", .status = 200, .needs = NEEDS_PERSON,
     .then = &OPEN, .shows = true, .killed = true},
    {HTTP_POST, "/v1/console/invitations", BY_OWNER, .json = INVITED, .status = 201, .then = &OPEN, .shows = true,
     .killed = true},
    {HTTP_POST, "/v1/team/invitations", BY_KEY, .json = INVITED, .status = 201, .then = &OPEN, .shows = true},
    {HTTP_DELETE, "/v1/console/invitations/{id}", BY_OWNER, "<made>", .status = 204, .first = {&INVITE}, .again = 404,
     .again_code = "invitation_not_found", .shows = true},
    {HTTP_POST, "/v1/auth/join/begin", BY_ANYONE, .json = CODE, .status = 200, .first = {&INVITE}},
    {HTTP_POST, "/v1/auth/join/start", BY_ANYONE, .json = CODE, .status = 200, .first = {&INVITE},
     .then = &JOIN_BY_LINK},
    /* Who has joined signs in. */
    {HTTP_POST, "/v1/auth/join", BY_ANYONE, .json = JOIN, .status = 200, .first = {&INVITE, &START}, .again = 404,
     .again_code = "link_not_found", .then = &SIGN_IN_AS_INVITED},
};
const size_t LOST_ROW_COUNT = sizeof LOST_ROWS / sizeof *LOST_ROWS;
