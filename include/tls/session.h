/* One TLS connection of either side: bytes in, bytes out. It has no socket and no buffer. The caller moves ciphertext,
 * and lends buffers for the time of a call, so that all connections can share them. */
#pragma once
#include "base/text.h"
#include "tls/context.h"

struct tls_session;

enum tls_state {
    TLS_HANDSHAKING,
    TLS_OPEN,
    TLS_ENDED,  /* the peer has sent close_notify: nothing more arrives, but it can still be sent to */
    TLS_FAILED, /* close the connection, once what was appended to `out` (an alert) has been sent */
};

/* A record's plaintext; and how much longer ciphertext may be, per record (RFC 8446, section 5.2). */
enum { TLS_RECORD_BYTES = 16384, TLS_RECORD_OVERHEAD_BYTES = 256 };

/* The server's side. Holds the context. */
struct tls_session *tls_session_accept(struct tls_context *context);
/* The client's side. host: the name or address (without brackets) that the server's certificate must cover; ignored by
 * a pinned context. Call tls_receive() without input to begin. */
struct tls_session *tls_session_connect(struct tls_context *context, const char *host);
/* NULL is fine. */
void tls_session_free(struct tls_session *session);

/* Takes all of what the peer has sent. Appends what it means to `plain`, and what must be sent to the peer to `out`, in
 * every state. `plain` needs room for as much as `input` and TLS_RECORD_BYTES. */
enum tls_state tls_receive(struct tls_session *session, struct text input, struct buf *plain, struct buf *out);
/* Appends the bytes as records to `out`, on a server's first call behind a session ticket. Call it only when open or
 * ended. False: it has failed. */
MUST_CHECK bool tls_send(struct tls_session *session, struct text bytes, struct buf *out);
/* Appends close_notify to `out`, once, unless the handshake is not complete or the session has failed. Nothing can be
 * sent afterwards. */
void tls_end(struct tls_session *session, struct buf *out);

enum tls_state tls_session_state(const struct tls_session *session);
/* Why it has failed, for the log: a phrase such as "its certificate is for a.example, not for b.example", or OpenSSL's.
 */
const char *tls_session_reason(const struct tls_session *session);
/* Whether the handshake took up an earlier session. */
bool tls_session_is_resumed(const struct tls_session *session);

/* Proved by the client of a server's session, in this handshake or the resumed one's. */
enum tls_peer {
    TLS_PEER_UNKNOWN,  /* nothing: it has shown no certificate */
    TLS_PEER_VERIFIED, /* that it holds a certificate of our client CA, which has not expired */
    TLS_PEER_ENDED,    /* that it held one: it has expired since, or the client CA has been replaced */
};
/* Asks the clock. current: the context that new connections get; NULL: none. */
enum tls_peer tls_session_peer(const struct tls_session *session, const struct tls_context *current);
/* The name of the certificate that it has shown, ended or not: the first DNS name or URI of its subjectAltName; without
 * one, the common name of its subject; "sha256:" and the digest of the certificate in hex if it has neither, or one
 * that is longer than this or not of printable ASCII without commas. Empty: TLS_PEER_UNKNOWN. */
enum { TLS_PEER_NAME_BYTES = 256 };
struct text tls_session_peer_name(const struct tls_session *session);
/* Memory held for a record that has arrived in part. */
size_t tls_session_held_bytes(const struct tls_session *session);
