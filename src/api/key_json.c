#include "key_json_internal.h"
#include "views_internal.h"

/* The body of a request to create a key */

struct key_input {
    struct text name;
    struct text mode;
    const struct json *scopes;
    bool is_decoy;
};

/* item: the one at fault, at this place in the list; NULL: the list is empty. */
static void refuse_scope(struct exchange *exchange, const struct json *item, size_t at)
{
    struct problem problem = problem_param(PROBLEM_PARAMETER_INVALID, TEXT("scopes"));
    struct text_guess guess = {.written = item && json_type(item) == JSON_STRING ? json_text(item) : TEXT("")};

    if (!item)
        problem.message = "scopes must have at least one scope. Without scopes, a key has every one.";
    else if (!problem_may_repeat(guess.written))
        problem.message = exchange_format(exchange, "Unknown scope at scopes[%zu].", at);
    else if (json_type(item) != JSON_STRING)
        problem.message = exchange_format(exchange, "scopes[%zu] must be a string: the name of a scope.", at);
    else
        problem.message =
            exchange_format(exchange, "Unknown scope \"%.*s\" at scopes[%zu].", TEXT_ARG(guess.written), at);
    for (unsigned n = 0; item && n < SCOPE_COUNT; n++)
        text_guess_try(&guess, scope_name(n).ptr);
    problem.meant = guess.found;
    exchange_refuse_with(exchange, problem);
}

bool key_json_read_scopes(struct exchange *exchange, const struct json *list, scope_set *ret_scopes)
{
    size_t at = 0;

    *ret_scopes = SCOPE_NONE;
    for (const struct json *item = json_first(list); item; item = json_next(item), at++) {
        scope_set scope = json_type(item) == JSON_STRING ? scope_parse(json_text(item)) : SCOPE_NONE;

        if (scope == SCOPE_NONE) {
            refuse_scope(exchange, item, at);
            return false;
        }
        *ret_scopes |= scope;
    }
    if (at == 0)
        refuse_scope(exchange, NULL, 0);
    return at > 0;
}

bool key_json_read(struct exchange *exchange, struct key_record *key, bool *ret_is_decoy)
{
    static const struct json_field FIELDS[] = {
        {"name", JSON_FIELD_TEXT, true, offsetof(struct key_input, name)},
        {"mode", JSON_FIELD_TEXT, true, offsetof(struct key_input, mode)},
        {"scopes", JSON_FIELD_ARRAY, false, offsetof(struct key_input, scopes)},
        {"decoy", JSON_FIELD_BOOL, false, offsetof(struct key_input, is_decoy)}, /* last: only the console has it */
    };
    const size_t fields = sizeof FIELDS / sizeof *FIELDS - (exchange->session ? 0 : 1);
    struct key_input input = {0};

    if (!exchange_read_body(exchange, FIELDS, fields, &input))
        return false;
    *ret_is_decoy = input.is_decoy;
    key->kind = KEY_API;
    key->scopes = SCOPE_ALL;
    if (!key_set_name(key, input.name)) {
        exchange_refuse_name(exchange, input.name);
        return false;
    }
    if (!key_mode_parse(input.mode, &key->mode)) {
        exchange_refuse_member(exchange, "mode");
        return false;
    }
    return !input.scopes || key_json_read_scopes(exchange, input.scopes, &key->scopes);
}

/* The key object */

static void put_members(struct json_writer *w, const struct key_record *key, bool for_people)
{
    view_put_key(w, key, for_people ? VIEW_SESSION : VIEW_KEY);
}

void key_json_put(struct json_writer *w, const struct key_record *key, bool for_people)
{
    json_object_begin(w);
    put_members(w, key, for_people);
    json_object_end(w);
}

void key_json_put_created(struct json_writer *w, const struct key_record *key, bool for_people, struct text secret)
{
    json_object_begin(w);
    put_members(w, key, for_people);
    json_put_member(w, "secret", secret);
    json_object_end(w);
}

void key_json_put_list(struct json_writer *w, const struct key_record *keys, size_t count, bool for_people,
                       bool has_more)
{
    view_list_begin(w);
    for (size_t i = 0; i < count; i++)
        key_json_put(w, &keys[i], for_people);
    view_list_end(w, has_more);
}

void key_json_put_principal(struct json_writer *w, const struct key_principal *key)
{
    json_object_begin(w);
    JSON_PUT_WORD(w, "id", id_text(&key->id));
    JSON_PUT_WORD(w, "kind", key_kind_text(key->kind));
    JSON_PUT_WORD(w, "account_id", id_text(&key->account));
    json_key(w, "name"); /* inline, unlike json_put_member() */
    json_put_text(w, key->name);
    JSON_PUT_WORD(w, "mode", key_mode_text(key->mode));
    view_put_scopes(w, key->scopes);
    json_object_end(w);
}
