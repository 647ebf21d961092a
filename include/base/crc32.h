/* CRC-32 (ISO 3309, as in zlib). */
#pragma once
#include "base/text.h"
#include <stdint.h>

uint32_t crc32_of(struct text t);
