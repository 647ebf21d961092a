/* CRC-32 (ISO 3309, as in zlib): finds damage and typing errors. Not a defence against anybody. */
#pragma once
#include "base/text.h"
#include <stdint.h>

uint32_t crc32_of(struct text t);
