/* Scheduled revocations (src/lease/README.md): a key is to be revoked at END by the store's time. That is Redis' clock,
 * unless a member proves it wrong. Each member knows what the time is at least and at most, by its own clock and by what it
 * was told last. Redis' clock is set to and fro, or another Redis takes over whose clock differs. Checks and heartbeats come
 * in any order.
 *
 * Never late: no check that begins at END or later, by the true time, is accepted (-DYOUNG: by a node that knows the time).
 * Nor is one that begins after its node was told a time of END or later, be it the store's or Redis' clock, which may be the
 * right one. Nor is one that begins after the store has kept that END was reached, and while it does.
 * Never early: no check is answered "revoked", and no key is written down as revoked, more than one step before END.
 * Nothing is forgotten: a key whose time has come is written down, or stays on the list of those that end.
 * Nothing is left: when Redis' clock is right again and a member has said so, the store's time is that clock.
 *
 * One step of time is the longest that a cached entry is used. It is also what a member does not know of the time that has
 * gone by since it was told: it knows one step less than that at least (-DFAST: one step more at most). A heartbeat may come
 * at any moment, or never. So may each step of a check, which is what a pause is. The last node checks. Of the other one only
 * heartbeats matter.
 *
 * Every rule holds by default; -DNO_<RULE> removes one, and a promise must then break:
 *   NO_STORETIME   a node judges by its own clock, which is behind
 *   NO_TELLTIME    heartbeats do not say what their nodes know of the time
 *   NO_TIMESET     a heartbeat says what was measured although Redis' clock is not where it was then
 *   NO_HOLDTIME    a clock that is later than its member can tell is believed
 *   NO_TIMESPAN    a member that proves the clock wrong leaves one time, the latest, in place of a first and a last one
 *   NO_TIMERETURN  a clock that was proved wrong is never believed again
 *   NO_NOTBEYOND   a check goes by an answer that is later than its node can tell
 *   NO_MOSTTIME    a check goes by an answer that is below what the time can be
 *   NO_TIMEDOUBT   a check accepts although the time has come by Redis' clock
 *   NO_KEPTLATEST  a check accepts although the time has come by what the store keeps (-DALONE)
 *   NO_DUEMOST     a node writes down what is due by the answer alone
 *   NO_DUELISTED   what is due by its node, and not by Redis, is taken off the list and not written down
 *   NO_ENDSSOON    a key that ends soon is cached as any other
 *   NO_FILLAGE     a reply counts as new when it is read, however long ago the time was asked for
 *   NO_DROPONJUMP  a node that is told a later time than can be keeps its cache
 *   NO_FILLDROP    a read fills the cache although it was emptied since
 *   NO_TIMEWAIT    a node that has just started believes the clock at once (-DYOUNG)
 *   NO_TIMEQUIET   a node that has waited says what it has heard although others keep the time (-DYOUNG)
 *   NO_TIMEKEPT    a node believes what it hears the second time, whatever others keep (-DYOUNG)
 *   NO_TIMEGROWN   or if what was kept already is as late as that (-DYOUNG, -DSTALE)
 *   NO_TIMESAID    or if what is kept is later than that (-DYOUNG)
 *   NO_TIMESOON    the first answer counts even if it took long (-DYOUNG -DFAST)
 *   NO_TIMEEPOCH   what a node was told before an operator has settled the time still counts (-DSETTLE)
 * -DSETS=n: how often Redis' clock is set or another Redis takes over. -DNN=n nodes, at most 2.
 * -DYOUNG: the last node has just started, and caches nothing. The other one knows the time, and sends a heartbeat in each step
 *   of time.
 * -DALONE: the only node has just started, and was told the time once, by a clock that is right or behind. It is answered in
 *   time, and no other Redis takes over.
 * -DSTALE: a node that was told more than a step ago no longer says what the time is, unless nobody else does.
 * -DSETTLE: Redis' clock is ahead from the beginning, is put right, and an operator settles the time. Early is what is
 *   early after that.
 * -DPROBE=n asserts that a case is never reached; it must fail, which shows that the search gets there.
 */
#ifdef SETTLE
#define FIRST 4
#define END 6 /* when the key is to be revoked */
#define LAST 8 /* the end of time */
#else
#define FIRST 0
#ifdef YOUNG
#define END 5
#else
#define END 4
#endif
#define LAST 5
#endif
#ifdef YOUNG
#define UNCACHED
#endif
#ifndef NN
#ifdef YOUNG
#define NN 2
#else
#define NN 1
#endif
#endif
#ifndef SETS
#define SETS 1
#endif
#define SOON 2     /* a key that ends so soon is not cached: longer than an entry is used */
#define EARLY 1    /* a check may be answered "revoked" so much before the end */
#define PATIENCE 3 /* how long a node that knows nothing waits for others: what they keep has grown by then */

#define max(a, b) ((a) > (b) -> (a) : (b))
#define min(a, b) ((a) < (b) -> (a) : (b))

/* What a node was told: the first and the last that the store's time was, Redis' clock, and, of what was heard, the time that
 * was kept; and between which moments. */
typedef told_t {
    bool is;
    bit epoch;
    short low, high, clock, kept;
    byte sent, read
};

typedef node_t {
    told_t known, heard; /* as in struct store_time */
    bool cached;         /* the key, as one that is not revoked, */
    byte since;          /* since then */
    bool may_fill        /* a check is under way, and the cache was not emptied since it began */
};
node_t node[NN];

#define LOOKS (NN - 1) /* the node that checks */

byte now;           /* the true time */
short off = FIRST;  /* how far Redis' clock is ahead of it */
short seen = FIRST; /* kept in the store since the end was scheduled: the latest time that was surely reached, */
short ahead;        /* what is added to Redis' clock, which makes the first that the time can be, */
short unsure;       /* and what more makes the last */
bit epoch;          /* changes when an operator settles the time */
byte sets;
bool is_awaited;    /* no time goes by until an answer is read */
bool beaten;        /* the first node has sent a heartbeat since the last step of time */

#ifdef FAST
#define UNDER(age) 0
#define OVER(age) ((age) > 0 -> 1 : 0)
#else
#define UNDER(age) ((age) > 0 -> 1 : 0)
#define OVER(age) 0
#endif
#define AT_LEAST(age) ((age) - UNDER(age))
#define AT_MOST(age) ((age) + OVER(age))
#define LEAST(told) (told.low + AT_LEAST(now - told.read))
#define MOST(told) (told.high + AT_MOST(now - told.sent))
#ifdef NO_KEPTLATEST
#define LATEST_OF(high, clock, kept) max(high, clock)
#else
#define LATEST_OF(high, clock, kept) max(max(high, clock), kept)
#endif
#define LATEST(told) (LATEST_OF(told.high, told.clock, told.kept) + AT_MOST(now - told.sent))
#ifdef STALE
#define IS_FRESH(i) (node[i].known.is && node[i].known.read + 1 >= now)
#else
#define IS_FRESH(i) node[i].known.is
#endif
#define CLOCK (now + off)
#define LOW max(CLOCK + ahead, seen)

#ifdef NO_TIMEEPOCH
#define COUNTS(told) true
#define COUNTS_IN(told) true
#else
#define COUNTS(told) ((told) == epoch)
#define COUNTS_IN(told) ((told) == in)
#endif
#ifdef NO_TIMEKEPT
#define IS_CONFIRMED(told) (true)
#else
#define IS_CONFIRMED(told) \
    (kept >= told.low && HAS_GROWN(told) && IS_SAID && low <= MOST(told) && high >= told.low + AT_LEAST(sent - told.read))
#endif
#ifdef NO_TIMEGROWN
#define HAS_GROWN(told) true
#else
#define HAS_GROWN(told) (kept > told.kept)
#endif
#ifdef NO_TIMESAID
#define IS_SAID true
#else
#define IS_SAID (high >= kept)
#endif

#ifdef SETTLE
#define SETTLED(epoch) ((epoch) == 1)
#else
#define SETTLED(epoch) true
#endif
#ifdef YOUNG
#define MUST_KNOW(i) node[i].known.is
#else
#define MUST_KNOW(i) true
#endif
#define IS_EARLY (SETTLED(epoch) && END > now + EARLY)

#ifdef NO_FILLAGE
#define WAITED 0
#else
#define WAITED (now - asked)
#endif
#ifdef NO_FILLDROP
#define MAY_FILL true
#else
#define MAY_FILL node[i].may_fill
#endif
#if defined(UNCACHED)
#define IS_CACHEABLE false
#elif defined(NO_ENDSSOON)
#define IS_CACHEABLE (MAY_FILL && END > high)
#else
#define IS_CACHEABLE (MAY_FILL && END - high - WAITED > SOON)
#endif

inline forget(told) {
    told.is = false; told.epoch = 0; told.low = 0; told.high = 0; told.clock = 0; told.kept = 0; told.sent = 0; told.read = 0
}

inline put(told, kept_then) {
    told.is = true; told.epoch = in; told.low = low; told.high = high; told.clock = clock; told.kept = kept_then;
    told.sent = sent; told.read = now
}

/* These mean something within one step only. */
hidden byte is_late, is_early, is_forgotten, is_left; /* what must not be */
hidden byte has_basis, was_set, went_on, is_right, knew_any, is_slow;
hidden short b_low, b_high, b_clock, found_latest, latest_before;
hidden byte b_sent, b_read;

/* What the node goes by: unopposed() in store_time.c, if it has only heard. */
inline take_basis(i) {
    if
    :: node[i].known.is ->
       has_basis = true;
       b_low = node[i].known.low; b_high = node[i].known.high; b_clock = node[i].known.clock;
       b_sent = node[i].known.sent; b_read = node[i].known.read
    :: !node[i].known.is && node[i].heard.is ->
       has_basis = true;
       b_low = node[i].heard.low; b_high = node[i].heard.high; b_clock = node[i].heard.clock;
       b_sent = node[i].heard.sent; b_read = node[i].heard.read;
       if
       :: b_clock >= node[i].heard.kept -> b_low = min(b_low, b_clock); b_high = max(b_high, b_clock)
       :: else -> skip
       fi;
       b_low = max(b_low, node[i].heard.kept);
       b_high = max(b_high, node[i].heard.kept)
    :: else -> has_basis = false; b_low = 0; b_high = 0; b_clock = 0; b_sent = 0; b_read = 0
    fi
}

/* store_time_print() */
inline send(i) {
    sent = now;
    take_basis(i);
    in = (node[i].known.is -> node[i].known.epoch : node[i].heard.epoch);
    has_waited = node[i].heard.is && node[i].heard.read + PATIENCE <= now;
    measured = node[i].known.is || has_waited;
    is_fresh = IS_FRESH(i);
    kept = (has_waited -> node[i].heard.kept : 0);
    if
    :: measured ->
       from = b_clock + AT_LEAST(now - b_read);
       to = b_clock + AT_MOST(now - b_sent);
       least = b_low - b_clock;
       most = b_high - b_clock
    :: else -> skip
    fi
}

/* keep_time() in node_heartbeat.lua, for a member that says what the time is: by what it has measured before, unless Redis'
 * clock is not where it was then. How long the heartbeat was on its way it cannot know yet. */
inline keep_time() {
    clock = CLOCK;
    low = clock + ahead;
    high = low + unsure;
#ifdef NO_TIMESET
    was_set = false;
#else
    was_set = clock < from || clock > to;
#endif
#ifndef NO_TIMEQUIET
    has_waited = has_waited && kept == seen;
#endif
    says = measured && (is_fresh || has_waited) && (was_set || clock + most >= seen);
#ifndef NO_TIMEEPOCH
    says = says && in == epoch;
#endif
#ifdef NO_TELLTIME
    says = false;
    low = max(low, seen); high = max(low, high); seen = low;
#endif
    if
    :: says && was_set -> seen = max(seen, from + least)
    :: says && !was_set ->
       least = max(clock + least, seen);
       most = clock + most;
       if
       :: least <= high && most >= low -> least = max(least, low); most = min(most, high)
       :: else -> skip
       fi;
       low = least;
       high = most;
       ahead = low - clock;
       unsure = high - low;
       seen = low
    :: else -> skip
    fi;
    kept = seen;
    in = epoch;
    was_right = off == 0 && SETTLED(epoch);
    measured = false; is_fresh = false; has_waited = false; from = 0; to = 0; least = 0; most = 0
}

/* find_time() in store_time.c */
inline find_time() {
    is_right = clock >= least && clock <= most;
    from = clock + b_low - b_clock;
    to = clock + b_high - b_clock;
    went_on = clock >= b_clock + AT_LEAST(sent - b_read) && clock <= b_clock + AT_MOST(now - b_sent) && from <= most &&
              to >= least;
    if
    :: went_on ->
       from = max(from, least);
       to = min(to, most);
       if
       :: low <= to && high >= from -> low = max(low, from); high = min(high, to)
       :: else -> low = from; high = to
       fi
    :: !went_on && low <= most && high >= least -> low = max(low, least); high = min(high, most)
    :: else ->
       low = least;
       high = most;
#ifdef NO_TIMESPAN
       low = high;
#endif
#ifdef NO_TIMERETURN
       is_right = false
#else
       if
       :: is_right -> low = clock; high = clock
       :: else -> skip
       fi
#endif
    fi;
    if
    :: is_right -> low = min(low, clock); high = max(high, clock)
    :: else -> skip
    fi
}

/* measure() in store_time.c */
inline measure(i) {
    take_basis(i);
    least = max(b_low + AT_LEAST(sent - b_read), kept);
    most = b_high + AT_MOST(now - b_sent);
#ifdef NO_HOLDTIME
    most = max(most, clock);
#endif
    forget(node[i].heard);
    if
    :: !has_basis || least > most ->
       forget(node[i].known);
       put(node[i].heard, kept)
    :: else ->
       find_time();
       is_left = node[i].known.is && was_right && (low != clock || high != clock);
       assert(!is_left);
       put(node[i].known, 0)
    fi
}

/* hear() in store_time.c */
inline hear(i) {
    if
    :: node[i].known.is && (!COUNTS_IN(node[i].known.epoch) || kept > MOST(node[i].known)) -> forget(node[i].known)
    :: else -> skip
    fi;
    if
    :: !node[i].heard.is || !COUNTS_IN(node[i].heard.epoch) -> put(node[i].heard, kept)
    :: node[i].heard.is && COUNTS_IN(node[i].heard.epoch) && IS_CONFIRMED(node[i].heard) ->
#if PROBE == 4
       assert(false);
#endif
       put(node[i].known, 0);
       forget(node[i].heard)
    :: node[i].heard.is && COUNTS_IN(node[i].heard.epoch) && !IS_CONFIRMED(node[i].heard) && kept != node[i].heard.kept ->
       put(node[i].heard, kept)
    :: else -> skip
    fi
}

inline forget_answer() {
    low = 0; high = 0; clock = 0; kept = 0; sent = 0; in = 0; says = false; was_right = false
}

#ifdef NO_TIMESOON
#define MAY_COUNT (!knew_any || !is_slow)
#else
#define MAY_COUNT (!is_slow)
#endif

/* store_time_told(), and note_time() in lease_host.c */
inline read_answer(i) {
    knew_any = node[i].heard.is || node[i].known.is;
    is_slow = now > sent;
    latest_before = (node[i].heard.is -> LATEST(node[i].heard) : LATEST(node[i].known));
    found_latest = LATEST_OF(high, clock, kept);
    if
    :: MAY_COUNT ->
#if defined(NO_TELLTIME)
       put(node[i].known, 0)
#else
#ifdef NO_TIMEWAIT
       if
       :: !says && !node[i].known.is -> put(node[i].known, 0)
       :: else -> skip
       fi;
#endif
       if
       :: says ->
#if PROBE == 5
          if
          :: !node[i].known.is -> assert(false)
          :: else -> skip
          fi;
#endif
          measure(i)
       :: else -> hear(i)
       fi;
       found_latest = LATEST_OF(high, clock, kept)
#endif
    :: else -> skip
    fi;
    if
#ifndef NO_DROPONJUMP
    :: knew_any && found_latest > latest_before -> node[i].cached = false; node[i].since = 0; node[i].may_fill = false
#endif
    :: else -> skip
    fi;
    from = 0; to = 0; least = 0; most = 0;
    forget_answer()
}

#ifdef YOUNG
#define MAY_BEAT (!(i == 0 && beaten))
#define MAY_BE_LATE (i > 0)
#else
#define MAY_BEAT true
#ifdef ALONE
#define MAY_BE_LATE false
#else
#define MAY_BE_LATE true
#endif
#endif
#ifdef NO_TIMESOON
#define SLOW_COUNTS(i) (!node[i].known.is && !node[i].heard.is)
#else
#define SLOW_COUNTS(i) false
#endif
#ifdef UNCACHED
#define HAS_CACHE(i) false
#else
#define HAS_CACHE(i) (i == LOOKS)
#endif

/* Between sending and Redis' answer nothing else needs to happen unless time goes by: only this process changes what its node
 * knows. Nor does anything before a node that does not check reads the answer. An answer that takes longer changes nothing
 * but the cache, so that it need not be waited for where there is none. */
proctype run_heartbeats(byte i)
{
    short from, to, least, most, low, high, clock, kept;
    byte sent;
    bit in;
    bool measured, is_fresh, has_waited, says, was_right;

end:
    do
    :: atomic {
           now < LAST && MAY_BEAT ->
           d_step { send(i) }
           if
           :: true -> skip
           :: MAY_BE_LATE -> now > sent
           fi;
           d_step {
               keep_time();
#ifdef YOUNG
               beaten = beaten || i == 0
#endif
           }
           if
           :: !HAS_CACHE(i) && !SLOW_COUNTS(i) -> forget_answer()
           :: i != LOOKS && !SLOW_COUNTS(i) && now == sent -> d_step { read_answer(i) }
           :: i == LOOKS || SLOW_COUNTS(i) ->
#ifdef ALONE
              is_awaited = true;
#else
              is_awaited = !HAS_CACHE(i) && !SLOW_COUNTS(i);
#endif
              goto later
           fi
       }
    :: false ->
later:
       atomic {
           true;
           d_step {
               read_answer(i);
               is_awaited = false
           }
       }
    od
}

/* key_end_due.lua, called by a node when it was told that something is due. */
proctype run_due(byte i)
{
end:
    do
    :: d_step {
           now < LAST && node[i].known.is ->
           b_low = LOW;
#ifndef NO_DUEMOST
           if
           :: COUNTS(node[i].known.epoch) && (b_low > MOST(node[i].known) || b_low < LEAST(node[i].known)) ->
              b_low = LEAST(node[i].known)
           :: else -> skip
           fi;
#endif
           is_early = b_low >= END && IS_EARLY;
           assert(!is_early);
#ifdef NO_DUELISTED
           is_forgotten = b_low >= END && LOW < END;
           assert(!is_forgotten);
#endif
           b_low = 0
       }
    od
}

/* judge_end() in key_find.c, and store_time_span(). What is judged when the answer is read depends on nothing that has
 * happened since Redis gave it. Whether it is cached does. */
proctype run_checks(byte i)
{
    short low, high, least, most, latest;
    byte asked;
    bit asked_in;
    bool late, knew, was_told, was_kept;

end:
    do
#ifndef UNCACHED
    :: d_step {
           node[i].cached -> /* the cache answers */
#if PROBE == 1
           assert(false);
#endif
           is_late = (now >= END && MUST_KNOW(i)) ||
                     (max(node[i].known.high, node[i].known.clock) >= END && node[i].known.epoch == epoch);
           assert(!is_late)
       }
#endif
    :: d_step {
           true -> /* the record has been read: the time is asked for */
#ifndef UNCACHED
           node[i].may_fill = true;
           asked = now;
#endif
           knew = node[i].known.is;
           was_told = knew && max(node[i].known.high, node[i].known.clock) >= END;
           was_kept = seen >= END;
           late = now >= END && MUST_KNOW(i);
           if
           :: knew ->
              asked_in = node[i].known.epoch;
              least = LEAST(node[i].known);
              most = MOST(node[i].known);
              latest = LATEST(node[i].known)
           :: !knew && node[i].heard.is ->
              asked_in = node[i].heard.epoch;
              latest = LATEST(node[i].heard)
           :: else -> latest = -1
           fi
#ifdef NO_TIMEDOUBT
           ; if
           :: knew -> latest = most
           :: else -> skip
           fi
#endif
       }
       atomic {
           d_step {
               true -> /* Redis says what the time is */
               low = LOW;
               high = CLOCK + ahead + unsure;
#ifdef NO_TIMEDOUBT
               high = LATEST_OF(high, high, seen);
#else
               high = LATEST_OF(high, CLOCK, seen);
#endif
#ifndef NO_TIMEEPOCH
               if
               :: asked_in != epoch -> knew = false; latest = -1
               :: else -> skip
               fi;
#endif
               if
               :: !knew -> low = seen
#ifndef NO_NOTBEYOND
               :: knew && low > most ->
#if PROBE == 2
                  assert(false);
#endif
                  low = least
#endif
               :: knew && low < least -> low = least
               :: else -> skip
               fi;
#ifndef NO_MOSTTIME
               high = max(high, latest);
#endif
#ifdef NO_STORETIME
               low = now - 1;
               high = now - 1;
#endif
               if
               :: END <= high && END <= low + EARLY -> /* revoked */
                  is_early = IS_EARLY;
                  assert(!is_early)
               :: END > high -> /* accepted */
                  is_late = late || (was_told && knew) || (was_kept && seen >= END);
                  assert(!is_late)
               :: else -> /* nobody knows: 503 */
#if PROBE == 3
                  assert(false);
#endif
                  skip
               fi;
               low = 0; least = 0; most = 0; latest = 0; asked_in = 0; late = false; knew = false; was_told = false;
               was_kept = false
           }
           if
           :: IS_CACHEABLE -> goto answered
           :: else -> d_step { asked = 0; high = 0; node[i].may_fill = false }
           fi
       }
    :: false ->
answered:
       atomic {
           if
           :: IS_CACHEABLE -> node[i].cached = true; node[i].since = now
           :: true -> skip
           fi;
           asked = 0; high = 0; node[i].may_fill = false
       }
    od
}

proctype run_time()
{
end:
    do
    :: d_step {
#ifdef YOUNG
           now < LAST && beaten && !is_awaited ->
           beaten = false;
#else
           now < LAST && !is_awaited ->
#endif
           now++;
           if
           :: node[LOOKS].cached && now - node[LOOKS].since > 1 -> node[LOOKS].cached = false; node[LOOKS].since = 0
           :: else -> skip
           fi
       }
    od
}

/* Redis' clock is set; or another Redis takes over, whose clock differs, and which may lack the latest of what was kept. */
proctype run_faults()
{
    short kept = FIRST, kept_ahead, kept_unsure;

end:
    do
    :: atomic {
           sets < SETS ->
           sets++;
           if
           :: off = 0
#ifndef SETTLE
           :: off = -3
           :: off = 4
#endif
           fi;
           if
#ifndef ALONE
           :: d_step {
                  seen = kept; ahead = kept_ahead; unsure = kept_unsure;
                  forget(node[0].heard); /* they notice that they are connected to another Redis */
#if NN > 1
                  forget(node[1].heard)
#endif
              }
#endif
           :: true -> skip
           fi;
           if
           :: sets == SETS ->
              kept = 0; kept_ahead = 0; kept_unsure = 0
           :: else -> skip
           fi
       }
#ifdef SETTLE
    :: d_step { off == 0 && epoch == 0 -> epoch = 1; ahead = 0; unsure = 0; seen = CLOCK }
#endif
#ifndef ALONE
    :: d_step { sets < SETS -> kept = seen; kept_ahead = ahead; kept_unsure = unsure }
#endif
    od
}

inline begin(i) {
#ifdef ALONE
    node[i].heard.is = true; node[i].heard.low = off; node[i].heard.high = off; node[i].heard.clock = off
#else
    node[i].known.is = true; node[i].known.low = FIRST; node[i].known.high = FIRST; node[i].known.clock = FIRST
#endif
}

init {
    atomic {
#ifdef ALONE
        if
        :: off = -3
        :: true -> skip
        fi;
#endif
        d_step {
            begin(0);
#if NN > 1 && !defined(YOUNG)
            begin(1)
#endif
        }
#if NN > 1
        run run_heartbeats(1);
#endif
        run run_heartbeats(0);
        run run_checks(LOOKS);
        run run_due(LOOKS);
        run run_time(); run run_faults()
    }
}
