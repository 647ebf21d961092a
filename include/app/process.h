/* What a process that holds secrets asks of the system. */
#pragma once

/* No core dumps and no debugger of the same user, no new privileges, SIGPIPE ignored, as many files as are allowed. */
void process_harden(void);
