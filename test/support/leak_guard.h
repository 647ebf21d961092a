/* Criterion runs each test in a process of its own, and the test passes although LeakSanitizer prints a leak there. So
 * give this as .fini to every suite: TestSuite(key_store, .fini = leak_guard); It aborts on a leak, so that the test
 * counts as crashed. It does nothing in builds without AddressSanitizer. */
#pragma once

void leak_guard(void);
