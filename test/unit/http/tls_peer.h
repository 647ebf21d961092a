/* The fixture's server and peers speak TLS if a test wants it, or with CHATELAINE_TEST_TLS set, so that tests of plain
 * connections run over TLS too. */
#pragma once
#include "server_fixture.h"

extern bool tls_peer_is_wanted;
/* Peers show a certificate, for 30 days, of the client CA that the server's context has. Set it before the contexts are
 * made. */
extern bool tls_peer_has_certificate;
bool tls_peer_is_on(void);
/* Skips the test over TLS. why: what it has to do with plain connections only. */
void tls_peer_skip(const char *why);
/* Made once per process; the pointers last as long as it. */
struct tls_context *tls_peer_server_context(void);
struct tls_context *tls_peer_client_context(void);
void tls_peer_forget_contexts(void);
/* Shakes hands with the fixture's server, unless that ends the connection. */
void tls_peer_open(struct peer *peer);
/* In two steps: appends the first flight to *ret_records, and waits until the handshake is complete. */
void tls_peer_begin(struct peer *peer, struct buf *ret_records);
bool tls_peer_is_open(struct peer *peer);
/* Decrypts what has arrived, and answers what the session must. */
void tls_peer_take(struct peer *peer, const char *bytes, size_t count);
/* Appends records to *ret_records. False: the session has ended. */
bool tls_peer_seal(struct peer *peer, const char *bytes, size_t count, struct buf *ret_records);
void tls_peer_end(struct peer *peer);
