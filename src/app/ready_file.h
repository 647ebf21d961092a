/* The file that says that a node serves, and at which addresses. */
#pragma once
#include "base/text.h"

/* Replaces the file atomically: readers see all of it or nothing. On failure, ret_why holds one sentence. */
MUST_CHECK bool ready_file_write(const char *path, const char *listen, const char *internal_listen,
                                 struct buf *ret_why);
