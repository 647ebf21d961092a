#include "shift.h"
#include "base/mem.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PPM_PER_PERCENT = 10000, PERCENT = 100, TEXT_BYTES = 16 };
#define NS_PER_S INT64_C(1000000000)

static const char *value_in(char *const *environment, const char *name)
{
    const size_t len = strlen(name);

    for (; *environment; environment++)
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
            return *environment + len + 1;
    return NULL;
}

void sim_shift_init(struct sim_shift *shift, char *const *environment)
{
    const char *path = value_in(environment, "SHIFTED_CLOCK"), *rate = value_in(environment, "SHIFTED_CLOCK_RATE");

    *shift = (struct sim_shift){.path = path ? mem_copy_text(path, strlen(path)) : NULL};
    if (rate) /* since it was right */
        shift->clock = (struct sim_clock){.pace_ppm = (strtol(rate, NULL, 10) - PERCENT) * PPM_PER_PERCENT};
}

void sim_shift_finish(struct sim_shift *shift)
{
    free(shift->path);
}

const struct sim_clock *sim_shift_clock(struct sim_shift *shift)
{
    char text[TEXT_BYTES] = "";
    int fd;

    if (!shift->path)
        return NULL;
    fd = SYSTEM(open)(shift->path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && SYSTEM(read)(fd, text, sizeof text - 1) >= 0)
        shift->clock.off_ns = strtol(text, NULL, 10) * NS_PER_S;
    if (fd >= 0)
        SYSTEM(close)(fd);
    return &shift->clock;
}
