/* The store goes back to an earlier state of it, under nodes that know more: an older file, a replica that lags. How
 * long it takes until all nodes serve again, and whether an operator must help. Of one thread at a time. */
#pragma once
#include "cluster.h"
#include "history.h"

struct setbacks;

struct setbacks *setbacks_create(struct cluster *cluster, struct history *history);
void setbacks_destroy(struct setbacks *setbacks);

/* The older store serves: from now on an operator accepts the loss of what nobody can repeat, without which a node that
 * starts does not get ready. living: the nodes that live from before the loss on, as bits. The caller keeps others from
 * ending nodes until setbacks_await() has returned. */
void setbacks_begin(struct setbacks *setbacks, unsigned living);
/* Returns when all nodes serve again. */
void setbacks_await(struct setbacks *setbacks);
/* After the nodes' end. */
void setbacks_print(struct setbacks *setbacks);
