#include "completion_internal.h"

#include "app/command_table.h"

static void put_option(const struct option_row *row, struct buf *out)
{
    static const char *const ENDS[] = {
        [COMPLETION_NONE] = "", [COMPLETION_PATH] = ":file:_files", [COMPLETION_OTHER] = ":value: "};
    enum completion_value value = completion_value_of(row);

    buf_printf(out, " \\\n            '--%s%s[", row->name, value == COMPLETION_NONE ? "" : "=");
    completion_put_summary(row->help, out);
    buf_append_char(out, ']');
    if (value == COMPLETION_CHOICE) {
        buf_append_str(out, ":value:(");
        completion_put_words(row->choices, out);
        buf_append_char(out, ')');
    } else {
        buf_append_str(out, ENDS[value]);
    }
    buf_append_char(out, '\'');
}

static void put_command(const struct command *command, struct buf *out)
{
    buf_printf(out, strchr(command->name, ' ') ? "    '%s')\n" : "    '%s '*)\n", command->name);
    buf_append_str(out, "        _arguments '--help[Show help]'");
    for (const struct option_group *group = command->groups; group->table; group++)
        for (size_t row = 0; row < group->table->count; row++)
            put_option(&group->table->rows[row], out);
    buf_append_str(out, strcmp(command->name, "completion") == 0 ? " '*:shell:(bash zsh fish)' ;;\n"
                                                                 : " '*:operand:_files' ;;\n");
}

static void put_commands(struct buf *out)
{
    struct text word;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (!completion_first_word(i, &word))
            continue;
        buf_printf(out, "        '%.*s", TEXT_ARG(word));
        if (!command_is_group_text(word)) {
            buf_append_char(out, ':');
            completion_put_summary(COMMANDS[i].summary, out);
        }
        buf_append_str(out, "'\n");
    }
}

static void put_groups(struct buf *out)
{
    struct text first, second, word;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (!completion_first_word(i, &first) || !command_is_group_text(first))
            continue;
        buf_printf(out, "    %.*s)\n        words_of=(\n", TEXT_ARG(first));
        for (size_t j = 0; j < COMMAND_COUNT; j++) {
            if (!completion_second_word(j, &word, &second) || !text_equal(word, first))
                continue;
            buf_printf(out, "            '%.*s:", TEXT_ARG(second));
            completion_put_summary(COMMANDS[j].summary, out);
            buf_append_str(out, "'\n");
        }
        buf_append_str(out, "        ) ;;\n");
    }
}

void completion_print_zsh(struct buf *out)
{
    buf_append_str(out, "#compdef chatelaine chatelaine-as-node\n"
                        "# Completion of chatelaine's commands; printed by 'chatelaine completion zsh'.\n"
                        "_chatelaine() {\n"
                        "    local -a words_of\n"
                        "    if ((CURRENT == 2)); then\n"
                        "        words_of=(\n");
    put_commands(out);
    buf_append_str(out, "        )\n"
                        "        _describe command words_of\n"
                        "        return\n"
                        "    fi\n"
                        "    case $words[2] in\n");
    put_groups(out);
    buf_append_str(out, "    esac\n"
                        "    if ((CURRENT == 3 && $#words_of)) && [[ $words[3] != -* ]]; then\n"
                        "        _describe command words_of\n"
                        "        return\n"
                        "    fi\n"
                        "    local named=\"$words[2] $words[3]\" drop=1\n"
                        "    ((! $#words_of)) || [[ $words[3] == -* ]] || drop=2\n"
                        "    words=(\"${words[@]:$drop}\")\n"
                        "    ((CURRENT -= drop))\n"
                        "    case $named in\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!COMMANDS[i].hidden && strchr(COMMANDS[i].name, ' '))
            put_command(&COMMANDS[i], out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!COMMANDS[i].hidden && !strchr(COMMANDS[i].name, ' '))
            put_command(&COMMANDS[i], out);
    buf_append_str(out, "    esac\n"
                        "}\n"
                        "_chatelaine \"$@\"\n");
}
