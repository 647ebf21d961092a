/* Every cap of the domain, with its reason. What an operator may change is in app/settings.c instead. */
#pragma once

enum {
    KEY_NAME_MAX_CHARS = 200, /* spec 2.1, in code points */
    KEY_NAME_MAX_BYTES = 800, /* four bytes a code point at most */
    EMAIL_MAX_BYTES = 254,    /* RFC 5321 4.5.3.1.3, less the angle brackets */
    ACCOUNT_NAME_MAX_CHARS = 200,
    ACCOUNT_NAME_MAX_BYTES = 800,
    PASSWORD_MIN_CHARS = 12, /* api.md 5 */
    PASSWORD_MAX_CHARS = 256,
    PASSWORD_MAX_BYTES = 1024, /* four bytes a code point; hashing cost does not grow with it */
    LIST_LIMIT_MAX = 100,
    LIST_LIMIT_DEFAULT = 20,
    USAGE_DAYS_MAX = 366,
    USAGE_KEYS_LISTED = 100, /* the most used keys; a full list would grow with the account */
    USAGE_CELLS_MAX = 9000,  /* days of keys in one answer: 100 keys in 90 days */
    CLIENT_REQUEST_ID_MAX_BYTES = 64,
    /* A body that comes without a credential. The longest that is of use is an email and a password with every
     * character escaped, some 3.5 KiB. */
    STRANGER_BODY_MAX_BYTES = 4096,
    LEASE_MS_MAX = 10000, /* a revocation may have to wait 1.25 times as long; upgrade all nodes before raising it */
    REDIS_PREFIX_MAX_BYTES = 64, /* it is in every name, and in a command of fixed size */
};
