/* Every fixed limit of the domain, with its reason. Limits that an operator may change are in config/settings.c. */
#pragma once

enum {
    KEY_NAME_MAX_CHARS = 200, /* in code points */
    KEY_NAME_MAX_BYTES = 800, /* up to four bytes per code point */
    EMAIL_MAX_BYTES = 254,    /* RFC 5321 4.5.3.1.3, less the angle brackets */
    ACCOUNT_NAME_MAX_CHARS = 200,
    ACCOUNT_NAME_MAX_BYTES = 800,
    PASSWORD_MIN_CHARS = 12, /* src/api/README.md#console-sessions */
    PASSWORD_MAX_CHARS = 256,
    PASSWORD_MAX_BYTES = 1024, /* four bytes per code point; the cost of hashing does not grow with it */
    LIST_LIMIT_MAX = 100,
    LIST_LIMIT_DEFAULT = 20,
    USAGE_DAYS_MAX = 366,
    USAGE_KEYS_LISTED = 100, /* the most used keys; a full list would grow with the account */
    USAGE_CELLS_MAX = 9000,  /* days times keys in one response: 100 keys over 90 days */
    CLIENT_REQUEST_ID_MAX_BYTES = 64,
    /* A body without a credential. The longest useful one is an email and a password with every character escaped,
       about 3.5 KiB. */
    STRANGER_BODY_MAX_BYTES = 4096,
    STRANGER_TEXT_MAX_BYTES = 65536, /* a log with leaked secrets in it */
    /* A key that will be revoked sooner than that is read for each check: others are remembered for up to 300 s, by a
     * clock that may run 10 % slow. */
    KEY_ENDS_SOON_MS = 360000,
    WATCHERS_MAX = 4096, /* each may hold a page of events while it reads slowly: 30 KB, with 256 partitions 300 KB */
    AUDIT_EVENTS_MOST = 100000000, /* per account and class, that --audit-max can keep */
    LEASE_MS_MAX = 10000,          /* a revocation may wait 1.25 times as long; upgrade all nodes before raising it */
    PREFIX_MAX_BYTES = 64,
    REDIS_PREFIX_MAX_BYTES =
        PREFIX_MAX_BYTES + 6, /* with "{255}:"; part of every name, and of a command of fixed size */
};
