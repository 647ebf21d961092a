/* Which keys a command is about: the same options for each that lists or ends keys. */
#pragma once
#include "admin/store_client.h"
#include "core/key.h"

extern const struct option_table KEY_SELECTION;
/* Of the options of a command. */
#define KEY_SELECTION_GROUP         \
    {                               \
        "Selection", &KEY_SELECTION \
    }

struct key_lineage;

struct key_selection {
    struct id by;                               /* empty: any */
    int64_t created_before_ms, unused_since_ms; /* INT64_MAX: any time */
    scope_set scope;                            /* 0: any */
    struct text name;                           /* empty: any */
    bool by_mode; /* for the query that lists the keys, which reads only those of the mode */
    enum key_mode mode;
    bool with_descendants;
    struct key_lineage *lineages; /* with descendants: of the account, by id */
    size_t lineage_count, lineage_room;
};

/* Whether any of the options was given. */
bool key_selection_is_given(const struct command_line *line);
/* All of the options but --account, which is read by account_option_read(). EXIT_USAGE after printing an error. Finish
 * it in either case. */
MUST_CHECK int key_selection_read(const struct command_line *line, struct key_selection *ret);
void key_selection_finish(struct key_selection *selection);
/* Call first for each account: with descendants, reads which keys its keys came from. */
MUST_CHECK int key_selection_enter(struct key_selection *selection, struct store_client *client,
                                   const struct id *account);
bool key_selection_has(const struct key_selection *selection, const struct key_record *key);
