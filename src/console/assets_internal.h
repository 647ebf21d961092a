/* The embedded files. pages/embed.cmake generates the tables; they are short and unsorted. */
#pragma once
#include "base/text.h"

struct console_asset {
    struct text path;      /* "/console/<digest>/app.js" */
    struct text type;      /* Content-Type */
    struct text etag;      /* quoted; {"", 0} if the path identifies the content */
    struct text etag_gzip; /* of the compressed form */
    struct text plain, gzip;
};

extern const struct console_asset CONSOLE_ASSETS[];
extern const size_t CONSOLE_ASSET_COUNT;

/* Page names from the table PAGES in app.js, such as "devices"; "" is the start page. "keys/key_" stands for all names
 * that begin so and have no further slash. */
extern const struct text CONSOLE_PAGES[];
extern const size_t CONSOLE_PAGE_COUNT;
