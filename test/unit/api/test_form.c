#include "api/form_internal.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(form, .fini = leak_guard);

struct input {
    struct text client, name;
};

static const struct form_field FIELDS[] = {
    {"client_id", true, offsetof(struct input, client), false},
    {"device_name", false, offsetof(struct input, name), false},
};

/* In memory of exactly its size, so that the sanitizer notices each byte read or written beyond it. */
static enum form_result read_form(struct text body, struct input *input, char ret_name[64])
{
    char *copy = malloc(body.len + 1), *storage = malloc(body.len + 1);
    struct text name = {0};
    enum form_result result;

    memcpy(copy, body.ptr, body.len);
    *input = (struct input){0};
    result = form_read((struct text){copy, body.len}, storage, FIELDS, 2, input, &name);
    snprintf(ret_name, 64, "%.*s", TEXT_ARG(name));
    if (input->client.ptr)
        input->client.ptr = strndup(input->client.ptr, input->client.len);
    if (input->name.ptr)
        input->name.ptr = strndup(input->name.ptr, input->name.len);
    free(copy);
    free(storage);
    return result;
}

static void input_free(struct input *input)
{
    free((void *)(uintptr_t)input->client.ptr);
    free((void *)(uintptr_t)input->name.ptr);
}

Test(form, bodies)
{
    static const struct {
        const char *body;
        enum form_result result;
        const char *client, *name; /* NULL: not set. On failure, name is the parameter */
    } CASES[] = {
        {"client_id=a", FORM_OK, "a", NULL},
        {"client_id=a&device_name=b", FORM_OK, "a", "b"},
        {"device_name=b+c%20d&client_id=%61", FORM_OK, "a", "b c d"},
        {"client_id=a&device_name=%C3%A4%26%3d", FORM_OK, "a", "\xc3\xa4&="},
        {"client_id=a=b", FORM_OK, "a=b", NULL},
        {"&&client_id=a&&", FORM_OK, "a", NULL},
        {"client_id=a&unknown=1&other", FORM_OK, "a", NULL},
        {"client_id=a&x=svc_dk_0123456789ABCDEFGHIJKLMNOPQRSTUV3ZASRa", FORM_SECRET, NULL, ""},
        {"device_name=_svc%5Fdk_0123456789ABCDEFGHIJKLMNOPQRSTUV3ZASRa_", FORM_SECRET, NULL, ""},
        {"svc_dk_0123456789ABCDEFGHIJKLMNOPQRSTUV3ZASRa=&client_id=a", FORM_SECRET, NULL, ""},
        {"client_id=a&device_name=", FORM_OK, "a", NULL},
        {"client_id=a&device_name", FORM_OK, "a", NULL},
        {"%63lient_id=a", FORM_OK, "a", NULL},
        {"", FORM_MISSING, NULL, "client_id"},
        {"client_id=", FORM_MISSING, NULL, "client_id"},
        {"Client_id=a", FORM_MISSING, NULL, "client_id"},
        {"device_name=b", FORM_MISSING, NULL, "client_id"},
        {"client_id=a&client_id=a", FORM_REPEATED, NULL, "client_id"},
        {"client_id=a&%63lient_id=b", FORM_REPEATED, NULL, "client_id"},
        {"client_id=&client_id=b", FORM_REPEATED, NULL, "client_id"},
        {"client_id=a&x=1&x=2", FORM_REPEATED, NULL, "x"},
        {"client_id=%", FORM_MALFORMED, NULL, ""},
        {"client_id=%4", FORM_MALFORMED, NULL, ""},
        {"client_id=%4g", FORM_MALFORMED, NULL, ""},
        {"client_id=a%00", FORM_MALFORMED, NULL, ""},
        {"client_id=a&x=%ff", FORM_MALFORMED, NULL, ""},
        {"client_id=a&%c3=1", FORM_MALFORMED, NULL, ""},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct input input;
        char name[64];
        enum form_result result = read_form(text_of(CASES[i].body), &input, name);

        cr_assert_eq(result, CASES[i].result, "%s: %d", CASES[i].body, result);
        if (result == FORM_OK) {
            cr_assert(text_equal(input.client, text_of(CASES[i].client)), "%s", CASES[i].body);
            cr_assert_eq(input.name.ptr != NULL, CASES[i].name != NULL, "%s", CASES[i].body);
            cr_assert(!CASES[i].name || text_equal(input.name, text_of(CASES[i].name)), "%s", CASES[i].body);
        } else {
            cr_assert_str_eq(name, CASES[i].name, "%s: %s", CASES[i].body, name);
        }
        input_free(&input);
    }
}

Test(form, raw_bytes)
{
    struct input input;
    char name[64];

    cr_assert_eq(read_form((struct text){"client_id=a\0b", 13}, &input, name), FORM_MALFORMED);
    input_free(&input);
    cr_assert_eq(read_form((struct text){"client_id=\xff", 11}, &input, name), FORM_MALFORMED);
    input_free(&input);
}

Test(form, nobody_sends_so_many_parameters)
{
    struct input input;
    char body[512] = "client_id=a", name[64];
    size_t len = strlen(body);

    for (int i = 2; i <= 33; i++) {
        cr_assert_eq(read_form((struct text){body, len}, &input, name), FORM_OK, "%d", i);
        input_free(&input);
        len += (size_t)snprintf(body + len, sizeof body - len, "&p%d=1", i);
    }
    cr_assert_eq(read_form((struct text){body, len}, &input, name), FORM_MALFORMED);
    input_free(&input);
}
