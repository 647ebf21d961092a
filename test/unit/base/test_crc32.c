#include "base/crc32.h"

#include <criterion/criterion.h>

/* Values of other programs, for texts of every remainder by four. */
Test(crc32, has_known_values)
{
    static const struct {
        struct text t;
        uint32_t crc;
    } CASES[] = {
        {{NULL, 0}, 0},
        {{"a", 1}, 0xe8b7be43},
        {{"abc", 3}, 0x352441c2},
        {{"\0\0\0\0", 4}, 0x2144df1c},
        {{"\xff\xff\xff\xff", 4}, 0xffffffff},
        {{"123456789", 9}, 0xcbf43926},
        {{"message digest", 14}, 0x20159d7f},
        {{"The quick brown fox jumps over the lazy dog", 43}, 0x414fa339},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(crc32_of(CASES[i].t), CASES[i].crc, "%zu: %08x", i, crc32_of(CASES[i].t));
}
