/* Variables that are named like settings and are none: a misspelled setting is no setting. */
#pragma once
#include "base/options.h"
#include "config/settings.h"

/* Those of the environment and of settings files that no option of any command has. Left out are the variables that
 * Kubernetes makes of Services named chatelaine…, and those of the tests and scripts in this repository. */
void unknown_settings_find(const struct option_assignments *given, struct unknown_settings *ret_unknown);
