#include "admin/command.h"

#include "admin_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_MAX_BYTES = 8 * 1024, FAILURE_BYTES = 256 };

#define PROGRAM "chatelaine: "

static const struct option_row JSON_ROWS[] = {ROW_JSON};
const struct option_group JSON_OPTIONS[] = ADMIN_OPTIONS(JSON_ROWS);

/* Not a path, an address or an option. */
static bool begins_with_word(const char *message)
{
    size_t letters = strspn(message, "abcdefghijklmnopqrstuvwxyz'");

    return letters > 0 && (message[letters] == ' ' || message[letters] == ',' || message[letters] == '\0');
}

static bool ends_a_sentence(const char *message)
{
    size_t length = strlen(message);

    return length > 0 && strchr(".?!", message[length - 1]);
}

/* Of the first failure; the message as it was printed. */
static char first_failure[FAILURE_BYTES];

const char *command_failure(void)
{
    return first_failure;
}

int command_fail(enum exit_code code, const char *format, ...)
{
    char message[MESSAGE_MAX_BYTES];
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(4 * MESSAGE_MAX_BYTES);
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (begins_with_word(message))
        message[0] = (char)toupper(message[0]);
    buf_append_str(&out, PROGRAM);
    buf_append_printable(&out, text_of(message));
    if (!first_failure[0])
        snprintf(first_failure, sizeof first_failure, "%.*s", (int)(out.len - strlen(PROGRAM)),
                 out.ptr + strlen(PROGRAM));
    buf_append_str(&out, ends_a_sentence(message) ? "\n" : ".\n");
    fwrite(out.ptr, 1, out.len, stderr);
    return (int)code;
}

int command_refuse(struct text mistakes)
{
    struct text mistake;

    while (text_next(&mistakes, '\n', &mistake))
        (void)command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(mistake));
    return EXIT_USAGE;
}

int command_print(struct text out)
{
    if (out.len == 0 || (fwrite(out.ptr, 1, out.len, stdout) == out.len && fflush(stdout) == 0))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "cannot write to standard output: %s", strerror(errno));
}

int command_require(const char *value, const char *option)
{
    return value ? EXIT_DONE : command_fail(EXIT_USAGE, "%s is required; see --help", option);
}

int command_require_origin(const struct command_line *line, const char *why)
{
    const char *origin = line->settings.public_origin;
    struct buf problem = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    if (!origin)
        return command_fail(EXIT_USAGE, "%s: set --public-origin or CHATELAINE_PUBLIC_ORIGIN as they do", why);
    if (!settings_validate_origin(origin, &problem))
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&problem)));
    return EXIT_DONE;
}

int command_confirm(const struct command_line *line, const char *question)
{
    char answer[16];

    if (line->yes)
        return EXIT_DONE;
    if (!isatty(STDIN_FILENO))
        return command_fail(EXIT_USAGE, "%s Without a terminal to ask on, this needs --yes", question);
    fprintf(stderr, "%s Go on? [y/N] ", question);
    if (!fgets(answer, sizeof answer, stdin) || (strcmp(answer, "y\n") != 0 && strcmp(answer, "yes\n") != 0))
        return command_fail(EXIT_FAILED, "nothing was changed");
    return EXIT_DONE;
}

struct keyring *command_keyring(const struct command_line *line, int *ret_code)
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    struct keyring *keyring = key_file_load(&line->settings, &why);
    *ret_code = keyring ? EXIT_DONE : command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    return keyring;
}

void apart_print(int64_t ahead_ms, char ret_text[APART_BYTES])
{
    enum { MS_PER_S = 1000, MS_PER_DIGIT = 100 };
    int64_t apart_ms = llabs(ahead_ms);

    snprintf(ret_text, APART_BYTES, "%" PRId64 ".%" PRId64 " s %s", apart_ms / MS_PER_S,
             apart_ms % MS_PER_S / MS_PER_DIGIT, ahead_ms < 0 ? "behind" : "ahead of");
}
