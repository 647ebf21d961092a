#include "base/secure.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(secure, .fini = leak_guard);

Test(secure, compares_length_and_content)
{
    cr_assert(secure_equal(TEXT("secret"), TEXT("secret")));
    cr_assert(secure_equal(TEXT(""), (struct text){NULL, 0}));
    cr_assert(secure_equal(TEXT("a\0b"), TEXT("a\0b")));
    cr_assert_not(secure_equal(TEXT("secret"), TEXT("secreT")));
    cr_assert_not(secure_equal(TEXT("Secret"), TEXT("secret")));
    cr_assert_not(secure_equal(TEXT("secret"), TEXT("secret1")));
    cr_assert_not(secure_equal(TEXT("a\0b"), TEXT("a\0c")));
}

Test(secure, wipes_every_byte_and_no_more)
{
    char bytes[] = {'a', 'b', 'c', 'd'};
    secure_wipe(bytes + 1, 2);
    cr_assert_arr_eq(bytes, ((char[]){'a', 0, 0, 'd'}), 4);
    secure_wipe(NULL, 0);
}
