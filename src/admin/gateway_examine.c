#include "gateway_internal.h"

#include "base/check.h"

#include <stdio.h>

enum gateway_needs { NEEDS_NOTHING, NEEDS_KEY, NEEDS_ECHO, NEEDS_REVOKED };

struct gateway_check {
    const char *name;
    gateway_judge *judge;
    const struct gateway_probe *probes;
    size_t probe_count;
    enum gateway_needs needs;
    const char *holds;  /* the detail if it is ok */
    const char *remedy; /* the lines that close it, in docker/gateways */
};

#define PROBES(probes) (probes), sizeof(probes) / sizeof(probes)[0]

#define FORGED_IDENTITY                                                                                  \
    "X-Auth-Account: @\r\nX-Auth-Principal: @\r\nX-Auth-Kind: @\r\nX-Auth-Mode: @\r\nX-Auth-Role: @\r\n" \
    "X-Auth-Scopes: @\r\nX-Auth-Billable: @\r\nX-Auth-Error: @\r\n"
#define H2C "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
#define WITH_H2C "Connection: Upgrade, HTTP2-Settings\r\n" H2C

static const struct gateway_probe NO_KEY[] = {
    {GATEWAY_NO_KEY, "GET", "$", NULL, NULL, 401, "missing_credentials"},
    {GATEWAY_NO_KEY, "GET", "$", "X-Original-URI: /console/\r\nX-Forwarded-Uri: /console/\r\n", NULL, 401,
     "missing_credentials"},
};
static const struct gateway_probe WRONG_KEY[] = {
    {GATEWAY_WRONG_KEY, "GET", "$", NULL, NULL, 401, "invalid_api_key"},
};
static const struct gateway_probe ONLY_CLAIMED[] = {
    {GATEWAY_NO_KEY, "GET", "$", FORGED_IDENTITY, NULL, 401, "missing_credentials"},
};
static const struct gateway_probe UPLOAD[] = {
    {GATEWAY_NO_KEY, "POST", "$", "Content-Length: 900000\r\n", "x", 401, "missing_credentials"},
    {GATEWAY_NO_KEY, "POST", "$", "Content-Length: 900000\r\nExpect: 100-continue\r\n", NULL, 401,
     "missing_credentials"},
};
static const struct gateway_probe TUNNEL_WITHOUT_KEY[] = {
    {GATEWAY_NO_KEY, "GET", "$", WITH_H2C, NULL, 401, "missing_credentials"},
};
static const struct gateway_probe METRICS[] = {{.method = "GET", .target = "/metrics"}};

/* Ways to the named path, or around the check of it, that a gateway and a backend may read differently. */
#define AMBIGUOUS(credential)                                                                                       \
    {credential, "GET", "/$", NULL, NULL, 0, NULL}, {credential, "GET", "/.$", NULL, NULL, 0, NULL},                \
        {credential, "GET", "/v1/whoami/..$", NULL, NULL, 0, NULL},                                                 \
        {credential, "GET", "/v1/auth/..;$", NULL, NULL, 0, NULL},                                                  \
        {credential, "GET", "/console/%2e%2E$", NULL, NULL, 0, NULL},                                               \
        {credential, "GET", "/console/..%2f..$", NULL, NULL, 0, NULL},                                              \
        {credential, "GET", "/console/..%5c..$", NULL, NULL, 0, NULL},                                              \
        {credential, "GET", "$/../@", NULL, NULL, 0, NULL}, {credential, "GET", "$%2f..%2f@", NULL, NULL, 0, NULL}, \
        {credential, "GET", "$%252f@", NULL, NULL, 0, NULL}, {credential, "GET", "$;v=1", NULL, NULL, 0, NULL},     \
    {                                                                                                               \
        credential, "GET", "$%00", NULL, NULL, 0, NULL                                                              \
    }
static const struct gateway_probe PATHS[] = {AMBIGUOUS(GATEWAY_NO_KEY)};
static const struct gateway_probe PATHS_WITH_KEY[] = {AMBIGUOUS(GATEWAY_KEY)};

static const struct gateway_probe KEY[] = {{GATEWAY_KEY, "GET", "$", NULL, NULL, 0, NULL}};
static const struct gateway_probe CHECK_ROUTES[] = {
    {GATEWAY_KEY, "GET", "/check/auth-request", "X-Original-Method: GET\r\nX-Original-URI: $\r\n", NULL, 0, NULL},
    {GATEWAY_KEY, "GET", "/check/forward-auth", "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: $\r\n", NULL, 0, NULL},
};
static const struct gateway_probe TUNNELS[] = {
    {GATEWAY_KEY, "GET", "$", WITH_H2C, NULL, 0, NULL},
    {GATEWAY_KEY, "GET", "$", H2C, NULL, 0, NULL},
    {GATEWAY_KEY, "GET", "$", "Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n", NULL, 0, NULL},
    {GATEWAY_KEY, "GET", "$", "Connection: HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", NULL, 0, NULL},
};
static const struct gateway_probe IDENTITY[] = {
    {GATEWAY_KEY, "GET", "$", NULL, NULL, 0, NULL},
    {GATEWAY_KEY, "GET", "$", "Connection: close, X-Auth-Account, X-Auth-Principal, X-Auth-Mode\r\n", NULL, 0, NULL},
};
static const struct gateway_probe FORGED[] = {{GATEWAY_KEY, "GET", "$", FORGED_IDENTITY, NULL, 0, NULL}};
static const struct gateway_probe UNDERSCORES[] = {
    {GATEWAY_KEY, "GET", "$", "X_Auth_Account: @\r\nX-Auth_Mode: @\r\nX_HTTP_Method_Override: @\r\n", NULL, 0, NULL},
};
static const struct gateway_probe USERS[] = {
    {GATEWAY_KEY, "GET", "$",
     "Remote-User: @\r\nRemote-Groups: @\r\nX-Remote-User: @\r\nX-Forwarded-User: @\r\nX-Forwarded-Email: @\r\n"
     "X-Forwarded-Groups: @\r\nX-Auth-User: @\r\nX-Auth-Admin: @\r\nX-Auth-Tenant: @\r\n",
     NULL, 0, NULL},
};
static const struct gateway_probe STEERING[] = {
    {GATEWAY_KEY, "GET", "$",
     "X-HTTP-Method: @\r\nX-HTTP-Method-Override: @\r\nX-Method-Override: @\r\nX-Original-Method: @\r\n"
     "X-Original-URI: /@\r\nX-Original-URL: /@\r\nX-Rewrite-URL: /@\r\nX-Forwarded-Method: @\r\n"
     "X-Forwarded-Uri: /@\r\nX-Forwarded-Path: /@\r\nX-Forwarded-Prefix: /@\r\n",
     NULL, 0, NULL},
};
static const struct gateway_probe ADDRESSES[] = {
    {GATEWAY_KEY, "GET", "$",
     "X-Forwarded-For: @\r\nForwarded: for=@\r\nX-Real-IP: @\r\nX-Client-IP: @\r\nTrue-Client-IP: @\r\n", NULL, 0,
     NULL},
};
static const struct gateway_probe TRAILERS[] = {
    {GATEWAY_KEY, "GET", "$", "Transfer-Encoding: chunked\r\nTrailer: X-Auth-Account\r\n",
     "1\r\nx\r\n0\r\nX-Auth-Account: @\r\n\r\n", 0, NULL},
    {GATEWAY_KEY, "GET", "$", "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\nX-Auth-Account: @\r\n\r\n", 0, NULL},
};
static const struct gateway_probe SECRETS[] = {
    {GATEWAY_KEY, "GET", "$", "Cookie: a=@\r\n", NULL, 0, NULL},
};
static const struct gateway_probe TARGETS[] = {
    {GATEWAY_KEY, "GET", "$/a%20b%2Bc?x=1%7C2%2F..&y=a//b", NULL, NULL, 0, NULL},
};
static const struct gateway_probe REVOKED[] = {
    {GATEWAY_REVOKED_KEY, "GET", "$", NULL, NULL, 401, "api_key_revoked"},
};
static const struct gateway_probe TWO_KEYS[] = {
    {GATEWAY_KEY_AND_REVOKED, "GET", "$", NULL, NULL, 400, "bad_request"},
    {GATEWAY_REVOKED_AND_KEY, "GET", "$", NULL, NULL, 400, "bad_request"},
};

#define CHECK_LINE                                                                                            \
    "Let a node check each request. nginx: \"auth_request /_check;\" in each location that has a "            \
    "backend. HAProxy: \"http-request lua.forward_auth unless is_own\". Caddy: the check's reverse_proxy in " \
    "front of the backend's, with \"status 200\" and \"header X-Auth-Principal *\" in @allowed."
#define NO_INTERNAL                                                                                       \
    "Remove the route that leads to --internal-listen: only the gateway itself may ask there. It has no " \
    "password."
#define NORMAL_PATHS                                                                                           \
    "nginx: the map \"$path_is_ambiguous\" and its if. HAProxy: the \"http-request deny deny_status 400\" on " \
    "the path. Caddy: \"handle @ambiguous\"."
#define NO_TUNNELS                                                                                            \
    "Pass Upgrade only if it is exactly websocket. nginx: \"proxy_set_header Upgrade $upgrade_header;\" and " \
    "\"proxy_set_header HTTP2-Settings \"\";\". HAProxy: \"http-request del-header Upgrade\" and "            \
    "\"http-request del-header HTTP2-Settings\". Caddy: \"request_header @plain -Upgrade\" and "              \
    "\"request_header -HTTP2-Settings\"."

static const struct gateway_check CHECKS[] = {
    {"no-key", gateway_judge_refused, PROBES(NO_KEY), NEEDS_NOTHING, "refused by a node", CHECK_LINE},
    {"wrong-key", gateway_judge_refused, PROBES(WRONG_KEY), NEEDS_NOTHING, "refused by a node", CHECK_LINE},
    {"claimed-identity", gateway_judge_refused, PROBES(ONLY_CLAIMED), NEEDS_NOTHING,
     "X-Auth-... headers without a key are refused by a node", CHECK_LINE},
    {"unread-upload", gateway_judge_upload, PROBES(UPLOAD), NEEDS_NOTHING,
     "a stranger's upload is refused without its body",
     "Strangers fill memory and disks. nginx: the locations @refused and @told only \"return\"; no \"proxy_pass\" "
     "there. HAProxy: no \"option http-buffer-request\". Caddy: \"method GET\" in the check."},
    {"paths", gateway_judge_path, PROBES(PATHS), NEEDS_NOTHING, "ambiguous paths are refused", NORMAL_PATHS},
    {"tunnel-no-key", gateway_judge_refused, PROBES(TUNNEL_WITHOUT_KEY), NEEDS_NOTHING,
     "an upgrade to h2c without a key is refused by a node", NO_TUNNELS},
    {"metrics", gateway_judge_metrics, PROBES(METRICS), NEEDS_NOTHING, "a node's metrics are not to be had",
     NO_INTERNAL},
    {"key", gateway_judge_key, PROBES(KEY), NEEDS_KEY, "passes",
     "Give a test key that may read the path in --gateway: attacks that succeed act with it."},
    {"echo", gateway_judge_told, PROBES(KEY), NEEDS_KEY, "the backend tells what reaches it",
     "In a copy of the gateway's configuration, put 'chatelaine gateway-echo' in the place of the backend."},
    {"paths-with-key", gateway_judge_path, PROBES(PATHS_WITH_KEY), NEEDS_KEY, "ambiguous paths are refused",
     NORMAL_PATHS},
    {"check-routes", gateway_judge_check_route, PROBES(CHECK_ROUTES), NEEDS_KEY, "a node's checks are not to be had",
     NO_INTERNAL},
    {"tunnels", gateway_judge_tunnel, PROBES(TUNNELS), NEEDS_ECHO, "no upgrade but to a WebSocket reaches the backend",
     NO_TUNNELS},
    {"identity", gateway_judge_identity, PROBES(IDENTITY), NEEDS_ECHO,
     "the backend gets the node's X-Auth-... headers, whatever the client names in Connection",
     "nginx: \"proxy_set_header X-Auth-Account $auth_account;\" and so on. HAProxy: TOLD in forward-auth.lua, and "
     "\"http-request del-header Connection\". Caddy: \"request_header X-Auth-Account "
     "{http.reverse_proxy.header.X-Auth-Account}\" and so on, and \"request_header -Connection\"."},
    {"forged-identity", gateway_judge_marker, PROBES(FORGED), NEEDS_ECHO, "none of the client's X-Auth-... headers",
     "Whoever has any key acts as any account. nginx: \"proxy_set_header X-Auth-Account $auth_account;\" and so on for "
     "each. HAProxy: \"http-request del-header x-auth- -m beg\". Caddy: \"request_header -X-Auth-*\"."},
    {"underscores", gateway_judge_marker, PROBES(UNDERSCORES), NEEDS_ECHO, "none of the client's names with _",
     "Many backends read X_Auth_Account as X-Auth-Account. nginx: no \"underscores_in_headers on;\". HAProxy: "
     "\"http-request del-header _ -m sub\". Caddy: \"request_header -*_*\"."},
    {"forged-users", gateway_judge_marker, PROBES(USERS), NEEDS_ECHO, "none of the client's other names of users",
     "nginx: \"proxy_set_header Remote-User \"\";\" and so on. HAProxy: the \"http-request del-header\" of "
     "remote-.* and ^x-forwarded. Caddy: \"request_header -Remote-*\" and so on."},
    {"steering", gateway_judge_marker, PROBES(STEERING), NEEDS_ECHO, "no header names another method or path",
     "nginx: \"proxy_set_header X-HTTP-Method-Override \"\";\" and so on. HAProxy: the \"http-request "
     "del-header\" of x-(http-method|http-method-override|…). Caddy: \"request_header -X-HTTP-Method-Override\" and "
     "so on."},
    {"forged-address", gateway_judge_marker, PROBES(ADDRESSES), NEEDS_ECHO, "no header names an address of its choice",
     "nginx: \"proxy_set_header X-Forwarded-For $remote_addr;\", not $proxy_add_x_forwarded_for. HAProxy: "
     "\"http-request set-header X-Forwarded-For %[src]\". Caddy: no \"trusted_proxies\" that clients belong to; and "
     "in all of them what removes Forwarded, X-Real-IP, X-Client-IP and True-Client-IP."},
    {"trailers", gateway_judge_trailers, PROBES(TRAILERS), NEEDS_ECHO, "no trailer field reaches the backend",
     "Backends must not merge trailers into headers (RFC 9110, section 6.5.1). HAProxy 3.2 or newer: \"option "
     "http-drop-request-trailers\" in the backend; nginx and Caddy drop them."},
    {"secrets", gateway_judge_secrets, PROBES(SECRETS), NEEDS_ECHO, "neither key nor cookie reaches the backend",
     "nginx: \"proxy_set_header Authorization \"\";\" and \"proxy_set_header Cookie \"\";\". HAProxy: \"http-request "
     "del-header Authorization unless is_own\" and the same for Cookie. Caddy: \"request_header -Authorization\" and "
     "\"request_header -Cookie\"."},
    {"target", gateway_judge_target, PROBES(TARGETS), NEEDS_ECHO, "the backend gets the target that was checked",
     "Forward the target as it was sent. nginx: \"proxy_pass https://$checked;\" without a path, not even \"/\", and "
     "no "
     "rewrite. HAProxy: no set-path, replace-path or normalize-uri. Caddy: no rewrite, uri or handle_path."},
    {"revoked-key", gateway_judge_refused, PROBES(REVOKED), NEEDS_REVOKED, "refused by a node",
     "Let no answer to a check be cached (nginx: no proxy_cache in its location). " CHECK_LINE},
    {"two-keys", gateway_judge_refused, PROBES(TWO_KEYS), NEEDS_REVOKED, "refused by a node",
     "Hand all Authorization lines to the check, unchanged."},
};
_Static_assert(sizeof CHECKS / sizeof CHECKS[0] < DOCTOR_CHECKS_MAX, "and one for the gateway itself");

#define UNSEEN "cannot be seen from outside: the backend does not tell what reaches it"

/* NULL: it can be asked. Otherwise why it proves nothing. */
static const char *what_lacks(const struct gateway_site *site, const struct gateway_check *check)
{
    if (check->needs == NEEDS_NOTHING)
        return NULL;
    if (!site->key[0])
        return "not asked: give --key-file";
    if (check->judge != gateway_judge_key && !site->key_passes)
        return "not asked: the key does not pass";
    if (check->needs == NEEDS_ECHO && !site->is_told)
        return UNSEEN;
    if (check->needs == NEEDS_REVOKED && !site->revoked_key[0])
        return "not asked: give --revoked-key-file";
    return NULL;
}

static void ask(struct gateway_site *site, const struct gateway_check *check, struct gateway_finding *worst)
{
    struct gateway_finding finding;
    struct gateway_answer answer;

    for (size_t i = 0; i < check->probe_count && worst->status != DOCTOR_FAIL; i++) {
        finding = (struct gateway_finding){.status = DOCTOR_OK};
        gateway_ask(site, &check->probes[i], &answer);
        check->judge(site, &check->probes[i], &answer, &finding);
        gateway_answer_finish(&answer);
        if (finding.status > worst->status)
            *worst = finding;
    }
}

void gateway_examine(struct gateway_site *site, struct doctor_report *report)
{
    for (size_t i = 0; i < sizeof CHECKS / sizeof CHECKS[0]; i++) {
        const struct gateway_check *check = &CHECKS[i];
        const char *lacks = what_lacks(site, check);
        struct gateway_finding worst = {.status = lacks ? DOCTOR_UNPROVEN : DOCTOR_OK};

        if (!lacks)
            ask(site, check, &worst);
        doctor_add(report, check->name, worst.status, lacks && strcmp(lacks, UNSEEN) != 0 ? NULL : check->remedy, "%s",
                   lacks             ? lacks
                   : worst.detail[0] ? worst.detail
                                     : check->holds);
    }
}
