#include "api/browser_internal.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(browser, .fini = leak_guard);

Test(browser, hosts_of_our_own_network_pass)
{
    static const char *const OURS[] = {"",
                                       "127.0.0.1",
                                       "127.0.0.1:8081",
                                       "[::1]:8081",
                                       "[fd00::7]",
                                       "localhost",
                                       "LOCALHOST:8081",
                                       "node1:8081",
                                       "node1.",
                                       "chatelaine.health.svc:8081",
                                       "chatelaine.health.svc.cluster.local",
                                       "vm1.prod.internal",
                                       "api.test",
                                       "node.clinic.example:8081",
                                       "NODE.clinic.example."};
    static const char *const FOREIGN[] = {"evil.example",
                                          "evil.example:8081",
                                          "127.0.0.1.evil.example",
                                          "localhost.evil.example",
                                          "xinternal.example",
                                          "node.clinic.example.evil.example",
                                          "1.2.3",
                                          ".evil.example",
                                          "[::1].evil.example"};

    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
        cr_expect(host_is_ours(text_of(OURS[i]), TEXT("other.example, node.clinic.example")), "%s", OURS[i]);
    for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++)
        cr_expect_not(host_is_ours(text_of(FOREIGN[i]), TEXT("other.example,node.clinic.example")), "%s", FOREIGN[i]);
}
