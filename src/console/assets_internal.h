/* The embedded files. The tables are written by pages/embed.cmake, sorted by nothing: it is short. */
#pragma once
#include "base/text.h"

struct console_asset {
    struct text path;      /* "/console/<digest>/app.js" */
    struct text type;      /* Content-Type */
    struct text etag;      /* quoted; {"", 0} where the path tells the content */
    struct text etag_gzip; /* of the compressed form */
    struct text plain, gzip;
};

extern const struct console_asset CONSOLE_ASSETS[];
extern const size_t CONSOLE_ASSET_COUNT;

/* The names of the pages, as the table PAGES of app.js has them: "devices"; "" is the entrance. */
extern const struct text CONSOLE_PAGES[];
extern const size_t CONSOLE_PAGE_COUNT;
