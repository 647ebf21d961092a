#include "redis/tls.h"
#include <string.h>

/* OpenSSL's words contain the left side; their beginnings differ between its versions. */
const char *redis_tls_explain(const char *reason)
{
    static const struct {
        const char *words, *meaning;
    } MEANINGS[] = {
        {"wrong version number", "it does not speak TLS at this port"},
        {"packet length too long", "it does not speak TLS at this port"},
        {"record layer failure", "it does not speak TLS at this port"},
        {"unexpected message", "it does not speak TLS at this port"},
        {"alert certificate required", "it asks for a client certificate: set --redis-cert and --redis-key"},
        {"alert handshake failure",
         "it refuses the TLS handshake: it may ask for a client certificate (--redis-cert, --redis-key)"},
        {"alert unknown ca", "it does not know the CA of --redis-cert"},
        {"alert certificate expired", "it says that --redis-cert has expired"},
        {"alert bad certificate", "it refuses --redis-cert"},
        {"alert certificate unknown", "it refuses --redis-cert"},
        {"alert protocol version", "it speaks neither TLS 1.2 nor 1.3"},
        {"unsupported protocol", "it speaks neither TLS 1.2 nor 1.3"},
        {"unknown CA", "its certificate comes from an unknown CA: set --redis-ca"},
    };

    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        if (strstr(reason, MEANINGS[i].words))
            return MEANINGS[i].meaning;
    return reason;
}
