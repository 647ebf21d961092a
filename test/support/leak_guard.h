/* Criterion runs each test in a process of its own and lets it exit normally whatever LeakSanitizer finds there:
 * without this a leak is printed and the test passes. Give it as .fini of every suite: TestSuite(key_store, .fini =
 * leak_guard); It aborts on a leak, so that the test counts as crashed. Nothing happens in builds without
 * AddressSanitizer. */
#pragma once

void leak_guard(void);
