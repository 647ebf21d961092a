/* The settings file of a node, /etc/chatelaine/chatelaine.conf, and its man page: printed from the tables of
 * settings when the program is built, so that both have every setting. */
#pragma once
#include "admin/command.h"

int conf_run(const struct command_line *line);
int conf_man_run(const struct command_line *line);
