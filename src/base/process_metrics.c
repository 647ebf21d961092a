#include "base/process_metrics.h"

#include "base/clock.h"
#include "base/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

void process_metrics_begin(void)
{
    metric_set(METRIC_PROCESS_START, clock_wall_ms() / 1000);
}

/* The second number is of resident pages. */
static void measure_memory(void)
{
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    char content[128];
    ssize_t got = fd < 0 ? 0 : read(fd, content, sizeof content);
    struct text rest = {content, got > 0 ? (size_t)got : 0}, all, pages;
    uint64_t count;

    if (fd >= 0)
        close(fd);
    if (text_next(&rest, ' ', &all) && text_next(&rest, ' ', &pages) && text_to_u64(pages, INT64_MAX, &count))
        metric_set(METRIC_PROCESS_MEMORY, (int64_t)count * sysconf(_SC_PAGESIZE));
}

/* Without "." and "..", and without the descriptor of the folder itself. */
static void measure_files(void)
{
    enum { BESIDE = 3 };
    DIR *folder = opendir("/proc/self/fd");
    struct rlimit files;
    int64_t count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder) {
        closedir(folder);
        metric_set(METRIC_PROCESS_FILES, count - BESIDE);
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        metric_set(METRIC_PROCESS_FILES_MAX, (int64_t)files.rlim_cur);
}

void process_metrics_measure(void)
{
    measure_memory();
    measure_files();
}
