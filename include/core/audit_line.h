/* The lines of the audit log: one JSON object each.
 *
 *   {"chain":"…","seq":7,"time":"…","node":"…","id":"evt_…","account":"acct_…","type":"api_key.revoked","actor":"usr_…",
 *    "actor_kind":"user","target":"key_…","target_kind":"api_key","ip":"…","request_id":"…","data":{…},
 *    "prev":"<MAC of the line before>","mac":"<MAC of this line>"}
 *
 * A MAC is the HMAC-SHA-256 of the line's bytes before ',"mac":', under a key derived from the master key. It covers
 * `prev`, so each line vouches for all lines before it. The lines of a node form a chain; `seq` counts from 1. Besides
 * events, a chain has lines about itself and about other chains (AUDIT_LINE_…). */
#pragma once
#include "core/id.h"
#include "core/keyring.h"

enum {
    AUDIT_CHAIN_CHARS = 16,
    AUDIT_MAC_CHARS = 43,
    AUDIT_NODE_BYTES = 200,
    AUDIT_LINE_DATA_MAX = 16,
    AUDIT_LINE_MAX_BYTES = 160 * 1024, /* longer than the longest that audit_body_print() makes */
};

#define AUDIT_LINE_BEGAN "log.began"         /* a new chain; `prev` is AUDIT_NO_MAC */
#define AUDIT_LINE_CONTINUED "log.continued" /* a new file of the same chain */
/* The file was removed, replaced or cut: lines `lost_from` to `lost_to` are gone from it. lost_from 0: not known. */
#define AUDIT_LINE_REOPENED "log.reopened"
#define AUDIT_LINE_TORN "log.torn"       /* follows a line that a crash or a full disk cut short */
#define AUDIT_LINE_HEAD "log.head"       /* how far another node's chain has come: data chain, node, seq, mac, time */
#define AUDIT_LINE_STARTED "log.started" /* the node has started; if no AUDIT_LINE_ENDED came before, it was killed */
#define AUDIT_LINE_RESUMED "log.resumed" /* the log can be written again; missing events follow, taken over */
#define AUDIT_LINE_ENDED "log.ended"     /* the node has stopped */
#define AUDIT_NO_MAC "-------------------------------------------"

/* Where a chain ends. */
struct audit_head {
    char chain[AUDIT_CHAIN_CHARS + 1];
    uint64_t seq; /* 0: no line yet */
    char mac[AUDIT_MAC_CHARS + 1];
};

struct audit_line_datum {
    struct text name, value;
};

/* The content of a line. Empty texts become null. */
struct audit_line {
    int64_t time_ms;
    struct text node, id, account, type, actor, target, ip, request_id;
    size_t data_count;
    struct audit_line_datum data[AUDIT_LINE_DATA_MAX];
};

/* "api_key", "device_key", "user", or empty. Of actors also "operator", "system" and "holder"; of targets also
 * "account" and "device" (target is the name that a device gave itself). */
struct text audit_actor_kind(struct text actor);
struct text audit_target_kind(struct text type, struct text target);

/* Begins the chain of a new log. */
void audit_head_begin(struct audit_head *ret_head);
/* Appends the part that does not depend on the place in the chain. Texts are cut after 1,000 bytes. */
void audit_body_print(const struct audit_line *line, struct buf *out);
/* Appends the line with this body, and its newline, behind *head, which moves on. */
void audit_line_print(struct keyring *keyring, struct text body, struct audit_head *head, struct buf *out);

/* A line about the chain itself, with so many of the numbers as have a name. */
struct audit_number {
    const char *name;
    uint64_t value;
};
void audit_line_print_own(struct keyring *keyring, struct text node, const char *type, struct audit_number first,
                          struct audit_number second, struct audit_head *head, struct buf *out);

enum audit_line_state {
    AUDIT_LINE_GENUINE,
    AUDIT_LINE_ALTERED,    /* a line, but none of our master keys made its MAC */
    AUDIT_LINE_UNREADABLE, /* no line, or only a part of one */
};

/* The parts of a line that the verifier needs. Trust them only if the line is genuine. */
struct audit_line_read {
    struct audit_head head; /* the line's own chain, seq and MAC */
    char prev[AUDIT_MAC_CHARS + 1];
    char type[40], node[AUDIT_NODE_BYTES], time[32];
    struct audit_head other; /* of AUDIT_LINE_HEAD; else chain is empty */
    char other_node[AUDIT_NODE_BYTES];
    uint64_t lost_from; /* of AUDIT_LINE_REOPENED */
};
/* line: without its newline. keyring NULL: checks the form only; a well-formed line is AUDIT_LINE_ALTERED. */
enum audit_line_state audit_line_read(struct keyring *keyring, struct text line, struct audit_line_read *ret_line);

/* Finds the last genuine line in a file's last bytes; its newline may be missing. False if there is none. *ret_after:
 * bytes behind it. */
MUST_CHECK bool audit_line_find_last(struct keyring *keyring, struct text end, struct audit_line_read *ret_line,
                                     size_t *ret_after);

/* An event that says that a key was revoked, and when it was written. */
struct audit_key_end {
    struct id key, account;
    int64_t at_ms;
};
/* Whether the line may be one; quickly, and on any thread. */
bool audit_line_may_end_key(struct text line);
/* False: it is none, or is not genuine. line: as for audit_line_read(). */
MUST_CHECK bool audit_line_read_key_end(struct keyring *keyring, struct text line, struct audit_key_end *ret_end);

/* The end of a node's chain, as it publishes it: "<time ms> <seq> <mac> <seq of the last event> <tag> <node>". The tag
 * is a MAC that binds the head to its chain, so nobody who writes to Redis can forge one. */
struct audit_published {
    struct audit_head head;
    uint64_t event_seq;
    int64_t time_ms;
    char node[AUDIT_NODE_BYTES];
};
void audit_published_print(struct keyring *keyring, const struct audit_published *published, struct buf *out);
/* False: malformed, or not made with our master key. */
MUST_CHECK bool audit_published_read(struct keyring *keyring, struct text chain, struct text value,
                                     struct audit_published *ret_published);
