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

#define PROBES(...)                              \
    (const struct gateway_probe[]){__VA_ARGS__}, \
        sizeof((const struct gateway_probe[]){__VA_ARGS__}) / sizeof(struct gateway_probe)
/* Of a probe that another judge than gateway_judge_refused looks at. */
#define GET(credential, target, fields)                  \
    {                                                    \
        credential, "GET", target, fields, NULL, 0, NULL \
    }
#define WITH_KEY(fields) GET(GATEWAY_KEY, "$", fields)

#define FORGED_IDENTITY                                                                                  \
    "X-Auth-Account: @\r\nX-Auth-Principal: @\r\nX-Auth-Kind: @\r\nX-Auth-Mode: @\r\nX-Auth-Role: @\r\n" \
    "X-Auth-Scopes: @\r\nX-Auth-Billable: @\r\nX-Auth-Error: @\r\n"
#define H2C "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
#define WITH_H2C "Connection: Upgrade, HTTP2-Settings\r\n" H2C

/* Ways to the named path, or around the check of it, that a gateway and a backend may read differently. */
#define AMBIGUOUS(credential)                                                                                   \
    GET(credential, "/$", NULL), GET(credential, "/.$", NULL), GET(credential, "/v1/whoami/..$", NULL),         \
        GET(credential, "/v1/auth/..;$", NULL), GET(credential, "/console/%2e%2E$", NULL),                      \
        GET(credential, "/console/..%2f..$", NULL), GET(credential, "/console/..%5c..$", NULL),                 \
        GET(credential, "$/../@", NULL), GET(credential, "$%2f..%2f@", NULL), GET(credential, "$%252f@", NULL), \
        GET(credential, "$;v=1", NULL), GET(credential, "$%00", NULL)

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
    {"no-key", gateway_judge_refused,
     PROBES({GATEWAY_NO_KEY, "GET", "$", NULL, NULL, 401, "missing_credentials"},
            {GATEWAY_NO_KEY, "GET", "$", "X-Original-URI: /console/\r\nX-Forwarded-Uri: /console/\r\n", NULL, 401,
             "missing_credentials"}),
     NEEDS_NOTHING, "refused by a node", CHECK_LINE},
    {"wrong-key", gateway_judge_refused, PROBES({GATEWAY_WRONG_KEY, "GET", "$", NULL, NULL, 401, "invalid_api_key"}),
     NEEDS_NOTHING, "refused by a node", CHECK_LINE},
    {"claimed-identity", gateway_judge_refused,
     PROBES({GATEWAY_NO_KEY, "GET", "$", FORGED_IDENTITY, NULL, 401, "missing_credentials"}), NEEDS_NOTHING,
     "X-Auth-... headers without a key are refused by a node", CHECK_LINE},
    {"unread-upload", gateway_judge_upload,
     PROBES({GATEWAY_NO_KEY, "POST", "$", "Content-Length: 900000\r\n", "x", 401, "missing_credentials"},
            {GATEWAY_NO_KEY, "POST", "$", "Content-Length: 900000\r\nExpect: 100-continue\r\n", NULL, 401,
             "missing_credentials"}),
     NEEDS_NOTHING, "a stranger's upload is refused without its body",
     "Strangers fill memory and disks. nginx: the locations @refused and @told only \"return\"; no \"proxy_pass\" "
     "there. HAProxy: no \"option http-buffer-request\". Caddy: \"method GET\" in the check."},
    {"paths", gateway_judge_path, PROBES(AMBIGUOUS(GATEWAY_NO_KEY)), NEEDS_NOTHING, "ambiguous paths are refused",
     NORMAL_PATHS},
    {"tunnel-no-key", gateway_judge_refused,
     PROBES({GATEWAY_NO_KEY, "GET", "$", WITH_H2C, NULL, 401, "missing_credentials"}), NEEDS_NOTHING,
     "an upgrade to h2c without a key is refused by a node", NO_TUNNELS},
    {"metrics", gateway_judge_metrics, PROBES({.method = "GET", .target = "/metrics"}), NEEDS_NOTHING,
     "a node's metrics are not to be had", NO_INTERNAL},
    {"key", gateway_judge_key, PROBES(WITH_KEY(NULL)), NEEDS_KEY, "passes",
     "Give a test key that may read the path in --gateway: attacks that succeed act with it."},
    {"echo", gateway_judge_told, PROBES(WITH_KEY(NULL)), NEEDS_KEY, "the backend tells what reaches it",
     "In a copy of the gateway's configuration, put 'chatelaine gateway-echo' in the place of the backend."},
    {"paths-with-key", gateway_judge_path, PROBES(AMBIGUOUS(GATEWAY_KEY)), NEEDS_KEY, "ambiguous paths are refused",
     NORMAL_PATHS},
    {"check-routes", gateway_judge_check_route,
     PROBES(GET(GATEWAY_KEY, "/check/auth-request", "X-Original-Method: GET\r\nX-Original-URI: $\r\n"),
            GET(GATEWAY_KEY, "/check/forward-auth", "X-Forwarded-Method: GET\r\nX-Forwarded-Uri: $\r\n")),
     NEEDS_KEY, "a node's checks are not to be had", NO_INTERNAL},
    {"tunnels", gateway_judge_tunnel,
     PROBES(WITH_KEY(WITH_H2C), WITH_KEY(H2C), WITH_KEY("Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n"),
            WITH_KEY("Connection: HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n")),
     NEEDS_ECHO, "no upgrade but to a WebSocket reaches the backend", NO_TUNNELS},
    {"identity", gateway_judge_identity,
     PROBES(WITH_KEY(NULL), WITH_KEY("Connection: close, X-Auth-Account, X-Auth-Principal, X-Auth-Mode\r\n")),
     NEEDS_ECHO, "the backend gets the node's X-Auth-... headers, whatever the client names in Connection",
     "nginx: \"proxy_set_header X-Auth-Account $auth_account;\" and so on. HAProxy: TOLD in forward-auth.lua, and "
     "\"http-request del-header Connection\". Caddy: \"request_header X-Auth-Account "
     "{http.reverse_proxy.header.X-Auth-Account}\" and so on, and \"request_header -Connection\"."},
    {"forged-identity", gateway_judge_marker, PROBES(WITH_KEY(FORGED_IDENTITY)), NEEDS_ECHO,
     "none of the client's X-Auth-... headers",
     "Whoever has any key acts as any account. nginx: \"proxy_set_header X-Auth-Account $auth_account;\" and so on for "
     "each. HAProxy: \"http-request del-header x-auth- -m beg\". Caddy: \"request_header -X-Auth-*\"."},
    {"underscores", gateway_judge_marker,
     PROBES(WITH_KEY("X_Auth_Account: @\r\nX-Auth_Mode: @\r\nX_HTTP_Method_Override: @\r\n")), NEEDS_ECHO,
     "none of the client's names with _",
     "Many backends read X_Auth_Account as X-Auth-Account. nginx: no \"underscores_in_headers on;\". HAProxy: "
     "\"http-request del-header _ -m sub\". Caddy: \"request_header -*_*\"."},
    {"forged-users", gateway_judge_marker,
     PROBES(WITH_KEY(
         "Remote-User: @\r\nRemote-Groups: @\r\nX-Remote-User: @\r\nX-Forwarded-User: @\r\nX-Forwarded-Email: @\r\n"
         "X-Forwarded-Groups: @\r\nX-Auth-User: @\r\nX-Auth-Admin: @\r\nX-Auth-Tenant: @\r\n")),
     NEEDS_ECHO, "none of the client's other names of users",
     "nginx: \"proxy_set_header Remote-User \"\";\" and so on. HAProxy: the \"http-request del-header\" of "
     "remote-.* and ^x-forwarded. Caddy: \"request_header -Remote-*\" and so on."},
    {"steering", gateway_judge_marker,
     PROBES(WITH_KEY("X-HTTP-Method: @\r\nX-HTTP-Method-Override: @\r\nX-Method-Override: @\r\nX-Original-Method: @\r\n"
                     "X-Original-URI: /@\r\nX-Original-URL: /@\r\nX-Rewrite-URL: /@\r\nX-Forwarded-Method: @\r\n"
                     "X-Forwarded-Uri: /@\r\nX-Forwarded-Path: /@\r\nX-Forwarded-Prefix: /@\r\n")),
     NEEDS_ECHO, "no header names another method or path",
     "nginx: \"proxy_set_header X-HTTP-Method-Override \"\";\" and so on. HAProxy: the \"http-request "
     "del-header\" of x-(http-method|http-method-override|…). Caddy: \"request_header -X-HTTP-Method-Override\" and "
     "so on."},
    {"forged-address", gateway_judge_marker,
     PROBES(
         WITH_KEY("X-Forwarded-For: @\r\nForwarded: for=@\r\nX-Real-IP: @\r\nX-Client-IP: @\r\nTrue-Client-IP: @\r\n")),
     NEEDS_ECHO, "no header names an address of its choice",
     "nginx: \"proxy_set_header X-Forwarded-For $remote_addr;\", not $proxy_add_x_forwarded_for. HAProxy: "
     "\"http-request set-header X-Forwarded-For %[src]\". Caddy: no \"trusted_proxies\" that clients belong to; and "
     "in all of them what removes Forwarded, X-Real-IP, X-Client-IP and True-Client-IP."},
    {"trailers", gateway_judge_trailers,
     PROBES({GATEWAY_KEY, "GET", "$", "Transfer-Encoding: chunked\r\nTrailer: X-Auth-Account\r\n",
             "1\r\nx\r\n0\r\nX-Auth-Account: @\r\n\r\n", 0, NULL},
            {GATEWAY_KEY, "GET", "$", "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\nX-Auth-Account: @\r\n\r\n", 0,
             NULL}),
     NEEDS_ECHO, "no trailer field reaches the backend",
     "Backends must not merge trailers into headers (RFC 9110, section 6.5.1). HAProxy 3.2 or newer: \"option "
     "http-drop-request-trailers\" in the backend; nginx and Caddy drop them."},
    {"secrets", gateway_judge_secrets, PROBES(WITH_KEY("Cookie: a=@\r\n")), NEEDS_ECHO,
     "neither key nor cookie reaches the backend",
     "nginx: \"proxy_set_header Authorization \"\";\" and \"proxy_set_header Cookie \"\";\". HAProxy: \"http-request "
     "del-header Authorization unless is_own\" and the same for Cookie. Caddy: \"request_header -Authorization\" and "
     "\"request_header -Cookie\"."},
    {"target", gateway_judge_target, PROBES(GET(GATEWAY_KEY, "$/a%20b%2Bc?x=1%7C2%2F..&y=a//b", NULL)), NEEDS_ECHO,
     "the backend gets the target that was checked",
     "Forward the target as it was sent. nginx: \"proxy_pass https://$checked;\" without a path, not even \"/\", and "
     "no "
     "rewrite. HAProxy: no set-path, replace-path or normalize-uri. Caddy: no rewrite, uri or handle_path."},
    {"revoked-key", gateway_judge_refused,
     PROBES({GATEWAY_REVOKED_KEY, "GET", "$", NULL, NULL, 401, "api_key_revoked"}), NEEDS_REVOKED, "refused by a node",
     "Let no answer to a check be cached (nginx: no proxy_cache in its location). " CHECK_LINE},
    {"two-keys", gateway_judge_refused,
     PROBES({GATEWAY_KEY_AND_REVOKED, "GET", "$", NULL, NULL, 400, "bad_request"},
            {GATEWAY_REVOKED_AND_KEY, "GET", "$", NULL, NULL, 400, "bad_request"}),
     NEEDS_REVOKED, "refused by a node", "Hand all Authorization lines to the check, unchanged."},
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
