/* Verifies audit logs (core/audit_line.h): the files of several nodes, and the pieces of each in any order. Reads them
 * line by line, then reports what is whole and what is not. Takes about 150 bytes of memory per line.
 *
 * A chain alone proves what is between its first line and its last, not that they are its first and last. So whatever
 * nobody else confirms is reported as not proven. */
#pragma once
#include "core/audit_line.h"
#include "core/audit_signed.h"

enum audit_finding_kind {
    /* Somebody, or the disk, changed something. */
    AUDIT_CHANGED,    /* this line was altered, or made with another master key */
    AUDIT_UNREADABLE, /* this line does not belong to the log */
    AUDIT_MISSING,    /* lines seq to seq_end are in no file */
    AUDIT_REORDERED,  /* this line follows a later one */
    AUDIT_FORKED,     /* this line exists in two forms, or does not follow the one before it: the log was put back to an
                         earlier state, and the node went on from there */
    AUDIT_LOST,       /* lines seq to seq_end are in no file: theirs was removed, replaced or cut, as this line says */
    AUDIT_CUT,        /* the chain ends at seq - 1, but this line, in another node's file, saw it reach seq_end */
    /* Something may be missing, and nothing here can tell. */
    AUDIT_UNFINISHED,  /* the file's last line is incomplete: being written, or cut */
    AUDIT_EARLIER,     /* the chain continues an earlier file: lines seq to seq_end are not in these files */
    AUDIT_NOT_GIVEN,   /* this line, or a witness, names a chain whose file was not given */
    AUDIT_ABSENT,      /* these signed heads have one that no line has: its log was not given, or somebody with
                          the master key cut or replaced it */
    AUDIT_UNCONFIRMED, /* nobody confirms that the chain ends here: lines seq to seq_end were seen by nobody else */
    /* Worth knowing, and not wrong in itself. */
    AUDIT_TORN,     /* a crash or a full disk cut this line short before it was confirmed, and the node noted it */
    AUDIT_REPEATED, /* lines seq to seq_end appear more than once */
};
enum audit_weight { AUDIT_WRONG, AUDIT_UNPROVEN, AUDIT_NOTE };

struct audit_finding {
    enum audit_finding_kind kind;
    const char *chain, *node; /* of the log in question; empty if unknown */
    uint64_t seq, seq_end;
    const char *file; /* with the line where it shows, or the name of a witness */
    uint64_t line;    /* 0: of a witness */
};
enum audit_weight audit_finding_weight(enum audit_finding_kind kind);

/* One chain, as far as these files have it. */
struct audit_chain_summary {
    const char *chain, *node;
    uint64_t first, last, lines; /* first and last `seq`, number of genuine lines */
    char first_time[32], last_time[32];
    bool has_ended;                          /* its last line says that the node stopped */
    char last_mac[AUDIT_MAC_PART_CHARS + 1]; /* of the last line, as far as witnesses need it; empty: there is none */
    uint64_t seen;      /* the last `seq` that other chains here, or witnesses, have seen; 0: none */
    char seen_time[32]; /* when they did; empty: not known */
    bool is_whole;      /* no finding is wrong */
    bool has_beginning; /* nothing before the first line is missing, or it was seen before */
};

/* A witness of a chain outside these files: Redis, or somebody who verified it before. */
struct audit_witness {
    const char *name;              /* for findings; a constant */
    const struct audit_head *head; /* an empty MAC: not known. seq 0: there is such a chain, and no more is known */
    const char *node;
    int64_t time_ms; /* when; 0: not known */
    bool is_current; /* it has seen the chain just now: lines behind its head are new */
    bool has_it_all; /* it has verified the chain from its first line on */
};

struct audit_verifier;

struct audit_verifier *audit_verifier_create(struct keyring *keyring);
void audit_verifier_destroy(struct audit_verifier *verifier);
/* name: for findings; copied. */
void audit_verifier_begin_file(struct audit_verifier *verifier, const char *name);
/* Before audit_verifier_judge(). All of it is copied, except for the name. */
void audit_verifier_witness(struct audit_verifier *verifier, const struct audit_witness *witness);
/* Before audit_verifier_judge(). Copies what it needs; name: for findings. */
void audit_verifier_expect(struct audit_verifier *verifier, struct text name, const struct audit_signed *heads);
/* In the file's order. line: without its newline. is_whole: it had one. */
void audit_verifier_add(struct audit_verifier *verifier, struct text line, bool is_whole);
/* After the last file. The results are as long-lived as the verifier. */
void audit_verifier_judge(struct audit_verifier *verifier);
size_t audit_verifier_findings(const struct audit_verifier *verifier, const struct audit_finding **ret_findings);
size_t audit_verifier_chains(const struct audit_verifier *verifier, const struct audit_chain_summary **ret_chains);
