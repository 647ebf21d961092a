/* One-time links in Redis: invitations, and resets of users. Redis holds only a keyed digest of the code, and a MAC
 * over everything that the link grants. */
#pragma once
#include "core/account.h"
#include "core/token.h"
#include "core/totp.h"
#include "core/user_agent.h"
#include "records/account_store.h"
#include "engine/partitions.h"

enum {
    LINK_LIFETIME_MS = 72 * 60 * 60 * 1000,
    LINK_MAKER_BYTES = ID_TEXT_BYTES,
    LINK_NETWORK_BYTES = 48,
    LINK_OPENINGS_MAX = 5, /* kept; as in link_open.lua */
};

struct link_record {
    uint8_t digest[KEYRING_DIGEST_BYTES]; /* of the code */
    struct id id;
    struct id account;
    char email[EMAIL_MAX_BYTES + 1];
    char account_name[ACCOUNT_NAME_MAX_BYTES + 1];
    enum role role;
    struct id user;            /* empty: an invitation */
    char by[LINK_MAKER_BYTES]; /* "usr_…", "key_…" or "operator" */
    int64_t created_ms;
    int64_t expires_ms;
    struct record_mac mac;                  /* as stored */
    bool has_totp;                          /* a browser has started, not long ago */
    uint8_t totp_sealed[TOTP_SEALED_BYTES]; /* by the caller of link_store_start() */
};

/* Makes an invitation: set digest, id, account, email and role before; the rest is filled in by done, and link must
 * live until then. It replaces an earlier one to the same email. The email stays free. STORE_CONFLICT: it has a user.
 * STORE_REFUSED: no such account. STORE_FULL: the account has its maximum of people. STORE_LIMITED: as for keys. Event:
 * user.invited. */
void link_store_invite(struct partitions *partitions, struct link_record *link, const struct audit_source *source,
                       store_limited *done, void *arg);

/* links: newest first, valid during the call; only those that can be used. */
typedef void links_listed(void *arg, enum store_result result, const struct link_record *links, size_t count,
                          bool has_more);
void link_store_list(struct store *store, const struct id *account, unsigned limit, const struct id *behind,
                     links_listed *done, void *arg);
/* STORE_OK: no node accepts the link. STORE_NOT_FOUND: the account has no such invitation. Event: user.removed. */
void link_store_withdraw(struct store *store, const struct id *account, const struct id *id,
                         const struct audit_source *source, store_done *done, void *arg);

/* Makes the link of a reset: set digest, id, account, email, role and user before; link as above. Ends the user's
 * password, authenticator, recovery codes, known browsers, sessions and links. STORE_OK: on every node.
 * STORE_NOT_FOUND: the account has no such user. STORE_REFUSED: the account would be left without an owner who can sign
 * in (never with a command's source). Events: user.reset, user.unlocked, session.ended. */
void link_store_reset(struct store *store, struct link_record *link, const struct audit_source *source,
                      store_counted *done, void *arg);

/* link: with STORE_OK, valid during the call. STORE_NOT_FOUND: no link that can be used. STORE_REFUSED: none either,
 * and the address must wait. */
typedef void link_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s);
/* The link of a code. Codes that are none count against the address. The caller keeps ip_tag, a keyed digest in hex,
 * until done. */
void link_store_find(const struct partitions *partitions, const struct token_digests *code, struct text ip_tag,
                     link_found *done, void *arg);
/* Somebody opened a link. */
struct link_opening {
    int64_t at_ms;
    char network[LINK_NETWORK_BYTES]; /* "192.0.2.7", "2001:db8::/64", or empty: none is known */
    char browser[BROWSER_NAME_BYTES];
};
/* Notes an opening; at_ms is Redis' to set. earlier: newest first, as many as are kept; valid during the call, as is
 * link. Event: link.opened, for the first 20. */
typedef void link_opened(void *arg, enum store_result result, const struct link_record *link,
                         const struct link_opening *earlier, size_t count);
void link_store_open(struct store *store, const struct link_record *link, const struct link_opening *opening,
                     const struct audit_source *source, link_opened *done, void *arg);
/* Keeps this authenticator with the link for half an hour, in place of any other. link is then as stored. */
void link_store_start(struct store *store, const struct link_record *link, const uint8_t totp_sealed[TOTP_SEALED_BYTES],
                      link_found *done, void *arg);
/* Uses the link, once. user: the new user of an invitation, or the user of a reset, with password_hash and totp_sealed
 * set. STORE_NOT_FOUND: it has ended meanwhile, another authenticator was kept with it, or the email has a user.
 * Events: user.joined; or user.password_changed and user.totp_changed. */
void link_store_use(struct partitions *partitions, const struct link_record *link, const struct user_record *user,
                    const struct audit_source *source, store_done *done, void *arg);
