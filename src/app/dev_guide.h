/* What the development mode tells: how to sign in, and commands to try. */
#pragma once
#include "dev_home.h"

struct dev_guide {
    const struct dev_home *home;
    const struct dev_credentials *credentials;
    const char *internal_address, *origin;
    bool is_wanted; /* print the commands and the QR code too */
};

/* Functions of a shell, which expect the variables that the guide sets: src/app/dev_guide.sh. The README names some. */
extern const char DEV_GUIDE_COMMANDS[];

/* Writes the guide into the home, prints it if it is wanted, and how to sign in last. EXIT_DONE, or EXIT_FAILED after
 * telling why. */
MUST_CHECK int dev_guide_print(const struct dev_guide *guide);
/* Prints the guide of the node that runs in that folder. */
MUST_CHECK int dev_guide_show(const char *dir);
