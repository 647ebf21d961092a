#include "key_shares_internal.h"
#include "base/mem.h"
#include "core/lease_rules.h"

#include <stdlib.h>
#include <string.h>

/* A table has at most 2^29 slots. */
enum { SLOT_BITS = 30, SLOT_MASK = (1 << SLOT_BITS) - 1 };

struct share {
    uint32_t slot : SLOT_BITS; /* + 1; 0: none. Perhaps another key has got it */
    uint32_t uses : 2;         /* a bit for each asker */
    uint8_t note[KEY_SHARE_NOTE_BYTES];
};

_Static_assert(sizeof(struct share) == KEY_SHARE_BYTES, "as the header says");
_Static_assert((SHARED_TABLE_NONE + UINT32_C(1)) == 0, "no slot, and one more, is 0");

struct key_shares {
    struct shared_table *table;
    struct share *shares;
};

struct key_shares *key_shares_create(struct shared_table *table, size_t count)
{
    struct key_shares *shares = mem_alloc(sizeof *shares);
    shares->table = table;
    shares->shares = mem_alloc_large(count * sizeof *shares->shares);
    return shares;
}

void key_shares_destroy(struct key_shares *shares)
{
    if (!shares)
        return;
    free(shares->shares);
    free(shares);
}

void key_shares_put(struct key_shares *shares, uint32_t number, struct text secret, unsigned account_bucket,
                    const struct key_packed *key, const uint8_t note[KEY_SHARE_NOTE_BYTES])
{
    struct share *share = &shares->shares[number];
    if (share->slot && shared_table_holds(shares->table, share->slot - 1, number))
        return;
    *share = (struct share){
        .slot = (shared_table_put(shares->table, number, secret, account_bucket, key) + 1) & SLOT_MASK,
    };
    memcpy(share->note, note, sizeof share->note);
}

void key_shares_note(const struct key_shares *shares, uint32_t number, uint8_t ret_note[KEY_SHARE_NOTE_BYTES])
{
    memcpy(ret_note, shares->shares[number].note, KEY_SHARE_NOTE_BYTES);
}

void key_shares_remove(struct key_shares *shares, uint32_t number)
{
    if (!shares->shares[number].slot || !RULE(RULE_TABLE_CLEAR))
        return;
    shared_table_remove(shares->table, shares->shares[number].slot - 1, number);
    key_shares_forget(shares, number);
}

void key_shares_clear_bucket(struct key_shares *shares, unsigned bucket)
{
    if (RULE(RULE_TABLE_SESSION))
        shared_table_clear_bucket(shares->table, bucket);
}

void key_shares_forget(struct key_shares *shares, uint32_t number)
{
    shares->shares[number] = (struct share){0};
}

void key_shares_count_use(struct key_shares *shares, uint32_t number)
{
    shares->shares[number].uses = 1 << KEY_SHARES_EVICTION | 1 << KEY_SHARES_REFRESH;
}

bool key_shares_take_use(struct key_shares *shares, uint32_t number, enum key_shares_asker asker)
{
    struct share *share = &shares->shares[number];
    const uint32_t bit = UINT32_C(1) << asker;
    if (!(share->uses & bit))
        return false;
    share->uses &= ~bit & 3;
    return true;
}
