#include "param_rule_internal.h"

static bool is_of(const struct param_rule *rule, const struct route *route, enum param_place place)
{
    return rule->method == route->method && rule->place == place &&
           text_equal(text_of(rule->path), text_of(route->path));
}

const struct param_rule *param_rule_find(const struct route *route, enum param_place place, struct text name)
{
    for (size_t i = 0; route && i < PARAM_RULE_COUNT; i++)
        if (text_equal(text_of(PARAM_RULES[i].name), name) && is_of(&PARAM_RULES[i], route, place))
            return &PARAM_RULES[i];
    return NULL;
}

static bool is_word(const char *const *words, struct text value)
{
    while (*words && !text_equal(text_of(*words), value))
        words++;
    return *words;
}

static bool is_number(const struct param_rule *rule)
{
    return rule->least != 0 || rule->most != 0;
}

bool param_rule_allows_text(const struct param_rule *rule, struct text value)
{
    uint64_t number;

    if (rule->words)
        return is_word(rule->words, value);
    return !is_number(rule) || (text_to_u64(value, (uint64_t)rule->most, &number) && number >= (uint64_t)rule->least);
}

bool param_rule_allows_json(const struct param_rule *rule, const struct json *value)
{
    int64_t number;

    if (rule->words && json_type(value) == JSON_STRING)
        return is_word(rule->words, json_text(value));
    return !is_number(rule) || (json_type(value) == JSON_NUMBER && json_integer(value, &number) &&
                                number >= rule->least && number <= rule->most);
}

static bool is_said(const struct param_instead *row, const struct route *route, enum param_place place,
                    struct text name)
{
    return is_word(row->written, name) && param_rule_find(route, place, text_of(row->where)) &&
           !(row->without && param_rule_find(route, place, text_of(row->without)));
}

const char *param_rule_instead(const struct route *route, enum param_place place, struct text name)
{
    for (size_t i = 0; i < PARAM_INSTEAD_COUNT; i++)
        if (is_said(&PARAM_INSTEADS[i], route, place, name))
            return PARAM_INSTEADS[i].say;
    return NULL;
}
