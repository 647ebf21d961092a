/* Hardening of a process that holds secrets. */
#pragma once

/* Disables core dumps, debugging by the same user and new privileges; ignores SIGPIPE; raises the open-files limit to
 * its maximum. */
void process_harden(void);
