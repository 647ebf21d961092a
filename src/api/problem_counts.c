#include "problem_internal.h"

#include "base/metrics.h"

static int64_t counts[PROBLEM_COUNT];

void problem_count(enum problem_code code)
{
    counts[code]++;
}

static const char *code_text(size_t code)
{
    return problem_code_text((enum problem_code)code);
}

void problem_print_counts(struct buf *out)
{
    metrics_print_by_label(out, METRICS_REFUSALS, PROBLEM_COUNT, code_text, counts);
}
