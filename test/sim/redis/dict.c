#include "dict.h"

#include "base/mem.h"
#include <stdlib.h>

enum { SLOTS_MIN = 8 };

static const uint32_t REMOVED = UINT32_MAX;

static uint32_t hash_of(struct text key)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.ptr[i]) * 16777619u;
    return hash ^ hash >> 15;
}

struct text text_own(struct text text)
{
    return (struct text){mem_copy_text(text.len > 0 ? text.ptr : "", text.len), text.len};
}

void text_release(struct text text)
{
    free((char *)(uintptr_t)text.ptr);
}

static void entry_free(struct dict_entry *entry)
{
    text_release(entry->key);
    text_release(entry->text);
    free(entry);
}

void dict_finish(struct dict *dict)
{
    for (size_t i = 0; i < dict->used; i++)
        if (dict->entries[i])
            entry_free(dict->entries[i]);
    free(dict->entries);
    free(dict->slots);
    *dict = (struct dict){0};
}

static size_t slot_of(const struct dict *dict, struct text key, uint32_t hash)
{
    size_t mask = dict->slot_count - 1;

    for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
        uint32_t at = dict->slots[slot];

        if (at == 0)
            return SIZE_MAX;
        if (at != REMOVED && dict->entries[at - 1]->hash == hash && text_equal(dict->entries[at - 1]->key, key))
            return slot;
    }
}

struct dict_entry *dict_find(const struct dict *dict, struct text key)
{
    size_t slot = dict->count > 0 ? slot_of(dict, key, hash_of(key)) : SIZE_MAX;

    return slot == SIZE_MAX ? NULL : dict->entries[dict->slots[slot] - 1];
}

static void fill_slot(struct dict *dict, const struct dict_entry *entry)
{
    size_t mask = dict->slot_count - 1, slot = entry->hash & mask;

    while (dict->slots[slot] != 0)
        slot = (slot + 1) & mask;
    dict->slots[slot] = (uint32_t)entry->place + 1;
}

/* Makes room for one more, and closes the gaps. */
static void rebuild(struct dict *dict)
{
    size_t kept = 0, slots = SLOTS_MIN;

    for (size_t i = 0; i < dict->used; i++) {
        if (!dict->entries[i])
            continue;
        dict->entries[kept] = dict->entries[i];
        dict->entries[kept]->place = kept;
        kept++;
    }
    dict->used = kept;
    while (slots < (kept + 1) * 3)
        slots *= 2;
    dict->room = slots / 2;
    dict->entries = mem_resize(dict->entries, dict->room * sizeof *dict->entries);
    free(dict->slots);
    dict->slots = mem_alloc(slots * sizeof *dict->slots);
    dict->slot_count = slots;
    for (size_t i = 0; i < kept; i++)
        fill_slot(dict, dict->entries[i]);
}

void dict_copy(struct dict *to, const struct dict *from)
{
    struct dict_entry *entry;

    for (size_t place = 0; (entry = dict_next(from, &place));) {
        struct dict_entry *copy = dict_add(to, entry->key, NULL);

        copy->score = entry->score;
        if (entry->text.ptr)
            dict_set_text(copy, entry->text);
    }
}

struct dict_entry *dict_add(struct dict *dict, struct text key, bool *ret_is_new)
{
    struct dict_entry *entry = dict_find(dict, key);

    if (ret_is_new)
        *ret_is_new = !entry;
    if (entry)
        return entry;
    if (dict->used == dict->room)
        rebuild(dict);
    entry = mem_alloc(sizeof *entry);
    *entry = (struct dict_entry){
        .key = text_own(key), .hash = hash_of(key), .place = dict->used, .number = ++dict->last_number};
    dict->entries[dict->used++] = entry;
    dict->count++;
    fill_slot(dict, entry);
    return entry;
}

void dict_remove(struct dict *dict, struct dict_entry *entry)
{
    dict->slots[slot_of(dict, entry->key, entry->hash)] = REMOVED;
    dict->entries[entry->place] = NULL;
    dict->count--;
    entry_free(entry);
}

void dict_set_text(struct dict_entry *entry, struct text text)
{
    struct text own = text_own(text);

    text_release(entry->text);
    entry->text = own;
}

struct dict_entry *dict_next(const struct dict *dict, size_t *place)
{
    while (*place < dict->used) {
        struct dict_entry *entry = dict->entries[(*place)++];

        if (entry)
            return entry;
    }
    return NULL;
}

size_t dict_place_of(const struct dict *dict, uint64_t number)
{
    size_t place = 0;

    while (place < dict->used && (!dict->entries[place] || dict->entries[place]->number < number))
        place++;
    return place;
}

struct dict_entry *dict_at(const struct dict *dict, size_t index)
{
    size_t place = 0;
    struct dict_entry *entry = dict_next(dict, &place);

    while (index-- > 0)
        entry = dict_next(dict, &place);
    return entry;
}
