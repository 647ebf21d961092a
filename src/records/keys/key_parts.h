/* What each store has for its keys. */
#pragma once
#include "engine/part.h"

/* The check path's read: a command prepared once, and reusable calls. */
extern const struct store_part KEY_FINDER;
/* Revokes keys whose secret reached nobody, however long Redis takes to answer. Closing gives up and logs those that
 * were not sent yet. */
extern const struct store_part KEY_DISCARDS;
/* Revocations in groups (key_revoke.h). */
extern const struct store_part KEY_REVOCATIONS;
/* Notes about how revocations took effect (effect_notes.h). Closing drops those that wait. */
extern const struct store_part EFFECT_NOTES;
/* Writes down that scheduled revocations have taken effect (key_end_due.lua). */
extern const struct store_part KEY_ENDS;
/* Notes that keys which replace others were accepted (key_confirm.lua). */
extern const struct store_part KEY_CONFIRMS;
/* Puts tombstones in place of keys that were revoked long ago (key_burials.lua). */
extern const struct store_part KEY_BURIALS;
