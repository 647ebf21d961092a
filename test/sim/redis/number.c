#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXACT_BELOW 1e15

bool number_parse_i64(struct text text, int64_t *ret_value)
{
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    uint64_t value;

    if (!text_to_u64(text_skip(text, is_negative), (uint64_t)INT64_MAX + is_negative, &value) ||
        (is_negative && value == 0))
        return false;
    *ret_value = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool number_parse_double(struct text text, double *ret_value)
{
    char storage[NUMBER_BYTES], *end;
    double value;

    if (text.len == 0 || text.len >= sizeof storage || isspace((unsigned char)text.ptr[0]))
        return false;
    memcpy(storage, text.ptr, text.len);
    storage[text.len] = '\0';
    errno = 0;
    value = strtod(storage, &end);
    if ((size_t)(end - storage) != text.len || isnan(value) ||
        (errno == ERANGE && (isinf(value) || fpclassify(value) == FP_ZERO)))
        return false;
    *ret_value = value;
    return true;
}

struct text number_print_double(char storage[NUMBER_BYTES], double value)
{
    if (isinf(value))
        return value > 0 ? TEXT("inf") : TEXT("-inf");
    if (value != 0 && fabs(value) < EXACT_BELOW && trunc(value) == value)
        return number_print_i64(storage, (int64_t)value);
    return (struct text){storage, (size_t)snprintf(storage, NUMBER_BYTES, "%.17g", value)};
}

struct text number_print_i64(char storage[NUMBER_BYTES], int64_t value)
{
    char *const end = storage + NUMBER_BYTES, *at = end;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        *--at = '-';
    return (struct text){at, (size_t)(end - at)};
}

bool arg_i64(struct call *call, size_t index, int64_t *ret_value)
{
    if (number_parse_i64(call->argv[index], ret_value))
        return true;
    say_not_integer(call);
    return false;
}

bool arg_is(const struct call *call, size_t index, const char *word)
{
    return index < call->argc && text_equal_nocase(call->argv[index], text_of(word));
}
