/* The rules for a request line also apply to the method and target that a gateway names. */
#include "http/request.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(http_request_line, .fini = leak_guard);

/* If a writing method were taken for a reading one, it would need fewer rights than it should. */
Test(http_request_line, methods_are_what_they_are_called)
{
    static const struct {
        struct text names; /* blanks between them */
        enum http_method method;
    } CASES[] = {
        {TEXT("GET"), HTTP_GET},
        {TEXT("HEAD"), HTTP_HEAD},
        {TEXT("POST"), HTTP_POST},
        {TEXT("PUT"), HTTP_PUT},
        {TEXT("PATCH"), HTTP_PATCH},
        {TEXT("DELETE"), HTTP_DELETE},
        {TEXT("OPTIONS"), HTTP_OPTIONS},
        {TEXT("CONNECT"), HTTP_CONNECT},
        {TEXT("TRACE"), HTTP_TRACE},
        {TEXT("ACL BIND CHECKOUT COPY LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY PROPFIND "
              "PROPPATCH PURGE REBIND REPORT SEARCH SOURCE SUBSCRIBE UNBIND UNLINK UNLOCK UNSUBSCRIBE"),
         HTTP_OTHER},
    };
    struct text names, name;
    enum http_method method;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        names = CASES[i].names;
        while (text_next(&names, ' ', &name)) {
            cr_expect(http_method_read(name, &method), "%.*s", TEXT_ARG(name));
            cr_expect_eq(method, CASES[i].method, "%.*s", TEXT_ARG(name));
        }
    }
    names = TEXT("get Get GETS GE BREW PRI QUERY");
    while (text_next(&names, ' ', &name))
        cr_expect_not(http_method_read(name, &method), "%.*s", TEXT_ARG(name));
    cr_expect_not(http_method_read((struct text){NULL, 0}, &method));
}

Test(http_request_line, targets_hold_no_byte_and_no_escape_that_is_unsafe)
{
    static const struct {
        struct text target;
        bool is_sound;
    } CASES[] = {
        {{NULL, 0}, false},
        {TEXT(""), false},
        {TEXT("/"), true},
        {TEXT("/v1/a%20b/~c;d?e=%2F&f[]='('"), true},
        {TEXT("/a b"), false},
        {TEXT("/a#b"), false},
        {TEXT("/a\\b"), false},
        {TEXT("/\xc3\xa9"), false},
        {TEXT("/%"), false},
        {TEXT("/%4"), false},
        {{"/%41", 3}, false}, /* what follows the length is not read */
        {TEXT("/%4g"), false},
        {TEXT("/%00"), false},
        {TEXT("/%1f"), false},
        {TEXT("/%7F"), false},
        {TEXT("/%7e%80"), true},
        {TEXT("/a?%"), true},
        {TEXT("/a?b|{c}^`\"<>\\&%00"), true},
        {TEXT("/a|?b"), false},
        {TEXT("/a?b#"), false},
        {TEXT("/a?b c"), false},
        {TEXT("/a?\xc3\xa9"), false},
        {TEXT("?a"), true},
        {TEXT("/%0a?b"), false},
    };

    struct text path, query;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_expect_eq(http_target_read(CASES[i].target, &path, &query), CASES[i].is_sound, "%.*s",
                     TEXT_ARG(CASES[i].target));
}

Test(http_request_line, splits_a_target_at_its_first_question_mark)
{
    struct text path, query;
    cr_assert(http_target_read(TEXT("/a?b?c"), &path, &query));
    cr_assert(text_equal(path, TEXT("/a")) && text_equal(query, TEXT("b?c")));
    cr_assert(http_target_read(TEXT("/a"), &path, &query));
    cr_assert(text_equal(path, TEXT("/a")) && !query.ptr);
    http_target_split(TEXT("/a?b?c"), &path, &query);
    cr_assert(text_equal(path, TEXT("/a")) && text_equal(query, TEXT("b?c")));
    http_target_split(TEXT("/a?"), &path, &query);
    cr_assert(text_equal(path, TEXT("/a")) && query.ptr && query.len == 0);
    http_target_split(TEXT("/a"), &path, &query);
    cr_assert(text_equal(path, TEXT("/a")) && !query.ptr);
}
