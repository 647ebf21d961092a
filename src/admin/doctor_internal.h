/* What doctor checks, apart from how it finds out. */
#pragma once
#include "config/settings.h"
#include "key_census_internal.h"
#include "store/store.h"

enum doctor_status { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

enum { DOCTOR_DETAIL_BYTES = 512, DOCTOR_CHECKS_MAX = 32 + KEYRING_MAX_GENERATIONS };

struct doctor_check {
    const char *name;
    enum doctor_status status;
    char detail[DOCTOR_DETAIL_BYTES];
    const char *remedy; /* a sentence; NULL with DOCTOR_OK */
};

struct doctor_report {
    struct doctor_check checks[DOCTOR_CHECKS_MAX];
    size_t count;
};

struct doctor_evidence {
    const struct settings *settings;
    bool is_reachable;
    const char *trouble; /* why not */
    struct store_facts facts;
    /* Of the name in redis://, but those of this machine itself: more than one of a kind are several servers. */
    unsigned addresses_v4, addresses_v6;
    const char *key_trouble; /* NULL: the master key files are fine */
    bool is_counted;         /* the census was taken */
    struct key_census census;
    const char *origin_trouble;
    uint64_t file_limit; /* the hard one: the node raises the soft one to it */
};

/* A check for each thing that a deployment needs. */
void doctor_evaluate(const struct doctor_evidence *evidence, struct doctor_report *ret_report);
/* No check has failed. */
bool doctor_is_fit(const struct doctor_report *report);
