/* The parts of a store besides connections, scripts and leases. It does not know them itself: whoever opens it passes
 * them on (store_settings.parts). */
#pragma once

struct store_part;

/* All of them, in the order in which they are closed; then NULL. */
extern const struct store_part *const STORE_PARTS[];
