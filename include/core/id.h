/* Typed identifiers: a prefix and a lower-case ULID (48 bits of milliseconds, 80 random bits, Crockford base32), so
 * that they sort by creation as text. "key_01jd…" */
#pragma once
#include "base/text.h"
#include <stdint.h>

enum id_kind { ID_NONE, ID_KEY, ID_DEVICE, ID_ACCOUNT, ID_USER, ID_REQUEST, ID_EVENT, ID_INVITATION };

enum { ID_TEXT_BYTES = 32, ULID_TEXT_CHARS = 26, ULID_BYTES = 16 };

struct id {
    char text[ID_TEXT_BYTES]; /* NUL-terminated; empty for ID_NONE */
};

/* A new id. Its first part is wall_ms, or the time of the previous id if the clock stepped back by less than a second,
 * so the ids of one process sort in the order of their creation. Public-quality randomness: an id is not secret. */
void id_mint_to(enum id_kind kind, int64_t wall_ms, struct id *ret_id);
static inline struct id id_mint(enum id_kind kind, int64_t wall_ms)
{
    struct id id;
    id_mint_to(kind, wall_ms, &id);
    return id;
}
/* From a ULID's 16 bytes, most significant first. */
void id_from_bytes(enum id_kind kind, const uint8_t ulid[ULID_BYTES], struct id *ret_id);
/* From a ULID's characters, as id_chars() returns them. */
void id_from_chars(enum id_kind kind, const char chars[ULID_TEXT_CHARS], struct id *ret_id);
/* The whole text must be one id of that kind, in its canonical form. */
MUST_CHECK bool id_parse(enum id_kind kind, struct text t, struct id *ret_id);
/* The kind that the prefix names; ID_NONE if the text is not an id. */
enum id_kind id_kind_of(struct text t);
/* The ULID's bytes; the id must be a valid one. */
void id_to_bytes(const struct id *id, uint8_t ret_ulid[ULID_BYTES]);
int64_t id_time_ms(const struct id *id);
/* Relies on prefixes of four or five characters. Inline, because each check prints three ids and reads one. */
static inline struct text id_text(const struct id *id)
{
    size_t whole = ID_TEXT_BYTES - 2 + (id->text[ID_TEXT_BYTES - 2] != '\0');

    return (struct text){id->text, id->text[0] ? whole : 0};
}
/* The ULID_TEXT_CHARS characters after the prefix of a non-empty id. Points into the id. */
static inline const char *id_chars(const struct id *id)
{
    return id->text + id_text(id).len - ULID_TEXT_CHARS;
}
bool id_equal(const struct id *a, const struct id *b);
/* Sorts ids by their text and leaves out repeated ones. Returns how many are left. */
size_t id_sort_unique(struct id *ids, size_t count);
