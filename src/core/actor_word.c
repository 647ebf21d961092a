#include "core/actor_word.h"

static struct text next_word(struct text *rest)
{
    struct text word = {0};

    while (word.len == 0 && text_next(rest, ' ', &word))
        continue;
    return word;
}

static bool has_same_words(struct text a, struct text b)
{
    struct text x, y;

    do {
        x = next_word(&a);
        y = next_word(&b);
    } while (x.len > 0 && text_equal_nocase(x, y));
    return x.len == 0 && y.len == 0;
}

bool actor_word_is(struct text name)
{
    /* Actors without an id in events; and the texts of the console for them, and for oneself
     * (src/console/pages/things_texts.js, events_texts.js). */
    static const char *const WORDS[] = {"holder",
                                        "operator",
                                        "system",
                                        "you",
                                        "unknown",
                                        "command line",
                                        "operator, command line",
                                        "the service",
                                        "somebody with the key",
                                        "somebody, not signed in"};

    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (has_same_words(name, text_of(WORDS[i])))
            return true;
    return false;
}
