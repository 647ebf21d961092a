/* A node's membership over a Redis that the test controls: heartbeats are answered at once, and echoed when the test
 * does so. */
#pragma once
#include "deadline.h"
#include "fake_redis.h"
#include "lease/lease.h"
#include "engine/lua_scripts.h"
#include "engine/store.h"
#include "test_loop.h"

enum {
    TIMEOUT_MS = 500, /* where a test waits for it to pass */
    LEASE_MS = 1000,
    LEASE_LONG_MS = 4000, /* longer than stalls are */
    SCRIPT_BYTES = 64,
    LEAVE_BYTES = 256,
};

#define NS_PER_MS UINT64_C(1000000)
#define INVALIDATIONS "t:inv"
#define DIGEST "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define REVOKER "0123456789abcdef0123456789abcdef"
#define BARRIER "fedcba9876543210"
/* Between a script's name and its arguments, if it runs whatever was lost. Others name the maker and what was answered
 * behind the store: in_our_store(). */
#define IN_OUR_STORE " 1 t:store:" FAKE_STORE_ID " t: "
#define OK_REPLY "*2\r\n$2\r\nok\r\n:1\r\n"

/* Of a script that has revoked one key; what it has become is left out. */
#define REVOKED_REPLY "*4\r\n$2\r\nok\r\n:0\r\n*0\r\n*1\r\n$2\r\nok\r\n"

struct lease_world {
    uv_loop_t loop;
    struct fake_redis *fake;
    struct fake_redis *sentinel; /* NULL: none */
    char address[64];            /* as the Sentinel names it */
    struct store *store;
    uint32_t timeout_ms;     /* PATIENCE_MS, unless set after open_fake() */
    const char *prefix;      /* likewise; "t:" */
    struct keyring *keyring; /* likewise; NULL. The test destroys it */
    int64_t min_replicas;    /* likewise; Redis has as many as a WAIT may ask for */
    bool is_safe;            /* likewise: the Redis must be durable */
    unsigned store_told;     /* how often it reported that it is ready, or no longer ready */
    struct membership *member;
    char heartbeat[SCRIPT_BYTES], leave[SCRIPT_BYTES], gather[SCRIPT_BYTES]; /* how these commands begin */
    unsigned echoed;                                                         /* heartbeats, by has_lease_by_echoes() */
    unsigned subscribed; /* how often, when it had its first lease */
    unsigned ended, invalidated;
    uint8_t digest[KEY_DIGEST_BYTES];
    uint64_t epoch_when_told;
    bool is_member_closed, is_store_closed;
};
extern struct lease_world w; /* each test has a process of its own */

/* .init of suites. */
void ignore_sigpipe(void);

void open_fake(void); /* then rules, then join() */
void rule(const char *command, enum fake_action action, const char *answer, unsigned times);
void open_sentinel(void); /* then it names the Redis */
void join(uint32_t lease_ms);
void open_with_lease(uint32_t lease_ms); /* all of it */
void close_world(void);                  /* nothing may be left in the loop */
/* From now on, calls of the store time out after TIMEOUT_MS. */
void time_out_soon(void);

void until(test_loop_predicate *predicate, void *arg);
void until_heartbeats(unsigned count);
void until_command(const char *begin);
void until_ended(unsigned times);
bool has_lease(void *arg);
bool has_lease_by_echoes(void *arg); /* echoes what is new */
void until_first_lease(void);
unsigned subscriptions(void);
bool has_ended(void *times);
bool has_subscribed_again(void *arg); /* since its first lease */
bool is_live(void *arg);
bool may_fill(uint64_t epoch);

/* How calls of that script begin, once there is a store. */
void name_script(enum script script, char ret_command[SCRIPT_BYTES]);
/* As IN_OUR_STORE, of a member's call. change: "", ":ends" or ":other". Valid until the next call. */
const char *in_our_store(uint64_t answered, const char *change);

/* What Redis saw. */
struct heartbeat {
    char membership[64], number[32], lease[32], nonce[32], known[32], era[32];
};
void own_name(struct member_name *ret_name); /* "-": none */
unsigned heartbeats(void);
bool has_heartbeats(void *count); /* at least */
struct heartbeat heartbeat_at(unsigned n);

/* Pushes on the subscription. */
void push(const char *channel, const char *payload);
void push_own(const char *payload);
void echo(unsigned n); /* echoes the n-th heartbeat */
void echo_all(void);   /* echoes those that were not echoed yet */
