#include "admin/command.h"

#include "admin_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int command_fail(enum exit_code code, const char *format, ...)
{
    va_list args;

    fputs("chatelaine: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return (int)code;
}

int command_print(struct text out)
{
    if (fwrite(out.ptr, 1, out.len, stdout) == out.len && fflush(stdout) == 0)
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "cannot write to standard output: %s", strerror(errno));
}

int command_require(const char *value, const char *option)
{
    return value ? EXIT_DONE : command_fail(EXIT_USAGE, "%s is required; see --help", option);
}

struct keyring *command_keyring(const struct command_line *line, int *ret_code)
{
    char storage[ADMIN_WHY_MAX_BYTES];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    struct keyring *keyring = key_file_load(&line->settings, &why);
    *ret_code = keyring ? EXIT_DONE : command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    return keyring;
}
