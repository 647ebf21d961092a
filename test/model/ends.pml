/* Scheduled revocations (src/lease/README.md): a key is to be revoked at END by the store's time, which is the clock of
 * Redis and never goes back. Redis' clock is set, or another Redis takes over; checks and heartbeats come in any order.
 *
 * The promise: no check that begins at END or later, by the true time, is accepted; and none that begins after its node was
 * told a time of END or later, which may come before if Redis' clock was set forward.
 *
 * One step of time is the longest that a cached entry is used. A node's clock runs at its true speed, wherever it stands, but
 * the node does not rely on it: what it was told may be a step longer ago than the least that it allows for. A heartbeat may come at any moment, or never. So may each
 * step of a check, which is what a pause is. Node 0 checks. Of other nodes only heartbeats matter.
 *
 * Every rule holds by default; -DNO_<RULE> removes one, and the promise must then break:
 *   NO_STORETIME   a node judges by its own clock, which is behind
 *   NO_TELLTIME    a heartbeat does not say what its node knows of the time
 *   NO_LEASTTIME   a check goes by an answer that is below what its node knows
 *   NO_MOSTTIME    a check goes by an answer that is below what the time can be
 *   NO_ENDSSOON    a key that ends soon is cached as any other
 *   NO_FILLAGE     a reply counts as new when it is read, however long ago the time was asked for
 *   NO_DROPONJUMP  a node that is told a later time than can be keeps its cache
 *   NO_FILLDROP    a read fills the cache although it was emptied since
 * -DNN=n nodes; -DSETS=n: how often Redis' clock is set or another Redis takes over.
 * -DPROBE=n asserts that a case is never reached; it must fail, which shows that the search gets there.
 */
#ifndef NN
#define NN 2
#endif
#ifndef SETS
#define SETS 1
#endif
#define LAST 4 /* the end of time */
#define END 3  /* when the key is to be revoked */
#define SOON 2 /* a key that ends so soon is not cached: longer than an entry is used */

#define max(a, b) ((a) > (b) -> (a) : (b))

byte now;    /* the true time */
short off;   /* how far Redis' clock is ahead of it; it was right when the end was scheduled */
short seen;  /* kept in the store since the end was scheduled: the greatest time that was seen, */
short ahead; /* and what is added to Redis' clock since that went back */
byte sets;

typedef node_t {
    short told;  /* the store's time as this node was told last, */
    byte at;     /* and when */
    bool cached; /* the key, as one that is not revoked, */
    byte since;  /* since then */
    bool dropped /* the cache was emptied since the check under way began */
};
node_t node[NN]; /* each was told the time at the beginning */

#define KNOWN(i) (node[i].told + now - node[i].at)
#define CLOCK (now + off)
#define STORE_TIME max(CLOCK + ahead, seen)

#ifdef NO_FILLAGE
#define WAITED 0
#else
#define WAITED (now - asked)
#endif
#ifdef NO_FILLDROP
#define MAY_FILL(i) true
#else
#define MAY_FILL(i) (!node[i].dropped)
#endif

/* node_heartbeat.lua, and what the node does with the reply. One step: a reply that comes late is like one of an earlier
 * heartbeat. */
inline heartbeat(i) {
    d_step {
        known = KNOWN(i);
#ifdef NO_TELLTIME
        floor = seen;
#else
        floor = max(seen, known);
#endif
        if
        :: CLOCK >= floor -> ahead = 0
        :: CLOCK < floor && CLOCK + ahead < floor -> ahead = floor - CLOCK
        :: else -> skip
        fi;
        time = CLOCK + ahead;
        seen = max(seen, time);
        if
#ifndef NO_DROPONJUMP
        :: time > known -> node[i].cached = false; node[i].dropped = true
#endif
        :: else -> skip
        fi;
        node[i].told = time;
        node[i].at = now;
        known = 0; floor = 0; time = 0
    }
}

proctype run_heartbeats(byte i)
{
    short known, floor, time;

    do
    :: now < LAST -> heartbeat(i)
    :: now == LAST -> break
    od
}

proctype run_checks(byte i)
{
    short time, least, most;
    byte asked;
    bool late;

    do
    :: atomic { node[i].cached && now - node[i].since <= 1 -> /* the cache answers */
#if PROBE == 1
       assert(false);
#endif
       assert(now < END && node[i].told < END) }
    :: atomic { late = now >= END || node[i].told >= END; /* the record has been read: the time is asked for */
       node[i].dropped = false;
       asked = now;
       most = KNOWN(i); /* by a clock that may run slow; and at least, by one that may run fast: */
       least = most;
       if
       :: now > node[i].at -> least = most - 1
       :: true -> skip
       fi }
       atomic {
#ifdef NO_STORETIME
           time = now - 1
#else
           time = STORE_TIME
#endif
       }
       atomic {
#if !defined(NO_LEASTTIME) && !defined(NO_STORETIME)
           if
           :: time < least ->
#if PROBE == 2
              assert(false);
#endif
              time = KNOWN(i)
#ifndef NO_MOSTTIME
           :: time >= least && time < most -> time = most /* not more than 1 too early */
#endif
           :: else -> skip
           fi;
#endif
           if
           :: time < END ->
              assert(!late);
              if
#ifdef NO_ENDSSOON
              :: MAY_FILL(i) -> node[i].cached = true; node[i].since = now
#else
              :: MAY_FILL(i) && END - time - WAITED > SOON -> node[i].cached = true; node[i].since = now
#endif
              :: true -> skip
              fi
           :: else -> skip
           fi;
           time = 0; least = 0; most = 0; asked = 0; late = false }
    :: now == LAST -> break
    od
}

proctype run_time()
{
    do
    :: now < LAST -> now++
    :: now == LAST -> break
    od
}

/* Redis' clock is set; or another Redis takes over, whose clock differs, and which may lack the latest of what was kept. */
proctype run_faults()
{
    short kept;

    do
    :: sets < SETS ->
       atomic {
           sets++;
           if
           :: off = -2
           :: off = 3
           fi;
           if
           :: seen = kept
           :: skip
           fi
       }
    :: kept = seen
    :: now == LAST -> break
    od
}

init {
    atomic {
        run run_checks(0); run run_heartbeats(0);
#if NN > 1
        run run_heartbeats(1);
#endif
        run run_time(); run run_faults()
    }
}
