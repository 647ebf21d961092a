#include "session_cookie_internal.h"

#include <string.h>

enum { BROWSER_MAX_AGE_S = 365 * 24 * 60 * 60, JOIN_MAX_AGE_S = 30 * 60 };

static void put_cookie(struct exchange *exchange, struct text name, struct text value, int64_t max_age_s)
{
    struct buf out = BUF_FIXED(160);

    cookie_print(name, value, max_age_s, &out);
    http_response_header(exchange->request, TEXT("Set-Cookie"), buf_text(&out));
    buf_wipe(&out);
}

void session_cookie_set(struct exchange *exchange, const struct token *token)
{
    put_cookie(exchange, SESSION_COOKIE_NAME, text_of(token->text), -1);
}

void session_cookie_clear(struct exchange *exchange)
{
    put_cookie(exchange, SESSION_COOKIE_NAME, (struct text){0}, 0);
}

static enum cookie_result find_cookie(const struct exchange *exchange, struct text name, struct text *ret_value)
{
    return cookie_find(http_request_header_at(exchange->request, TEXT("Cookie"), 0), name, ret_value);
}

enum cookie_result session_cookie_find(const struct exchange *exchange, struct text *ret_token)
{
    return find_cookie(exchange, SESSION_COOKIE_NAME, ret_token);
}

bool session_cookie_digest(const struct exchange *exchange, uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    struct text token;

    return session_cookie_find(exchange, &token) == COOKIE_ONE &&
           token_digest(exchange->service->keyring, KEYRING_SESSION_DIGEST, token, ret_digest);
}

void browser_cookie_set(struct exchange *exchange, const struct token *token)
{
    put_cookie(exchange, BROWSER_COOKIE_NAME, text_of(token->text), BROWSER_MAX_AGE_S);
}

void join_cookie_set(struct exchange *exchange, const struct token *token)
{
    put_cookie(exchange, JOIN_COOKIE_NAME, text_of(token->text), JOIN_MAX_AGE_S);
}

static bool token_read(const struct exchange *exchange, struct text name, struct token *ret_token)
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    struct text token;

    if (find_cookie(exchange, name, &token) != COOKIE_ONE ||
        !token_digest(exchange->service->keyring, KEYRING_THROTTLE, token, digest))
        return false;
    memcpy(ret_token->text, token.ptr, TOKEN_CHARS);
    ret_token->text[TOKEN_CHARS] = '\0';
    return true;
}

bool browser_cookie_read(const struct exchange *exchange, struct token *ret_token)
{
    return token_read(exchange, BROWSER_COOKIE_NAME, ret_token);
}

bool join_cookie_read(const struct exchange *exchange, struct token *ret_token)
{
    return token_read(exchange, JOIN_COOKIE_NAME, ret_token);
}
