/* By which name a client's certificate goes. */
#pragma once
#include "tls/session.h"

#include <openssl/ssl.h>

/* See tls_session_peer_name(). */
void peer_name_read(const X509 *certificate, char ret_name[TLS_PEER_NAME_BYTES]);
