#include "config/agreement.h"

#include "base/check.h"
#include "base/crc32.h"

#include <string.h>

enum { VALUE_MAX_BYTES = 64 * 1024 };

static void put_row(struct json_writer *w, const struct option_row *row, const struct settings *settings)
{
    struct buf value CLEANUP(buf_finish) = BUF_UP_TO(VALUE_MAX_BYTES);

    CHECK(strlen(row->name) < AGREEMENT_NAME_BYTES);
    options_print_value(row, settings, &value);
    json_put_number(w, row->name, crc32_of(buf_text(&value)));
}

void agreement_put(struct json_writer *w, const struct settings *settings)
{
    const struct option_table *const TABLES[] = {&SETTINGS_STORE, &SETTINGS_ORIGIN, &SETTINGS_NODE};

    for (size_t t = 0; t < sizeof TABLES / sizeof *TABLES; t++)
        for (size_t i = 0; i < TABLES[t]->count; i++)
            if (TABLES[t]->rows[i].is_agreed)
                put_row(w, &TABLES[t]->rows[i], settings);
}
