/* What the development mode tells: how to sign in, and what to try. */
#pragma once
#include "dev_home.h"

struct dev_guide {
    const struct dev_home *home;
    const struct dev_credentials *credentials;
    const char *internal_address, *origin;
    bool show_qr;
};

/* Prints to standard output. EXIT_DONE, or EXIT_FAILED after telling why. */
MUST_CHECK int dev_guide_print(const struct dev_guide *guide);
