#include "admin_internal.h"

#include "base/secure.h"

#include <errno.h>
#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

/* A terminal without echo. Keys raise no signals either, so the old settings are always restored. */
struct quiet_terminal {
    int fd;
    struct termios before;
};

enum { KEY_INTERRUPT = 3, KEY_END = 4, KEY_BACKSPACE = 8, KEY_CLEAR = 21, KEY_DELETE = 127 };

static bool terminal_hush(struct quiet_terminal *terminal)
{
    struct termios quiet;

    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal->fd < 0)
        return false;
    if (tcgetattr(terminal->fd, &terminal->before) != 0) {
        close(terminal->fd);
        return false;
    }
    quiet = terminal->before;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG);
    tcsetattr(terminal->fd, TCSAFLUSH, &quiet);
    return true;
}

static void terminal_restore(struct quiet_terminal *terminal)
{
    tcsetattr(terminal->fd, TCSAFLUSH, &terminal->before);
    close(terminal->fd);
}

static void terminal_say(const struct quiet_terminal *terminal, struct text words)
{
    /* If the terminal cannot be written to, reading fails next. */
    ssize_t written UNUSED = write(terminal->fd, words.ptr, words.len);
}

static void drop_character(struct buf *line)
{
    while (line->len > 0 && ((unsigned char)line->ptr[--line->len] & 0xc0) == 0x80)
        ;
}

static bool terminal_read_line(const struct quiet_terminal *terminal, struct buf *ret_line)
{
    for (;;) {
        char c;
        ssize_t got = read(terminal->fd, &c, 1);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || c == KEY_INTERRUPT || c == KEY_END)
            return false;
        if (c == '\n' || c == '\r')
            return !ret_line->failed;
        if (c == KEY_DELETE || c == KEY_BACKSPACE)
            drop_character(ret_line);
        else if (c == KEY_CLEAR)
            buf_clear(ret_line);
        else
            buf_append_char(ret_line, c);
    }
}

static bool terminal_ask(const struct quiet_terminal *terminal, struct text prompt, struct buf *ret_line)
{
    terminal_say(terminal, prompt);
    bool is_given = terminal_read_line(terminal, ret_line);
    terminal_say(terminal, TEXT("\n"));
    return is_given;
}

static int password_ask(struct buf *ret_password)
{
    struct quiet_terminal terminal;
    struct buf again CLEANUP(buf_wipe);

    buf_init(&again, ret_password->max);
    if (!terminal_hush(&terminal))
        return command_fail(EXIT_USAGE, "no terminal to ask for a password: use --password-file");
    bool is_asked = terminal_ask(&terminal, TEXT("New password (12 characters or more): "), ret_password) &&
                    terminal_ask(&terminal, TEXT("Repeat the password: "), &again);
    terminal_restore(&terminal);
    if (!is_asked)
        return command_fail(EXIT_FAILED, "no password given");
    if (!secure_equal(buf_text(ret_password), buf_text(&again)))
        return command_fail(EXIT_FAILED, "the two passwords differ; try again");
    return EXIT_DONE;
}

int password_accept(struct text password, const struct password_context *context)
{
    enum password_verdict verdict = account_check_password(password, context);

    if (verdict != PASSWORD_OK)
        return command_fail(EXIT_FAILED, "password rejected: %s", account_explain_password(verdict));
    return EXIT_DONE;
}

int password_obtain(const char *file, const struct password_context *context, struct buf *ret_password)
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    int code = EXIT_DONE;

    if (!file)
        code = password_ask(ret_password);
    else if (!private_file_read("--password-file", file, ret_password, &why) ||
             !secret_file_is_plain(buf_text(ret_password), file, &why))
        code = command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
    return code == EXIT_DONE ? password_accept(buf_text(ret_password), context) : code;
}
