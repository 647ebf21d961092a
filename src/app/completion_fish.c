#include "completion_internal.h"

#include "app/command_table.h"

static void put_line(const char *condition, struct text name, struct text word, const char *summary, struct buf *out)
{
    buf_printf(out, "complete -c chatelaine -f -n '%s \"%.*s\"' -a %.*s -d '", condition, TEXT_ARG(name),
               TEXT_ARG(word));
    completion_put_summary(summary, out);
    buf_append_str(out, "'\n");
}

static void put_words(struct buf *out)
{
    struct text first, second;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (completion_first_word(i, &first))
            put_line("__chatelaine_at", TEXT(""), first, command_is_group_text(first) ? "" : COMMANDS[i].summary, out);
        if (completion_second_word(i, &first, &second))
            put_line("__chatelaine_at", first, second, COMMANDS[i].summary, out);
    }
}

static void put_option(const struct command *command, const struct option_row *row, struct buf *out)
{
    static const char *const TAKES[] = {
        [COMPLETION_NONE] = "", [COMPLETION_CHOICE] = " -x", [COMPLETION_PATH] = " -r -F", [COMPLETION_OTHER] = " -x"};

    buf_printf(out, "complete -c chatelaine -n '__chatelaine_in \"%s\"' -l %s%s", command->name, row->name,
               TAKES[completion_value_of(row)]);
    if (row->type == OPTION_CHOICE) {
        buf_append_str(out, " -a '");
        completion_put_words(row->choices, out);
        buf_append_char(out, '\'');
    }
    buf_append_str(out, " -d '");
    completion_put_summary(row->help, out);
    buf_append_str(out, "'\n");
}

void completion_print_fish(struct buf *out)
{
    buf_append_str(out, "# Completion of chatelaine's commands; printed by 'chatelaine completion fish'.\n"
                        "# Whether exactly these words, or at least these, have been written.\n"
                        "function __chatelaine_at\n"
                        "    set -l words (commandline -opc)\n"
                        "    test \"$words[2..-1]\" = \"$argv[1]\"\n"
                        "end\n"
                        "function __chatelaine_in\n"
                        "    set -l words (commandline -opc)\n"
                        "    string match -q -- \"$argv[1] *\" \"$words[2..-1] \"\n"
                        "end\n"
                        "complete -c chatelaine-as-node -w chatelaine\n"
                        "complete -c chatelaine -n '__chatelaine_at \"completion\"' -f -a 'bash zsh fish'\n"
                        "complete -c chatelaine -l help -d 'Show help'\n");
    put_words(out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        for (const struct option_group *group = COMMANDS[i].groups; group->table && !COMMANDS[i].hidden; group++)
            for (size_t row = 0; row < group->table->count; row++)
                put_option(&COMMANDS[i], &group->table->rows[row], out);
}
