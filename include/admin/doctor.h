/* 'doctor': what Redis, the files and the settings of a node are fit for. */
#pragma once
#include "admin/command.h"

/* The settings as the caller, which knows all that a node does with them, found them. */
struct doctor_found {
    struct text mistakes; /* sentences, each on a line of its own; without those about keys, origin and certificates */
    bool has_redis;       /* the settings that lead to Redis could be read */
};

int doctor_run(const struct command_line *line, const struct doctor_found *found);
