#include "accept_internal.h"

#include <string.h>

enum { Q_ONE = 1000, Q_DECIMALS = 3, PRECISIONS = 4 };

/* A weight in thousandths (RFC 9110 section 12.4.2); 0 if malformed. */
static int read_weight(struct text t)
{
    int weight = 0, scale = Q_ONE;

    for (size_t i = 0; i < t.len; i++) {
        if (i == 1 ? t.ptr[i] != '.' : t.ptr[i] < '0' || t.ptr[i] > '9' || i > 1 + Q_DECIMALS)
            return 0;
        if (i == 1)
            continue;
        weight += (t.ptr[i] - '0') * scale;
        scale /= 10;
    }
    return weight <= Q_ONE ? weight : 0;
}

/* How exactly the range names the type: 3 by name, 2 by "text/", 1 as anything, 0 not at all. */
static int precision_of(struct text range, struct text type)
{
    if (text_equal_nocase(range, type))
        return 3;
    if (text_equal(range, TEXT("*/*")))
        return 1;
    return range.len > 2 && range.ptr[range.len - 1] == '*' && range.ptr[range.len - 2] == '/' &&
                   type.len > range.len - 1 &&
                   text_equal_nocase((struct text){range.ptr, range.len - 1}, (struct text){type.ptr, range.len - 1})
               ? 2
               : 0;
}

/* Updates the type's weight if this part of Accept, "text/csv;q=0.5", names it more exactly than those before. */
static void weigh(struct text part, struct text type, int *precision, int *weight)
{
    struct text range = {NULL, 0}, parameter;
    int given = Q_ONE;

    (void)text_next(&part, ';', &range);
    while (text_next(&part, ';', &parameter)) {
        parameter = text_trim(parameter);
        if (parameter.len > 2 && (parameter.ptr[0] | 0x20) == 'q' && parameter.ptr[1] == '=')
            given = read_weight(text_skip(parameter, 2));
    }
    int found = precision_of(text_trim(range), type);
    if (found <= *precision)
        return;
    *precision = found;
    *weight = given;
}

/* Heavier, or named more exactly; 0: not accepted. */
static int rank_of(const struct http_request *request, struct text type)
{
    int precision = 0, weight = 0;
    struct text line, part;

    for (size_t n = 0; (line = http_request_header_at(request, TEXT("Accept"), n)).ptr; n++)
        while (text_next(&line, ',', &part))
            weigh(part, type, &precision, &weight);
    return weight > 0 ? weight * PRECISIONS + precision : 0;
}

bool accept_choose(const struct http_request *request, const struct accept_row *rows, size_t count, int *ret_form)
{
    int best = 0;

    if (!http_request_header_at(request, TEXT("Accept"), 0).ptr) {
        *ret_form = rows[0].form;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        int rank = rank_of(request, rows[i].type);

        if (rank > best) {
            *ret_form = rows[i].form;
            best = rank;
        }
    }
    return best > 0;
}
