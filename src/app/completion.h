/* 'completion': scripts that complete commands, options and values in shells, made from the command table. */
#pragma once
#include "admin/command.h"

int completion_run(const struct command_line *line);
