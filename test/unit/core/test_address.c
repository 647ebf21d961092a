#include "core/address.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(address, .fini = leak_guard);

static struct text printed(const char *given, char *storage)
{
    struct address address;
    struct buf out;
    buf_init_fixed(&out, storage, ADDRESS_TEXT_BYTES);
    cr_assert(address_parse(text_of(given), &address), "%s", given);
    address_print(&address, &out);
    cr_assert_not(out.failed);
    return buf_text(&out);
}

Test(address, reads_and_prints)
{
    static const char *const CASES[][2] = {
        {"192.0.2.1", "192.0.2.1"},
        {"192.0.2.1:443", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"[::ffff:c000:201]:1", "192.0.2.1"},
        {"2001:db8::1", "2001:db8::1"},
        {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
        {"[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2:3:4:5:6"},
        {"[2001:db8:1:2:ffff:4:5:6]:65535", "2001:db8:1:2:ffff:4:5:6"},
        {"::1", "::1"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };
    char storage[ADDRESS_TEXT_BYTES];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        cr_assert(text_equal(printed(CASES[i][0], storage), text_of(CASES[i][1])), "%s", CASES[i][0]);
    }
}

Test(address, refuses_what_is_none)
{
    static const char *const CASES[] = {
        "",
        "unix",
        "unknown",
        "_hidden",
        "192.0.2",
        "192.0.2.256",
        "192.0.2.1.1",
        "192.0.2.01",
        "0x7f.0.0.1",
        "1",
        "192.0.2.1:",
        "192.0.2.1:x",
        "192.0.2.1:65536",
        " 192.0.2.1",
        "192.0.2.1 ",
        "[192.0.2.1]",
        "[::1",
        "[::1]x",
        "[::1]:",
        "[]",
        "[",
        "::1]",
        "::g",
        ":::",
        "fe80::1%eth0",
        "[fe80::1%1]",
        "\"192.0.2.1\"",
        "192.0.2.1/32",
        "2001:db8:1:2:3:4:5:6:7",
        "2001:db8:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17",
    };
    struct address address;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(address_parse(text_of(CASES[i]), &address), "%s", CASES[i]);
    cr_assert_not(address_parse((struct text){NULL, 0}, &address));
    cr_assert_not(address_parse((struct text){"10.0.0.1\0", 9}, &address));
}

static struct address_ranges *ranges_of(const char *list)
{
    char storage[200];
    struct buf why;
    buf_init_fixed(&why, storage, sizeof storage);
    struct address_ranges *ranges = address_ranges_parse(text_of(list), &why);
    cr_assert_not_null(ranges, "%s: %.*s", list, TEXT_ARG(buf_text(&why)));
    return ranges;
}

Test(address, ranges_include_what_lies_in_them)
{
    static const struct {
        const char *list, *address;
        bool included;
    } CASES[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "9.255.255.255", false},
        {"10.0.0.0/8", "::ffff:10.1.2.3", true},
        {"10.0.0.0/8", "::a00:1", false},
        {"192.0.2.128/25", "192.0.2.128", true},
        {"192.0.2.128/25", "192.0.2.127", false},
        {"192.0.2.7", "192.0.2.7", true},
        {"192.0.2.7/32", "192.0.2.6", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"::/0", "2001:db8::1", true},
        {"2001:db8::/33", "2001:db8:7fff::1", true},
        {"2001:db8::/33", "2001:db8:8000::1", false},
        {"::1/128", "::1", true},
        {"::1", "::2", false},
        {"::ffff:10.0.0.0/104", "10.9.9.9", true},
        {"192.0.2.7 , 10.0.0.0/8,\tfd00::/8", "fdff::1", true},
        {"192.0.2.7 , 10.0.0.0/8,\tfd00::/8", "10.0.0.1", true},
        {"192.0.2.7 , 10.0.0.0/8,\tfd00::/8", "192.0.2.8", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct address_ranges *ranges = ranges_of(CASES[i].list);
        struct address address;
        cr_assert(address_parse(text_of(CASES[i].address), &address));
        cr_assert_eq(address_ranges_include(ranges, &address), CASES[i].included, "%s, %s", CASES[i].list,
                     CASES[i].address);
        address_ranges_destroy(ranges);
    }
}

Test(address, blocks_tell_their_bits)
{
    static const struct {
        const char *text;
        unsigned bits;
    } CASES[] = {
        {"192.0.2.7", 128},
        {"192.0.2.0/24", 120},
        {"0.0.0.0/0", 96},
        {"2001:db8::1", 128},
        {"2001:db8::/32", 32},
        {"::/0", 0},
        {"::ffff:192.0.2.0/120", 120},
    };
    static const char *const WRONG[] = {"",
                                        "/24",
                                        "192.0.2.0/",
                                        "192.0.2.0/33",
                                        "192.0.2.1/24",
                                        "2001:db8::1/64",
                                        "192.0.2.0/24,::/0",
                                        "[2001:db8::1]",
                                        "192.0.2.7:80",
                                        "localhost",
                                        "192.0.2.0/24/24"};
    struct address first;
    unsigned bits;

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        cr_expect(address_parse_block(text_of(CASES[i].text), &first, &bits), "%s", CASES[i].text);
        cr_expect_eq(bits, CASES[i].bits, "%s", CASES[i].text);
    }
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        cr_expect_not(address_parse_block(text_of(WRONG[i]), &first, &bits), "%s", WRONG[i]);
}

Test(address, ranges_are_refused_with_one_sentence)
{
    static const char *const CASES[][2] = {
        {"", "\"\" is neither an address"},
        {"10.0.0.0/8,", "\"\" is neither an address"},
        {"10.0.0.0/33", "\"10.0.0.0/33\" is neither an address"},
        {"10.0.0.0/", "\"10.0.0.0/\" is neither an address"},
        {"10.0.0.0/-1", "\"10.0.0.0/-1\" is neither an address"},
        {"10.0.0.0/8/8", "\"10.0.0.0/8/8\" is neither an address"},
        {"10.0.0.1/8", "\"10.0.0.1/8\" is neither an address"},
        {"10.128.0.0/8", "\"10.128.0.0/8\" is neither an address"},
        {"fd00::/129", "\"fd00::/129\" is neither an address"},
        {"fd00::1/64", "\"fd00::1/64\" is neither an address"},
        {"10.0.0.1:80", "\"10.0.0.1:80\" is neither an address"},
        {"proxy.test", "\"proxy.test\" is neither an address"},
        {"10.0.0.0/8 fd00::/8", "\"10.0.0.0/8 fd00::/8\" is neither an address"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[200];
        struct buf why;
        buf_init_fixed(&why, storage, sizeof storage);
        cr_assert_null(address_ranges_parse(text_of(CASES[i][0]), &why), "%s", CASES[i][0]);
        cr_assert(text_starts_with(buf_text(&why), text_of(CASES[i][1])), "%.*s", TEXT_ARG(buf_text(&why)));
        cr_assert_eq(why.ptr[why.len - 1], '.');
    }
}

Test(address, walks_back_to_the_client)
{
    static const struct {
        const char *list, *client;
        bool goes_on;
    } CASES[] = {
        {"", "10.0.0.1", true},
        {" , ,", "10.0.0.1", true},
        {"203.0.113.9", "203.0.113.9", false},
        {"198.51.100.1, 203.0.113.9", "203.0.113.9",
         false}, /* earlier entries, written by the client itself, do not count */
        {"198.51.100.1, 203.0.113.9, 10.0.0.2", "203.0.113.9", false},
        {"203.0.113.9,10.0.0.3,,10.0.0.2", "203.0.113.9", false},
        {"10.0.0.3, 10.0.0.2", "10.0.0.3", true},
        {"203.0.113.9:4711", "203.0.113.9", false},
        {"[2001:db8::9]:4711, 10.0.0.2", "2001:db8::9", false},
        {"203.0.113.9, garbage", "10.0.0.1", false},
        {"203.0.113.9, garbage, 10.0.0.2", "10.0.0.2", false},
        {"garbage, 203.0.113.9", "203.0.113.9", false},
        {"203.0.113.9, 10.0.0.2;x", "10.0.0.1", false},
        {"unknown", "10.0.0.1", false},
    };
    struct address_ranges *trusted = ranges_of("10.0.0.0/8");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[ADDRESS_TEXT_BYTES];
        struct address address;
        struct buf out;
        buf_init_fixed(&out, storage, sizeof storage);
        cr_assert(address_parse(TEXT("10.0.0.1"), &address));
        cr_assert_eq(address_walk_back(trusted, text_of(CASES[i].list), &address), CASES[i].goes_on, "%s",
                     CASES[i].list);
        address_print(&address, &out);
        cr_assert(text_equal(buf_text(&out), text_of(CASES[i].client)), "%s: %.*s", CASES[i].list,
                  TEXT_ARG(buf_text(&out)));
    }
    address_ranges_destroy(trusted);
}

Test(address, blocks)
{
    static const struct {
        const char *address;
        unsigned ipv4_bits, ipv6_bits;
        const char *block;
    } CASES[] = {
        {"192.0.2.255", 24, 56, "192.0.2.0/24"},
        {"192.0.2.255", 25, 56, "192.0.2.128/25"},
        {"192.0.2.255", 32, 56, "192.0.2.255"},
        {"192.0.2.255", 0, 56, ""},
        {"::ffff:192.0.2.255", 24, 56, "192.0.2.0/24"},
        {"2001:db8:1:2ff::1", 24, 56, "2001:db8:1:200::/56"},
        {"2001:db8:1:2ff::1", 24, 48, "2001:db8:1::/48"},
        {"::ffff:192.0.2.255", 32, 64, "192.0.2.255"},
        {"::1", 32, 64, "::/64"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 32, 64, "ffff:ffff:ffff:ffff::/64"},
        {"2001:db8:1:2ff::1", 24, 128, "2001:db8:1:2ff::1"},
        {"2001:db8:1:2ff::1", 24, 0, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[ADDRESS_TEXT_BYTES];
        struct address address;
        struct buf out;
        buf_init_fixed(&out, storage, sizeof storage);
        cr_assert(address_parse(text_of(CASES[i].address), &address));
        address_print_block(&address, CASES[i].ipv4_bits, CASES[i].ipv6_bits, &out);
        cr_assert(text_equal(buf_text(&out), text_of(CASES[i].block)), "%.*s", TEXT_ARG(buf_text(&out)));
    }
}

Test(address, loopback)
{
    static const struct {
        const char *address;
        bool is_loopback;
    } CASES[] = {
        {"127.0.0.1:8080", true}, {"127.1.2.3", true}, {"::ffff:127.0.0.1", true}, {"[::1]:8080", true},
        {"0.0.0.0:8080", false},  {"::", false},       {"128.0.0.1", false},       {"::2", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct address address;
        cr_assert(address_parse(text_of(CASES[i].address), &address));
        cr_assert_eq(address_is_loopback(&address), CASES[i].is_loopback, "%s", CASES[i].address);
    }
}
