#include "base/crc32.h"

/* Four bytes at a time. A byte's effect is linear: each entry is the sum (XOR) of the values of its bits, listed here
 * for the eight bits of a byte that 0, 1, 2 or 3 others follow. zlib handles such short texts byte by byte and takes
 * twice as long. */
#define BIT_OF(x, bit, value) ((x) >> (bit)&1 ? UINT32_C(value) : 0)
#define CRC_0(x)                                                                                                 \
    (BIT_OF(x, 0, 0x77073096) ^ BIT_OF(x, 1, 0xee0e612c) ^ BIT_OF(x, 2, 0x076dc419) ^ BIT_OF(x, 3, 0x0edb8832) ^ \
     BIT_OF(x, 4, 0x1db71064) ^ BIT_OF(x, 5, 0x3b6e20c8) ^ BIT_OF(x, 6, 0x76dc4190) ^ BIT_OF(x, 7, 0xedb88320))
#define CRC_1(x)                                                                                                 \
    (BIT_OF(x, 0, 0x191b3141) ^ BIT_OF(x, 1, 0x32366282) ^ BIT_OF(x, 2, 0x646cc504) ^ BIT_OF(x, 3, 0xc8d98a08) ^ \
     BIT_OF(x, 4, 0x4ac21251) ^ BIT_OF(x, 5, 0x958424a2) ^ BIT_OF(x, 6, 0xf0794f05) ^ BIT_OF(x, 7, 0x3b83984b))
#define CRC_2(x)                                                                                                 \
    (BIT_OF(x, 0, 0x01c26a37) ^ BIT_OF(x, 1, 0x0384d46e) ^ BIT_OF(x, 2, 0x0709a8dc) ^ BIT_OF(x, 3, 0x0e1351b8) ^ \
     BIT_OF(x, 4, 0x1c26a370) ^ BIT_OF(x, 5, 0x384d46e0) ^ BIT_OF(x, 6, 0x709a8dc0) ^ BIT_OF(x, 7, 0xe1351b80))
#define CRC_3(x)                                                                                                 \
    (BIT_OF(x, 0, 0xb8bc6765) ^ BIT_OF(x, 1, 0xaa09c88b) ^ BIT_OF(x, 2, 0x8f629757) ^ BIT_OF(x, 3, 0xc5b428ef) ^ \
     BIT_OF(x, 4, 0x5019579f) ^ BIT_OF(x, 5, 0xa032af3e) ^ BIT_OF(x, 6, 0x9b14583d) ^ BIT_OF(x, 7, 0xed59b63b))
#define FOUR(crc, x) crc(x), crc((x) + 1), crc((x) + 2), crc((x) + 3)
#define SIXTEEN(crc, x) FOUR(crc, x), FOUR(crc, (x) + 4), FOUR(crc, (x) + 8), FOUR(crc, (x) + 12)
#define SIXTY_FOUR(crc, x) SIXTEEN(crc, x), SIXTEEN(crc, (x) + 16), SIXTEEN(crc, (x) + 32), SIXTEEN(crc, (x) + 48)
#define ALL(crc) SIXTY_FOUR(crc, 0), SIXTY_FOUR(crc, 64), SIXTY_FOUR(crc, 128), SIXTY_FOUR(crc, 192)
static const uint32_t CRC[4][256] = {{ALL(CRC_0)}, {ALL(CRC_1)}, {ALL(CRC_2)}, {ALL(CRC_3)}};

uint32_t crc32_of(struct text t)
{
    const unsigned char *at = (const unsigned char *)t.ptr;
    uint32_t crc = UINT32_MAX;
    size_t i = 0;
    for (; t.len - i >= 4; i += 4)
        crc = CRC[3][(crc ^ at[i]) & 255] ^ CRC[2][(crc >> 8 ^ at[i + 1]) & 255] ^
              CRC[1][(crc >> 16 ^ at[i + 2]) & 255] ^ CRC[0][crc >> 24 ^ at[i + 3]];
    for (; i < t.len; i++)
        crc = crc >> 8 ^ CRC[0][(crc ^ at[i]) & 255];
    return ~crc;
}
