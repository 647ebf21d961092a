/* Hardening of a process that holds secrets. */
#pragma once

/* Disables core dumps, debugging by the same user and new privileges; ignores SIGPIPE; raises the open-files limit to
 * its maximum. */
void process_harden(void);
/* If standard input, output or error is closed, the next file or socket that is opened would take its place, and get
 * what is printed. So it is opened such that reading or writing it fails. */
void process_keep_standard_files(void);
