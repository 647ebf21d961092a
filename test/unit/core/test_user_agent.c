#include "core/user_agent.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_name(const char *user_agent, const char *name)
{
    char found[BROWSER_NAME_BYTES];

    user_agent_name(text_of(user_agent), found);
    cr_expect_str_eq(found, name, "%s: %s", user_agent, found);
}

Test(user_agent, browsers_by_name_and_system)
{
    static const struct {
        const char *user_agent, *name;
    } CASES[] = {
        {"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Windows"},
        {"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"},
        {"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 "
         "Safari/537.36 "
         "Edg/142.0.0.0",
         "Edge on Windows"},
        {"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 "
         "Safari/537.36",
         "Chrome on macOS"},
        {"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
         "Safari/605.1.15",
         "Safari on macOS"},
        {"Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
         "Mobile/15E148 Safari/604.1",
         "Safari on iPhone"},
        {"Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.0.0 "
         "Mobile/15E148 Safari/604.1",
         "Chrome on iPad"},
        {"Mozilla/5.0 (Linux; Android 15; SM-S931B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 "
         "Chrome/130.0.0.0 Mobile Safari/537.36",
         "Samsung Internet on Android"},
        {"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 "
         "Safari/537.36",
         "Chrome on ChromeOS"},
        {"curl/8.14.1", "curl"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_name(CASES[i].user_agent, CASES[i].name);
}

Test(user_agent, shows_nothing_of_what_it_does_not_know)
{
    char flood[4096];

    expect_name("", "Unknown browser");
    expect_name("<script>alert(1)</script> Windows", "Unknown browser");
    expect_name("firefox/1", "Unknown browser");
    memset(flood, 'x', sizeof flood - 1);
    memcpy(flood + sizeof flood - 9, "curl/1.0", 9);
    expect_name(flood, "Unknown browser");
}

/* Every name fits, so none is cut. */
Test(user_agent, the_longest_name_fits)
{
    expect_name("SamsungBrowser/ CrOS", "Samsung Internet on ChromeOS");
    cr_expect_lt(strlen("Samsung Internet on ChromeOS"), BROWSER_NAME_BYTES);
}
