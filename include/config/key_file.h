/* Secrets in files: who may read them, and the keyring made from them. */
#pragma once
#include "config/settings.h"
#include "core/keyring.h"
#include <sys/types.h>

/* NULL if a file of that owner and mode can keep a secret; else one sentence that says why not, with the remedy. Others
 * may never read it, except under /run/secrets/, where container engines put files that only the container sees. Its
 * group may read it if root owns it and the reader is not root: the classic 0640 root:chatelaine. */
const char *key_file_check(const char *path, mode_t mode, uid_t owner, uid_t reader);

/* The keyring of --master-key-file and --retired-master-key-file. On failure NULL, with one sentence in ret_why. */
struct keyring *key_file_load(const struct settings *settings, struct buf *ret_why);

/* Reads a whole small file ("-": standard input) into ret_content and strips one newline at its end. On failure false,
 * with one sentence in ret_why. The content may be a secret: buf_wipe() it. */
MUST_CHECK bool secret_file_read(const char *path, struct buf *ret_content, struct buf *ret_why);
/* Like secret_file_read(), for a password: key_file_check() must accept a regular file, as it must a master key's. */
MUST_CHECK bool private_file_read(const char *option, const char *path, struct buf *ret_content, struct buf *ret_why);
