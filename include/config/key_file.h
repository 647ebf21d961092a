/* Secrets in files: who may read them, and the keyring made from them. */
#pragma once
#include "config/settings.h"
#include "core/keyring.h"
#include <sys/types.h>

/* NULL if a file of that owner and mode can keep a secret; else one sentence that says why not, with the remedy. Others
 * may never read it, except under /run/secrets/, where container engines put files that only the container sees. Its
 * group may read it if root owns it and the reader is not root: the classic 0640 root:chatelaine. */
const char *key_file_validate(const char *path, mode_t mode, uid_t owner, uid_t reader);

/* The keyring of --master-key-file and --retired-master-key-file. On failure NULL, with one sentence in ret_why. */
struct keyring *key_file_load(const struct settings *settings, struct buf *ret_why);

/* Reads a whole small file ("-": standard input) into ret_content and strips one end of line at its end. On failure
 * false, with one sentence in ret_why. The content may be a secret: buf_wipe() it. */
MUST_CHECK bool whole_file_read(const char *path, struct buf *ret_content, struct buf *ret_why);
/* The same, and refuses what begins with a byte-order mark or is UTF-16. */
MUST_CHECK bool secret_file_read(const char *path, struct buf *ret_content, struct buf *ret_why);
/* False, with one sentence in ret_why, if a content begins with a byte-order mark or is UTF-16. */
MUST_CHECK bool secret_file_is_plain(struct text content, const char *path, struct buf *ret_why);
/* Like whole_file_read(), for passwords and private keys: key_file_validate() must accept a regular file, as it must a
 * master key's. */
MUST_CHECK bool private_file_read(const char *option, const char *path, struct buf *ret_content, struct buf *ret_why);
/* Of a content that was refused: whether it stands in quotes or behind NAME=. ret_why then says so instead. */
bool secret_file_is_dressed(struct text content, const char *path, struct buf *ret_why);
