/* Intrusive doubly linked list: membership needs no allocation, removal no search. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}
static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}
static inline void list_append(struct list *l, struct list *node)
{
    node->prev = l->prev;
    node->next = l;
    l->prev->next = node;
    l->prev = node;
}
static inline void list_prepend(struct list *l, struct list *node)
{
    list_append(l->next, node);
}
/* Afterwards the node is a list of its own: removing it again is harmless. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}
static inline struct list *list_first(struct list *l)
{
    return list_empty(l) ? NULL : l->next;
}
/* Removes the first node and returns it; NULL: there is none. */
static inline struct list *list_take(struct list *l)
{
    struct list *node = list_first(l);

    if (node)
        list_remove(node);
    return node;
}
/* Moves all nodes, in their order. */
static inline void list_append_all(struct list *l, struct list *from)
{
    for (struct list *node; (node = list_take(from));)
        list_append(l, node);
}
