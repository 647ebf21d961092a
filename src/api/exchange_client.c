#include "exchange_client_internal.h"
#include "api/service.h"
#include "base/log.h"
#include "question_internal.h"

#define FORWARDED_FOR TEXT("X-Forwarded-For")
/* One client may use every address of a /64. */
enum { CLIENT_NETWORK_IPV6_BITS = 64 };

bool api_trusts_proxy(struct text peer, void *service)
{
    const struct address_ranges *trusted = ((const struct service *)service)->trusted_proxies;
    struct address address;

    return trusted && address_parse(peer, &address) && address_ranges_include(trusted, &address);
}

/* Behind a load balancer that is not trusted, all clients count as one, and the failures of one block them all. The
 * operator should know. */
static void warn_of_proxy(const struct exchange *exchange)
{
    struct service *service = exchange->service;
    size_t lines;

    http_request_header(exchange->request, FORWARDED_FOR, &lines);
    if (lines == 0 || service->has_warned_of_proxy)
        return;
    service->has_warned_of_proxy = true;
    LOG(LOG_WARN,
        "X-Forwarded-For ignored: its sender is not in --trusted-proxies, so all clients behind it count as one",
        log_text("peer", http_request_peer(exchange->request)));
}

/* A peer of the internal listener that has no address is a gateway on this machine, which connected to a Unix socket
 * because its permissions let it. */
static bool is_local_gateway(const struct exchange *exchange, struct address *ret_address)
{
    return exchange->is_internal && address_parse(TEXT("127.0.0.1"), ret_address);
}

/* If trusted proxies send nothing readable, the last of them counts as the client. */
static bool read_client(const struct exchange *exchange, struct address *ret_client)
{
    const struct address_ranges *trusted = exchange->service->trusted_proxies;
    if (exchange->question && exchange->question->has_network) {
        *ret_client = exchange->question->network;
        return true;
    }
    bool is_local = !address_parse(http_request_peer(exchange->request), ret_client);
    size_t lines;

    if (is_local && !is_local_gateway(exchange, ret_client))
        return false;
    if (!is_local && !address_ranges_include(trusted, ret_client)) {
        warn_of_proxy(exchange);
        return true;
    }
    http_request_header(exchange->request, FORWARDED_FOR, &lines);
    while (lines > 0 &&
           address_walk_back(trusted, http_request_header_at(exchange->request, FORWARDED_FOR, --lines), ret_client))
        continue;
    return true;
}

struct text exchange_client_block(const struct exchange *exchange, unsigned ipv4_bits, unsigned ipv6_bits)
{
    struct address client;
    struct buf out = BUF_FIXED(ADDRESS_TEXT_BYTES);

    if (!read_client(exchange, &client))
        return http_request_peer(exchange->request); /* a unix socket */
    address_print_block(&client, ipv4_bits, ipv6_bits, &out);
    return http_request_copy(exchange->request, buf_text(&out));
}

struct text exchange_client_address(const struct exchange *exchange)
{
    return exchange_client_block(exchange, IPV4_BITS, IPV6_BITS);
}

struct text exchange_client_network(const struct exchange *exchange)
{
    return exchange_client_block(exchange, IPV4_BITS, CLIENT_NETWORK_IPV6_BITS);
}

void exchange_network_tag(const struct exchange *exchange, struct text kind, char ret_tag[THROTTLE_TAG_CHARS + 1])
{
    struct keyring *keyring = exchange->service->keyring;
    char block[THROTTLE_TAG_CHARS + 1];

    throttle_tag(keyring, kind, exchange_client_network(exchange), ret_tag);
    throttle_tag(keyring, TEXT("block"), exchange_client_block(exchange, 24, 48), block);
    memcpy(ret_tag, block, THROTTLE_NETWORK_CHARS);
}

void exchange_browser(const struct exchange *exchange, char ret_name[BROWSER_NAME_BYTES])
{
    size_t count;

    user_agent_name(http_request_header(exchange->request, TEXT("User-Agent"), &count), ret_name);
}
