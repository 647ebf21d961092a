#include "query_internal.h"
#include "base/clock.h"
#include "core/audit_type.h"
#include "core/limits.h"
#include "core/path.h"

struct parameter {
    const char *name;
    bool (*read)(struct text value, void *target);
    const char *rule; /* what its value must be: the message if it is not */
};

#define PAGE_LIMIT_RULE "limit must be a number from 1 to 100."
_Static_assert(LIST_LIMIT_MAX == 100, "see PAGE_LIMIT_RULE");
_Static_assert(USAGE_DAYS_MAX == 366, "see the rule for days");

/* The row's number, or count. */
static size_t find_parameter(const struct parameter *rows, size_t count, struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(text_of(rows[i].name), name))
            return i;
    return count;
}

static struct problem unknown_parameter(const struct parameter *rows, size_t count, struct text name)
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

static bool read_all(struct text query, char *storage, const struct parameter *rows, size_t count, void *target,
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
        if (!rows[row].read(value, target)) {
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

static bool read_count(struct text value, uint64_t max, unsigned *ret_count)
{
    uint64_t number;

    if (!text_to_u64(value, max, &number) || number == 0)
        return false;
    *ret_count = (unsigned)number;
    return true;
}

bool query_read_nothing(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    return read_all(query, storage, NULL, 0, target, ret_problem);
}

static bool read_keys_limit(struct text value, void *target)
{
    struct key_query *query = target;

    return read_count(value, LIST_LIMIT_MAX, &query->limit);
}

static bool read_keys_starting_after(struct text value, void *target)
{
    struct key_query *query = target;

    return id_parse(key_id_kind(query->view.kind), value, &query->starting_after);
}

static bool read_keys_ending_before(struct text value, void *target)
{
    struct key_query *query = target;

    return id_parse(key_id_kind(query->view.kind), value, &query->ending_before);
}

static bool read_keys_mode(struct text value, void *target)
{
    struct key_query *query = target;

    query->by_mode = true;
    return key_mode_parse(value, &query->mode);
}

static bool read_keys_status(struct text value, void *target)
{
    struct key_query *query = target;
    bool active = text_equal(value, TEXT("active"));

    query->status = active ? KEYS_ACTIVE : KEYS_REVOKED;
    return active || text_equal(value, TEXT("revoked"));
}

static bool read_key_rows(struct text query, char *storage, const struct parameter *rows, size_t count,
                          struct key_query *target, struct problem *ret_problem)
{
    if (!read_all(query, storage, rows, count, target, ret_problem))
        return false;
    if (target->starting_after.text[0] && target->ending_before.text[0]) {
        *ret_problem = problem_param(PROBLEM_PARAMETER_INVALID, TEXT("ending_before"));
        ret_problem->message = "Send starting_after or ending_before, not both.";
        return false;
    }
    return true;
}

/* The last row is only for API keys. */
static const struct parameter KEY_ROWS[] = {
    {"limit", read_keys_limit, PAGE_LIMIT_RULE},
    {"starting_after", read_keys_starting_after, "starting_after must be the id of a key from this list."},
    {"ending_before", read_keys_ending_before, "ending_before must be the id of a key from this list."},
    {"status", read_keys_status, "status must be \"active\" or \"revoked\"."},
    {"mode", read_keys_mode, "mode must be \"test\" or \"live\"."},
};
enum { KEY_ROW_COUNT = sizeof KEY_ROWS / sizeof *KEY_ROWS };

bool query_read_keys(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    return read_key_rows(query, storage, KEY_ROWS, KEY_ROW_COUNT, target, ret_problem);
}

bool query_read_device_keys(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    return read_key_rows(query, storage, KEY_ROWS, KEY_ROW_COUNT - 1, target, ret_problem);
}

static bool read_events_limit(struct text value, void *target)
{
    struct event_query *query = target;

    return read_count(value, LIST_LIMIT_MAX, &query->limit);
}

static bool read_events_starting_after(struct text value, void *target)
{
    struct event_query *query = target;

    return id_parse(ID_EVENT, value, &query->starting_after);
}

/* An unknown type would be answered with nothing, and read as "never happened". So would whatever no event has. */
static bool read_events_type(struct text value, void *target)
{
    ((struct event_query *)target)->filter.type = value;
    return audit_type_is_known(value);
}

static bool is_id(struct text value)
{
    enum id_kind kind = id_kind_of(value);
    struct id id;

    return kind != ID_NONE && id_parse(kind, value, &id);
}

static bool read_events_actor(struct text value, void *target)
{
    ((struct event_query *)target)->filter.actor = value;
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

static bool read_events_target(struct text value, void *target)
{
    ((struct event_query *)target)->filter.target = value;
    return value.len > 0 && value.len <= KEY_NAME_MAX_BYTES && (is_id(value) || !begins_like_id(value));
}

static bool read_events_ip(struct text value, void *target)
{
    struct audit_filter *filter = &((struct event_query *)target)->filter;

    filter->by_address = true;
    return address_parse_block(value, &filter->address, &filter->address_bits);
}

/* A time of 0 would mean none. */
static bool read_time(struct text value, int64_t *ret_ms)
{
    if (!clock_read_rfc3339(value, ret_ms))
        return false;
    if (*ret_ms < 1)
        *ret_ms = 1;
    return true;
}

static bool read_events_since(struct text value, void *target)
{
    return read_time(value, &((struct event_query *)target)->filter.since_ms);
}

static bool read_events_until(struct text value, void *target)
{
    return read_time(value, &((struct event_query *)target)->filter.until_ms);
}

#define TIME_RULE "must be a time such as 2026-01-31T12:00:00Z (RFC 3339; write + as %2B)."

bool query_read_events(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {
        {"limit", read_events_limit, PAGE_LIMIT_RULE},
        {"starting_after", read_events_starting_after, "starting_after must be the id of an event."},
        {"type", read_events_type,
         "type must be a type of events, such as api_key.revoked, or a family, such as api_key."},
        {"actor", read_events_actor, "actor must be the id of a user or a key, or operator, holder or system."},
        {"target", read_events_target,
         "target must be a whole id of a user, a key or an account, or a device's name of 1 to 800 bytes."},
        {"ip", read_events_ip, "ip must be an address or a network, such as 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32."},
        {"since", read_events_since, "since " TIME_RULE},
        {"until", read_events_until, "until " TIME_RULE},
    };
    const struct audit_filter *filter = &((struct event_query *)target)->filter;

    if (!read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem))
        return false;
    if (filter->since_ms > 0 && filter->until_ms > 0 && filter->since_ms >= filter->until_ms) {
        *ret_problem = wrong_parameter(TEXT("until"), "until must be later than since.");
        return false;
    }
    return true;
}

static bool read_people_limit(struct text value, void *target)
{
    struct people_query *query = target;

    return read_count(value, LIST_LIMIT_MAX, &query->limit);
}

static bool read_people_starting_after(struct text value, void *target)
{
    struct people_query *query = target;

    return id_parse(ID_USER, value, &query->starting_after);
}

static bool read_invitations_starting_after(struct text value, void *target)
{
    struct people_query *query = target;

    return id_parse(ID_INVITATION, value, &query->starting_after);
}

bool query_read_people(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {
        {"limit", read_people_limit, PAGE_LIMIT_RULE},
        {"starting_after", read_people_starting_after, "starting_after must be the id of a user."},
    };

    return read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem);
}

bool query_read_invitations(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {
        {"limit", read_people_limit, PAGE_LIMIT_RULE},
        {"starting_after", read_invitations_starting_after, "starting_after must be the id of an invitation."},
    };

    return read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem);
}

static bool read_revoke_keys(struct text value, void *target)
{
    return key_fate_parse(value, target);
}

bool query_read_removal(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {
        {"revoke_keys", read_revoke_keys, REVOKE_KEYS_RULE},
    };

    return read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem);
}

static bool read_watch_since(struct text value, void *target)
{
    ((struct watch_query *)target)->since = value;
    return value.len > 0;
}

static bool read_watch_acknowledge(struct text value, void *target)
{
    ((struct watch_query *)target)->acknowledges = text_equal(value, TEXT("1"));
    return text_equal(value, TEXT("1")) || text_equal(value, TEXT("0"));
}

bool query_read_watch(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {
        {"since", read_watch_since, "since must be the id of an event of this stream."},
        {"acknowledge", read_watch_acknowledge, "acknowledge must be \"0\" or \"1\"."},
    };

    return read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem);
}

static bool read_acknowledgement_watcher(struct text value, void *target)
{
    ((struct acknowledgement_query *)target)->watcher = value;
    return value.len > 0;
}

static bool read_acknowledgement_cursor(struct text value, void *target)
{
    ((struct acknowledgement_query *)target)->cursor = value;
    return value.len > 0;
}

bool query_read_acknowledgement(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {
        {"watcher", read_acknowledgement_watcher, "watcher must be the id that came with the event ready."},
        {"cursor", read_acknowledgement_cursor, "cursor must be an event id that was sent on this stream."},
    };

    return read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem);
}

static bool read_usage_from(struct text value, void *target)
{
    struct usage_period *period = target;

    period->is_given = true;
    return clock_read_date(value, &period->from_ms);
}

static bool read_usage_to(struct text value, void *target)
{
    struct usage_period *period = target;

    period->is_given = true;
    return clock_read_date(value, &period->to_ms);
}

static bool read_usage_group(struct text value, void *target)
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

static bool read_usage_limit(struct text value, void *target)
{
    return read_count(value, LIST_LIMIT_MAX, &((struct usage_period *)target)->limit);
}

static bool read_usage_starting_after(struct text value, void *target)
{
    struct id *id = &((struct usage_period *)target)->starting_after;

    return id_parse(ID_KEY, value, id) || id_parse(ID_DEVICE, value, id);
}

#define USAGE_PERIOD_ROWS                                                                                     \
    {"from", read_usage_from, "from must be a day, such as 2026-01-31."},                                     \
        {"to", read_usage_to, "to must be a day, such as 2026-01-31."},                                       \
        {"group_by", read_usage_group, "group_by must be \"day\", \"key\" or \"mode\"."},                     \
        {"limit", read_usage_limit, PAGE_LIMIT_RULE},                                                         \
    {                                                                                                         \
        "starting_after", read_usage_starting_after, "starting_after must be the id of a key from this list." \
    }

bool query_read_usage_period(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {USAGE_PERIOD_ROWS};

    return read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem);
}

static bool read_usage_days(struct text value, void *target)
{
    struct usage_query *query = target;

    return read_count(value, USAGE_DAYS_MAX, &query->days);
}

/* Ids of API keys and device keys, separated by commas. */
static bool read_usage_key_ids(struct text value, void *target)
{
    struct usage_query *query = target;
    struct text part;

    while (text_next(&value, ',', &part)) {
        struct id *id = &query->key_ids[query->key_count];

        if (query->key_count == LIST_LIMIT_MAX || (!id_parse(ID_KEY, part, id) && !id_parse(ID_DEVICE, part, id)))
            return false;
        query->key_count++;
    }
    return true;
}

bool query_read_usage(struct text query, char *storage, void *target, struct problem *ret_problem)
{
    static const struct parameter ROWS[] = {
        {"days", read_usage_days, "days must be a number from 1 to 366."},
        {"key_ids", read_usage_key_ids,
         "key_ids must be 1 to 100 ids of API keys or device keys, separated by commas."},
        USAGE_PERIOD_ROWS,
    };
    const struct usage_query *usage = target;

    if (!read_all(query, storage, ROWS, sizeof ROWS / sizeof *ROWS, target, ret_problem))
        return false;
    if (usage->period.is_given && (usage->days || usage->key_count)) {
        *ret_problem = wrong_parameter(usage->days ? TEXT("days") : TEXT("key_ids"),
                                       "Send from, to and group_by, or days and key_ids, not both.");
        return false;
    }
    if (usage->days * usage->key_count > USAGE_CELLS_MAX) {
        *ret_problem = problem_param(PROBLEM_PARAMETER_INVALID, TEXT("key_ids"));
        ret_problem->message = "This is too much for one request: ask for fewer keys or fewer days.";
        return false;
    }
    return true;
}
