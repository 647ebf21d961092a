/* The rules for the parameters of requests. The build makes the table from openapi.json (embed_rules.c), so that
 * clients, documentation, validation and messages use the same rules. Its texts are constants. */
#pragma once
#include "api/routes.h"
#include "base/json.h"
#include "base/text.h"

enum param_place { PARAM_IN_QUERY, PARAM_IN_BODY };

struct param_rule {
    enum http_method method;
    const char *path; /* as in ROUTES */
    enum param_place place;
    const char *name;
    const char *must;         /* what comes after "mode must be": "\"test\" or \"live\"" */
    const char *const *words; /* all that it may be, up to NULL; NULL: they are not listed */
    int64_t least, most;      /* of a whole number; 0 and 0: it is none */
    bool is_secret;           /* its value is never repeated */
};

/* What to say to somebody who wrote the name of a parameter that other services have. */
struct param_instead {
    const char *const *written; /* up to NULL */
    const char *where;          /* said by operations with this parameter */
    const char *without;        /* and without this one; NULL: any */
    const char *say;
};

extern const struct param_rule PARAM_RULES[];
extern const size_t PARAM_RULE_COUNT;
extern const struct param_instead PARAM_INSTEADS[];
extern const size_t PARAM_INSTEAD_COUNT;

/* route: NULL: none. NULL: there is no rule, as for what the internal listener takes. */
const struct param_rule *param_rule_find(const struct route *route, enum param_place place, struct text name);
/* False if the rule refuses the value by its list of words, or by its bounds. True says no more than that. */
MUST_CHECK bool param_rule_allows_text(const struct param_rule *rule, struct text value);
MUST_CHECK bool param_rule_allows_json(const struct param_rule *rule, const struct json *value);
/* A sentence for somebody who wrote `name`, which the route does not take; NULL: nothing is known of it. */
const char *param_rule_instead(const struct route *route, enum param_place place, struct text name);
