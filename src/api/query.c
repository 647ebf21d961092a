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
    const char *rule; /* what its value must be: the message if it is not */
};

#define PAGE_LIMIT_RULE "limit must be a number from 1 to 100."
_Static_assert(LIST_LIMIT_MAX == 100, "see PAGE_LIMIT_RULE");
_Static_assert(USAGE_DAYS_MAX == 366, "see the rule for days");

/* The row's number, or count. */
static size_t find_parameter(const struct query_row *rows, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(text_of(rows[i].name), name))
            return i;
    return count;
}

static struct problem unknown_parameter(const struct query_row *rows, size_t count, struct text name)
{
    struct problem problem = problem_param(PROBLEM_PARAMETER_UNKNOWN, name);
    struct text_guess guess = {.written = name};

    for (size_t i = 0; i < count; i++)
        text_guess_try(&guess, rows[i].name);
    problem.meant = guess.found;
    return problem;
}

static struct problem wrong_parameter(struct text name, const char *message)
{
    struct problem problem = problem_param(PROBLEM_PARAMETER_INVALID, name);

    problem.message = message;
    return problem;
}

static bool read_rows(const struct query_row *rows, size_t count, struct text query, char *storage, void *target,
                      struct problem *ret_problem)
{
    enum path_query_result result;
    struct text name, value;
    unsigned seen = 0;

    while ((result = path_next_parameter(&query, &storage, &name, &value)) == PATH_QUERY_ITEM) {
        size_t row = find_parameter(rows, count, name);

        if (row == count) {
            *ret_problem = unknown_parameter(rows, count, name);
            return false;
        }
        if (seen & (1U << row)) {
            *ret_problem = wrong_parameter(name, "A query parameter must not be repeated.");
            return false;
        }
        if (!rows[row].read(value, (char *)target + rows[row].offset, rows[row].arg)) {
            *ret_problem = wrong_parameter(name, rows[row].rule);
            return false;
        }
        seen |= 1U << row;
    }
    if (result == PATH_QUERY_MALFORMED)
        *ret_problem =
            name.ptr ? problem_param(PROBLEM_PARAMETER_INVALID, name) : problem_of(PROBLEM_PARAMETER_INVALID);
    return result == PATH_QUERY_END;
}

bool query_read(const struct query *parameters, struct text query, char *storage, void *target,
                struct problem *ret_problem)
{
    return read_rows(parameters->rows, parameters->count, query, storage, target, ret_problem) &&
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

#define TIME_RULE "must be a time such as 2026-01-31T12:00:00Z (RFC 3339; write + as %2B)."

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
#define KEY_LIST_ROWS(kind)                                                                           \
    {"limit", read_count, KEY_FIELD(limit), LIST_LIMIT_MAX, PAGE_LIMIT_RULE},                         \
        {"starting_after", read_id, KEY_FIELD(starting_after), kind,                                  \
         "starting_after must be the id of a key from this list."},                                   \
        {"ending_before", read_id, KEY_FIELD(ending_before), kind,                                    \
         "ending_before must be the id of a key from this list."},                                    \
    {                                                                                                 \
        "status", read_keys_status, KEY_FIELD(status), 0, "status must be \"active\" or \"revoked\"." \
    }

static const struct query_row KEY_ROWS[] = {
    KEY_LIST_ROWS(ID_KEY),
    {"mode", read_keys_mode, 0, 0, "mode must be \"test\" or \"live\"."},
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
    {"limit", read_count, EVENT_FIELD(limit), LIST_LIMIT_MAX, PAGE_LIMIT_RULE},
    {"starting_after", read_id, EVENT_FIELD(starting_after), ID_EVENT, "starting_after must be the id of an event."},
    {"type", read_events_type, EVENT_FIELD(filter.type), 0,
     "type must be a type of events, such as api_key.revoked, or a family, such as api_key."},
    {"actor", read_events_actor, EVENT_FIELD(filter.actor), 0,
     "actor must be the id of a user or a key, or operator, holder or system."},
    {"target", read_events_target, EVENT_FIELD(filter.target), 0,
     "target must be a whole id of a user, a key or an account, or a device's name of 1 to 800 bytes."},
    {"ip", read_events_ip, EVENT_FIELD(filter), 0,
     "ip must be an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32."},
    {"since", read_time, EVENT_FIELD(filter.since_ms), 0, "since " TIME_RULE},
    {"until", read_time, EVENT_FIELD(filter.until_ms), 0, "until " TIME_RULE},
};
const struct query QUERY_EVENTS = {ROWS(EVENT_ROWS), .agrees = events_agree};

/* People */

#define PEOPLE_FIELD(member) offsetof(struct people_query, member)
static const struct query_row PEOPLE_ROWS[] = {
    {"limit", read_count, PEOPLE_FIELD(limit), LIST_LIMIT_MAX, PAGE_LIMIT_RULE},
    {"starting_after", read_id, PEOPLE_FIELD(starting_after), ID_USER, "starting_after must be the id of a user."},
};
const struct query QUERY_PEOPLE = {ROWS(PEOPLE_ROWS)};

static const struct query_row INVITATION_ROWS[] = {
    {"limit", read_count, PEOPLE_FIELD(limit), LIST_LIMIT_MAX, PAGE_LIMIT_RULE},
    {"starting_after", read_id, PEOPLE_FIELD(starting_after), ID_INVITATION,
     "starting_after must be the id of an invitation."},
};
const struct query QUERY_INVITATIONS = {ROWS(INVITATION_ROWS)};

static bool read_revoke_keys(struct text value, void *fate, unsigned arg UNUSED)
{
    return key_fate_parse(value, fate);
}

static const struct query_row REMOVAL_ROWS[] = {{"revoke_keys", read_revoke_keys, 0, 0, REVOKE_KEYS_RULE}};
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
#define PERIOD_ROWS                                                                             \
    {"from", read_usage_day, 0, false, "from must be a day, such as 2026-01-31."},              \
        {"to", read_usage_day, 0, true, "to must be a day, such as 2026-01-31."},               \
        {"group_by", read_usage_group, 0, 0, "group_by must be \"day\", \"key\" or \"mode\"."}, \
        {"limit", read_count, PERIOD_FIELD(limit), LIST_LIMIT_MAX, PAGE_LIMIT_RULE},            \
    {                                                                                           \
        "starting_after", read_id_of_key, PERIOD_FIELD(starting_after), 0,                      \
            "starting_after must be the id of a key from this list."                            \
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
    {"days", read_count, offsetof(struct usage_query, days), USAGE_DAYS_MAX, "days must be a number from 1 to 366."},
    {"key_ids", read_usage_key_ids, 0, 0,
     "key_ids must be 1 to 100 ids of API keys or device keys, separated by commas."},
    PERIOD_ROWS,
};
const struct query QUERY_USAGE = {ROWS(USAGE_ROWS), .agrees = usage_agrees};
