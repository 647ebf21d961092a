#include "admin/commands.h"

#include "admin_internal.h"
#include "base/encode.h"
#include "base/random.h"
#include "base/secure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_row ROWS[] = {
    ROW_TEXT("write", write, "PATH",
             "Write it to this new file, which only its owner can read (mode 0400). A file that exists is refused: "
             "without its master key, no API key of a store works any more."),
};
const struct option_group MASTER_KEY_OPTIONS[] = {OPTIONS_OF(ROWS), {0}};

static bool is_written(int fd, struct text content)
{
    bool is_done = write(fd, content.ptr, content.len) == (ssize_t)content.len && fsync(fd) == 0;

    return close(fd) == 0 && is_done;
}

/* A file that is not complete is removed, so that the command can be repeated. */
static int write_new(const char *path, struct text content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);

    if (fd < 0 && errno == EEXIST)
        return command_fail(EXIT_FAILED,
                            "%s exists, and was left as it is: a new master key in its place would make "
                            "all API keys, passwords and one-time codes useless",
                            path);
    if (fd < 0)
        return command_fail(EXIT_FAILED, "cannot create %s: %s", path, strerror(errno));
    errno = 0;
    if (is_written(fd, content))
        return EXIT_DONE;
    int code = command_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno ? errno : ENOSPC));
    unlink(path);
    return code;
}

/* Where it would be left on the screen and nowhere else. */
static void say_where_it_belongs(void)
{
    fputs(
        "A new master key, which is kept nowhere. Put it into a file that only the node's user can read, the same on\n"
        "every node (--master-key-file), and a copy where no backup of Redis is: without it no API key of the store\n"
        "works any more. 'chatelaine master-key --write FILE' makes the file.\n",
        stderr);
}

int master_key_run(const struct command_line *line)
{
    uint8_t master[KEYRING_MASTER_BYTES];
    struct buf out CLEANUP(buf_wipe) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    random_secret(master, sizeof master);
    encode_hex(&out, master, sizeof master);
    buf_append_char(&out, '\n');
    secure_wipe(master, sizeof master);
    if (!line->write && isatty(STDOUT_FILENO))
        say_where_it_belongs();
    return line->write ? write_new(line->write, buf_text(&out)) : command_print(buf_text(&out));
}
