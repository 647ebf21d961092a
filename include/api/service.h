/* Everything that handlers need, in one plain struct. The app fills and owns it. */
#pragma once
#include "api/gate.h"
#include "auth/key_check.h"
#include "auth/password.h"
#include "auth/revocation_log.h"
#include "auth/session_auth.h"
#include "auth/usage.h"
#include "auth/watch_feed.h"
#include "base/log.h"
#include "core/address.h"
#include "core/route_policy.h"
#include "http/request.h"
#include "http/settings.h"
#include "records/key_store.h"
#include "engine/partitions.h"

struct console;

enum { SERVICE_REFUSALS = 12 }; /* kinds of refusal that are logged: the rows in src/api/refusal.c */

/* Exports of audit trails that may be open at once. Clients read as slowly as they may, so there are many: a few
 * accounts must not use them up. The gate says how many of them make a page. */
enum { SERVICE_EXPORTS = 256 };

/* Watchers of revocations under one name, of a certificate or an address. Memory of the last ones is enough: see
 * watch_peers_internal.h. */
enum { SERVICE_WATCH_PEERS = 1024, SERVICE_PEER_CHARS = 272 };
struct watch_peer {
    char name[SERVICE_PEER_CHARS];
    unsigned watchers, broken; /* broken: subscriptions that it did not keep, from since_ns on */
    uint64_t since_ns;
};

struct service {
    struct keyring *keyring;
    struct partitions *partitions;
    struct key_checker *checker;
    struct password_pool *passwords;
    struct usage *usage;
    struct gate *gate;
    struct watch_feed *watch_feed;   /* NULL: this node serves no watchers */
    unsigned watchers, watchers_max; /* of that feed: those that are connected; --watchers-max */
    struct watch_peer watch_peers[SERVICE_WATCH_PEERS];
    struct log_pause watch_peers_pause;
    struct text watch_names;               /* --watch-names; empty: all may watch who may ask at all */
    struct revocation_log *revocation_log; /* NULL: none */
    bool has_warned_of_proxy;              /* an ignored X-Forwarded-For was logged; that happens once */
    struct log_pause refusal_pauses[SERVICE_REFUSALS];
    const struct route_policy *policy;            /* replaced on SIGHUP */
    const struct address_ranges *trusted_proxies; /* NULL: none */
    struct session_limits session_limits;
    const struct console *console;      /* the pages */
    struct text public_origin;          /* "https://console.example.org" */
    struct text device_clients;         /* --device-clients */
    bool grant_any;                     /* --grant-policy any */
    bool needs_client_certificate;      /* --internal-client-ca */
    bool checks_hosts;                  /* the internal listener is plain: no certificate says which name it has */
    struct text internal_hosts;         /* --internal-hosts */
    bool strict401;                     /* --check-status strict401 */
    size_t target_max_bytes;            /* longest target that a gateway may ask about; a longer one gets 414 */
    int64_t canary_interval_ms;         /* --canary-interval-ms */
    uint64_t access_log_sample;         /* --access-log-sample: logs one of so many requests; 0: none */
    uint64_t access_log_skips;          /* requests until the next one that is logged */
    struct id exports[SERVICE_EXPORTS]; /* the accounts of those that run; empty: none */
    bool starting;                      /* not ready: the public listener is not open yet */
    bool draining;                      /* not ready, takes no watcher; requests are answered as ever */
    bool refuses_new;                   /* near the end of the drain: new requests get 503 shutting_down */
};

/* The http_handlers of the two listeners. service is a struct service. */
void api_handle_public(struct http_request *request, void *service);
void api_handle_internal(struct http_request *request, void *service);
/* store_settings.on_key_ended: adds it to the revocation log. service is a struct service. */
void api_log_ended_key(void *service, const struct key_record *key, int64_t said_ms, const char *why);
/* http_settings.make_id of both listeners: makes a request id in the API's format. */
size_t api_make_request_id(int64_t wall_ms, char ret_id[HTTP_ID_MAX_BYTES]);
/* http_settings.trusts_proxy of listeners with --proxy-protocol: whether the peer is one of --trusted-proxies. */
bool api_trusts_proxy(struct text peer, void *service);
/* http_settings.print_error of the public listener. arg is unused. */
void api_print_error(struct http_request *request, enum http_error error, void *arg);
/* The same for the internal listener: a check whose HTTP head is bad is answered like any other refused check. */
void api_print_internal_error(struct http_request *request, enum http_error error, void *service);
