#include "completion.h"

#include "app/command_table.h"
#include "core/scope.h"

enum { COMPLETION_MAX_BYTES = 512 * 1024 };

enum value { VALUE_NONE, VALUE_CHOICE, VALUE_PATH, VALUE_OTHER };

/* Commands and options, as the scripts of bash and zsh have them. */
struct completion_shell {
    const char *group_begin, *group_end, *options_begin, *options_end, *shells_end;
    void (*put_second)(const struct command *command, struct text word, struct buf *out);
    void (*put_option)(const struct option_row *row, struct buf *out);
};

/* The first word of the command; false if the command is hidden or one before it has the same first word. */
static bool first_word(const struct command *commands, const struct command *command, struct text *ret_word)
{
    struct text rest = text_of(command->name);

    text_next(&rest, ' ', ret_word);
    for (; commands < command; commands++) {
        struct text before = text_of(commands->name), word;

        text_next(&before, ' ', &word);
        if (!commands->hidden && text_equal(word, *ret_word))
            return false;
    }
    return !command->hidden;
}

/* The two words of the command; false if it is hidden or has only one. */
static bool second_word(const struct command *command, struct text *ret_first, struct text *ret_second)
{
    struct text rest = text_of(command->name);

    return text_next(&rest, ' ', ret_first) && text_next(&rest, ' ', ret_second) && !command->hidden;
}

static bool is_called(const struct option_row *row, const char *value_name)
{
    return row->type == OPTION_TEXT && row->value_name && strcmp(row->value_name, value_name) == 0;
}

static enum value value_of(const struct option_row *row)
{
    if (row->type == OPTION_FLAG)
        return VALUE_NONE;
    if (row->type == OPTION_CHOICE || is_called(row, "SCOPE") || is_called(row, "TIME"))
        return VALUE_CHOICE;
    if (row->value_name && (strcmp(row->value_name, "PATH") == 0 || strcmp(row->value_name, "DIR") == 0))
        return VALUE_PATH;
    return VALUE_OTHER;
}

/* The first sentence of a help text, without a full stop. Characters that mean something to the shell, also within
 * single quotes and brackets, become blanks. */
static void put_summary(const char *help, struct buf *out)
{
    for (const char *at = help; *at && !(at[0] == '.' && (at[1] == ' ' || at[1] == '\0')); at++)
        buf_append_char(out, strchr("'\\[]:$`", *at) ? ' ' : *at);
}

/* Of a VALUE_CHOICE, "a|b" as "a b", between two texts: all of its values, or some usual ones of a time. */
static void put_choices(const char *before, const struct option_row *row, const char *behind, struct buf *out)
{
    const char *words = is_called(row, "TIME") ? "24h|7d|30d|90d|today|yesterday" : row->choices;

    buf_append_str(out, before);
    if (is_called(row, "SCOPE"))
        scope_print(SCOPE_ALL, ' ', out);
    for (; words && *words; words++)
        buf_append_char(out, *words == '|' ? ' ' : *words);
    buf_append_str(out, behind);
}

/* The second words of each group. */
static void put_groups(const struct completion_shell *shell, const struct command *commands, struct buf *out)
{
    struct text first, second, word;

    for (const struct command *command = commands; command->name; command++) {
        if (!first_word(commands, command, &first) || !command_is_group(commands, first))
            continue;
        buf_printf(out, "    %.*s)%s", TEXT_ARG(first), shell->group_begin);
        for (const struct command *other = commands; other->name; other++)
            if (second_word(other, &word, &second) && text_equal(word, first))
                shell->put_second(other, second, out);
        buf_append_str(out, shell->group_end);
    }
}

static void put_options(const struct completion_shell *shell, const struct command *commands, bool of_groups,
                        struct buf *out)
{
    for (; commands->name; commands++) {
        if (commands->hidden || (strchr(commands->name, ' ') != NULL) != of_groups)
            continue;
        buf_printf(out, "    '%s%s)%s", commands->name, of_groups ? "'" : " '*", shell->options_begin);
        for (const struct option_group *group = commands->groups; group->table; group++)
            for (size_t row = 0; row < group->table->count; row++)
                shell->put_option(&group->table->rows[row], out);
        buf_append_str(out, strcmp(commands->name, "completion") == 0 ? shell->shells_end : shell->options_end);
    }
}

/* Names of two words come first, because "a b" also matches the pattern of a command a. */
static void put_all_options(const struct completion_shell *shell, const struct command *commands, struct buf *out)
{
    put_options(shell, commands, true, out);
    put_options(shell, commands, false, out);
}

/* bash */

/* "name)" for each option with values of that kind, each once per command: a repeated pattern does no harm. Those of
 * choices have their words behind them instead. */
static void bash_put_patterns(const struct command *commands, enum value value, struct buf *out)
{
    bool is_first = true;

    for (; commands->name; commands++) {
        for (const struct option_group *group = commands->groups; group->table; group++) {
            for (size_t at = 0; at < group->table->count; at++) {
                const struct option_row *row = &group->table->rows[at];

                if (value_of(row) != value)
                    continue;
                buf_printf(out, "%s--%s", is_first || value == VALUE_CHOICE ? "    " : " | ", row->name);
                if (value == VALUE_CHOICE)
                    put_choices(") words='", row, "' ;;\n", out);
                is_first = false;
            }
        }
    }
}

static void bash_put_second(const struct command *command, struct text word, struct buf *out)
{
    (void)command;
    buf_printf(out, "%.*s ", TEXT_ARG(word));
}

static void bash_put_option(const struct option_row *row, struct buf *out)
{
    buf_printf(out, " --%s", row->name);
}

static const char BASH_BEGIN[] = "# Completion of chatelaine's commands; printed by 'chatelaine completion bash'.\n"
                                 "_chatelaine() {\n"
                                 "    local at=$COMP_CWORD current=${COMP_WORDS[COMP_CWORD]} begun='' words=\n"
                                 "    # bash takes '=' and ':' for words of their own.\n"
                                 "    if [[ $current == ':' ]]; then\n"
                                 "        begun=${COMP_WORDS[--at]}: current=\n"
                                 "    elif [[ ${COMP_WORDS[at - 1]} == ':' ]]; then\n"
                                 "        begun=${COMP_WORDS[at -= 2]}:\n"
                                 "    fi\n"
                                 "    local previous=${COMP_WORDS[at - 1]}\n"
                                 "    [[ $current != '=' ]] || current=\n"
                                 "    [[ $previous != '=' ]] || previous=${COMP_WORDS[at - 2]}\n"
                                 "    COMPREPLY=()\n"
                                 "    case $previous in\n";
static const char BASH_END[] = "    esac\n"
                               "    fi\n"
                               "    if [[ -n $words ]]; then\n"
                               "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$begun$current\")\n"
                               "        COMPREPLY=(\"${COMPREPLY[@]#\"$begun\"}\")\n"
                               "    else\n"
                               "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                               "    fi\n"
                               "}\n"
                               "complete -F _chatelaine chatelaine chatelaine-as-node\n";

static void print_bash(const struct command *commands, struct buf *out)
{
    static const struct completion_shell BASH = {" words='", "' ;;\n",        " words='--help", "' ;;\n",
                                                 "' ;;\n",   bash_put_second, bash_put_option};
    struct text word;

    buf_append_str(out, BASH_BEGIN);
    bash_put_patterns(commands, VALUE_CHOICE, out);
    bash_put_patterns(commands, VALUE_PATH, out);
    buf_append_str(out, ")\n        compopt -o filenames 2>/dev/null\n"
                        "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                        "        return\n        ;;\n");
    bash_put_patterns(commands, VALUE_OTHER, out);
    buf_append_str(out, ") return ;;\n    esac\n"
                        "    if [[ -z $words ]] && ((COMP_CWORD == 1)); then\n"
                        "    words='help --version");
    for (const struct command *command = commands; command->name; command++)
        if (first_word(commands, command, &word))
            buf_printf(out, " %.*s", TEXT_ARG(word));
    buf_append_str(out, "'\n    elif [[ -z $words && $current != -* ]] && ((COMP_CWORD == 2)); then\n"
                        "    case ${COMP_WORDS[1]} in\n");
    put_groups(&BASH, commands, out);
    buf_append_str(out, "    completion) words='bash zsh fish' ;;\n"
                        "    esac\n"
                        "    elif [[ -z $words && $current == -* ]]; then\n"
                        "    case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
    put_all_options(&BASH, commands, out);
    buf_append_str(out, BASH_END);
}

/* zsh */

static void zsh_put_option(const struct option_row *row, struct buf *out)
{
    static const char *const ENDS[] = {[VALUE_NONE] = "]'",
                                       [VALUE_CHOICE] = "]:value:(",
                                       [VALUE_PATH] = "]:file:_files'",
                                       [VALUE_OTHER] = "]:value: '"};
    enum value value = value_of(row);

    buf_printf(out, " \\\n            '--%s%s[", row->name, value == VALUE_NONE ? "" : "=");
    put_summary(row->help, out);
    if (value == VALUE_CHOICE)
        put_choices(ENDS[value], row, ")'", out);
    else
        buf_append_str(out, ENDS[value]);
}

static void zsh_put_second(const struct command *command, struct text word, struct buf *out)
{
    buf_printf(out, "            '%.*s:", TEXT_ARG(word));
    put_summary(command->summary, out);
    buf_append_str(out, "'\n");
}

static void zsh_put_first_words(const struct command *commands, struct buf *out)
{
    struct text word;

    for (const struct command *command = commands; command->name; command++) {
        if (!first_word(commands, command, &word))
            continue;
        buf_printf(out, "        '%.*s", TEXT_ARG(word));
        if (!command_is_group(commands, word)) {
            buf_append_char(out, ':');
            put_summary(command->summary, out);
        }
        buf_append_str(out, "'\n");
    }
}

static void print_zsh(const struct command *commands, struct buf *out)
{
    static const struct completion_shell ZSH = {"\n        words_of=(\n",
                                                "        ) ;;\n",
                                                "\n        _arguments '--help[Show help]'",
                                                " '*:operand:_files' ;;\n",
                                                " '*:shell:(bash zsh fish)' ;;\n",
                                                zsh_put_second,
                                                zsh_put_option};

    buf_append_str(out, "#compdef chatelaine chatelaine-as-node\n"
                        "# Completion of chatelaine's commands; printed by 'chatelaine completion zsh'.\n"
                        "_chatelaine() {\n"
                        "    local -a words_of\n"
                        "    if ((CURRENT == 2)); then\n"
                        "        words_of=(\n");
    zsh_put_first_words(commands, out);
    buf_append_str(out, "        )\n"
                        "        _describe command words_of\n"
                        "        return\n"
                        "    fi\n"
                        "    case $words[2] in\n");
    put_groups(&ZSH, commands, out);
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
    put_all_options(&ZSH, commands, out);
    buf_append_str(out, "    esac\n"
                        "}\n"
                        "_chatelaine \"$@\"\n");
}

/* fish */

static void fish_put_word(struct text before, struct text word, const char *summary, struct buf *out)
{
    buf_printf(out, "complete -c chatelaine -f -n '__chatelaine_at \"%.*s\"' -a %.*s -d '", TEXT_ARG(before),
               TEXT_ARG(word));
    put_summary(summary, out);
    buf_append_str(out, "'\n");
}

static void fish_put_words(const struct command *commands, struct buf *out)
{
    struct text first, second;

    for (const struct command *command = commands; command->name; command++) {
        if (first_word(commands, command, &first))
            fish_put_word(TEXT(""), first, command_is_group(commands, first) ? "" : command->summary, out);
        if (second_word(command, &first, &second))
            fish_put_word(first, second, command->summary, out);
    }
}

static void fish_put_option(const struct command *command, const struct option_row *row, struct buf *out)
{
    static const char *const TAKES[] = {
        [VALUE_NONE] = "", [VALUE_CHOICE] = " -x", [VALUE_PATH] = " -r -F", [VALUE_OTHER] = " -x"};

    buf_printf(out, "complete -c chatelaine -n '__chatelaine_in \"%s\"' -l %s%s", command->name, row->name,
               TAKES[value_of(row)]);
    if (value_of(row) == VALUE_CHOICE)
        put_choices(" -a '", row, "'", out);
    buf_append_str(out, " -d '");
    put_summary(row->help, out);
    buf_append_str(out, "'\n");
}

static void print_fish(const struct command *commands, struct buf *out)
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
    fish_put_words(commands, out);
    for (; commands->name; commands++)
        for (const struct option_group *group = commands->groups; group->table && !commands->hidden; group++)
            for (size_t row = 0; row < group->table->count; row++)
                fish_put_option(commands, &group->table->rows[row], out);
}

int completion_run(const struct command_line *line)
{
    static const struct {
        const char *shell;
        void (*print)(const struct command *commands, struct buf *out);
    } SHELLS[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(COMPLETION_MAX_BYTES);

    for (size_t i = 0; i < sizeof SHELLS / sizeof *SHELLS; i++) {
        if (strcmp(line->operands[0], SHELLS[i].shell) != 0)
            continue;
        SHELLS[i].print(line->commands, &out);
        return command_print(buf_text(&out));
    }
    return command_fail(EXIT_USAGE, "there is no completion for '%s'; there is for bash, zsh and fish",
                        line->operands[0]);
}
