#include "words.h"

#include "base/mem.h"
#include <inttypes.h>
#include <stdlib.h>

enum { KEPT_MAX = 64, KEPT_BYTES_MAX = 300 };

static const struct {
    const char *name, *forms;
} WORDS[] = {
#define WORD(name, forms) {name, forms},
#define LINE(form)
#include "words.def"
#undef WORD
#undef LINE
};

static const char *const LINES[] = {
#define WORD(name, forms)
#define LINE(form) form,
#include "words.def"
#undef WORD
#undef LINE
};

static struct {
    uint64_t state, unix_ms;
    char *kept[KEPT_MAX];
    size_t kept_lengths[KEPT_MAX];
    struct buf named[26]; /* by {X=name} */
} words;

void words_seed(uint64_t seed)
{
    words.state = seed;
}

/* splitmix64 */
uint64_t words_random(uint64_t below)
{
    uint64_t mixed = words.state += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (mixed ^ mixed >> 31) % below;
}

void words_set_clock(uint64_t unix_us)
{
    words.unix_ms = unix_us / 1000;
}

void words_keep(struct text word)
{
    size_t place = words_random(KEPT_MAX);

    if (word.len > KEPT_BYTES_MAX)
        return;
    free(words.kept[place]);
    words.kept[place] = mem_copy_text(word.len > 0 ? word.ptr : "", word.len);
    words.kept_lengths[place] = word.len;
}

void words_finish(void)
{
    for (size_t i = 0; i < KEPT_MAX; i++) {
        free(words.kept[i]);
        words.kept[i] = NULL;
    }
    for (size_t i = 0; i < sizeof words.named / sizeof *words.named; i++)
        buf_finish(&words.named[i]);
}

static const char *forms_of(struct text name)
{
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (text_equal(name, text_of(WORDS[i].name)))
            return WORDS[i].forms;
    return NULL;
}

bool words_have(const char *name)
{
    return forms_of(text_of(name)) != NULL;
}

static struct text choose(struct text forms)
{
    size_t count = 1;
    struct text form = {0};

    for (size_t i = 0; i < forms.len; i++)
        count += forms.ptr[i] == '|';
    for (size_t left = words_random(count) + 1; left > 0; left--)
        (void)!text_next(&forms, '|', &form);
    return form;
}

static void append_time(struct buf *out)
{
    static const int64_t FROM_NOW_MS[] = {0,      1,     -1,     1000,     -1000,   30000,
                                          -60000, 60000, 600000, -3600000, 3600000, 86400000};
    int64_t chosen = FROM_NOW_MS[words_random(sizeof FROM_NOW_MS / sizeof *FROM_NOW_MS)];

    buf_append_u64(out, (uint64_t)((int64_t)words.unix_ms + chosen));
}

static void append_kept(struct buf *out)
{
    size_t place = words_random(KEPT_MAX);

    if (words.kept[place])
        buf_append(out, words.kept[place], words.kept_lengths[place]);
}

/* "3-7" */
static bool append_number(struct buf *out, struct text range)
{
    struct text low = {0};
    uint64_t from, to;

    if (!text_next(&range, '-', &low) || !text_to_u64(low, UINT32_MAX, &from) || !text_to_u64(range, UINT32_MAX, &to))
        return false;
    buf_append_u64(out, from + words_random(to - from + 1));
    return true;
}

static void append_form(struct buf *out, struct text form);

static void append_named(struct buf *out, struct text name);

/* "X=name" or "X" */
static bool append_repeated(struct buf *out, struct text name)
{
    if (name.len == 0 || name.ptr[0] < 'A' || name.ptr[0] > 'Z' || (name.len > 1 && name.ptr[1] != '='))
        return false;
    struct buf *word = &words.named[name.ptr[0] - 'A'];
    if (name.len > 1) {
        buf_finish(word);
        buf_init(word, 64 * 1024);
        append_named(word, text_skip(name, 2));
    }
    buf_append_text(out, buf_text(word));
    return true;
}

static void append_named(struct buf *out, struct text name)
{
    const char *forms = forms_of(name);

    if (append_repeated(out, name))
        return;
    if (text_equal(name, TEXT("now")))
        append_time(out);
    else if (text_equal(name, TEXT("later")))
        buf_append_u64(out, words.unix_ms + 1000 + words_random(3600000));
    else if (text_equal(name, TEXT("clock")))
        buf_append_u64(out, words.unix_ms);
    else if (text_equal(name, TEXT("kept")))
        append_kept(out);
    else if (forms)
        append_form(out, choose(text_of(forms)));
    else if (!append_number(out, name))
        abort(); /* words.def names a word that it has not */
}

static void append_form(struct buf *out, struct text form)
{
    struct text name = {0};

    while (form.len > 0) {
        if (text_starts_with(form, TEXT("(:")) || text_starts_with(form, TEXT(":)"))) {
            buf_append_char(out, form.ptr[0] == '(' ? '{' : '}');
            form = text_skip(form, 2);
            continue;
        }
        if (form.ptr[0] != '{') {
            buf_append_char(out, form.ptr[0]);
            form = text_skip(form, 1);
            continue;
        }
        form = text_skip(form, 1);
        (void)!text_next(&form, '}', &name);
        append_named(out, name);
    }
}

void line_add(struct line *line, struct text word)
{
    if (line->argc < LINE_WORDS_MAX)
        line->argv[line->argc++] = (struct text){mem_copy_text(word.len > 0 ? word.ptr : "", word.len), word.len};
}

/* Where doubles have gaps: chains_declare.lua counts up to such a number without end, and no Redis comes back. */
static bool is_too_high(struct text word)
{
    uint64_t number;

    return text_to_u64(word, UINT64_MAX, &number) && number >= UINT64_C(1) << 53;
}

void line_add_word(struct line *line, const char *name)
{
    struct buf word = BUF_UP_TO(64 * 1024);

    if (words_random(100) == 0)
        append_form(&word, words_random(3) > 0 ? TEXT("{kept}") : TEXT("{junk}"));
    else
        append_named(&word, text_of(name));
    line_add(line, is_too_high(buf_text(&word)) ? TEXT("7") : buf_text(&word));
    buf_finish(&word);
}

static void add_several(struct line *line, struct text words_of_form)
{
    struct text word;

    if (words_of_form.len == 0)
        return;
    while (text_next(&words_of_form, ' ', &word))
        line_add(line, word);
}

/* Up to a blank that is in no name. */
static bool next_word_form(struct text *form, struct text *ret_word)
{
    bool is_in_name = false;
    size_t len = 0;

    if (!form->ptr)
        return false;
    for (; len < form->len && (is_in_name || form->ptr[len] != ' '); len++)
        is_in_name = form->ptr[len] == '{' || (is_in_name && form->ptr[len] != '}');
    *ret_word = (struct text){form->ptr, len};
    *form = len < form->len ? text_skip(*form, len + 1) : (struct text){0};
    return true;
}

void line_add_form(struct line *line, struct text form)
{
    struct text word_form;

    while (next_word_form(&form, &word_form)) {
        struct buf word = BUF_UP_TO(64 * 1024);
        bool may_be_several = word_form.len > 0 && word_form.ptr[0] == '*';

        append_form(&word,
                    text_skip(word_form, may_be_several)); /* whatever becomes of it: it may choose what is repeated */
        if (!may_be_several && line->argc > 0 && words_random(100) == 0) {
            buf_clear(&word);
            append_form(&word, TEXT("{junk}"));
        }
        if (may_be_several)
            add_several(line, buf_text(&word));
        else
            line_add(line, buf_text(&word));
        buf_finish(&word);
    }
}

void line_add_command(struct line *line)
{
    line_add_form(line, text_of(LINES[words_random(sizeof LINES / sizeof *LINES)]));
}

void line_finish(struct line *line)
{
    for (size_t i = 0; i < line->argc; i++)
        free((char *)(uintptr_t)line->argv[i].ptr);
    line->argc = 0;
}
