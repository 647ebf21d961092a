/* Losses that a node tells in four places (base/loss.h). */
#pragma once
#include "base/loss.h"
#include "fixture.h"

/* Until 'status' says that; then it exits with 3. */
void losses_await_status(struct fixture *fixture, const char *says);
/* Until it says that no more. */
void losses_await_end(struct fixture *fixture, const char *says);
/* Until the first node's report tells the loss; then its log, its metric (the sample is 1) and doctor tell it, too. */
void losses_expect_told(struct fixture *fixture, enum loss loss, const char *sample);
