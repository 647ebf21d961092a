/* Secrets in files: who may read them, and the keyring made from them. */
#pragma once
#include "config/settings.h"
#include "core/keyring.h"
#include <sys/types.h>

/* Why a file of that owner and mode cannot keep a secret, with the remedy, in one sentence; NULL if it can. Others may
 * never read it, except under /run/secrets/, where container engines put files that only the container sees. Its group
 * may if root owns it and the reader is not root: the classic 0640 root:chatelaine. */
const char *key_file_judge(const char *path, mode_t mode, uid_t owner, uid_t reader);

/* The keyring of --master-key-file and --retired-master-key-file. NULL with one sentence in ret_why. */
struct keyring *key_file_load(const struct settings *settings, struct buf *ret_why);

/* Reads a whole small file ("-": standard input) into ret_content and strips one newline at its end. False with one
 * sentence in ret_why. The content may be a secret: buf_wipe() it. */
MUST_CHECK bool secret_file_read(const char *path, struct buf *ret_content, struct buf *ret_why);
/* The same for a password: a regular file that others may read is refused like a master key, by key_file_judge(). */
MUST_CHECK bool private_file_read(const char *option, const char *path, struct buf *ret_content, struct buf *ret_why);
