/* cpu COMMAND…: runs the command of a test and prints the CPU seconds that it took, with all processes that it started,
 * also those that it left behind and that have ended. Ends as the command did. scripts/check-cpu reads the line. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static double seconds(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* Of all that has been waited for, by us or by one who was waited for. */
static void print_usage(void)
{
    struct rusage usage;

    getrusage(RUSAGE_CHILDREN, &usage);
    printf("CPU: %.2f s\n", seconds(&usage.ru_utime) + seconds(&usage.ru_stime));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int status = 0;
    pid_t child;
    pid_t ended;

    if (argc < 2) {
        fprintf(stderr, "cpu COMMAND...\n");
        return EXIT_FAILURE;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    child = fork();
    if (child == 0) {
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        raise(SIGKILL); /* no status: one that must fail would take any for the failure that it wants */
    }
    signal(SIGINT, SIG_IGN); /* it is for the command, which gets it too */
    do {
        int one;

        ended = wait(&one);
        if (ended == child)
            status = one;
    } while (ended != child && (ended > 0 || errno == EINTR));
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    print_usage();
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return ended == child ? WEXITSTATUS(status) : EXIT_FAILURE;
}
