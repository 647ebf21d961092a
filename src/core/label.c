#include "label_internal.h"

bool label_has_control(struct text t)
{
    for (size_t i = 0; i < t.len; i++) {
        const unsigned char c = (unsigned char)t.ptr[i];
        if (c < 0x20 || c == 0x7f)
            return true;
        /* U+0080 to U+009F are C2 80 to C2 9F; a lead byte of valid UTF-8 is never the last one. */
        if (c == 0xc2 && (unsigned char)t.ptr[i + 1] < 0xa0)
            return true;
    }
    return false;
}

bool label_valid(struct text t, size_t max_chars)
{
    size_t chars;
    return text_count_utf8(t, &chars) && chars >= 1 && chars <= max_chars && !label_has_control(t);
}
