/* Settings files (--settings): the one reader of /etc/chatelaine/chatelaine.conf, for nodes and commands. A line is a
 * comment (#) or NAME=value. Carriage returns at ends of lines, a byte-order mark and blanks at both ends of a line are
 * skipped. A value may be quoted as a whole. Lines that a shell, systemd and this reader could take differently are
 * refused: export, blanks around '=', text behind a value, expansions, parts in quotes. */
#pragma once
#include "base/arena.h"
#include "base/options.h"

struct settings_files {
    struct arena memory;
    struct option_assignments assigned; /* of all files, in their order */
    size_t room;
};

/* Reads the files, separated by commas. False with one sentence per mistake in ret_why, each on a line of its own, with
 * file and line, and without values, which may be secret; the other lines are read all the same. Call
 * settings_files_finish() in both cases. */
MUST_CHECK bool settings_files_read(struct settings_files *files, const char *paths, struct buf *ret_why);
/* A zeroed one is fine. */
void settings_files_finish(struct settings_files *files);
