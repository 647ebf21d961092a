/* The development mode: a node with a private Redis in one folder. */
#pragma once
#include "admin/command.h"

extern const struct option_group DEV_OPTIONS[];

int dev_command(const struct command_line *line);
/* The child of dev that becomes its redis-server: it must end when dev ends, however dev ends. */
int dev_redis_run(const struct command_line *line);
