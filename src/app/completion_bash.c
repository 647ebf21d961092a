#include "completion_internal.h"

#include "app/command_table.h"

/* "name)" for each option with values of that kind, each once per command: a repeated pattern does no harm. */
static void put_patterns(enum completion_value value, struct buf *out)
{
    bool is_first = true;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        for (const struct option_group *group = COMMANDS[i].groups; group->table; group++) {
            for (size_t row = 0; row < group->table->count; row++) {
                if (completion_value_of(&group->table->rows[row]) != value)
                    continue;
                buf_printf(out, "%s--%s", is_first ? "    " : " | ", group->table->rows[row].name);
                is_first = false;
            }
        }
    }
    buf_append_str(out, is_first ? "    none)" : ")");
}

static void put_choices(struct buf *out)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        for (const struct option_group *group = COMMANDS[i].groups; group->table; group++) {
            for (size_t at = 0; at < group->table->count; at++) {
                const struct option_row *row = &group->table->rows[at];

                if (completion_value_of(row) != COMPLETION_CHOICE)
                    continue;
                buf_printf(out, "    --%s) words='", row->name);
                completion_put_words(row->choices, out);
                buf_append_str(out, "' ;;\n");
            }
        }
    }
}

/* Names of two words come first, because "a b" also matches the pattern of a command a. */
static void put_options(const struct command *command, struct buf *out)
{
    buf_printf(out, strchr(command->name, ' ') ? "    '%s') words='--help" : "    '%s '*) words='--help",
               command->name);
    for (const struct option_group *group = command->groups; group->table; group++)
        for (size_t row = 0; row < group->table->count; row++)
            buf_printf(out, " --%s", group->table->rows[row].name);
    buf_append_str(out, "' ;;\n");
}

static void put_second_words(struct buf *out)
{
    struct text first, second, word;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (!completion_first_word(i, &first) || !command_is_group_text(first))
            continue;
        buf_printf(out, "    %.*s) words='", TEXT_ARG(first));
        for (size_t j = 0; j < COMMAND_COUNT; j++)
            if (completion_second_word(j, &word, &second) && text_equal(word, first))
                buf_printf(out, "%.*s ", TEXT_ARG(second));
        buf_append_str(out, "' ;;\n");
    }
}

static void put_first_words(struct buf *out)
{
    struct text word;

    buf_append_str(out, "    words='help --version");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (completion_first_word(i, &word))
            buf_printf(out, " %.*s", TEXT_ARG(word));
    buf_append_str(out, "'\n");
}

void completion_print_bash(struct buf *out)
{
    buf_append_str(out, "# Completion of chatelaine's commands; printed by 'chatelaine completion bash'.\n"
                        "_chatelaine() {\n"
                        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
                        "    # bash takes '=' for a word of its own.\n"
                        "    [[ $current != '=' ]] || current=\n"
                        "    [[ $previous != '=' ]] || previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
                        "    COMPREPLY=()\n"
                        "    case $previous in\n");
    put_choices(out);
    put_patterns(COMPLETION_PATH, out);
    buf_append_str(out, "\n        compopt -o filenames 2>/dev/null\n"
                        "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                        "        return\n        ;;\n");
    put_patterns(COMPLETION_OTHER, out);
    buf_append_str(out, " return ;;\n    esac\n"
                        "    if [[ -z $words ]] && ((COMP_CWORD == 1)); then\n");
    put_first_words(out);
    buf_append_str(out, "    elif [[ -z $words && $current != -* ]] && ((COMP_CWORD == 2)); then\n"
                        "    case ${COMP_WORDS[1]} in\n");
    put_second_words(out);
    buf_append_str(out, "    completion) words='bash zsh fish' ;;\n"
                        "    esac\n"
                        "    elif [[ -z $words && $current == -* ]]; then\n"
                        "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!COMMANDS[i].hidden && strchr(COMMANDS[i].name, ' '))
            put_options(&COMMANDS[i], out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!COMMANDS[i].hidden && !strchr(COMMANDS[i].name, ' '))
            put_options(&COMMANDS[i], out);
    buf_append_str(out, "    esac\n"
                        "    fi\n"
                        "    if [[ -n $words ]]; then\n"
                        "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                        "    else\n"
                        "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                        "    fi\n"
                        "}\n"
                        "complete -F _chatelaine chatelaine chatelaine-as-node\n");
}
