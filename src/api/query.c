#include "query_internal.h"
#include "base/clock.h"
#include "core/audit_type.h"
#include "core/limits.h"
#include "core/path.h"

struct query_row {
    const char *name;
    bool (*read)(struct text value, void *field, unsigned arg);
    size_t offset; /* of what it reads, in the target */
    unsigned arg;
    const char *must; /* what its value must be, of the internal listener's; NULL: openapi.json says it */
};

/* The row's number, or count. */
static size_t find_parameter(const struct query_row *rows, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(text_of(rows[i].name), name))
            return i;
    return count;
}

static struct problem unknown_parameter(const struct query *parameters, const struct route *route, struct text name)
{
    struct problem problem = problem_param(PROBLEM_PARAMETER_UNKNOWN, name);
    struct text_guess guess = {.written = name};

    for (size_t i = 0; i < parameters->count; i++)
        text_guess_try(&guess, parameters->rows[i].name);
    problem.meant = guess.found;
    problem.instead = param_rule_instead(route, PARAM_IN_QUERY, name);
    return problem;
}

static struct problem wrong_parameter(struct text name, const char *message)
{
    struct problem problem = problem_param(PROBLEM_PARAMETER_INVALID, name);

    problem.message = message;
    return problem;
}

static bool read_value(const struct query_row *row, const struct param_rule *rule, struct text value, void *target)
{
    return (!rule || param_rule_allows_text(rule, value)) && row->read(value, (char *)target + row->offset, row->arg);
}

static struct problem refused_value(const struct query_row *row, const struct param_rule *rule, struct text name,
                                    struct text value)
{
    return rule ? problem_value(rule, name, value) : wrong_parameter(name, row->must);
}

static bool read_rows(const struct query *parameters, const struct route *route, struct text query, char *storage,
                      void *target, struct problem *ret_problem)
{
    enum path_query_result result;
    struct text name, value;
    unsigned seen = 0;

    while ((result = path_next_parameter(&query, &storage, &name, &value)) == PATH_QUERY_ITEM) {
        size_t row = find_parameter(parameters->rows, parameters->count, name);
        const struct param_rule *rule = param_rule_find(route, PARAM_IN_QUERY, name);

        if (row == parameters->count) {
            *ret_problem = unknown_parameter(parameters, route, name);
            return false;
        }
        if (seen & (1U << row)) {
            *ret_problem = wrong_parameter(name, "A query parameter must not be repeated.");
            return false;
        }
        if (!read_value(&parameters->rows[row], rule, value, target)) {
            *ret_problem = refused_value(&parameters->rows[row], rule, name, value);
            return false;
        }
        seen |= 1U << row;
    }
    if (result == PATH_QUERY_MALFORMED)
        *ret_problem =
            name.ptr ? problem_param(PROBLEM_PARAMETER_INVALID, name) : problem_of(PROBLEM_PARAMETER_INVALID);
    return result == PATH_QUERY_END;
}

bool query_read(const struct query *parameters, const struct route *route, struct text query, char *storage,
                void *target, struct problem *ret_problem)
{
    return read_rows(parameters, route, query, storage, target, ret_problem) &&
           (!parameters->agrees || parameters->agrees(target, ret_problem));
}

#define ROWS(table) .rows = (table), .count = sizeof(table) / sizeof *(table)

const struct query QUERY_NOTHING = {0};

/* Values of many kinds */

/* From 1 to max. */
static bool read_count(struct text value, void *count, unsigned max)
{
    uint64_t number;

    if (!text_to_u64(value, max, &number) || number == 0)
        return false;
    *(unsigned *)count = (unsigned)number;
    return true;
}

static bool read_id(struct text value, void *id, unsigned kind)
{
    return id_parse((enum id_kind)kind, value, id);
}

static bool read_id_of_key(struct text value, void *id, unsigned arg UNUSED)
{
    return id_parse(ID_KEY, value, id) || id_parse(ID_DEVICE, value, id);
}

static bool read_text(struct text value, void *text, unsigned arg UNUSED)
{
    *(struct text *)text = value;
    return value.len > 0;
}

/* A time of 0 would mean none. */
static bool read_time(struct text value, void *ms, unsigned arg UNUSED)
{
    int64_t *ret_ms = ms;

    if (!clock_read_rfc3339(value, ret_ms))
        return false;
    if (*ret_ms < 1)
        *ret_ms = 1;
    return true;
}

/* Keys */

static bool read_keys_mode(struct text value, void *target, unsigned arg UNUSED)
{
    struct key_query *query = target;

    query->by_mode = true;
    return key_mode_parse(value, &query->mode);
}

static bool read_keys_status(struct text value, void *status, unsigned arg UNUSED)
{
    bool active = text_equal(value, TEXT("active"));

    *(enum key_status_filter *)status = active ? KEYS_ACTIVE : KEYS_REVOKED;
    return active || text_equal(value, TEXT("revoked"));
}

static bool keys_agree(const void *target, struct problem *ret_problem)
{
    const struct key_query *query = target;
    bool has_both = query->starting_after.text[0] && query->ending_before.text[0];

    if (has_both)
        *ret_problem = wrong_parameter(TEXT("ending_before"), "Send starting_after or ending_before, not both.");
    return !has_both;
}

#define KEY_FIELD(member) offsetof(struct key_query, member)
#define KEY_LIST_ROWS(kind)                                                 \
    {"limit", read_count, KEY_FIELD(limit), LIST_LIMIT_MAX, NULL},          \
        {"starting_after", read_id, KEY_FIELD(starting_after), kind, NULL}, \
        {"ending_before", read_id, KEY_FIELD(ending_before), kind, NULL},   \
    {                                                                       \
        "status", read_keys_status, KEY_FIELD(status), 0, NULL              \
    }

static const struct query_row KEY_ROWS[] = {
    KEY_LIST_ROWS(ID_KEY),
    {"mode", read_keys_mode, 0, 0, NULL},
};
const struct query QUERY_KEYS = {ROWS(KEY_ROWS), .agrees = keys_agree};

static const struct query_row DEVICE_KEY_ROWS[] = {KEY_LIST_ROWS(ID_DEVICE)};
const struct query QUERY_DEVICE_KEYS = {ROWS(DEVICE_KEY_ROWS), .agrees = keys_agree};

/* Events */

/* An unknown type would be answered with nothing, and read as "never happened". So would whatever no event has. */
static bool read_events_type(struct text value, void *type, unsigned arg UNUSED)
{
    *(struct text *)type = value;
    return audit_type_is_known(value);
}

static bool is_id(struct text value)
{
    enum id_kind kind = id_kind_of(value);
    struct id id;

    return kind != ID_NONE && id_parse(kind, value, &id);
}

static bool read_events_actor(struct text value, void *actor, unsigned arg UNUSED)
{
    *(struct text *)actor = value;
    return is_id(value) || text_equal(value, TEXT("operator")) || text_equal(value, TEXT("holder")) ||
           text_equal(value, TEXT("system"));
}

/* "KEY_01J…", "usr_": what was meant as an id. A device may have any other name. */
static bool begins_like_id(struct text value)
{
    static const char *const PREFIXES[] = {"key_", "dev_", "usr_", "acct_", "inv_", "evt_", "req_"};

    for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++) {
        struct text prefix = text_of(PREFIXES[i]);

        if (value.len >= prefix.len && text_equal_nocase((struct text){value.ptr, prefix.len}, prefix))
            return true;
    }
    return false;
}

static bool read_events_target(struct text value, void *target, unsigned arg UNUSED)
{
    *(struct text *)target = value;
    return value.len > 0 && value.len <= KEY_NAME_MAX_BYTES && (is_id(value) || !begins_like_id(value));
}

static bool read_events_ip(struct text value, void *field, unsigned arg UNUSED)
{
    struct audit_filter *filter = field;

    filter->by_address = true;
    return address_parse_block(value, &filter->address, &filter->address_bits);
}

static bool events_agree(const void *target, struct problem *ret_problem)
{
    const struct audit_filter *filter = &((const struct event_query *)target)->filter;
    bool is_empty = filter->since_ms > 0 && filter->until_ms > 0 && filter->since_ms >= filter->until_ms;

    if (is_empty)
        *ret_problem = wrong_parameter(TEXT("until"), "until must be later than since.");
    return !is_empty;
}

#define EVENT_FIELD(member) offsetof(struct event_query, member)
static const struct query_row EVENT_ROWS[] = {
    {"limit", read_count, EVENT_FIELD(limit), LIST_LIMIT_MAX, NULL},
    {"starting_after", read_id, EVENT_FIELD(starting_after), ID_EVENT, NULL},
    {"type", read_events_type, EVENT_FIELD(filter.type), 0, NULL},
    {"actor", read_events_actor, EVENT_FIELD(filter.actor), 0, NULL},
    {"target", read_events_target, EVENT_FIELD(filter.target), 0, NULL},
    {"ip", read_events_ip, EVENT_FIELD(filter), 0, NULL},
    {"since", read_time, EVENT_FIELD(filter.since_ms), 0, NULL},
    {"until", read_time, EVENT_FIELD(filter.until_ms), 0, NULL},
};
const struct query QUERY_EVENTS = {ROWS(EVENT_ROWS), .agrees = events_agree};

/* People */

#define PEOPLE_FIELD(member) offsetof(struct people_query, member)
static const struct query_row PEOPLE_ROWS[] = {
    {"limit", read_count, PEOPLE_FIELD(limit), LIST_LIMIT_MAX, NULL},
    {"starting_after", read_id, PEOPLE_FIELD(starting_after), ID_USER, NULL},
};
const struct query QUERY_PEOPLE = {ROWS(PEOPLE_ROWS)};

static const struct query_row INVITATION_ROWS[] = {
    {"limit", read_count, PEOPLE_FIELD(limit), LIST_LIMIT_MAX, NULL},
    {"starting_after", read_id, PEOPLE_FIELD(starting_after), ID_INVITATION, NULL},
};
const struct query QUERY_INVITATIONS = {ROWS(INVITATION_ROWS)};

static bool read_revoke_keys(struct text value, void *fate, unsigned arg UNUSED)
{
    return key_fate_parse(value, fate);
}

static const struct query_row REMOVAL_ROWS[] = {{"revoke_keys", read_revoke_keys, 0, 0, NULL}};
const struct query QUERY_REMOVAL = {ROWS(REMOVAL_ROWS)};

/* Watching revocations */

static bool read_watch_acknowledge(struct text value, void *acknowledges, unsigned arg UNUSED)
{
    *(bool *)acknowledges = text_equal(value, TEXT("1"));
    return text_equal(value, TEXT("1")) || text_equal(value, TEXT("0"));
}

static const struct query_row WATCH_ROWS[] = {
    {"since", read_text, offsetof(struct watch_query, since), 0, "since must be the id of an event of this stream."},
    {"acknowledge", read_watch_acknowledge, offsetof(struct watch_query, acknowledges), 0,
     "acknowledge must be \"0\" or \"1\"."},
};
const struct query QUERY_WATCH = {ROWS(WATCH_ROWS)};

static const struct query_row ACKNOWLEDGEMENT_ROWS[] = {
    {"watcher", read_text, offsetof(struct acknowledgement_query, watcher), 0,
     "watcher must be the id that came with the event ready."},
    {"cursor", read_text, offsetof(struct acknowledgement_query, cursor), 0, CURSOR_RULE},
};
const struct query QUERY_ACKNOWLEDGEMENT = {ROWS(ACKNOWLEDGEMENT_ROWS)};

/* Usage */

static bool read_usage_day(struct text value, void *target, unsigned is_last)
{
    struct usage_period *period = target;

    period->is_given = true;
    return clock_read_date(value, is_last ? &period->to_ms : &period->from_ms);
}

static bool read_usage_group(struct text value, void *target, unsigned arg UNUSED)
{
    static const struct text NAMES[] = {
        [USAGE_BY_DAY] = TEXT("day"), [USAGE_BY_MODE] = TEXT("mode"), [USAGE_BY_KEY] = TEXT("key")};
    struct usage_period *period = target;

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (!text_equal(value, NAMES[i]))
            continue;
        period->is_given = true;
        period->group = (enum usage_group)i;
        return true;
    }
    return false;
}

#define PERIOD_FIELD(member) offsetof(struct usage_period, member)
#define PERIOD_ROWS                                                                                                   \
    {"from", read_usage_day, 0, false, NULL}, {"to", read_usage_day, 0, true, NULL},                                  \
        {"group_by", read_usage_group, 0, 0, NULL}, {"limit", read_count, PERIOD_FIELD(limit), LIST_LIMIT_MAX, NULL}, \
    {                                                                                                                 \
        "starting_after", read_id_of_key, PERIOD_FIELD(starting_after), 0, NULL                                       \
    }
_Static_assert(offsetof(struct usage_query, period) == 0, "PERIOD_ROWS are for both");

static const struct query_row USAGE_PERIOD_ROWS[] = {PERIOD_ROWS};
const struct query QUERY_USAGE_PERIOD = {ROWS(USAGE_PERIOD_ROWS)};

/* Separated by commas. */
static bool read_usage_key_ids(struct text value, void *target, unsigned arg UNUSED)
{
    struct usage_query *query = target;
    struct text part;

    while (text_next(&value, ',', &part)) {
        if (query->key_count == LIST_LIMIT_MAX || !read_id_of_key(part, &query->key_ids[query->key_count], 0))
            return false;
        query->key_count++;
    }
    return true;
}

static bool usage_agrees(const void *target, struct problem *ret_problem)
{
    const struct usage_query *usage = target;
    bool is_mixed = usage->period.is_given && (usage->days || usage->key_count);
    bool is_too_much = usage->days * usage->key_count > USAGE_CELLS_MAX;

    if (is_mixed)
        *ret_problem = wrong_parameter(usage->days ? TEXT("days") : TEXT("key_ids"),
                                       "Send from, to and group_by, or days and key_ids, not both.");
    else if (is_too_much)
        *ret_problem =
            wrong_parameter(TEXT("key_ids"), "This is too much for one request: ask for fewer keys or fewer days.");
    return !is_mixed && !is_too_much;
}

static const struct query_row USAGE_ROWS[] = {
    {"days", read_count, offsetof(struct usage_query, days), USAGE_DAYS_MAX, NULL},
    {"key_ids", read_usage_key_ids, 0, 0, NULL},
    PERIOD_ROWS,
};
const struct query QUERY_USAGE = {ROWS(USAGE_ROWS), .agrees = usage_agrees};
