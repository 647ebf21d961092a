#include "core/trace_context.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(trace_context, .fini = leak_guard);

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define ZERO_TRACE "00000000000000000000000000000000"

static const struct {
    const char *header;
    bool is_valid, is_sampled;
} CASES[] = {
    {"00-" TRACE "-" SPAN "-01", true, true},
    {"00-" TRACE "-" SPAN "-00", true, false},
    {"00-" TRACE "-" SPAN "-fe", true, false},
    {"00-" TRACE "-" SPAN "-ff", true, true},
    /* Later versions may add fields. */
    {"01-" TRACE "-" SPAN "-01", true, true},
    {"cc-" TRACE "-" SPAN "-01-what-comes", true, true},
    {"cc-" TRACE "-" SPAN "-01-", true, true},
    {"cc-" TRACE "-" SPAN "-01.what", false, false},
    {"ff-" TRACE "-" SPAN "-01", false, false},
    {"00-" TRACE "-" SPAN "-01-", false, false},
    {"00-" TRACE "-" SPAN "-01-what", false, false},
    {"00-" TRACE "-" SPAN "-1", false, false},
    {"00-" TRACE "-" SPAN "-", false, false},
    {"00-" TRACE "-" SPAN, false, false},
    {"00-" TRACE, false, false},
    {"00", false, false},
    {"", false, false},
    {"00-" ZERO_TRACE "-" SPAN "-01", false, false},
    {"00-" TRACE "-0000000000000000-01", false, false},
    {"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", false, false},
    {"00-" TRACE "-00F067AA0BA902B7-01", false, false},
    {"0A-" TRACE "-" SPAN "-01", false, false},
    {"00-" TRACE "-" SPAN "-0A", false, false},
    {"0-" TRACE "-" SPAN "-01", false, false},
    {"000-" TRACE "-" SPAN "-01", false, false},
    {"00-" TRACE "0-" SPAN "-01", false, false},
    {"00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-01", false, false},
    {"00-" TRACE "-00f067aa0ba902b-01", false, false},
    {"00-4bf92f3577b34da6a3ce929d0e0e473g-" SPAN "-01", false, false},
    {"00_" TRACE "-" SPAN "-01", false, false},
    {" 00-" TRACE "-" SPAN "-01", false, false},
};

Test(trace_context, headers)
{
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct trace_context context = {0};
        bool is_valid = trace_context_parse(text_of(CASES[i].header), &context);

        cr_expect_eq(is_valid, CASES[i].is_valid, "%s", CASES[i].header);
        cr_expect_eq(context.is_sampled, CASES[i].is_sampled, "%s", CASES[i].header);
        cr_expect(text_equal(context.trace_id, is_valid ? TEXT(TRACE) : TEXT("")), "%s", CASES[i].header);
        cr_expect(text_equal(context.span_id, is_valid ? TEXT(SPAN) : TEXT("")), "%s", CASES[i].header);
    }
}

/* Whatever version came in. */
Test(trace_context, prints_version_00)
{
    char storage[TRACEPARENT_CHARS];
    struct trace_context context;
    struct buf out;

    for (int is_sampled = 0; is_sampled <= 1; is_sampled++) {
        cr_assert(trace_context_parse(
            is_sampled ? TEXT("cc-" TRACE "-" SPAN "-ff-x") : TEXT("00-" TRACE "-" SPAN "-00"), &context));
        buf_init_fixed(&out, storage, sizeof storage);
        trace_context_print(&context, &out);
        cr_expect_not(out.failed);
        cr_expect(text_equal(buf_text(&out),
                             is_sampled ? TEXT("00-" TRACE "-" SPAN "-01") : TEXT("00-" TRACE "-" SPAN "-00")));
    }
}
