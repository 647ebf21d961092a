#include "base/list.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(list, .fini = leak_guard);

struct item {
    int value;
    struct list node;
};

Test(list, keeps_the_order_of_arrival)
{
    struct list all;
    list_init(&all);
    struct item items[3] = {{.value = 0}, {.value = 1}, {.value = 2}};
    for (int i = 0; i < 3; i++)
        list_append(&all, &items[i].node);

    for (int i = 0; i < 3; i++) {
        struct list *first = list_first(&all);
        cr_assert_eq(LIST_ENTRY(first, struct item, node)->value, i);
        list_remove(first);
    }
    cr_assert(list_empty(&all));
    cr_assert_null(list_first(&all));
}

Test(list, removing_twice_is_harmless)
{
    struct list all;
    list_init(&all);
    struct item a = {0}, b = {0};
    list_append(&all, &a.node);
    list_append(&all, &b.node);
    list_remove(&a.node);
    list_remove(&a.node);
    cr_assert_eq(list_first(&all), &b.node);
    cr_assert_eq(all.prev, &b.node);
}
