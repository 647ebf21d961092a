#include "table_steps.h"
#include <stdlib.h>

enum reader_rule table_steps_broken(void)
{
    static const char *const NAMES[READER_RULE_COUNT] = {
#define READER_RULE_NAME(id, name, without) [id] = name,
        TABLE_READER_RULES(READER_RULE_NAME)
#undef READER_RULE_NAME
    };
    const char *broken = getenv("CHATELAINE_BREAK");
    enum reader_rule rule = 0;

    while (rule < READER_RULE_COUNT && (!broken || strcmp(broken, NAMES[rule]) != 0))
        rule++;
    return rule;
}

void table_steps_find(const struct table_steps *steps, struct table_step *step, const char *secret)
{
    chatelaine_hash(steps->table->hash_key, secret, strlen(secret), step->hash);
    step->goes_on = chatelaine_find(steps->table, step->hash, &step->slot, step->words);
}

/* chatelaine_is_valid() but for what this reader leaves out. */
static bool is_nearly_valid(const struct table_steps *steps, const struct table_step *step)
{
    const struct chatelaine_table *table = steps->table;
    const struct chatelaine_entry *entry =
        &table->sets[step->slot / CHATELAINE_WAYS].entries[step->slot % CHATELAINE_WAYS];
    const uint32_t bucket = (uint32_t)(step->words[3] >> 48) & (CHATELAINE_BUCKETS - 1);
    const uint64_t until_ns = atomic_load(&table->header->lease_until_ns[bucket & table->partition_mask]);
    const uint64_t now_ns = steps->broken == READER_CLOCK ? steps->clock_before_ns : chatelaine_now_ns();

    return (now_ns < until_ns || steps->broken == READER_LEASE) &&
           (atomic_load(&table->header->epoch[bucket]) == (uint32_t)step->words[3] || steps->broken == READER_EPOCH) &&
           (atomic_load(&entry->words[0]) == step->words[0] || steps->broken == READER_ORDER);
}

void table_steps_validate(const struct table_steps *steps, struct table_step *step)
{
    step->goes_on = step->goes_on &&
                    (steps->broken == READER_RULE_COUNT ? chatelaine_is_valid(steps->table, step->slot, step->words)
                                                        : is_nearly_valid(steps, step)) &&
                    (step->scopes & ~(uint32_t)(step->words[3] >> 32 & 0xffff)) == 0;
}

/* The counter's generation shows, too, that the entry has changed. */
void table_steps_count(const struct table_steps *steps, struct table_step *step)
{
    step->goes_on =
        step->goes_on && (chatelaine_count_use(&steps->table->uses[step->slot], (uint32_t)(step->words[0] >> 32)) ||
                          steps->broken == READER_ORDER);
    if (step->goes_on)
        chatelaine_read_entry(step->words, &step->who);
}
