#include "core/actor_word.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(actor_word, .fini = leak_guard);

Test(actor_word, in_any_case_and_with_any_blanks)
{
    static const char *const WORDS[] = {"you",
                                        "You",
                                        "  YOU",
                                        "operator",
                                        "The service",
                                        "the   service ",
                                        "Operator, command line",
                                        "system",
                                        "Somebody with the key"};

    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        cr_expect(actor_word_is(text_of(WORDS[i])), "%s", WORDS[i]);
}

Test(actor_word, a_name_that_only_contains_one_is_another)
{
    static const char *const NAMES[] = {
        "", "  ", "your key", "You too", "the services", "operators", "Operator, command", "thes ervice"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        cr_expect_not(actor_word_is(text_of(NAMES[i])), "%s", NAMES[i]);
}
