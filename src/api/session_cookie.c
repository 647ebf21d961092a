#include "session_cookie_internal.h"
#include "base/secure.h"
#include "http/cookie.h"

static void put_cookie(struct call *call, struct text value, int64_t max_age_s)
{
    char storage[160];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    cookie_print(SESSION_COOKIE_NAME, value, max_age_s, &out);
    http_response_header(call->request, TEXT("Set-Cookie"), buf_text(&out));
    secure_wipe(storage, sizeof storage);
}

void session_cookie_set(struct call *call, const struct token *token)
{
    put_cookie(call, text_of(token->text), -1);
}

void session_cookie_clear(struct call *call)
{
    put_cookie(call, (struct text){0}, 0);
}
