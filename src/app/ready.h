/* The question a health check asks, without another program in the image. */
#pragma once
#include "admin/command.h"

extern const struct option_group READY_OPTIONS[];

/* Asks the internal listener of this machine's node for /readyz. EXIT_DONE when it is ready; the answer, or why there
 * was none, is one line on standard error otherwise. Takes 2 s at most for each of its few steps. */
int ready_run(const struct command_line *line);
