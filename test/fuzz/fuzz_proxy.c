/* The beginning of a connection as a PROXY header. Beyond "does not crash": what comes in any pieces is understood as
 * what comes whole, a header takes its own bytes only, and what is refused once stays refused. */
#include "base/check.h"
#include "base/mem.h"
#include "http/peer_internal.h"
#include "http/proxy_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static enum proxy_result read_first(const char *bytes, size_t count, struct proxy_header *ret_header)
{
    char source[INET6_ADDRSTRLEN];
    enum proxy_error error = PROXY_UNTRUSTED;
    enum proxy_result result = proxy_read((struct text){bytes, count}, ret_header, &error);

    CHECK(result != PROXY_REFUSED || error != PROXY_UNTRUSTED);
    if (result == PROXY_WHOLE && ret_header->source.len > 0) {
        CHECK(ret_header->source.ptr + ret_header->source.len <= bytes + ret_header->bytes);
        peer_print_bytes(ret_header->source, source);
    }
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct proxy_header whole = {0}, header = {0};
    enum proxy_result result, so_far = PROXY_PARTIAL;
    char *copy = mem_alloc(count + 1), *input = copy + 1;

    /* It ends where the memory does, so that a read beyond it is found. */
    if (count > 0)
        memcpy(input, bytes, count);
    result = read_first(input, count, &whole);
    for (size_t first = 0; first <= count; first++) {
        enum proxy_result next = read_first(input, first, &header);

        CHECK(so_far == PROXY_PARTIAL || next == so_far);
        CHECK(next != PROXY_WHOLE || (header.bytes == whole.bytes && first >= header.bytes));
        CHECK(next != PROXY_WHOLE || so_far == PROXY_WHOLE || first == header.bytes);
        so_far = next;
    }
    CHECK(so_far == result);
    CHECK(result != PROXY_PARTIAL || count < PROXY_HEADER_MAX_BYTES);
    free(copy);
    return 0;
}
