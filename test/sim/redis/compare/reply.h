/* Replies as trees, to be compared without an order. */
#pragma once
#include "base/text.h"

enum order { ORDER_GIVEN, ORDER_ANY, ORDER_ANY_PAIRS, ORDER_CHOICE, ORDER_FRAMES, ORDER_KIND };

/* Appends what two equal replies have in common: ORDER_GIVEN: all; ORDER_ANY: all, with the elements of each array
 * sorted; ORDER_ANY_PAIRS: the same by twos; ORDER_CHOICE: only kinds and counts, where one is chosen by chance;
 * ORDER_FRAMES: all, with the replies sorted; ORDER_KIND: only the kind of each reply. False:
 * it is no whole replies. */
bool replies_print(struct buf *out, struct text replies, enum order order);
/* Calls keep for some of the texts in it. */
void replies_visit(struct text replies, void (*visit)(struct text text));
