/* The file that says that a node serves, and where. */
#pragma once
#include "base/text.h"

/* Written beside and renamed, so that a reader sees all of it or nothing. False with one sentence in ret_why. */
MUST_CHECK bool ready_file_write(const char *path, const char *listen, const char *internal_listen,
                                 struct buf *ret_why);
