/* Accounts that are suspended and resumed, again and again, by commands; and people who are removed, by commands and at
 * nodes, with all keys that go back to them or with those that they made, and replaced by others. Each such answer is
 * judged as a revocation is. Belongs to the clients' thread. */
#pragma once
#include "kin.h"

struct endings_plan {
    struct cluster *cluster;
    struct history *history;
    struct board *board; /* NULL: no tables are shared */
    unsigned seed;
    unsigned unit_ms; /* what times are counted in: the lease */
    unsigned accounts, people;
};

struct endings_counts {
    size_t suspended, resumed, removed, failed; /* by what was told */
    size_t removed_before;                      /* as the repetition of a failed removal by command found */
    size_t kin_made, kin_gone;                  /* keys of people; those that went with them */
    size_t checks;                              /* that began after a suspension or removal was told */
    size_t accepted, refused;
    size_t back; /* accepted sessions of people whose removal was lost with the store, and accepted to be */
};

/* What is known of one of them; HISTORY_NEVER: nothing yet. */
struct ending_times {
    int64_t tried_ns;     /* the first command or request that may have ended it began */
    int64_t ended_ns;     /* the last one told that it had */
    int64_t returning_ns; /* the first command after that which may have brought it back began */
};
enum ending_credential { OF_ACCOUNT, SESSION_OF_PERSON };
/* What is wrong with an answer other than 503; NULL: nothing. */
const char *endings_verdict(const struct ending_times *times, enum ending_credential credential,
                            const struct exchange_answer *answer);

struct endings;

/* Makes accounts, people, keys and sessions, so call it before there are faults. */
struct endings *endings_create(const struct endings_plan *plan);
/* Begins what is due. False: a violation was found. */
bool endings_turn(struct endings *endings, struct exchange *exchange);
/* Looks at commands and requests only, and begins nothing; false: none is under way. */
bool endings_wind_down(struct endings *endings);
/* Once all is mended: every node says of everybody what was told last. */
void endings_check_whole(struct endings *endings);
const struct endings_counts *endings_counts(struct endings *endings);
void endings_destroy(struct endings *endings);
