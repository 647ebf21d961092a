/* Lines of the audit log, whole files of them, and published heads. What is not read as a line claims nothing; whatever
 * the files are, the verifier's findings name lines that exist. */
#include "base/check.h"
#include "base/mem.h"
#include "core/audit_chain.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const uint8_t MASTERS[1][KEYRING_MASTER_BYTES] = {{1}};

static bool is_blank(const void *memory, size_t count)
{
    const char *at = memory;

    for (size_t i = 0; i < count; i++)
        if (at[i])
            return false;
    return true;
}

static void try_line(struct keyring *keyring, struct text line)
{
    struct audit_line_read read;
    enum audit_line_state state = audit_line_read(keyring, line, &read);

    if (state == AUDIT_LINE_UNREADABLE) {
        CHECK(is_blank(&read, sizeof read));
        return;
    }
    CHECK(read.head.seq >= 1 && strlen(read.head.chain) == AUDIT_CHAIN_CHARS);
    CHECK(strlen(read.head.mac) == AUDIT_MAC_CHARS && strlen(read.prev) == AUDIT_MAC_CHARS);
    CHECK(audit_line_read(NULL, line, &read) == AUDIT_LINE_ALTERED);
}

static void try_head(struct keyring *keyring, struct text t)
{
    struct audit_published published;
    struct text chain;

    if (text_next(&t, ' ', &chain) && audit_published_read(keyring, chain, t, &published))
        CHECK(strlen(published.head.mac) == AUDIT_MAC_CHARS);
}

static void try_file(struct keyring *keyring, struct text content)
{
    struct audit_verifier *verifier = audit_verifier_create(keyring);
    const struct audit_finding *findings;
    const struct audit_chain_summary *chains;
    struct text line, rest = content;
    uint64_t lines = 0;

    audit_verifier_begin_file(verifier, "a");
    while (text_next(&rest, '\n', &line)) {
        try_line(keyring, line);
        audit_verifier_add(verifier, line, rest.ptr);
        lines++;
    }
    audit_verifier_judge(verifier);
    for (size_t i = 0, n = audit_verifier_findings(verifier, &findings); i < n; i++)
        CHECK(findings[i].line >= 1 && findings[i].line <= lines && findings[i].chain && findings[i].node);
    for (size_t i = 0, n = audit_verifier_chains(verifier, &chains); i < n; i++)
        CHECK(chains[i].lines <= lines && chains[i].first <= chains[i].last);
    audit_verifier_destroy(verifier);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct keyring *keyring = keyring_create(MASTERS, 1);
    char *copy = mem_alloc(count + 1);

    if (count > 0)
        memcpy(copy, bytes, count);
    try_file(keyring, (struct text){copy, count});
    try_head(keyring, (struct text){copy, count});
    free(copy);
    keyring_destroy(keyring);
    return 0;
}
