#include "attempt_internal.h"
#include "base/check.h"

#include <string.h>

void attempt_count(struct attempt_counters *counters, struct keyring *keyring, struct text rule, struct text value,
                   struct text of)
{
    char inner[THROTTLE_TAG_CHARS + 1], tag[THROTTLE_TAG_CHARS + 1], both[2 * THROTTLE_TAG_CHARS];
    struct buf out;

    throttle_tag(keyring, rule, value, inner);
    memcpy(both, inner, THROTTLE_TAG_CHARS);
    throttle_tag(keyring, TEXT("of"), of, inner);
    memcpy(both + THROTTLE_TAG_CHARS, inner, THROTTLE_TAG_CHARS);
    throttle_tag(keyring, rule, (struct text){both, sizeof both}, tag);

    buf_init_fixed(&out, counters->text + counters->len, sizeof counters->text - counters->len);
    buf_printf(&out, "%.*s:%s,", TEXT_ARG(rule), tag);
    CHECK(!out.failed);
    counters->len += out.len;
    memcpy(&counters->source, tag, sizeof counters->source);
}

struct text attempt_counters_text(const struct attempt_counters *counters)
{
    return (struct text){counters->text, counters->len};
}
