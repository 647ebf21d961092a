#include "core/account.h"
#include "base/secure.h"

#include <utf8proc.h>

enum {
    /* No code point has a longer canonical decomposition, and each takes at least one byte. */
    DECOMPOSITION_MAX = 4,
    CODE_POINTS_MAX = PASSWORD_MAX_BYTES * DECOMPOSITION_MAX,
};

static void map_spaces(utf8proc_int32_t *code_points, utf8proc_ssize_t count)
{
    for (utf8proc_ssize_t i = 0; i < count; i++)
        if (utf8proc_category(code_points[i]) == UTF8PROC_CATEGORY_ZS)
            code_points[i] = ' ';
}

void account_prepare_password(struct text password, struct buf *ret_prepared)
{
    utf8proc_int32_t code_points[CODE_POINTS_MAX + 1]; /* later overwritten by the text and its NUL */
    utf8proc_ssize_t count = -1;

    buf_clear(ret_prepared);
    if (password.len <= PASSWORD_MAX_BYTES)
        count = utf8proc_decompose((const utf8proc_uint8_t *)password.ptr, (utf8proc_ssize_t)password.len, code_points,
                                   CODE_POINTS_MAX, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (count >= 0 && count <= CODE_POINTS_MAX) {
        map_spaces(code_points, count);
        count = utf8proc_reencode(code_points, count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    }
    if (count >= 0)
        buf_append_text(ret_prepared, (struct text){(const char *)code_points, (size_t)count});
    else
        buf_append_text(ret_prepared, password);
    secure_wipe(code_points, sizeof code_points);
}
