#include "gateway_internal.h"

#include "base/clock.h"
#include "base/json.h"

#include <stdio.h>

enum { REQUEST_MAX_BYTES = 8 * 1024, ANSWER_MAX_BYTES = 128 * 1024 };

#define AUTHORIZATION "Authorization: Bearer "

static void append_line(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, "%s%s\r\n", name, value);
}

static void append_credential(const struct gateway_site *site, enum gateway_credential credential, struct buf *out)
{
    switch (credential) {
    case GATEWAY_NO_KEY:
        break;
    case GATEWAY_WRONG_KEY:
        append_line(out, AUTHORIZATION, site->wrong_key.text);
        break;
    case GATEWAY_KEY:
        append_line(out, AUTHORIZATION, site->key);
        break;
    case GATEWAY_REVOKED_KEY:
        append_line(out, AUTHORIZATION, site->revoked_key);
        break;
    case GATEWAY_KEY_AND_REVOKED:
        append_line(out, AUTHORIZATION, site->key);
        append_line(out, AUTHORIZATION, site->revoked_key);
        break;
    case GATEWAY_REVOKED_AND_KEY:
        append_line(out, AUTHORIZATION, site->revoked_key);
        append_line(out, AUTHORIZATION, site->key);
        break;
    }
}

static void append_filled(const struct gateway_site *site, const char *pattern, struct buf *out)
{
    for (const char *at = pattern; at && *at; at++) {
        if (*at == '@')
            buf_append_str(out, site->marker);
        else if (*at == '$')
            buf_append_str(out, site->path);
        else
            buf_append_char(out, *at);
    }
}

static void print_request(const struct gateway_site *site, const struct gateway_probe *probe, struct buf *target,
                          struct buf *out)
{
    bool says_connection = probe->fields && strstr(probe->fields, "Connection:");

    append_filled(site, probe->target, target);
    buf_printf(out, "%s %.*s HTTP/1.1\r\nHost: %s\r\nUser-Agent: chatelaine-doctor\r\nAccept: */*\r\n", probe->method,
               TEXT_ARG(buf_text(target)), site->authority);
    append_credential(site, probe->credential, out);
    append_filled(site, probe->fields, out);
    buf_append_str(out, says_connection ? "\r\n" : "Connection: close\r\n\r\n");
    append_filled(site, probe->body, out);
}

static void read_code(struct gateway_answer *answer)
{
    struct json *document = json_parse_object(buf_text(&answer->response.body), NULL);
    const struct json *error = document ? json_member(document, "error") : NULL;
    const struct json *code = error && json_type(error) == JSON_OBJECT ? json_member(error, "code") : NULL;

    if (code && json_type(code) == JSON_STRING)
        snprintf(answer->code, sizeof answer->code, "%.*s", TEXT_ARG(json_text(code)));
    json_free(document);
}

static void read_told(struct gateway_answer *answer)
{
    struct text type = http_message_field(&answer->response.fields, TEXT("Content-Type"), NULL);

    if (answer->response.status == 200 && text_equal_nocase(type, TEXT("message/http")))
        answer->is_told = http_message_feed(&answer->told, buf_text(&answer->response.body)) == HTTP_MESSAGE_DONE;
}

void gateway_ask(const struct gateway_site *site, const struct gateway_probe *probe, struct gateway_answer *ret_answer)
{
    uint64_t now_ns = clock_boot_ns();
    int64_t left_ms = now_ns < site->until_ns ? (int64_t)((site->until_ns - now_ns) / CLOCK_NS_PER_MS) : 0;
    struct buf request CLEANUP(buf_wipe), why;

    *ret_answer = (struct gateway_answer){0};
    buf_init(&request, REQUEST_MAX_BYTES);
    buf_init(&ret_answer->sent_target, REQUEST_MAX_BYTES);
    buf_init_fixed(&why, ret_answer->why, sizeof ret_answer->why - 1);
    http_message_init(&ret_answer->response, HTTP_MESSAGE_RESPONSE, ANSWER_MAX_BYTES);
    http_message_init(&ret_answer->told, HTTP_MESSAGE_REQUEST, ANSWER_MAX_BYTES);
    print_request(site, probe, &ret_answer->sent_target, &request);
    ret_answer->result =
        http_call_make(&site->peer, buf_text(&request), left_ms < site->patience_ms ? left_ms : site->patience_ms,
                       &ret_answer->response, &why);
    if (ret_answer->result != HTTP_CALL_ANSWERED)
        return;
    read_code(ret_answer);
    read_told(ret_answer);
}

void gateway_answer_finish(struct gateway_answer *answer)
{
    http_message_finish(&answer->response);
    http_message_finish(&answer->told);
    buf_finish(&answer->sent_target);
}

bool gateway_find(const struct buf *lines, const char *needle, char ret_name[GATEWAY_NAME_BYTES])
{
    struct text rest = buf_text(lines), line, name;

    while (text_next(&rest, '\n', &line)) {
        if (line.len == 0 || !memmem(line.ptr, line.len, needle, strlen(needle)))
            continue;
        name.len = 0;
        if (text_next(&line, ':', &name))
            snprintf(ret_name, GATEWAY_NAME_BYTES, "%.*s", TEXT_ARG(name));
        return true;
    }
    return false;
}
