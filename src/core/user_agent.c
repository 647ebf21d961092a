#include "core/user_agent.h"

#include <stdio.h>

enum { USER_AGENT_MAX_BYTES = 512 };

struct known_name {
    struct text token;
    const char *name;
};

/* The first row whose token occurs decides. Browsers also name what they are compatible with, so those that others
 * imitate come last. */
static const struct known_name BROWSERS[] = {
    {{"Edg/", 4}, "Edge"},
    {{"EdgA/", 5}, "Edge"},
    {{"EdgiOS/", 7}, "Edge"},
    {{"OPR/", 4}, "Opera"},
    {{"OPX/", 4}, "Opera"},
    {{"Vivaldi/", 8}, "Vivaldi"},
    {{"SamsungBrowser/", 15}, "Samsung Internet"},
    {{"YaBrowser/", 10}, "Yandex Browser"},
    {{"DuckDuckGo/", 11}, "DuckDuckGo"},
    {{"FxiOS/", 6}, "Firefox"},
    {{"Firefox/", 8}, "Firefox"},
    {{"CriOS/", 6}, "Chrome"},
    {{"Chromium/", 9}, "Chromium"},
    {{"Chrome/", 7}, "Chrome"},
    {{"Safari/", 7}, "Safari"},
    {{"curl/", 5}, "curl"},
};

/* Android also says Linux; iPhones and iPads also say Mac OS X. */
static const struct known_name SYSTEMS[] = {
    {{"Android", 7}, "Android"}, {{"iPhone", 6}, "iPhone"},   {{"iPad", 4}, "iPad"},   {{"Windows", 7}, "Windows"},
    {{"CrOS", 4}, "ChromeOS"},   {{"Macintosh", 9}, "macOS"}, {{"Linux", 5}, "Linux"},
};

static const char *find_name(struct text t, const struct known_name *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (t.len && memmem(t.ptr, t.len, names[i].token.ptr, names[i].token.len))
            return names[i].name;
    return NULL;
}

void user_agent_name(struct text user_agent, char ret_name[BROWSER_NAME_BYTES])
{
    struct text t = user_agent;
    if (t.len > USER_AGENT_MAX_BYTES)
        t.len = USER_AGENT_MAX_BYTES;
    const char *browser = find_name(t, BROWSERS, sizeof BROWSERS / sizeof *BROWSERS);
    const char *system = find_name(t, SYSTEMS, sizeof SYSTEMS / sizeof *SYSTEMS);
    if (!browser)
        snprintf(ret_name, BROWSER_NAME_BYTES, "Unknown browser");
    else if (!system)
        snprintf(ret_name, BROWSER_NAME_BYTES, "%s", browser);
    else
        snprintf(ret_name, BROWSER_NAME_BYTES, "%s on %s", browser, system);
}
