/* 'doctor', which finds by serve's own code what that would refuse. */
#pragma once
#include "admin/command.h"

int doctor_command(const struct command_line *line);
