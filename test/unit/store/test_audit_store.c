#include "trail/audit_store.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(audit_store, .init = fixture_start, .fini = fixture_stop);

enum { EVENTS_MAX = 80 };

struct trail {
    struct answer answer;
    size_t count;
    bool has_more;
    struct id next;
    struct id ids[EVENTS_MAX];
    int64_t created_ms;
    char first[256];      /* of the first event: "type actor target ip request_id" */
    char first_names[64]; /* "actor's kind/target's kind" */
};

static void trail_listed(void *arg, enum store_result result, const struct audit_page *page)
{
    const struct audit_event *events = page->events;
    const size_t count = page->count;
    struct trail *trail = arg;

    cr_assert_leq(count, EVENTS_MAX);
    for (size_t i = 0; i < count; i++)
        trail->ids[i] = events[i].id;
    if (count > 0) {
        snprintf(trail->first, sizeof trail->first, "%.*s %.*s %.*s %.*s %.*s", TEXT_ARG(events[0].type),
                 TEXT_ARG(events[0].actor), TEXT_ARG(events[0].target), TEXT_ARG(events[0].ip),
                 TEXT_ARG(events[0].request_id));
        snprintf(trail->first_names, sizeof trail->first_names, "%.*s/%.*s %.*s", TEXT_ARG(events[0].actor_name),
                 TEXT_ARG(events[0].target_name), TEXT_ARG(events[0].target_kind));
        trail->created_ms = events[0].created_ms;
    }
    trail->count = count;
    trail->has_more = page->has_more;
    trail->next = page->next;
    answer_done(&trail->answer, result);
}

static enum store_result search_trail(const struct id *account, const struct audit_filter *filter, unsigned limit,
                                      const struct id *after, struct trail *trail)
{
    *trail = (struct trail){0};
    audit_store_search(fixture.store, account, filter, limit, after, trail_listed, trail);
    return answer_wait(&trail->answer);
}

static enum store_result list_trail(const struct id *account, unsigned limit, const struct id *after,
                                    struct trail *trail)
{
    return search_trail(account, NULL, limit, after, trail);
}

/* Writes an event at an entry id of our choice, as scripts do. */
static void add_event_of(const struct id *account, const char *entry, const char *actor, const char *target)
{
    char name[64];

    snprintf(name, sizeof name, "t:acct:%s:audit", account->text);
    redis_server_tell(&fixture.server, "XADD", name, entry, "type", "api_key.created", "actor", actor, "target", target,
                      "ip", "", "request_id", "req_1", NULL);
}

static void add_event(const struct id *account, const char *entry, const char *target)
{
    add_event_of(account, entry, "usr_1", target);
}

Test(audit_store, events_tell_what_scripts_wrote)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct trail trail;
    char expected[128];

    cr_assert_eq(list_trail(&account, 5, NULL, &trail), STORE_OK);
    cr_assert_eq(trail.count, 1);
    snprintf(expected, sizeof expected, "user.created usr_somebody %s 192.0.2.1 req_1", user.id.text);
    cr_expect_str_eq(trail.first, expected);
    cr_expect_eq(id_kind_of(id_text(&trail.ids[0])), ID_EVENT);
    cr_expect_eq(id_time_ms(&trail.ids[0]), trail.created_ms);
}

Test(audit_store, events_tell_who_and_what_by_name)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct trail trail;

    cr_assert_eq(list_trail(&account, 1, NULL, &trail), STORE_OK);
    cr_expect_str_eq(trail.first_names, "/ana@north.test user");
    add_event_of(&account, "99999999999999-0", user.id.text, "a");
    cr_assert_eq(list_trail(&account, 1, NULL, &trail), STORE_OK);
    cr_expect_str_eq(trail.first_names, "ana@north.test/ ");
}

static void data_listed(void *arg, enum store_result result, const struct audit_page *page)
{
    const struct audit_event *events = page->events;
    const size_t count = page->count;
    struct trail *trail = arg;

    if (result == STORE_OK && count == 1 && events[0].data_count == 2)
        snprintf(trail->first, sizeof trail->first, "%.*s=%.*s %.*s=%.*s %d", TEXT_ARG(events[0].data[0].name),
                 TEXT_ARG(events[0].data[0].value), TEXT_ARG(events[0].data[1].name), TEXT_ARG(events[0].data[1].value),
                 (int)events[0].count);
    answer_done(&trail->answer, result);
}

Test(audit_store, events_tell_more)
{
    struct id account = some_account();
    struct trail trail = {0};
    char name[64];

    snprintf(name, sizeof name, "t:acct:%s:audit", account.text);
    redis_server_tell(&fixture.server, "XADD", name, "5-0", "type", "x", "actor", "", "target", "", "ip", "",
                      "request_id", "", "count", "7", "later", "x", "data:a", "1", "data:role", "auditor", NULL);
    audit_store_search(fixture.store, &account, NULL, 1, NULL, data_listed, &trail);
    cr_assert_eq(answer_wait(&trail.answer), STORE_OK);
    cr_expect_str_eq(trail.first, "a=1 role=auditor 7");
    redis_server_tell(&fixture.server, "XADD", name, "6-0", "type", "x", "actor", "", "target", "", "ip", "",
                      "request_id", "", "count", "0", NULL);
    cr_expect_eq(list_trail(&account, 1, NULL, &trail), STORE_UNAVAILABLE);
}

/* A device may call itself anything. */
Test(audit_store, names_that_strangers_give_are_no_ids)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct trail trail;
    char name[64];

    snprintf(name, sizeof name, "t:acct:%s:audit", account.text);
    redis_server_tell(&fixture.server, "XADD", name, "99999999999999-0", "type", "device.denied", "actor", user.id.text,
                      "target", user.id.text, "ip", "", "request_id", "req_1", NULL);
    cr_assert_eq(list_trail(&account, 1, NULL, &trail), STORE_OK);
    cr_expect_str_eq(trail.first_names, "ana@north.test/ device");
}

/* Entries of the same millisecond and sequence in each class. */
Test(audit_store, classes_are_listed_as_one_trail)
{
    static const char *const CLASSES[] = {"", ":live", ":test", ":refused"};
    enum { EACH = 4 };
    struct id account = some_account(), none = {0};
    struct trail all, page;

    for (size_t i = 0; i < 4 * EACH; i++) {
        char name[64], entry[32], target[8];

        snprintf(name, sizeof name, "t:acct:%s:audit%s", account.text, CLASSES[i % 4]);
        snprintf(entry, sizeof entry, "170000000000%zu-%zu", i / 8, i / 4 % 2);
        snprintf(target, sizeof target, "%zu", i);
        redis_server_tell(&fixture.server, "XADD", name, entry, "type", "x", "actor", "", "target", target, "ip", "",
                          "request_id", "", NULL);
    }
    cr_assert_eq(list_trail(&account, EVENTS_MAX, &none, &all), STORE_OK);
    cr_assert_eq(all.count, 4 * EACH);
    for (size_t i = 0; i + 1 < all.count; i++)
        cr_expect_gt(strcmp(all.ids[i].text, all.ids[i + 1].text), 0, "ids sort by time, and are unique");
    for (unsigned limit = 1; limit <= 5; limit++) {
        struct id after = none;
        size_t seen = 0;

        do {
            cr_assert_eq(list_trail(&account, limit, &after, &page), STORE_OK);
            for (size_t i = 0; i < page.count; i++)
                cr_expect(id_equal(&page.ids[i], &all.ids[seen++]), "limit %u", limit);
            after = page.ids[page.count - 1];
        } while (page.has_more);
        cr_expect_eq(seen, all.count, "limit %u", limit);
    }
}

Test(audit_store, pages_are_exact_also_within_a_millisecond)
{
    struct id account = some_account(), none = {0};
    struct trail all, page;

    add_event(&account, "1700000000000-0", "a");
    add_event(&account, "1700000000000-1", "b");
    add_event(&account, "1700000000000-1073741823", "c");
    add_event(&account, "1700000000001-0", "d");
    cr_assert_eq(list_trail(&account, 10, &none, &all), STORE_OK);
    cr_assert_eq(all.count, 4);
    cr_expect_not(all.has_more);
    cr_expect_str_eq(all.first, "api_key.created usr_1 d  req_1");
    for (size_t i = 0; i + 1 < all.count; i++)
        cr_expect_gt(strcmp(all.ids[i].text, all.ids[i + 1].text), 0, "ids sort by time");
    for (unsigned limit = 1; limit <= 4; limit++) {
        struct id after = none;
        size_t seen = 0;

        do {
            cr_assert_eq(list_trail(&account, limit, &after, &page), STORE_OK);
            for (size_t i = 0; i < page.count; i++)
                cr_expect(id_equal(&page.ids[i], &all.ids[seen++]), "limit %u", limit);
            after = page.ids[page.count - 1];
        } while (page.has_more);
        cr_expect_eq(seen, 4, "limit %u", limit);
    }
}

Test(audit_store, cursors_of_others_are_refused)
{
    struct id account = some_account(), other = some_account(), key = id_mint(ID_KEY, 1);
    struct trail trail;

    add_event(&account, "5-0", "a");
    add_event(&other, "5-0", "a");
    cr_assert_eq(list_trail(&other, 1, NULL, &trail), STORE_OK);

    struct id foreign = trail.ids[0];
    cr_expect_eq(list_trail(&account, 1, &foreign, &trail), STORE_NOT_FOUND);
    cr_expect_eq(list_trail(&account, 1, &key, &trail), STORE_NOT_FOUND);
    cr_expect_eq(list_trail(&other, 1, &foreign, &trail), STORE_OK);
    cr_expect_eq(trail.count, 0);
}

Test(audit_store, entries_that_cannot_be_are_never_answered)
{
    static const struct {
        const char *fields[10];
    } cases[] = {
        {{"type", "x"}},
        {{"type", "x", "actor", "x", "target", "x", "ip", "x", "wrong", "x"}},
        {{"actor", "x", "type", "x", "target", "x", "ip", "x", "request_id", "x"}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *f = cases[i].fields;
        struct id account = some_account();
        struct trail trail;
        char name[64];

        snprintf(name, sizeof name, "t:acct:%s:audit", account.text);
        redis_server_tell(&fixture.server, "XADD", name, "5-0", f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8],
                          f[9], NULL);
        cr_expect_eq(list_trail(&account, 1, NULL, &trail), STORE_UNAVAILABLE, "case %zu", i);
        cr_expect_eq(trail.count, 0);
    }
}

Test(audit_store, pages_tell_where_the_next_one_begins)
{
    struct id account = some_account();
    struct trail trail;

    for (unsigned i = 1; i <= 3; i++) {
        char entry[8];

        snprintf(entry, sizeof entry, "%u-0", i);
        add_event(&account, entry, "a");
    }
    cr_assert_eq(list_trail(&account, 2, NULL, &trail), STORE_OK);
    cr_expect(trail.has_more);
    cr_expect(id_equal(&trail.next, &trail.ids[1]));
    struct id after = trail.next;
    cr_assert_eq(list_trail(&account, 2, &after, &trail), STORE_OK);
    cr_expect_not(trail.has_more);
    cr_expect_eq(trail.next.text[0], '\0');
}

/* Writes events 1 to `count` in one go. The n-th is by usr_rare if n is a multiple of `rare`, and in every class. */
static void add_many(const struct id *account, unsigned count, unsigned rare)
{
    static const char SCRIPT[] =
        "for i = 1, ARGV[2] do "
        "redis.call('XADD', ARGV[1] .. ({'', ':live', ':test', ':refused'})[i % 4 + 1], i .. '-0', 'type', 'x', "
        "'actor', i % ARGV[3] == 0 and 'usr_rare' or 'usr_1', 'target', i, 'ip', '', 'request_id', '') end return 1";
    char name[64], count_text[16], rare_text[16];

    snprintf(name, sizeof name, "t:acct:%s:audit", account->text);
    snprintf(count_text, sizeof count_text, "%u", count);
    snprintf(rare_text, sizeof rare_text, "%u", rare);
    redis_server_tell(&fixture.server, "EVAL", SCRIPT, "0", name, count_text, rare_text, NULL);
}

/* Far more than one slice reads, and events of one slice outlive the replies of others. */
Test(audit_store, searches_go_on_until_they_have_found_enough)
{
    enum { EVENTS = 5000, RARE = 999 };
    static const struct audit_filter RARELY = {.actor = TEXT("usr_rare"), .type = TEXT("x")};
    struct id account = some_account();
    struct trail trail;

    add_many(&account, EVENTS, RARE);
    cr_assert_eq(search_trail(&account, &RARELY, 3, NULL, &trail), STORE_OK);
    cr_assert_eq(trail.count, 3);
    cr_expect(trail.has_more);
    cr_expect_str_eq(trail.first, "x usr_rare 4995  ");
    cr_expect_eq(id_time_ms(&trail.ids[2]), 3 * RARE);
    struct id after = trail.next;
    cr_assert_eq(search_trail(&account, &RARELY, 3, &after, &trail), STORE_OK);
    cr_assert_eq(trail.count, 2);
    cr_expect_not(trail.has_more);
    cr_expect_eq(id_time_ms(&trail.ids[1]), RARE);
}

/* The trail has `found` events by usr_rare, each followed by apart - 1 others. */
static void expect_each_once(unsigned found, unsigned apart, unsigned slices_min)
{
    static const struct audit_filter RARELY = {.actor = TEXT("usr_rare")};
    struct id account = some_account();
    struct trail all, page;
    unsigned before;

    add_many(&account, found * apart, apart);
    cr_assert_eq(search_trail(&account, &RARELY, 1, NULL, &page), STORE_OK); /* Redis knows the script from here on */
    before = scripts_run();
    cr_assert_eq(search_trail(&account, &RARELY, found, NULL, &all), STORE_OK);
    cr_expect_geq(scripts_run() - before, slices_min, "in slices");
    cr_assert_eq(all.count, found);
    cr_expect_not(all.has_more);
    for (unsigned i = 0; i < found; i++)
        cr_expect_eq(id_time_ms(&all.ids[i]), (int64_t)(found - i) * apart, "event %u", i);
    for (unsigned limit = 1; limit < found; limit += 3) {
        struct id after = {0};
        size_t seen = 0;

        do {
            cr_assert_eq(search_trail(&account, &RARELY, limit, &after, &page), STORE_OK);
            cr_assert_leq(seen + page.count, found, "limit %u", limit);
            for (size_t i = 0; i < page.count; i++)
                cr_expect(id_equal(&page.ids[i], &all.ids[seen++]), "limit %u", limit);
            after = page.next;
        } while (page.has_more);
        cr_expect_eq(seen, found, "limit %u", limit);
    }
}

/* More entries lie between two of them than one slice reads. */
Test(audit_store, a_page_of_events_far_apart_takes_slices_and_has_each_once)
{
    enum { FOUND = 12, APART = 301 };

    expect_each_once(FOUND, APART, FOUND);
}

/* More events than one slice returns, so the next one begins right behind an event of the page. */
Test(audit_store, a_page_of_many_events_takes_slices_and_has_each_once)
{
    expect_each_once(EVENTS_MAX, 1, 3);
}

/* A search that finds nothing ends too, and says where the next one begins. */
Test(audit_store, searches_stop_after_a_bounded_amount_of_work)
{
    enum { EVENTS = 120000, CALLS_MAX = 10 };
    static const struct audit_filter NOBODY = {.actor = TEXT("usr_nobody")};
    struct id account = some_account(), after = {0};
    struct trail trail;
    unsigned calls = 0;

    add_many(&account, EVENTS, EVENTS);
    do {
        cr_assert_eq(search_trail(&account, &NOBODY, 3, &after, &trail), STORE_OK);
        cr_assert_eq(trail.count, 0);
        cr_expect_eq(trail.has_more, trail.next.text[0] != '\0');
        cr_expect(after.text[0] == '\0' || !trail.has_more || strcmp(trail.next.text, after.text) < 0);
        after = trail.next;
        cr_assert_lt(++calls, CALLS_MAX);
    } while (trail.has_more);
    cr_expect_gt(calls, 1);
}

Test(audit_store, searches_take_turns)
{
    enum { EVENTS = 20000, SEARCHES = 3 };
    static const struct audit_filter NOBODY = {.actor = TEXT("usr_nobody")};
    struct id account = some_account();
    struct trail slow[SEARCHES] = {0}, quick = {0};

    add_many(&account, EVENTS, EVENTS);
    for (size_t i = 0; i < SEARCHES; i++)
        audit_store_search(fixture.store, &account, &NOBODY, 1, NULL, trail_listed, &slow[i]);
    audit_store_search(fixture.store, &account, NULL, 1, NULL, trail_listed, &quick);
    cr_assert_eq(answer_wait(&quick.answer), STORE_OK);
    for (size_t i = 0; i < SEARCHES; i++)
        cr_expect_not(slow[i].answer.is_done);
    for (size_t i = 0; i < SEARCHES; i++)
        cr_assert_eq(answer_wait(&slow[i].answer), STORE_OK);
}

static bool is_wanted_so_often(void *arg)
{
    unsigned *left = arg;

    return *left > 0 && (*left)-- > 0;
}

Test(audit_store, searches_end_when_nobody_wants_them)
{
    enum { EVENTS = 20000, SLICES = 3 };
    unsigned left = SLICES;
    struct audit_filter nobody = {.actor = TEXT("usr_nobody"), .is_wanted = is_wanted_so_often, .arg = &left};
    struct id account = some_account(), after = {0};
    struct trail trail;

    add_many(&account, EVENTS, EVENTS);
    cr_assert_eq(search_trail(&account, &nobody, 3, &after, &trail), STORE_UNAVAILABLE);
    cr_expect_eq(left, 0, "it is asked before each further slice");
    cr_assert_eq(search_trail(&account, &nobody, 3, &after, &trail), STORE_UNAVAILABLE);
    nobody.is_wanted = NULL;
    cr_assert_eq(search_trail(&account, &nobody, 3, &after, &trail), STORE_OK, "the next one has its turn");
}

Test(audit_store, searches_end_with_the_store)
{
    enum { EVENTS = 20000, SEARCHES = 3 };
    static const struct audit_filter NOBODY = {.actor = TEXT("usr_nobody")};
    struct id account = some_account();
    struct trail trails[SEARCHES] = {0};

    add_many(&account, EVENTS, EVENTS);
    for (size_t i = 0; i < SEARCHES; i++)
        audit_store_search(fixture.store, &account, &NOBODY, 1, NULL, trail_listed, &trails[i]);
    for (unsigned turns = 0; turns < 20; turns++)
        uv_run(&fixture.loop, UV_RUN_NOWAIT);
    fixture_close_store();
    for (size_t i = 0; i < SEARCHES; i++) {
        cr_expect_eq(trails[i].answer.calls, 1);
        cr_expect_neq(trails[i].answer.result, STORE_OK);
    }
}
