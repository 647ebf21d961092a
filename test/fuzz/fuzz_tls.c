/* What a peer sends to a TLS server before and after a handshake. The input's first byte says whether the client has
 * shaken hands first; the second, where the rest is cut in two. Beyond "does not crash": plaintext comes only from a
 * peer that has shaken hands, and a session that has failed stays failed. */
#include "base/check.h"
#include "certificates.h"
#include "tls/session.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { OUT_MAX_BYTES = 1 << 20 };

static struct tls_context *server, *client;

static void make_contexts(void)
{
    struct certificate own;
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    certificate_make(&own, &(struct certificate_wish){.name = "server", .names = "DNS:localhost"});
    const struct tls_pair pair = {{"cert", text_of(own.pem)}, {"key", text_of(own.key_pem)}};
    const struct tls_pem pinned = {"cert", text_of(own.pem)};
    const struct tls_server_settings settings = {.pairs = &pair, .pair_count = 1, .service = TEXT("fuzz")};

    server = tls_context_create_server(&settings, &why);
    client = tls_context_create_pinned(&pinned, 1, &why);
    CHECK(server && client);
    certificate_free(&own);
}

static void shake_hands(struct tls_session *accepted)
{
    struct tls_session *connected = tls_session_connect(client, "localhost");
    struct buf to_server, to_client, plain;

    buf_init(&to_server, OUT_MAX_BYTES);
    buf_init(&to_client, OUT_MAX_BYTES);
    buf_init(&plain, OUT_MAX_BYTES);
    while (tls_session_state(accepted) == TLS_HANDSHAKING) {
        (void)tls_receive(connected, buf_text(&to_client), &plain, &to_server);
        buf_clear(&to_client);
        (void)tls_receive(accepted, buf_text(&to_server), &plain, &to_client);
        buf_clear(&to_server);
    }
    CHECK(tls_session_state(accepted) == TLS_OPEN);
    tls_session_free(connected);
    buf_finish(&to_server);
    buf_finish(&to_client);
    buf_finish(&plain);
}

static void feed(struct tls_session *session, struct text input)
{
    bool had_failed = tls_session_state(session) == TLS_FAILED;
    struct buf plain, out;

    buf_init(&plain, OUT_MAX_BYTES);
    buf_init(&out, OUT_MAX_BYTES);
    enum tls_state state = tls_receive(session, input, &plain, &out);
    /* Nobody can forge a record, and no client finishes a handshake by chance. */
    CHECK(plain.len == 0);
    CHECK(!had_failed || (state == TLS_FAILED && out.len == 0));
    CHECK(tls_session_held_bytes(session) <= TLS_RECORD_BYTES + TLS_RECORD_OVERHEAD_BYTES);
    buf_finish(&plain);
    buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct tls_session *session;
    struct text input = {(const char *)bytes + 2, count - 2};
    size_t first;

    if (count < 2)
        return 0;
    if (!server)
        make_contexts();
    session = tls_session_accept(server);
    if (bytes[0] & 1)
        shake_hands(session);
    first = input.len * bytes[1] / UINT8_MAX;
    feed(session, (struct text){input.ptr, first});
    feed(session, text_skip(input, first));
    tls_session_free(session);
    return 0;
}
