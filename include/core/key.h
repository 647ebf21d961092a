/* API and device keys: their values and rules. */
#pragma once
#include "core/id.h"
#include "core/limits.h"
#include "core/record_mac.h"
#include "core/scope.h"

enum key_kind { KEY_API, KEY_DEVICE };
enum key_mode { MODE_TEST, MODE_LIVE };

/* Which keys of a person are revoked together with the person's rights. */
enum key_fate { KEYS_NONE, KEYS_MADE, KEYS_ALL };

enum { KEY_DIGEST_BYTES = 32, KEY_LAST4_BYTES = 5 };

/* Everything stored about a key. Only revoked_ms, ends_ms, end_said_ms, replaced_ends_ms, replaced_by, is_unconfirmed,
 * last_used_ms and the name ever change. */
struct key_record {
    struct id id;
    struct id account;
    enum key_kind kind;
    enum key_mode mode;
    scope_set scopes;
    int64_t created_ms;
    int64_t revoked_ms;       /* 0 while active */
    int64_t ends_ms;          /* when it will be revoked, by the store's time; 0: nobody knows, or it is revoked */
    int64_t end_said_ms;      /* when it was said when it will be revoked, or that it will not; 0: never */
    int64_t replaced_ends_ms; /* the end that a replacement has set; 0: none */
    struct id replaced_by;    /* by the last replacement, or empty */
    bool is_unconfirmed;      /* it replaces a key, and no node has accepted it yet: only use proves that it arrived */
    int64_t last_used_ms;     /* 0 when never used, or not asked for */
    bool is_suspended;        /* so is its account; not stored: only key_store_find() tells */
    bool is_ending;           /* it must not be remembered, because it ends soon; also only from there */
    struct id by;           /* the key or user that made it, or that it goes back to by replacements; empty: the command
                               line, or unknown */
    struct id origin;       /* the person it goes back to, however many keys stand between; empty: none, or unknown */
    bool is_origin_unknown; /* a key made it before records said so */
    struct id replacer; /* another person than `by`, who replaced it, or what it replaces, in the console; or empty */
    struct id replaces; /* the key that it replaces, or empty */
    struct id via;      /* the key that made the replacement, if that is not `replaces`; or empty */
    char last4[KEY_LAST4_BYTES];
    uint16_t name_len;
    char name[KEY_NAME_MAX_BYTES]; /* UTF-8, not NUL-terminated; only name_len bytes are set */
};

struct text key_name(const struct key_record *key);
/* A name that was accepted before, perhaps by another version. False: it is empty or longer than any name. */
MUST_CHECK bool key_keep_name(struct key_record *key, struct text name);
/* False unless label_valid(). */
MUST_CHECK bool key_set_name(struct key_record *key, struct text name);
void key_set_last4(struct key_record *key, struct text secret);
/* Copies only what is set: a record is mostly name. */
void key_copy(struct key_record *to, const struct key_record *from);

/* Records a key's maker. A replacement stays with the maker of the replaced key (`by`, `origin`), but one that a person
 * makes in the console goes back to that person, who sees its secret. */
void key_made_by_person(struct key_record *key, const struct id *person);
void key_made_by_key(struct key_record *key, const struct key_record *maker);
/* key: becomes a copy of the replaced one, active. actor: a key or a person. */
void key_replace_by(struct key_record *key, const struct key_record *replaced, const struct id *actor);
/* After that, if another key than the replaced one did it: whoever has that key sees the secret, so it goes back to its
 * person. */
void key_replace_with(struct key_record *key, const struct key_record *actor);
/* The origin that was found of a key whose record does not say it: a person, '-' (none), or nothing. */
void key_set_origin(struct key_record *key, struct text origin);
/* Whether a person or a key made it, or made what it replaces, or replaced it in the console. */
MUST_CHECK bool key_is_made_by(const struct key_record *key, const struct id *maker);

/* The part of a key that a check needs: who asks, and what they may do. */
struct key_principal {
    struct id id;
    struct id account;
    enum key_kind kind;
    enum key_mode mode;
    scope_set scopes;
    bool is_revoked;
    bool is_suspended; /* so is its account; never packed, because it changes without the key */
    bool is_ending;    /* this and the next two as in struct key_record; never packed */
    bool is_unconfirmed;
    int64_t ends_ms;  /* packed */
    struct text name; /* empty if only the record has it. Else it points into the record or packed form */
};
struct key_principal key_principal_of(const struct key_record *key);

/* The result of a check; the last two come without a principal. */
enum key_verdict {
    KEY_ACCEPTED,
    KEY_REVOKED,
    KEY_SUSPENDED, /* its account is */
    KEY_INVALID,   /* unknown, malformed, wrong checksum, or its record is of another kind or mode */
    KEY_UNDECIDED  /* the store did not answer */
};
/* KEY_ACCEPTED, or why a known key is refused, whatever it asks for. */
enum key_verdict key_verdict_of(const struct key_principal *key);

/* A principal in few bytes, for a cache of millions of them. Only a short name fits. */
enum { KEY_PACKED_NAME_BYTES = 16, KEY_PACKED_END_BYTES = 6 };
struct PACKED key_packed {
    uint8_t id[ULID_BYTES];
    uint8_t account[ULID_BYTES];
    uint16_t scopes;
    uint8_t is_device : 1;
    uint8_t is_live : 1;
    uint8_t is_revoked : 1;
    uint8_t name_len : 5; /* more than KEY_PACKED_NAME_BYTES: by that, less 1, and the rest of `name` is ends_ms */
    char name[KEY_PACKED_NAME_BYTES];
};
/* The ids must be well-formed. Equal principals have equal bytes. */
void key_pack(const struct key_principal *key, struct key_packed *ret_packed);
/* The name points into `packed`. */
void key_unpack(const struct key_packed *packed, struct key_principal *ret_key);

/* The stored form of a record, without last_used_ms; the tables in key.c name its fields. First a line that every
 * version reads: <id> <account> <mode> <last4> <scopes, a number> <created> <revoked, @ends, or -> <name>. Then a line
 * for each further field, "\nname=value": v, the version, comes first; by; origin, unless it is `by` ('-': none);
 * replacer; replaces; via; g, the short name of the master key that made the digest; m, the MAC, over the digest and
 * everything before m except <revoked>. Unknown lines are left alone. The MAC binds them too, unless they follow m,
 * where fields that change belong: `end` and `confirm`, which only scripts write (the prelude). A record of the first
 * version has only the first line, and perhaps `end`. */
enum { KEY_FIELDS_MAX_BYTES = 512, KEY_TEXT_MAX_BYTES = KEY_NAME_MAX_BYTES + 160 + KEY_FIELDS_MAX_BYTES };
/* digest: of the secret, under the current master key. */
void key_encode(const struct key_record *key, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                struct buf *out);
/* False unless key_encode(), in this or an earlier version, may have written it. Validates only what a check relies on:
 * of ids the kind and length, and not the name, which was validated when it was written. last_used_ms is 0. Does not
 * tell who wrote the record: key_verify() does. */
MUST_CHECK bool key_decode(struct text t, struct key_record *ret_key);
/* Whether a holder of a master key made this stored record, for that digest. */
enum record_seal key_verify(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES]);

/* The master keys behind a stored record. */
struct key_seal {
    enum record_seal seal;
    size_t generation;     /* of the MAC, if it is sealed */
    struct text made_with; /* the short name of its digest's master key; empty: unknown */
    bool is_revoked;
};
/* False: t is not a record. */
MUST_CHECK bool key_examine(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                            struct key_seal *ret);
/* Appends the record with a MAC under the current master key, otherwise unchanged. made_with: the short name of the
 * master key of the digest, for a record of the first version, which does not say; empty: unknown. False: t is not a
 * record. */
MUST_CHECK bool key_reseal(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                           struct text made_with, struct buf *out);

/* The part of a stored record that renaming replaces: from the name through the MAC, without the lines after it. */
struct key_renaming {
    struct text was; /* points into the record */
    struct text is;  /* points into storage */
};
/* A new MAC under the current master key binds the name; an unsealed record stays so. name: as label_valid(). storage:
 * empty, with room for KEY_TEXT_MAX_BYTES. False: t is not a record. */
MUST_CHECK bool key_rename(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                           struct text name, struct buf *storage, struct key_renaming *ret);

struct text key_mode_text(enum key_mode mode);
MUST_CHECK bool key_mode_parse(struct text t, enum key_mode *ret_mode);
struct text key_fate_text(enum key_fate fate); /* "none", "made", "all" */
/* Also takes "false" for none and "true" for all. */
MUST_CHECK bool key_fate_parse(struct text t, enum key_fate *ret_fate);
struct text key_kind_text(enum key_kind kind); /* "api_key", "device_key" */
enum id_kind key_id_kind(enum key_kind kind);
