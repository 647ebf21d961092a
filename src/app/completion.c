#include "completion.h"

#include "app/command_table.h"
#include "completion_internal.h"

enum { COMPLETION_MAX_BYTES = 512 * 1024 };

bool completion_first_word(size_t command, struct text *ret_word)
{
    struct text rest = text_of(COMMANDS[command].name);

    text_next(&rest, ' ', ret_word);
    for (size_t i = 0; i < command; i++) {
        struct text before = text_of(COMMANDS[i].name), word;

        text_next(&before, ' ', &word);
        if (!COMMANDS[i].hidden && text_equal(word, *ret_word))
            return false;
    }
    return !COMMANDS[command].hidden;
}

bool completion_second_word(size_t command, struct text *ret_first, struct text *ret_second)
{
    struct text rest = text_of(COMMANDS[command].name);

    return text_next(&rest, ' ', ret_first) && text_next(&rest, ' ', ret_second) && !COMMANDS[command].hidden;
}

enum completion_value completion_value_of(const struct option_row *row)
{
    if (row->type == OPTION_FLAG)
        return COMPLETION_NONE;
    if (row->type == OPTION_CHOICE)
        return COMPLETION_CHOICE;
    if (row->value_name && (strcmp(row->value_name, "PATH") == 0 || strcmp(row->value_name, "DIR") == 0))
        return COMPLETION_PATH;
    return COMPLETION_OTHER;
}

/* The first sentence of a help text, in which characters that mean something to the shell become blanks. */
void completion_put_summary(const char *help, struct buf *out)
{
    for (const char *at = help; *at && !(at[0] == '.' && (at[1] == ' ' || at[1] == '\0')); at++)
        buf_append_char(out, strchr("'\\[]:$`", *at) ? ' ' : *at);
}

void completion_put_words(const char *choices, struct buf *out)
{
    for (; *choices; choices++)
        buf_append_char(out, *choices == '|' ? ' ' : *choices);
}

int completion_run(const struct command_line *line)
{
    static const struct {
        const char *shell;
        void (*print)(struct buf *out);
    } SHELLS[] = {{"bash", completion_print_bash}, {"zsh", completion_print_zsh}, {"fish", completion_print_fish}};
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, COMPLETION_MAX_BYTES);
    for (size_t i = 0; i < sizeof SHELLS / sizeof *SHELLS; i++) {
        if (strcmp(line->operands[0], SHELLS[i].shell) != 0)
            continue;
        SHELLS[i].print(&out);
        return command_print(buf_text(&out));
    }
    return command_fail(EXIT_USAGE, "there is no completion for '%s'; there is for bash, zsh and fish",
                        line->operands[0]);
}
