/* The guide that development mode prints: how to sign in, and commands to try. */
#pragma once
#include "dev_home.h"

struct dev_guide {
    const struct dev_home *home;
    const struct dev_credentials *credentials;
    const char *internal_address, *origin;
    bool is_wanted; /* print the commands and the QR code too */
};

/* Shell functions, from src/app/dev_guide.sh. They use variables that the guide sets. README.md names some of them. */
extern const char DEV_GUIDE_COMMANDS[];

/* Writes the guide into the home and prints it if wanted, then prints how to sign in. Returns EXIT_DONE, or EXIT_FAILED
 * after printing why. */
MUST_CHECK int dev_guide_print(const struct dev_guide *guide);
/* Prints the guide of the node that runs in this folder. */
MUST_CHECK int dev_guide_show(const char *dir);
