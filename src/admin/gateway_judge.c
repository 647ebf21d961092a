#include "gateway_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum { STATUS_SWITCHED = 101, STATUS_TIMEOUT = 408, STATUS_UNAVAILABLE = 503 };

PRINTF_LIKE(3, 4)
static void find(struct gateway_finding *ret_finding, enum doctor_status status, const char *format, ...)
{
    va_list args;

    ret_finding->status = status;
    va_start(args, format);
    vsnprintf(ret_finding->detail, sizeof ret_finding->detail, format, args);
    va_end(args);
}

static bool is_success(unsigned status)
{
    return status == STATUS_SWITCHED || (status >= 200 && status < 300);
}

static bool is_refusal(unsigned status)
{
    return status >= 400 && status < 500;
}

static const char *credential_name(enum gateway_credential credential)
{
    static const char *const NAMES[] = {
        [GATEWAY_NO_KEY] = "without a key",
        [GATEWAY_WRONG_KEY] = "with a key that nobody made",
        [GATEWAY_KEY] = "with the key",
        [GATEWAY_REVOKED_KEY] = "with the revoked key",
        [GATEWAY_KEY_AND_REVOKED] = "with two keys",
        [GATEWAY_REVOKED_AND_KEY] = "with two keys",
    };

    return NAMES[credential];
}

/* What neither proves nor disproves anything. */
static void find_nothing(const struct gateway_probe *probe, const struct gateway_answer *answer,
                         struct gateway_finding *finding)
{
    const char *target = answer->sent_target.len > 0 ? answer->sent_target.ptr : "";

    if (answer->result != HTTP_CALL_ANSWERED)
        find(finding, DOCTOR_UNPROVEN, "%s %.*s %s: %s", probe->method, (int)answer->sent_target.len, target,
             credential_name(probe->credential), answer->why);
    else if (answer->response.status == STATUS_UNAVAILABLE)
        find(finding, DOCTOR_UNPROVEN, "%s %.*s %s is answered 503: the gateway reaches no node, or no backend",
             probe->method, (int)answer->sent_target.len, target, credential_name(probe->credential));
    else
        find(finding, DOCTOR_UNPROVEN, "%s %.*s %s is answered %u%s%s, which proves nothing", probe->method,
             (int)answer->sent_target.len, target, credential_name(probe->credential), answer->response.status,
             answer->code[0] ? " " : "", answer->code);
}

static void find_open(const struct gateway_probe *probe, const struct gateway_answer *answer,
                      struct gateway_finding *finding)
{
    const struct buf *target = &answer->sent_target;

    find(finding, DOCTOR_FAIL, "%s %.*s %s is answered %u", probe->method, (int)target->len,
         target->len > 0 ? target->ptr : "", credential_name(probe->credential), answer->response.status);
}

/* Refused by a node, for the reason that is expected. */
void gateway_judge_refused(struct gateway_site *site, const struct gateway_probe *probe,
                           const struct gateway_answer *answer, struct gateway_finding *finding)
{
    (void)site;
    if (answer->result == HTTP_CALL_ANSWERED && is_success(answer->response.status))
        find_open(probe, answer, finding);
    else if (answer->result != HTTP_CALL_ANSWERED || answer->response.status != probe->status ||
             strcmp(answer->code, probe->code) != 0)
        find_nothing(probe, answer, finding);
}

/* Refused by anybody without the body, of which one byte at most is ever sent. */
void gateway_judge_upload(struct gateway_site *site, const struct gateway_probe *probe,
                          const struct gateway_answer *answer, struct gateway_finding *finding)
{
    if (answer->response.asked_for_body)
        find(finding, DOCTOR_FAIL, "the gateway asks for the body (100 Continue) of a request without a key");
    else if (answer->result == HTTP_CALL_SILENT ||
             (answer->result == HTTP_CALL_ANSWERED && answer->response.status == STATUS_TIMEOUT))
        find(finding, DOCTOR_FAIL, "the gateway waits for the body of a request without a key");
    else
        gateway_judge_path(site, probe, answer, finding);
}

/* Refused by anybody. */
void gateway_judge_path(struct gateway_site *site, const struct gateway_probe *probe,
                        const struct gateway_answer *answer, struct gateway_finding *finding)
{
    (void)site;
    if (answer->result == HTTP_CALL_ANSWERED && is_success(answer->response.status))
        find_open(probe, answer, finding);
    else if (answer->result != HTTP_CALL_ANSWERED || !is_refusal(answer->response.status))
        find_nothing(probe, answer, finding);
}

void gateway_judge_metrics(struct gateway_site *site, const struct gateway_probe *probe,
                           const struct gateway_answer *answer, struct gateway_finding *finding)
{
    (void)site;
    const struct buf *body = &answer->response.body;

    if (body->len > 0 && memmem(body->ptr, body->len, "chatelaine_", strlen("chatelaine_")))
        find(finding, DOCTOR_FAIL, "the gateway leads to a node's internal listener: it shows %s to everybody",
             probe->target);
    else if (answer->result != HTTP_CALL_ANSWERED || !is_refusal(answer->response.status))
        find_nothing(probe, answer, finding);
}

/* A node's own answer to a check says who the key is. */
void gateway_judge_check_route(struct gateway_site *site, const struct gateway_probe *probe,
                               const struct gateway_answer *answer, struct gateway_finding *finding)
{
    (void)site;
    if (http_message_field(&answer->response.fields, TEXT("X-Auth-Principal"), NULL).len > 0)
        find(finding, DOCTOR_FAIL, "the gateway leads to a node's internal listener: %s answers whether a key is valid",
             probe->target);
    else if (answer->result != HTTP_CALL_ANSWERED)
        find_nothing(probe, answer, finding);
}

/* The key itself: what the others build on. */
void gateway_judge_key(struct gateway_site *site, const struct gateway_probe *probe,
                       const struct gateway_answer *answer, struct gateway_finding *finding)
{
    enum key_kind kind;
    enum key_mode mode;

    site->key_passes = answer->result == HTTP_CALL_ANSWERED && is_success(answer->response.status);
    site->is_told = answer->is_told;
    if (!site->key_passes)
        find_nothing(probe, answer, finding);
    else if (!secret_parse(text_of(site->key), &kind, &mode) || mode != MODE_TEST)
        find(finding, DOCTOR_WARN, "a live key passes");
}

void gateway_judge_told(struct gateway_site *site, const struct gateway_probe *probe,
                        const struct gateway_answer *answer, struct gateway_finding *finding)
{
    (void)probe;
    (void)answer;
    if (!site->is_told)
        find(finding, DOCTOR_UNPROVEN,
             "the backend does not tell what reaches it, so this cannot be seen: forged and steering headers, "
             "trailers, tunnels, keys that are passed on");
}

/* What a check by a node adds, as it was told to the backend: each header once. */
void gateway_judge_identity(struct gateway_site *site, const struct gateway_probe *probe,
                            const struct gateway_answer *answer, struct gateway_finding *finding)
{
    static const struct {
        const char *name, *begins;
    } WANTED[] = {
        {"X-Auth-Account", "acct_"}, {"X-Auth-Principal", "key_"}, {"X-Auth-Kind", "api_key"},
        {"X-Auth-Mode", ""},         {"X-Auth-Billable", ""},
    };

    (void)site;
    if (!answer->is_told) {
        find_nothing(probe, answer, finding);
        return;
    }
    for (size_t i = 0; i < sizeof WANTED / sizeof WANTED[0]; i++) {
        size_t count;
        struct text value = http_message_field(&answer->told.fields, text_of(WANTED[i].name), &count);

        if (count != 1 || value.len == 0 || !text_starts_with(value, text_of(WANTED[i].begins))) {
            find(finding, DOCTOR_FAIL, "the backend gets %s %zu times, or with another value than a node's%s",
                 WANTED[i].name, count, probe->fields ? ", if the client names it in Connection" : "");
            return;
        }
    }
}

/* Nothing of what the client made up reaches the backend. A refusal is as good. */
void gateway_judge_marker(struct gateway_site *site, const struct gateway_probe *probe,
                          const struct gateway_answer *answer, struct gateway_finding *finding)
{
    char name[GATEWAY_NAME_BYTES] = "";

    if (answer->is_told && gateway_find(&answer->told.fields, site->marker, name))
        find(finding, DOCTOR_FAIL, "the client's own %s reaches the backend", name);
    else if (!answer->is_told && (answer->result != HTTP_CALL_ANSWERED || !is_refusal(answer->response.status)))
        find_nothing(probe, answer, finding);
}

/* Whether a trailer becomes a header is up to the backend. */
void gateway_judge_trailers(struct gateway_site *site, const struct gateway_probe *probe,
                            const struct gateway_answer *answer, struct gateway_finding *finding)
{
    char name[GATEWAY_NAME_BYTES] = "";

    if (answer->is_told && gateway_find(&answer->told.trailers, site->marker, name))
        find(finding, DOCTOR_WARN, "the client's trailer field %s reaches the backend", name);
    else
        gateway_judge_marker(site, probe, answer, finding);
}

void gateway_judge_secrets(struct gateway_site *site, const struct gateway_probe *probe,
                           const struct gateway_answer *answer, struct gateway_finding *finding)
{
    char name[GATEWAY_NAME_BYTES] = "";

    if (!answer->is_told)
        find_nothing(probe, answer, finding);
    else if (gateway_find(&answer->told.fields, site->key, name))
        find(finding, DOCTOR_FAIL, "the key reaches the backend in %s", name);
    else if (gateway_find(&answer->told.fields, site->marker, name))
        find(finding, DOCTOR_FAIL, "the session cookie reaches the backend in %s", name);
}

void gateway_judge_target(struct gateway_site *site, const struct gateway_probe *probe,
                          const struct gateway_answer *answer, struct gateway_finding *finding)
{
    (void)site;
    if (!answer->is_told)
        find_nothing(probe, answer, finding);
    else if (!text_equal(buf_text(&answer->told.target), buf_text(&answer->sent_target)))
        find(finding, DOCTOR_FAIL, "checked is %.*s, but the backend gets %.*s",
             TEXT_ARG(buf_text(&answer->sent_target)), TEXT_ARG(buf_text(&answer->told.target)));
}

void gateway_judge_tunnel(struct gateway_site *site, const struct gateway_probe *probe,
                          const struct gateway_answer *answer, struct gateway_finding *finding)
{
    size_t upgrades, settings;

    (void)site;
    if (answer->response.status == STATUS_SWITCHED) {
        find(finding, DOCTOR_FAIL, "the connection becomes a tunnel, in which nobody checks requests");
        return;
    }
    if (!answer->is_told) {
        if (answer->result != HTTP_CALL_ANSWERED || !is_refusal(answer->response.status))
            find_nothing(probe, answer, finding);
        return;
    }
    (void)http_message_field(&answer->told.fields, TEXT("Upgrade"), &upgrades);
    (void)http_message_field(&answer->told.fields, TEXT("HTTP2-Settings"), &settings);
    if (upgrades + settings > 0)
        find(finding, DOCTOR_FAIL, "%s reaches the backend, which may open a tunnel",
             upgrades > 0 ? "Upgrade: h2c" : "HTTP2-Settings");
}
