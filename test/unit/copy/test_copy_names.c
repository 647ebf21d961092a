/* Every name that a script or a node makes is of a kind that store copy knows. */
#include "copy/copy_internal.h"
#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(copy_names, .fini = leak_guard);

#define ACCOUNT "acct_01m8bdmmmgb83qpwt5fmy72awr"

static enum copy_kind kind_of(const char *name, struct text *ret_owner)
{
    *ret_owner = TEXT("");
    return copy_kind_of(text_of(name), ret_owner);
}

static void expect(const char *name, enum copy_kind kind, const char *owner)
{
    struct text found;

    cr_expect_eq(kind_of(name, &found), kind, "%s", name);
    cr_expect(text_equal(found, text_of(owner)), "%s: %.*s", name, TEXT_ARG(found));
}

Test(copy_names, owners)
{
    expect("acct:" ACCOUNT, COPY_ACCOUNT, ACCOUNT);
    expect("acct:" ACCOUNT ":usage:2026-01-01", COPY_ACCOUNT, ACCOUNT);
    expect("user:usr_x:sessions", COPY_USER, "usr_x");
    expect("key:00ff", COPY_KEY, "00ff");
    expect("email:a:b@c.example", COPY_EMAIL, "a:b@c.example");
    expect("used_after:key_x", COPY_KEY_NOTE, "key_x");
    expect("strangers:counts", COPY_WHOLE, "");
    expect("throttle:x:under_way", COPY_LEFT, "x:under_way");
}

Test(copy_names, unknown)
{
    static const char *const NAMES[] = {"", "acct:other", "stores", "staging:store", "{1}:store", "accounts:x"};
    struct text owner;

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        cr_expect_eq(kind_of(NAMES[i], &owner), COPY_UNKNOWN, "%s", NAMES[i]);
}

/* "function K.user(user) return prefix .. 'user:' .. user end" */
Test(copy_names, of_all_scripts)
{
    static const char MAKES[] = "prefix .. '", CHANNELS[][8] = {"inv", "node:", "log:"};
    char path[PROCESS_PATH_BYTES], *prelude;
    size_t names = 0;

    snprintf(path, sizeof path, "%s/src/engine/lua/prelude.lua", getenv("CHATELAINE_SOURCE"));
    prelude = file_read(path);
    for (const char *at = prelude; (at = strstr(at, MAKES)); names++) {
        char name[80];
        struct text owner;
        bool is_channel = false;

        at += sizeof MAKES - 1;
        int len = (int)strcspn(at, "'");
        snprintf(name, sizeof name, "%.*s%s", len, at, strncmp(at, "acct:'", 6) == 0 ? ACCOUNT : "");
        for (size_t i = 0; i < sizeof CHANNELS / sizeof *CHANNELS; i++)
            is_channel |= strcmp(name, CHANNELS[i]) == 0;
        cr_expect(is_channel || kind_of(name, &owner) != COPY_UNKNOWN, "%s", name);
    }
    cr_expect_gt(names, 50);
    free(prelude);
}
