/* The key space. A key that has expired goes when it is looked at; so that none stays for ever, each command looks at
 * two. */
#include "internal.h"

#include <stdlib.h>

struct value *value_new(enum value_type type)
{
    struct value *value = mem_alloc(sizeof *value);

    value->type = type;
    value->expires_ms = INT64_MAX;
    value->has_only_integers = type == VALUE_SET;
    return value;
}

struct value *value_new_string(struct text text)
{
    struct value *value = value_new(VALUE_STRING);

    value->string = text_own(text);
    return value;
}

void value_set_string(struct value *value, struct text text)
{
    struct text own = text_own(text);

    text_release(value->string);
    value->string = own;
}

struct value *value_copy(const struct value *value)
{
    struct value *copy = value_new(value->type);

    copy->has_only_integers = value->has_only_integers;
    copy->expires_ms = value->expires_ms;
    if (value->string.ptr)
        copy->string = text_own(value->string);
    dict_copy(&copy->dict, &value->dict);
    for (size_t i = 0; i < zset_count(&value->zset); i++)
        zset_set(&copy->zset, value->zset.order[i]->key, value->zset.order[i]->score);
    stream_copy(&copy->stream, &value->stream);
    copy->items = mem_alloc((value->item_count + 1) * sizeof *copy->items);
    copy->item_room = value->item_count + 1;
    for (; copy->item_count < value->item_count; copy->item_count++)
        copy->items[copy->item_count] = text_own(value->items[copy->item_count]);
    return copy;
}

void value_free(struct value *value)
{
    if (!value)
        return;
    text_release(value->string);
    dict_finish(&value->dict);
    zset_finish(&value->zset);
    stream_finish(&value->stream);
    for (size_t i = 0; i < value->item_count; i++)
        text_release(value->items[i]);
    free(value->items);
    free(value);
}

void database_clear(struct database *db)
{
    size_t place = 0;
    struct dict_entry *entry;

    while ((entry = dict_next(&db->values, &place)))
        value_free(entry->object);
    dict_finish(&db->values);
}

static void remove_entry(struct database *db, struct dict_entry *entry)
{
    value_free(entry->object);
    dict_remove(&db->values, entry);
}

struct value *space_find(struct call *call, struct text key)
{
    struct dict_entry *entry = dict_find(&call->db->values, key);
    struct value *value = entry ? entry->object : NULL;

    if (!value || value->expires_ms >= sim_now_ms(call->server) || call->server->is_loading)
        return value;
    if (call->server->master_host) /* its master says when it goes */
        return NULL;
    LOG_ARGV(call, TEXT("DEL"), entry->key);
    remove_entry(call->db, entry);
    return NULL;
}

void space_expire_some(struct call *call)
{
    enum { LOOKED_AT = 2 };
    struct simredis *server = call->server;

    for (int i = 0; i < LOOKED_AT && !server->expires_only_seen && !server->master_host; i++) {
        struct dict_entry *entry = dict_next(&call->db->values, &server->expire_place);

        if (!entry) {
            server->expire_place = 0;
            return;
        }
        (void)!space_find(call, entry->key);
    }
}

bool space_read(struct call *call, struct text key, enum value_type type, struct value **ret_value)
{
    struct value *value = space_find(call, key);

    *ret_value = value;
    if (!value || value->type == type)
        return true;
    say_wrong_type(call);
    return false;
}

void space_put(struct call *call, struct text key, struct value *value)
{
    struct dict_entry *entry = dict_add(&call->db->values, key, NULL);

    value_free(entry->object);
    entry->object = value;
}

bool space_write(struct call *call, struct text key, enum value_type type, struct value **ret_value)
{
    if (!space_read(call, key, type, ret_value))
        return false;
    if (!*ret_value) {
        *ret_value = value_new(type);
        space_put(call, key, *ret_value);
    }
    return true;
}

bool space_delete(struct call *call, struct text key)
{
    bool is_there = space_find(call, key);

    if (is_there)
        remove_entry(call->db, dict_find(&call->db->values, key));
    return is_there;
}

void space_prune(struct call *call, struct text key, struct value *value)
{
    if (value && value->type != VALUE_STRING && value->type != VALUE_STREAM && value->dict.count == 0 &&
        value->item_count == 0 && zset_count(&value->zset) == 0)
        space_delete(call, key);
}
