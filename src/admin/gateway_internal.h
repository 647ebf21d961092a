/* doctor --gateway: attacks a gateway from outside and judges by its answers. A check proves something, or says that it
 * does not: what reaches a backend can be seen only if that backend tells it, as `gateway-echo` does. */
#pragma once
#include "core/secret.h"
#include "doctor_internal.h"
#include "http/call.h"

enum { GATEWAY_MARKER_BYTES = 17, GATEWAY_KEY_BYTES = 512, GATEWAY_WHY_BYTES = 256, GATEWAY_CODE_BYTES = 48 };

enum gateway_credential {
    GATEWAY_NO_KEY,
    GATEWAY_WRONG_KEY, /* well-formed, but made by nobody */
    GATEWAY_KEY,
    GATEWAY_REVOKED_KEY,
    GATEWAY_KEY_AND_REVOKED, /* two lines */
    GATEWAY_REVOKED_AND_KEY,
};

/* One request. In target, "$" stands for the path that the operator has named; in target, fields and body, "@" for a
 * word that nobody else sends. */
struct gateway_probe {
    enum gateway_credential credential;
    const char *method, *target;
    const char *fields; /* lines, each with its end; NULL: none */
    const char *body;   /* what comes after the head; NULL: nothing */
    unsigned status;    /* of a refusal, with the code; 0: another judge */
    const char *code;
};

/* The gateway, what is sent to it, and what is known of it so far. */
struct gateway_site {
    struct http_call_peer peer;
    const char *authority; /* "gateway.example:8443" */
    const char *path;
    char key[GATEWAY_KEY_BYTES], revoked_key[GATEWAY_KEY_BYTES]; /* empty: not given */
    struct secret wrong_key;
    char marker[GATEWAY_MARKER_BYTES];
    int64_t patience_ms; /* for one request */
    uint64_t until_ns;   /* for all */
    bool key_passes;     /* a plain request with the key was answered 2xx */
    bool is_told;        /* and what it became is told by the backend */
};

struct gateway_answer {
    enum http_call_result result;
    char why[GATEWAY_WHY_BYTES]; /* unless it was answered */
    struct http_message response;
    char code[GATEWAY_CODE_BYTES]; /* error.code of the response; empty: none */
    bool is_told;
    struct http_message told; /* the request as the backend got it */
    struct buf sent_target;
};

/* Sends a probe. gateway_answer_finish() wipes the answer, which may hold the key. */
void gateway_ask(const struct gateway_site *site, const struct gateway_probe *probe, struct gateway_answer *ret_answer);
void gateway_answer_finish(struct gateway_answer *answer);
/* True if any line holds the needle. ret_name gets the name of the first one's field, cut to its size. */
enum { GATEWAY_NAME_BYTES = 64 };
bool gateway_find(const struct buf *lines, const char *needle, char ret_name[GATEWAY_NAME_BYTES]);

/* What one probe has shown: DOCTOR_OK without a detail, until a judge finds something else. */
struct gateway_finding {
    enum doctor_status status;
    char detail[DOCTOR_DETAIL_BYTES];
};
typedef void gateway_judge(struct gateway_site *site, const struct gateway_probe *probe,
                           const struct gateway_answer *answer, struct gateway_finding *ret_finding);
gateway_judge gateway_judge_refused; /* by a node, with the probe's status and code */
gateway_judge gateway_judge_upload;  /* by anybody, without the body, of which one byte is sent */
gateway_judge gateway_judge_path;    /* by anybody */
gateway_judge gateway_judge_metrics; /* likewise, and not with a node's metrics */
gateway_judge gateway_judge_check_route;
gateway_judge gateway_judge_key; /* notes key_passes and is_told */
gateway_judge gateway_judge_told;
gateway_judge gateway_judge_identity;
gateway_judge gateway_judge_marker; /* refused, or the marker is in none of the fields that reach the backend */
gateway_judge gateway_judge_trailers;
gateway_judge gateway_judge_secrets;
gateway_judge gateway_judge_target;
gateway_judge gateway_judge_tunnel;

/* Asks everything and adds a line for each check. */
void gateway_examine(struct gateway_site *site, struct doctor_report *report);
