/* For the tests of scripts/check-layers and scripts/check-banned: everything here is wrong on purpose. */
#include "store/store.h"
#include <hiredis/hiredis.h>
#include <string.h>

int upward(char *to, const char *token)
{
    strcpy(to, "x");
    return memcmp(to, token, 1);
}
