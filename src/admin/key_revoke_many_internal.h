/* 'key revoke' with selectors, such as --account. */
#pragma once
#include "admin/command.h"

struct revocation_log;

/* log: NULL for none. */
int key_revoke_many_run(const struct command_line *line, struct revocation_log *log);
