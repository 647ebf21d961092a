/* The table: a node shares what it may answer from its cache with readers in processes of their own (gateways), in a file
 * that they map. A reader asks nobody; a node never knows that it is read.
 *
 * The promise: once a revocation has been answered, no reader accepts the key for a request that comes later; nor one that
 * comes at a key's scheduled end or later, or after the node was told a time behind that. And whatever is accepted is
 * accepted with the key's own scope.
 *
 * One node, which may be killed at any step and started again, and one reader: readers change nothing, so that each is
 * alone. Redis and the revoker are what barrier.pml has proven of them: a heartbeat registers, its echo comes behind all
 * invalidations, and a lease ends at most L after the heartbeat. Each step of the reader is a step of its own. It may be
 * paused for any time, or for ever, which is how it dies. So may the node. All see the same memory, in this order: that is
 * for fences to achieve. Two slots: in the first is key A or key X, in the second key B, whose account is A's. X is not
 * revoked, and has another scope. The machine has one CLOCK_BOOTTIME, which begins again when it does.
 *
 * Every rule holds by default; -DNO_<RULE> removes one, and the promise must then break:
 *   of a node
 *   NO_TABLECLEAR     it acknowledges an invalidation, and clears the entry a moment later
 *   NO_TABLENEXT      it clears before it acknowledges, but looks at the next messages first
 *   NO_TABLEINDEX     an invalidation clears what the cache has: an entry that was evicted there is not found
 *   NO_TABLEACCOUNT   an account's invalidation clears the first of its entries (-DACCOUNT)
 *   NO_TABLESUSPENDED an entry is put without a look at the suspended accounts (-DACCOUNT)
 *   NO_TABLEFILL      an entry is put from a reply that may not fill the cache
 *   NO_TABLESESSION   entries stay when a session ends
 *   NO_TABLELEAVE     a node that leaves lets the lease in the table run
 *   NO_TABLENEW       a node goes on with the table that it finds
 *   NO_TABLEFROM      the lease's end is counted from the clock when it is written, by what was left of the lease before
 *   NO_TABLEJUMP      a node that is told a later time than can be keeps its entries (-DENDING)
 *   of a reader
 *   NO_TABLESEQUENCE  it copies an entry while that changes
 *   NO_TABLELEASE     it does not look at the lease
 *   NO_TABLEORDER     it does not look at the sequence again when it has seen the lease
 *   NO_TABLECLOCK     it reads the clock before the request comes
 *   NO_TABLEEPOCH     it does not compare the entry's epoch with the table's
 *   NO_TABLEAGAIN     it does, with the table's as it was before it looked at the lease
 *   NO_TABLEBOOT      it takes a table of before the machine was started
 *   NO_TABLEUNTIL     it does not compare the clock with the entry's end (-DENDING)
 * NO_TABLEWITHDRAW (the lease in the table runs on when a session ends) is expected to hold: see README.md.
 * -DACCOUNT: the account of A and B is suspended, instead of A revoked. -DENDING: A ends at END, and is not revoked.
 * -DLAST=n: the end of time; -DEPOCHS=n: how often a session ends, at most.
 * -DKILL: the node is killed once, and started again; -DREBOOT: so is the machine.
 * -DEACH: when a session ends its entries are cleared one by one; no entry has an epoch, and no reader looks at it.
 * -DPROBE=n asserts that a case is never reached; it must fail, which shows that the search gets there.
 */
#ifndef LAST
#define LAST 1   /* the end of time */
#endif
#ifndef EPOCHS
#define EPOCHS 1 /* how often all entries are cleared, at most */
#endif
#define L 1
#define END 1 /* when A ends, with -DENDING */
#define NEVER 9

#define NONE 0
#define A 1
#define X 2
#define B 3
#ifdef ACCOUNT
#define SLOTS 2
#else
#define SLOTS 1
#endif
#ifndef PROBE
#define PROBE 0
#endif

mtype = { INV, ECHO };

byte now;      /* the true time, */
byte started;  /* when the machine was started, */
bit boot;      /* and its boot id */
#define CLOCK (now - started)
bool once;     /* the node was killed, or the machine started again */
bool dying;    /* of the node, */
bool shutdown; /* of the reader */

/* The tables: that of the first run, and that of the second. */
typedef entry_t {
    bool odd; /* its sequence number is odd: it is being written */
    byte key, scope, until, epoch
};
typedef table_t {
    byte lease, epoch;
    bit boot;
    entry_t slot[SLOTS]
};
table_t table[2];
bit path;         /* the one that a reader finds when it looks, */
bit mine;         /* the one that it has, */
bit which;        /* the slot that it copies, */
byte seen;        /* and that one's sequence number. Numbers never come again (they have 64 bits), so that it is: */
#define NOT_YET 0
#define THE_SAME 1
#define ANOTHER 2 /* the number has changed since */
#define WRITES(n) seen = (seen != NOT_YET && mine == own && which == n -> ANOTHER : seen)

/* Redis and the revoker. */
chan inv = [2] of { mtype, byte }; /* to the node, in order: INV, or ECHO of the clock when its heartbeat was sent */
bool subscribed;
byte registered, acked; /* a bit for each run */
byte waits_for, asked;
bool revoked, answered;
bool jumped, told[2]; /* Redis' clock was set forward behind END; and which run of the node knows */

#define T table[own]
#define E table[own].slot[n]
#ifdef ENDING
#define UNTIL (END - started)
#else
#define UNTIL NEVER
#endif

/* A write of an entry is four steps; each may be the last. */
inline write(n, k) {
    d_step { E.odd = true; WRITES(n) };
    d_step { E.key = k; E.until = ((k) == A || (k) == B -> UNTIL : 0) };
    d_step { E.scope = k; E.epoch = ((k) == NONE -> 0 : T.epoch) };
    d_step { E.odd = false; WRITES(n) }
}
inline clear(n, k) {
    if
    :: E.key == k -> write(n, NONE)
    :: else
    fi
}
#ifdef NO_TABLEINDEX
#define FINDS had
#else
#define FINDS true
#endif
inline clear_revoked() {
    if
    :: FINDS -> clear(0, A)
    :: else
    fi;
#if defined(ACCOUNT) && !defined(NO_TABLEACCOUNT)
    clear(1, B)
#else
    skip
#endif
}

inline clear_all() {
#ifdef EACH
    clear(0, A);
#if SLOTS > 1
    clear(1, B);
#endif
    d_step { clears++ }
#else
    d_step { clears++; T.epoch++ }
#endif
}

/* After the one revocation nobody asks who is registered. */
inline acknowledge() { acked = (answered -> 0 : acked | (1 << own)) }
inline enrol() { registered = (revoked -> 0 : registered | (1 << own)) }

/* The connection is lost: all that is in flight, too. */
inline disconnect() {
    subscribed = false;
    do :: nempty(inv) -> inv?_,_ :: empty(inv) -> break od;
    skip
}

#ifdef NO_TABLEFILL
#define MAY_PUT says_yes
#else
#define MAY_PUT cached
#endif
#if defined(ACCOUNT) && !defined(NO_TABLESUSPENDED)
#define NOT_SUSPENDED (!suspended)
#else
#define NOT_SUSPENDED true
#endif
#define IDLE 0
#define SENT 1
#define SAYS_YES 2
#define SAYS_SUSPENDED 3 /* and the record may be used when that is over */
byte rd;             /* the read in flight, of both records */
byte clears;         /* how often all entries were cleared */

proctype run_node()
{
    bool up, broken, left; /* a session; the end of its connection was noticed; it has left */
    bool cached, clean;    /* the records of A and B are in the cache; none forbids the read under way to fill it */
    bool says_yes;         /* a reply ever said that they may be used */
    bool suspended;        /* their account is in the node's set */
    bool had, pending;
    byte sent, rest;
    bit own;

begin:
    {
        do
        :: d_step { !up && !left && !broken && !subscribed -> up = true; subscribed = true; cached = false; clean = false }
        /* The session's end. The next one begins when all this is done. */
        :: d_step { up && !subscribed && clears < EPOCHS -> up = false; broken = true; cached = false; clean = false; pending = false };
#ifndef NO_TABLEWITHDRAW
           T.lease = 0;
#endif
#ifndef NO_TABLESESSION
           clear_all();
#endif
           broken = false
        /* A heartbeat, which Redis runs at once, or not at all. */
        :: d_step { up && subscribed && !inv??[ECHO,_] && T.lease < CLOCK + L -> enrol(); inv!ECHO,CLOCK }
        :: d_step { up && inv?[ECHO,_] -> inv?ECHO,sent
#ifdef NO_TABLEFROM
              ; rest = (sent + L > CLOCK -> sent + L - CLOCK : 0)
#endif
              };
           d_step {
#ifdef NO_TABLEFROM
              T.lease = CLOCK + rest;
#else
              T.lease = sent + L;
#endif
              sent = 0; rest = 0 }
        /* A read: of what is not cached, or a refresh. */
        :: d_step { rd == IDLE && up -> rd = SENT; clean = up }
        :: d_step { rd >= SAYS_YES -> suspended = suspended || rd == SAYS_SUSPENDED; rd = IDLE; cached = cached || (clean && up); clean = false
#ifdef NO_TABLEFILL
              ; says_yes = true
#endif
              }
        :: d_step { cached && T.slot[0].key == A -> cached = false } /* evicted */
        /* A put. */
        :: d_step { MAY_PUT && NOT_SUSPENDED && !left && T.slot[0].key != A }; write(0, A)
        :: d_step { !left && T.slot[0].key == A }; write(0, X)
#ifdef ACCOUNT
        :: d_step { MAY_PUT && NOT_SUSPENDED && !left && T.slot[1].key != B }; write(1, B)
#endif
        /* An invalidation. */
        :: d_step { up && inv?[INV,_] && !pending -> inv?INV,_; clean = false; had = cached;
#ifdef ACCOUNT
              suspended = true
#else
              cached = false
#endif
              };
#ifdef NO_TABLECLEAR
           if :: acknowledge() :: skip fi;
           clear_revoked();
#elif defined(NO_TABLENEXT)
           pending = true;
#else
           clear_revoked();
           if :: acknowledge() :: skip fi;
#endif
           had = false
#ifdef NO_TABLENEXT
        :: pending -> clear_revoked(); d_step { pending = false; acknowledge() }
#endif
#ifdef ENDING
        :: d_step { up && jumped && !told[own] && clears < EPOCHS -> cached = false; clean = false };
#ifndef NO_TABLEJUMP
           clear_all();
#endif
           told[own] = true
#endif
        /* It leaves. */
        :: d_step { up && !left -> left = true; cached = false; clean = false };
#ifndef NO_TABLELEAVE
           T.lease = 0;
#endif
           d_step { up = false; disconnect(); registered = registered & ~(1 << own) }
        od
    } unless {
        d_step { dying -> dying = false; up = false; broken = false; left = false; cached = false; clean = false; rd = IDLE;
            says_yes = false; suspended = false; had = false; pending = false; sent = 0; rest = 0; disconnect() }
    };
    d_step {
#ifndef NO_TABLENEW
        own = 1;
#endif
        T.boot = boot };
    path = own;
    goto begin
}

#if defined(ACCOUNT)
#define ANSWER (revoked -> SAYS_SUSPENDED : SAYS_YES)
#elif defined(ENDING)
#define ANSWER (jumped || now >= END -> IDLE : SAYS_YES) /* a refusal changes nothing */
#else
#define ANSWER (revoked -> IDLE : SAYS_YES)
#endif

inline have_answered() { answered = true; waits_for = 0; acked = 0; asked = 0 }

/* Whoever takes a step while the node dies might have done so before. */
proctype run_redis()
{
    do
    :: d_step { !dying && rd == SENT -> rd = ANSWER }
    :: d_step { !dying && subscribed -> disconnect() }
#ifdef ENDING
    :: d_step { !dying && !jumped -> jumped = true }
#else
    :: d_step { !dying && !revoked -> revoked = true; asked = now; waits_for = registered; registered = 0;
          if
          :: subscribed -> inv!INV,0
          :: else
          fi }
    :: d_step { !dying && revoked && !answered && (waits_for & ~acked) == 0 ->
#if PROBE == 11
          assert(waits_for == 0);
#endif
          have_answered() }
    :: d_step { !dying && revoked && !answered && now >= asked + L ->
#if PROBE == 12
          assert((waits_for & ~acked) == 0);
#endif
          have_answered() }
#endif
    :: d_step { !dying && now < LAST -> now++ }
#ifdef KILL
    :: d_step { !dying && !once -> once = true; dying = true }
#endif
#ifdef REBOOT
    :: d_step { !dying && !once -> once = true; dying = true; shutdown = true; boot = 1; started = now }
#endif
    od
}
#define M table[mine]
#define S table[mine].slot[which]
#define FORGET late = false; clock = 0; seen = NOT_YET; scope = 0; epoch = 0; present = 0; which = 0; want = A

#define forget(entry) entry.odd = false; entry.key = NONE; entry.scope = NONE; entry.until = 0; entry.epoch = 0

#ifdef NO_TABLELEASE
#define UNDER_LEASE true
#else
#define UNDER_LEASE (clock < M.lease)
#endif
#ifdef NO_TABLEBOOT
#define OF_THIS_BOOT true
#else
#define OF_THIS_BOOT (M.boot == id)
#endif
#ifdef NO_TABLEUNTIL
#define BEFORE_END true
#else
#define BEFORE_END (clock < S.until)
#endif
#ifdef NO_TABLESEQUENCE
#define ODD false
#define SAME true
#else
#define ODD S.odd
#define SAME (seen == THE_SAME)
#endif
#if defined(EACH) || defined(NO_TABLEEPOCH)
#define OF_THIS_EPOCH true
#elif defined(NO_TABLEAGAIN)
#define OF_THIS_EPOCH (epoch == present)
#else
#define OF_THIS_EPOCH (epoch == M.epoch)
#endif

inline look_at_lease() {
    if
    :: UNDER_LEASE && OF_THIS_BOOT
    :: atomic { else ->
#if PROBE == 1
       assert(M.lease == 0);
#endif
#if PROBE == 2
       assert(!UNDER_LEASE);
#endif
       goto done }
    fi
}

/* The entry is read in two halves. */
inline copy_entry() {
    if
    :: d_step { !ODD -> seen = THE_SAME }
    :: d_step { ODD ->
#if PROBE == 3
       assert(false);
#endif
       skip };
       goto done
    fi;
    if
    :: S.key == want && BEFORE_END
    :: atomic { else ->
#if PROBE == 4
       assert(S.key != want);
#endif
       goto done }
    fi;
    d_step { scope = S.scope; epoch = S.epoch };
    if
    :: SAME
    :: else ->
#if PROBE == 5
       assert(scope != X);
#endif
       goto done
    fi
}

/* After the lease. */
inline look_again() {
#ifdef NO_TABLEORDER
    seen = NOT_YET
#else
    if
    :: d_step { SAME -> seen = NOT_YET }
    :: atomic { else ->
#if PROBE == 14
       assert(false);
#endif
       goto done }
    fi
#endif
}

/* Nobody looks at it any more. */
inline forget_old() { forget(table[0].slot[0]); table[0].lease = 0; table[0].epoch = 0 }

/* A clock that is read later than in the step in which the request comes refuses more. */
proctype run_reader()
{
    byte want = A, clock, scope, epoch, present;
    bool late;
    bit id; /* of the boot */

begin:
    {
        do
        :: d_step { mine != path -> mine = path; forget_old() } /* it sees that the table was replaced */
        ::
#ifdef NO_TABLECLOCK
           clock = CLOCK;
#endif
           atomic { /* the request comes */
#ifndef NO_TABLECLOCK
               clock = CLOCK;
#endif
#ifdef ENDING
               late = now >= END || told[mine];
#else
               late = answered;
#endif
               if
               :: true
#ifdef ACCOUNT
               :: want = B; which = 1
#endif
               fi };
#ifdef NO_TABLEAGAIN
           present = M.epoch;
#endif
           copy_entry();
           look_at_lease();
           look_again();
           if
           :: OF_THIS_EPOCH ->
#if PROBE == 6
              assert(false);
#endif
#if PROBE == 7
              assert(mine == 0);
#endif
#if PROBE == 8
              assert(mine == path);
#endif
#if PROBE == 9
              assert(!revoked);
#endif
#if PROBE == 13
              assert(want == A);
#endif
              assert(!late);
              assert(scope == want)
           :: else ->
#if PROBE == 10
              assert(false);
#endif
              skip
           fi;
done:      atomic { FORGET }
        od
    } unless {
        d_step { shutdown -> shutdown = false; FORGET; mine = path; id = boot; if :: mine == 1 -> forget_old() :: else fi; skip }
    };
    goto begin
}

init {
    atomic { run run_node(); run run_redis(); run run_reader() }
}
