#include "admin/store_client.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(store_client, .fini = leak_guard);

/* A Redis that another program writes to may give any answer: that must not abort a command. */
Test(store_client, explains_an_answer_that_no_command_expects)
{
    static const struct store_refusals NOT_FOUND_ALONE = {.not_found = "there is no such thing"};
    struct store_client client = {0};

    cr_expect_eq(store_client_explain(&client, STORE_OK, NULL), EXIT_DONE);
    cr_expect_eq(store_client_explain(&client, STORE_CONFLICT, NULL), EXIT_FAILED);
    cr_expect_eq(store_client_explain(&client, STORE_NOT_FOUND, &NOT_FOUND_ALONE), EXIT_FAILED);
    cr_expect_eq(store_client_explain(&client, STORE_REFUSED, &NOT_FOUND_ALONE), EXIT_FAILED);
}
