/* All that clients asked and were told, held against the promise (src/lease/README.md): no check that began after a
 * revocation's answer was accepted, and nothing that was acknowledged is lost. All times are of one clock, this
 * process's. One thread writes; others read once it has ended. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    HISTORY_ID_BYTES = 32,
    HISTORY_SECRET_BYTES = 64,
    HISTORY_KEYS_MAX = 1 << 18,
    HISTORY_EVENTS_MAX = 1 << 23 /* 32 bytes each; a run ends early when it is full */
};

#define HISTORY_NO_KEY UINT32_MAX
#define HISTORY_NO_ACCOUNT UINT_MAX /* none of those in which clients make keys */
#define HISTORY_NEVER INT64_MAX

/* Times in whole milliseconds are cut off, and two clocks are read one after the other. So two times that are the same
 * may seem to be so far apart. */
enum { HISTORY_ROUNDED_NS = 3000000 };

enum event_kind {
    EVENT_CREATE,
    EVENT_CHECK, /* /v1/whoami */
    EVENT_ROUTE, /* a route of a backend: 200 stands for the 404 behind which there is none */
    EVENT_REVOKE,
    EVENT_COMMAND, /* `key revoke`; 200 stands for its success, 0 for anything else */
    /* A key is made with a key, its request's last bytes being sent late; 201 stands for accepted. */
    EVENT_SUCCESSOR,
    EVENT_SCHEDULE, /* the key is to be revoked later_ms after start_ns */
    EVENT_REPLACE,  /* another key was made in its place, and it is to be revoked later_ms afterwards at the latest */
    EVENT_MAY_END,  /* from start_ns on something else than the events of this key may end it */
    EVENT_TABLE,    /* a reader of that node's shared table accepted the key, and says that it must not be */
    EVENT_KINDS
};

/* What a refusal said. */
enum event_code { CODE_NONE, CODE_REVOKED, CODE_REPLACED, CODE_OTHER };

struct event {
    int64_t start_ns; /* before the first byte without which the request cannot have arrived was sent */
    int64_t end_ns;   /* after its answer was read, or when it was given up */
    uint32_t key;
    uint16_t status; /* 0: not known what became of it */
    uint8_t node;
    uint8_t kind, code; /* enum event_kind, enum event_code */
    uint32_t later_ms;
};

/* What the events so far say about one key. */
struct key_times {
    int64_t asked_ns;        /* its creation was asked for */
    int64_t created_ns;      /* its creation was answered */
    int64_t revoke_tried_ns; /* from then on it may be refused: the first revocation began, or its time is near */
    int64_t revoked_ns;      /* from then on it must be: a revocation was answered, and its time had come */
    int64_t lost_ns;         /* from then on its creation may be lost, because the store went back; looked up where it
                                counts */
};

struct history;

int64_t history_now_ns(void);
struct history *history_create(void);
void history_destroy(struct history *history);

/* Returns the new key's index, or HISTORY_NO_KEY when there is no room. account: the number of its account. */
uint32_t history_add_key(struct history *history, unsigned account, const char *id, const char *secret);
/* Whether the event is an attempt to end its key, and when that may have an effect first. */
bool history_ends_key(const struct event *event, int64_t *ret_from_ns);
/* An attempt to end that key is about to be sent, and may have an effect from then on: told at once, for it may have it
 * before it has an end. */
void history_revoke_begins(struct history *history, uint32_t key, int64_t from_ns);
/* Adds and judges; a violation is printed with all that is known of the key, and counted. False when it is one. */
bool history_add(struct history *history, const struct event *event);
bool history_is_full(const struct history *history);

size_t history_count(const struct history *history);
const char *history_id(const struct history *history, uint32_t key);
const char *history_secret(const struct history *history, uint32_t key);
unsigned history_account(const struct history *history, uint32_t key);
const struct key_times *history_times(const struct history *history, uint32_t key);
/* HISTORY_NO_KEY when it was never acknowledged. */
uint32_t history_find(struct history *history, const char *id);

/* What an answer's body said besides its status. */
enum event_code history_code(int status, const char *body);
/* What is wrong with an event, given what is known of its key; NULL: nothing. */
const char *history_verdict(const struct key_times *times, const struct event *event);
/* Judges every event again from nothing but the events; a check of the checks made on the way. Violations are printed
 * (the first few) and returned; ret_checked: how many checks began after their key's revocation was answered. */
size_t history_judge(struct history *history, size_t *ret_checked);

/* Violations so far, and when the first was seen (ms after history_create). */
size_t history_violations(const struct history *history);
int64_t history_first_violation_ms(const struct history *history);
/* One that no event tells: printed and counted likewise. */
void history_violation(struct history *history, const char *what, const char *which);

/* What was done to nodes and Redis, for whoever reads a violation. Any thread may call. Returns its number. */
__attribute__((format(printf, 2, 3))) size_t history_fault_begin(struct history *history, const char *format, ...);
void history_fault_end(struct history *history, size_t fault);
size_t history_fault_count(const struct history *history);

/* The store goes back to what it was. What was answered behind the first moment may be lost from the second on; what is
 * asked for behind the third one is not. Until the second is told, nothing is lost. Any thread may call. */
size_t history_loss_begins(struct history *history, int64_t at_ns);
void history_loss_strikes(struct history *history, size_t loss, int64_t at_ns);
void history_loss_ends(struct history *history, size_t loss, int64_t at_ns);
/* Since when a change that was asked for and answered at these times may be lost; HISTORY_NEVER: it is not. */
int64_t history_lost_ns(struct history *history, int64_t asked_ns, int64_t answered_ns);
/* An operator accepts what is lost. Returns when one did last; 0: never. */
void history_loss_accepted(struct history *history, int64_t at_ns);
int64_t history_last_accepted_ns(struct history *history);

/* Every event and fault, one a line, in columns separated by tabs. */
void history_write(struct history *history, FILE *out);
