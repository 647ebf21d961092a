/* What this process tells the readers of the nodes' shared tables, and they tell it: memory that all of them map. A
 * reader must know that a key was revoked before it begins a check; so it is told as soon as the answer has come. */
#pragma once
#include "history.h"
#include <stdatomic.h>

enum {
    BOARD_KEYS_MAX = HISTORY_KEYS_MAX + 2048,
    BOARD_PLACES_MAX = 1024,   /* keys that clients use at present */
    BOARD_PLACES_OF_ENDS = 32, /* and those of suspended accounts and people */
    BOARD_RECENT = 16,         /* keys that were ended last */
    BOARD_FINDINGS_MAX = 64
};

/* All but the two atomic members is written before its number is in a place. */
struct board_key {
    char id[HISTORY_ID_BYTES];
    char secret[HISTORY_SECRET_BYTES];
    uint32_t scopes; /* a scope_set; 0: not known */
    uint32_t key;    /* HISTORY_NO_KEY: not in the history */
    /* Odd while it must be refused, because that was answered. It changes before anybody asks for the opposite. */
    _Atomic uint32_t promise;
    atomic_bool was_accepted; /* by a reader */
};

enum board_what { BOARD_ENDED, BOARD_OTHER_KEY, BOARD_OTHER_SCOPES };

/* What a reader says is a violation. */
struct board_finding {
    int64_t start_ns, end_ns; /* of the check, by history_now_ns() */
    uint32_t number;          /* of the key */
    uint8_t node, what;
    atomic_bool is_written;
};

struct board {
    unsigned unit_ms; /* the lease */
    atomic_uint places_used, places_of_ends_used;
    /* A key's number + 1; 0: none. */
    _Atomic uint32_t places[BOARD_PLACES_MAX], places_of_ends[BOARD_PLACES_OF_ENDS], recent[BOARD_RECENT];
    atomic_ullong accepted, not_accepted, after_end, without_table; /* checks */
    atomic_uint found;
    struct board_finding findings[BOARD_FINDINGS_MAX];
    uint32_t key_count, refused_count; /* this process's own */
    struct board_key keys[BOARD_KEYS_MAX];
};

/* In a file, which readers are told. */
struct board *board_create(const char *path, unsigned unit_ms);
struct board *board_open(const char *path);
/* NULL is fine. */
void board_close(struct board *board);

/* Returns its number. */
uint32_t board_add(struct board *board, const char *id, const char *secret, uint32_t scopes, uint32_t key);
/* Readers check the key that is in a place. */
void board_show(struct board *board, size_t place, uint32_t number);
void board_hide(struct board *board, size_t place);
/* Likewise for keys of suspended accounts and people; a place is any number, and many share one. */
void board_show_end(struct board *board, size_t place, uint32_t number);
/* Once it was answered that the key is refused; and before anybody asks that it is accepted again. */
void board_refuse(struct board *board, uint32_t number);
void board_allow(struct board *board, uint32_t number);
