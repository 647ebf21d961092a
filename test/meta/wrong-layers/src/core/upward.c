/* For the tests of scripts/check-layers, check-banned and check-cleanup: everything here is wrong on purpose. */
#include "engine/store.h"
#include <hiredis/hiredis.h>
#include <string.h>

int upward(char *to, const char *token)
{
    strcpy(to, "x");
    return memcmp(to, token, 1);
}

int early(int is_known)
{
    struct buf out CLEANUP(buf_finish);

    if (!is_known)
        return 1;
    buf_init(&out, 1);
    return 0;
}
