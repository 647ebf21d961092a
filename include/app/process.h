/* Hardening of a process that holds secrets. */
#pragma once

/* No core dumps, no debugger of the same user, no new privileges, SIGPIPE ignored, as many open files as are allowed.
 */
void process_harden(void);
