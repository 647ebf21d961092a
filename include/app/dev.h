/* Development mode: a node with a private Redis, in one folder. */
#pragma once
#include "admin/command.h"

extern const struct option_group DEV_OPTIONS[];

int dev_command(const struct command_line *line);
/* Runs in a child process of dev and becomes redis-server. It ends whenever and however dev ends. */
int dev_redis_run(const struct command_line *line);
