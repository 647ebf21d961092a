/* 'config show': the settings that a node would have, and where each comes from. */
#pragma once
#include "admin/command.h"

extern const struct option_group CONFIG_SHOW_OPTIONS[]; /* its own options come first, then those of 'serve' */
int config_show_run(const struct command_line *line);
