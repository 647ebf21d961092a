#include "app/process.h"

#include "base/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

void process_harden(void)
{
    const struct rlimit nothing = {0};
    struct rlimit files;

    CHECK(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(setrlimit(RLIMIT_CORE, &nothing) == 0);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR); /* a file at its limit is an error, not the end of the node */
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
}

void process_keep_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            CHECK(open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) == fd);
}
