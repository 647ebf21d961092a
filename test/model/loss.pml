/* A store that goes back: an older file, a replica that lagged, a suffix of its history that is gone (src/lease/README.md,
 * rule 13).
 *
 * The promises. Of a revocation: once it has been answered, no node accepts the key for a check that begins later, whatever
 * the store has lost, if a node that lives heard of it. Of any ending (a session's, which no node but its maker hears of):
 * if a node that lives knows its number by a heartbeat that replicas acknowledged, it is never missing silently. If nobody
 * can tell it, all refuse until an operator accepts the loss. And none of this is a false alarm: if nothing is lost, nobody
 * refuses for ever (-DQUIET).
 *
 * Three nodes: X makes endings, each with the next number of its chain; Y checks; Z is another one. Each hears a message, or
 * its connection is broken just then. A node may die. The store goes back to what it was at some time before, and registry,
 * chains and all the rest with it; or Redis restarts unharmed. Both are a new era. There each node reads the stream,
 * declares the numbers that it knows and the store lacks, tells what it kept, says "told", waits for the others, decides,
 * and registers. It is waited for as long as each node that lives takes to come and to tell, except one that is cut off
 * (-DCUTS). Barriers, leases and catching up are taken from barrier.pml: a revocation is answered when Y has heard of it, or
 * has no lease from before.
 *
 * Every rule holds by default; -DNO_<RULE> removes one, and a promise must then break:
 *   of what a node knows
 *   NO_LOSSKEEP      it acknowledges what it has heard, and keeps it a moment later
 *   NO_LOSSAGAIN     it does not keep what is told again
 *   NO_LOSSSTREAM    it keeps nothing of what it reads in the stream
 *   NO_LOSSLOG       it does not read its log when it starts (-DREBORN)
 *   NO_LOSSCURSOR    a heartbeat without acknowledgements counts as read: its chains are not named again (-DLOOSE)
 *   NO_LOSSTWO       changes that end nothing have the same numbers (-DOTHERS=1)
 *   NO_LOSSCHAIN     its chain goes on in the next era: a number may be given again
 *   NO_LOSSANSWER    a barrier goes on when the connection is lost: the answer comes in another era
 *   of a new era
 *   NO_LOSSREPLID    it goes by the run_id alone
 *   NO_LOSSTOKEN     a process that was left and comes back is the era that it was (-DBACK)
 *   NO_LOSSDECLARE   a node declares its own numbers only
 *   NO_LOSSRAISE     declared numbers are not raised
 *   NO_LOSSTELL      a node tells its own endings only
 *   NO_LOSSREPEAT    it tells once, whatever is declared later
 *   NO_LOSSORDER     it says "told", and tells
 *   NO_LOSSFIRM      it says so before replicas have what it told
 *   NO_LOSSTOLD      it decides before it has told
 *   NO_LOSSWAIT      it does not wait for the others
 *   NO_LOSSCOME      it waits for those that have come no longer than for those that have not
 *   NO_LOSSJOINS     it does not see that the registry went back
 *   NO_LOSSSENT      it decides by a read that it sent before
 *   NO_LOSSLEASE     a heartbeat that it sent before grants a lease (-DCACHE)
 *   NO_LOSSCOMPARE   who decides already does not see that numbers are missing (-DCUTS)
 *   of an accepted loss (-DACCEPT)
 *   NO_LOSSEPOCH     who comes later declares what was accepted
 *   NO_LOSSERA       it is accepted in later eras, too
 *   NO_LOSSLOW       who comes later tells only what is missing or above its chain
 * -DENDINGS=n; -DSESSIONS=bits, -DOTHERS=bits: those of them that are of sessions, or no endings.
 * -DLOSSES=n, -DRESTARTS=n, -DDEATHS=n, -DBREAKS=n: how often, at most; -DSNAPS=n: how often the older state is replaced by
 * the present one. -DYOUNG: or it is of when only Y had registered, or empty. -DNEW: Y starts later than the others.
 * -DREBORN: X may start again. -DOLD: Z is a node of 0.3.0. -DLIMIT=n leaves out the condition that one of the limits is
 * (README.md): that must break a promise, too.
 * -DPROBE=n asserts that a case is never reached; it must fail, which shows that the search gets there.
 */
#ifndef ENDINGS
#define ENDINGS 1
#endif
#ifndef SESSIONS
#define SESSIONS 0
#endif
#ifndef OTHERS
#define OTHERS 0
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef SNAPS
#define SNAPS 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef LIMIT
#define LIMIT 0
#endif
#ifndef PROBE
#define PROBE 0
#endif

#define X 0
#define Y 1
#define Z 2
#define NODES 3
#define BIT(n) (1 << (n))
#define EACH (BIT(NODES) - 1)
#define FORMER BIT(3) /* in the registry: an earlier process of X */
#define max(a, b) ((a) > (b) -> (a) : (b))

#define CHAINS 2
#define NUMBER(c, i) BIT(2 * (c) + (i) - 1) /* number i of chain c: 1 or 2 */
#define PLACE(number) ((number) == 1 || (number) == 4 -> 1 : 2)
#define CHAIN(number) ((number) < 4 -> 0 : 1)

/* How far a node is in an era. */
#define OFF 0
#define TELLS 1
#define WAITS 2
#define DECIDES 3

typedef store_t {
    byte marked;           /* keys that are revoked */
    byte ends[CHAINS];     /* numbers given, or declared */
    byte missing;          /* numbers */
    byte low[CHAINS];      /* the first number of a chain that was ever missing; 0: none */
    byte members, joined;  /* who is registered; how many ever have */
    byte process, era;     /* of Redis; what follows is of this era: */
    byte came, told;       /* nodes that have come, and that have said "told" */
    bool accepted;         /* its loss */
    /* Not in the store, but it goes back with it: */
    byte in, lost          /* endings that this history has; whose loss was accepted */
};
store_t st, was;       /* now; and what it goes back to */
byte process = 1, last_process = 1, last_era = 1; /* that Redis is, and that there have been */
bool firm;             /* since `was` replicas have acknowledged something */
byte losses, restarts, snaps, deaths, breaks;
#if LIMIT == 2
byte guests;           /* nodes that have come since, and are gone again */
#endif
bool calm;             /* nothing happens from without any more */

/* Endings, which are bits */
byte made, answered, asked; /* asked: X has not answered yet */
byte number[2];
byte heard_by_y;       /* Y has acknowledged */
byte promised;         /* somebody has said that he told it */
byte bare;             /* the message does not say what ended: for a node of 0.3.0 */
byte chain;            /* of X, */
bool used;             /* with numbers */

/* Nodes */
byte alive = EACH, cut; /* cut off from this era's store for longer than it is waited for */
typedef node_t {
    byte phase, era;
    byte ends[CHAINS], joined;       /* what it knows of the store */
    byte read[CHAINS];               /* what a heartbeat has named, acknowledged or not */
    byte kept, heard, known;         /* endings: it keeps; it has acknowledged or keeps; that a heartbeat has counted */
    byte inbox                       /* messages on the way; from bit 2 on: of endings that are told again */
};
node_t node[NODES];
byte subscribed;

/* Y's checks */
byte cached;           /* keys */
bool lease, asks;      /* a heartbeat's echo is on the way, */
byte behind;           /* behind these messages */
bool reads, clean;     /* a reply is on the way, which says that the key may be used; nothing forbids to cache it */
byte want;             /* the key */
bool late, lost;       /* it may not be accepted: it was revoked; an ending is missing */
#ifdef QUIET
bool stuck;            /* nobody decides, and nothing is lost */
#endif

#define IS_OF(bits, j) ((bits) & BIT(j))
#define KEY(j) (IS_OF(SESSIONS | OTHERS, j) -> 0 : BIT(j))

#define LIVES(n) (alive & BIT(n) && !(cut & BIT(n)))
#define HEARD(j) (LIVES(0) && IS_OF(node[0].heard, j) || LIVES(1) && IS_OF(node[1].heard, j) || \
    LIVES(2) && IS_OF(node[2].heard, j) || IS_OF(promised, j))
#define IS_LATE(k) (answered & (k) && ((k) == 1 && HEARD(0) || (k) == 2 && HEARD(1)))
#define LACKS(n) (LIVES(n) && node[n].known & ~(st.in | st.lost))
#define IS_LOST (LACKS(0) || LACKS(1) || LACKS(2))

inline copy(to, from) {
    to.marked = from.marked; to.ends[0] = from.ends[0]; to.ends[1] = from.ends[1]; to.missing = from.missing;
    to.low[0] = from.low[0]; to.low[1] = from.low[1]; to.members = from.members; to.joined = from.joined;
    to.process = from.process; to.era = from.era; to.came = from.came; to.told = from.told;
    to.accepted = from.accepted; to.in = from.in; to.lost = from.lost
}

inline end_lease() { lease = false; asks = false; behind = 0 }
inline end_read() { reads = false; want = 0; late = false; lost = false; clean = false }
inline disconnect(n) {
    node[n].phase = OFF; node[n].inbox = 0; subscribed = subscribed & ~BIT(n);
    if
    :: n == Y -> end_lease(); end_read()
#ifndef NO_LOSSANSWER
    :: n == X -> asked = 0; heard_by_y = 0 /* its barriers fail */
#endif
    :: else
    fi
}
inline disconnect_all() { disconnect(X); disconnect(Y); disconnect(Z) }

inline send_to(n, bits) {
    if
    :: subscribed & BIT(n) -> node[n].inbox = node[n].inbox | (bits)
    :: else
    fi
}
inline publish(bits) { send_to(X, bits); send_to(Y, bits); send_to(Z, bits) }

/* A new era */

#define IS_BEGUN (st.process == process)
#define FROM(c, a, b) (((a) < 1 && (b) >= 1 -> NUMBER(c, 1) : 0) | ((a) < 2 && (b) >= 2 -> NUMBER(c, 2) : 0))
#ifdef NO_LOSSDECLARE
#define MAY_DECLARE (n == X)
#else
#define MAY_DECLARE true
#endif

inline declare_chain(n, c) {
    if
    :: node[n].ends[c] > st.ends[c] && MAY_DECLARE ->
#ifdef QUIET
       stuck = stuck || st.accepted;
#endif
       st.missing = st.missing | FROM(c, st.ends[c], node[n].ends[c]);
       st.low[c] = (st.low[c] -> st.low[c] : st.ends[c] + 1);
#ifndef NO_LOSSRAISE
       st.ends[c] = node[n].ends[c]
#endif
    :: else
    fi
}
#ifdef NO_LOSSEPOCH
#define ADOPTS false
#else
#define ADOPTS st.accepted
#endif
inline declare(n) {
    if
    :: ADOPTS ->
       node[n].ends[0] = st.ends[0]; node[n].ends[1] = st.ends[1];
       node[n].known = node[n].known & ~st.lost
    :: else ->
       declare_chain(n, 0);
       declare_chain(n, 1)
    fi;
    node[n].read[0] = 0; node[n].read[1] = 0
}

#ifdef NO_LOSSTELL
#define MAY_TELL(n) ((n) == X)
#else
#define MAY_TELL(n) true
#endif
#define IS_ABOVE(j) (PLACE(number[j]) > st.ends[CHAIN(number[j])])
#ifdef NO_LOSSLOW
#define WAS_MISSING(j) false
#else
#define WAS_MISSING(j) (st.low[CHAIN(number[j])] && PLACE(number[j]) >= st.low[CHAIN(number[j])])
#endif
/* Telling what is there changes nothing: it is left out. */
#define HAS_TO_TELL(n, j) (MAY_TELL(n) && IS_OF(node[n].kept, j) && \
    (number[j] & st.missing || !IS_OF(st.in, j) && (IS_ABOVE(j) || WAS_MISSING(j))))
#define HAS_TO_TELL_MORE(n) (HAS_TO_TELL(n, 0) || HAS_TO_TELL(n, 1))
inline tell(n, j) {
    st.marked = st.marked | KEY(j);
    st.in = st.in | BIT(j);
    st.missing = st.missing & ~number[j];
    publish(BIT(j) << 2)
}
#ifdef NO_LOSSREPEAT
#define REPEATS(n) false
#else
#define REPEATS(n) (node[n].phase > TELLS && st.missing)
#endif
#if defined(NO_LOSSORDER) || defined(NO_LOSSTOLD)
#define MAY_STILL_TELL(n) (node[n].phase >= TELLS)
#else
#define MAY_STILL_TELL(n) (node[n].phase == TELLS || REPEATS(n))
#endif
#ifdef NO_LOSSORDER
#define HAS_TOLD(n) (node[n].phase == TELLS)
#else
#define HAS_TOLD(n) (node[n].phase == TELLS && !HAS_TO_TELL_MORE(n))
#endif

#ifdef OLD
#define NEWER ~BIT(Z)
#else
#define NEWER ~0
#endif
#ifdef NO_LOSSTOLD
#define IS_WAITING(n) ((n) != Z && node[n].phase >= TELLS && node[n].phase < DECIDES)
#define BUT_ITSELF(n) ~BIT(n)
#else
#define IS_WAITING(n) ((n) != Z && node[n].phase == WAITS)
#define BUT_ITSELF(n) ~0
#endif
#ifdef NO_LOSSJOINS
#define KNOWS_ALL(n) true
#else
#define KNOWS_ALL(n) (node[n].joined <= st.joined)
#endif
#define ALL_HAVE_TOLD(n) ((st.members & NEWER & ~st.told & BUT_ITSELF(n)) == 0 && KNOWS_ALL(n))
#ifdef NO_LOSSCOME
#define IN_TIME st.came
#else
#define IN_TIME st.told
#endif
#define G_IS_OVER(n) ((alive & ~cut & NEWER & ~IN_TIME & BUT_ITSELF(n)) == 0)
#ifdef NO_LOSSWAIT
#define MAY_DECIDE(n) true
#else
#define MAY_DECIDE(n) (ALL_HAVE_TOLD(n) || G_IS_OVER(n))
#endif

inline begin_era() {
    last_era++;
    st.process = process; st.came = 0; st.told = 0;
#ifdef NO_LOSSTOKEN
    st.era = process;
#else
    st.era = last_era;
#endif
#ifndef NO_LOSSERA
    st.accepted = false
#endif
}
inline keep(n, bits) { node[n].heard = node[n].heard | (bits); node[n].kept = node[n].kept | (bits) }
#ifdef OLD
#define IS_OLD(n) ((n) == Z)
#else
#define IS_OLD(n) false
#endif
/* Its first heartbeat registers it. Z makes no decision that matters: it is as far when it has told. */
inline decide(n) {
    node[n].phase = (n == Z -> WAITS : DECIDES);
    node[n].era = st.era;
    node[n].joined = 0; /* it counts anew */
    if
    :: !(st.members & BIT(n)) -> st.members = st.members | BIT(n); st.joined++
    :: else
    fi
}
inline connect(n) {
    if
    :: !IS_BEGUN -> begin_era()
    :: else
    fi;
    subscribed = subscribed | BIT(n);
    if
    :: IS_OLD(n)
    :: else ->
       node[n].heard = node[n].heard | (st.in & ~(SESSIONS | OTHERS));
#ifndef NO_LOSSSTREAM
       node[n].kept = node[n].kept | (st.in & ~(SESSIONS | OTHERS))
#endif
    fi;
    if
    :: n == Y -> cached = cached & ~st.marked
    :: else
    fi;
#ifdef NO_LOSSCOME
    st.came = st.came | BIT(n);
#endif
    if
    :: node[n].era == st.era -> decide(n)
#ifdef OLD
    :: node[n].era != st.era && n == Z -> decide(n)
    :: node[n].era != st.era && n != Z ->
#else
    :: node[n].era != st.era ->
#endif
       declare(n);
       node[n].phase = TELLS
    fi
}

/* Messages */

#define HEARS(n, j) (node[n].inbox & (BIT(j) | BIT(j) << 2))
inline hear(n, j) {
    if
    :: n == Y && IS_OF(node[n].inbox, j) && IS_OF(asked, j) -> heard_by_y = heard_by_y | BIT(j)
    :: else
    fi;
    if
    :: IS_OF(node[n].inbox, j) && IS_OF(bare, j) || IS_OLD(n)
#ifdef NO_LOSSAGAIN
    :: !IS_OF(node[n].inbox, j) -> node[n].heard = node[n].heard | BIT(j)
    :: IS_OF(node[n].inbox, j) && !IS_OF(bare, j) && !IS_OLD(n) ->
#else
    :: else ->
#endif
#ifdef NO_LOSSKEEP
       node[n].heard = node[n].heard | BIT(j)
#else
       keep(n, BIT(j))
#endif
    fi;
    /* an acknowledgement, and the next one: they may be one message */
    node[n].inbox = node[n].inbox & ~(IS_OF(node[n].inbox, j) -> BIT(j) : BIT(j) << 2);
    if
    :: n == Y -> cached = cached & ~KEY(j); clean = false
    :: else
    fi
}

/* Heartbeats that replicas have acknowledged */

#ifdef NO_LOSSCURSOR
#define NAMED(c) (st.ends[c] > node[n].read[c])
#else
#define NAMED(c) true
#endif
#define IS_NEWS(n, c) (st.ends[c] > node[n].ends[c])
inline count(n, c) {
    if
    :: NAMED(c) -> node[n].ends[c] = max(node[n].ends[c], st.ends[c])
    :: else
    fi
}
#define COUNTED (st.in & ~OTHERS & ((IS_ABOVE(0) -> 0 : 1) | (IS_ABOVE(1) -> 0 : 2)))
inline heartbeat(n) {
    count(n, 0);
    count(n, 1);
    node[n].joined = st.joined;
    node[n].known = node[n].known | COUNTED;
    firm = true
}

inline die(n) {
    alive = alive & ~BIT(n);
    cut = cut & ~BIT(n);
    disconnect(n);
    node[n].era = 0; node[n].ends[0] = 0; node[n].ends[1] = 0; node[n].joined = 0; node[n].read[0] = 0; node[n].read[1] = 0;
    node[n].kept = 0; node[n].heard = 0; node[n].known = 0;
    asked = (n == X -> 0 : asked);
    deaths++
}

#define BEATS(n) (node[n].phase == (n == Z -> WAITS : DECIDES) && st.missing == 0)

proctype run_node(byte n)
{
    do
    :: d_step { alive & BIT(n) && node[n].phase == OFF -> connect(n) }
    :: d_step { MAY_STILL_TELL(n) && HAS_TO_TELL(n, 0) -> tell(n, 0) }
    :: d_step { MAY_STILL_TELL(n) && HAS_TO_TELL(n, 1) -> tell(n, 1) }
    :: d_step { HAS_TOLD(n) ->
          st.told = st.told | BIT(n);
          promised = promised | node[n].kept;
#ifndef NO_LOSSFIRM
          firm = true;
#endif
          if
          :: n == Z -> decide(Z)
          :: else -> node[n].phase = WAITS
          fi }
    :: d_step { IS_WAITING(n) && MAY_DECIDE(n) ->
#if PROBE == 1
          assert(!(n == Y && losses && ALL_HAVE_TOLD(n) && node[Z].heard && !(alive & BIT(X))));
#endif
#if PROBE == 2
          assert(!(n == Y && losses && !ALL_HAVE_TOLD(n)));
#endif
          decide(n);
#ifndef NO_LOSSCHAIN
          if
          :: n == X && used && chain < CHAINS - 1 -> chain++; used = false
          :: else
          fi;
#endif
          skip }
#ifdef NO_LOSSTOLD
    :: d_step { node[n].phase == DECIDES && !(st.told & BIT(n)) && !HAS_TO_TELL_MORE(n) -> st.told = st.told | BIT(n) }
#endif
    :: d_step { HEARS(n, 0) -> hear(n, 0) }
    :: d_step { HEARS(n, 1) -> hear(n, 1) }
#ifdef NO_LOSSKEEP
    :: d_step { node[n].heard & ~node[n].kept -> node[n].kept = node[n].heard }
#endif
    :: d_step { !IS_OLD(n) && BEATS(n) && (IS_NEWS(n, 0) || IS_NEWS(n, 1) || node[n].joined < st.joined ||
          COUNTED & ~node[n].known) -> heartbeat(n) }
#ifdef LOOSE
    :: d_step { BEATS(n) && (node[n].read[0] < st.ends[0] || node[n].read[1] < st.ends[1]) ->
          node[n].read[0] = st.ends[0]; node[n].read[1] = st.ends[1] }
#endif
    :: d_step { breaks < BREAKS && !calm && BEATS(n) -> breaks++; disconnect(n) }
    :: d_step { deaths < DEATHS && !calm && n != Y && alive & BIT(n) -> die(n) }
    :: d_step { deaths < DEATHS && !calm && n != Y && node[n].phase >= WAITS -> st.members = st.members & ~BIT(n); die(n) }
    od
}

/* X makes an ending. Redis runs the script and X reads its reply in one step; the reply may be lost. */
inline make(j) {
    used = true;
    if
#ifndef NO_LOSSTWO
    :: IS_OF(OTHERS, j)
#endif
    :: else -> st.ends[chain]++; number[j] = NUMBER(chain, st.ends[chain])
    fi;
    made = made | BIT(j);
    st.in = st.in | BIT(j);
    st.marked = st.marked | KEY(j);
#ifdef OLD
    bare = bare | (st.members & BIT(Z) -> BIT(j) : 0);
#endif
    if
    :: KEY(j) -> publish(BIT(j))
    :: else
    fi
}
/* Every member has acknowledged, or its lease of before is over; and replicas have it. */
inline answer(j) {
    asked = asked & ~BIT(j);
    answered = answered | BIT(j);
    firm = true;
    node[X].ends[CHAIN(number[j])] = max(node[X].ends[CHAIN(number[j])], (number[j] -> PLACE(number[j]) : 0));
    node[X].known = node[X].known | (BIT(j) & ~OTHERS);
    if
    :: KEY(j) && !IS_OF(heard_by_y, j) ->
       lease = false;
       if
       :: asks && !(behind & BIT(j)) -> asks = false; behind = 0
       :: else
       fi
    :: else
    fi;
    heard_by_y = heard_by_y & ~BIT(j);
#ifdef NO_LOSSANSWER
    cut = cut & ~BIT(X)
#endif
}
#define MAY_ANSWER(j) (IS_OF(asked, j) && node[X].phase == DECIDES)
#define MAY_MAKE(j) (!calm && node[X].phase == DECIDES && st.missing == 0 && made == BIT(j) - 1)

proctype run_maker()
{
    do
    :: d_step { MAY_MAKE(0) -> make(0); asked = asked | 1; keep(X, KEY(0)) }
    :: d_step { MAY_ANSWER(0) -> answer(0) }
#if ENDINGS > 1
    :: d_step { MAY_MAKE(0) -> make(0); disconnect(X) }
    :: d_step { MAY_MAKE(1) -> make(1); asked = asked | 2; keep(X, KEY(1)) }
    :: d_step { MAY_ANSWER(1) -> answer(1) }
#endif
    od
}

/* The older state does not know a node that lives, and Y knows no more than that state: it has just started, or connected
 * again, or was cut off when that one registered. */
#define IS_NEW(n) (alive & BIT(n) && (node[n].heard || node[n].known) && !(was.members & BIT(n)))
#define IS_BEHIND (node[Y].joined <= was.joined)
#if LIMIT == 1
#define MAY_LOSE true
#else
#define MAY_LOSE (!((IS_NEW(X) || IS_NEW(Z)) && IS_BEHIND))
#endif
/* A number that nobody can tell. */
#define IS_KEPT(j) (IS_OF(node[X].kept | node[Y].kept | node[Z].kept, j))
#define IS_GONE(j) (!IS_OF(st.in | st.lost | OTHERS, j) && !IS_KEPT(j) -> number[j] : 0)

#define TURN_INTO_FORMER(bits) ((bits) & BIT(X) -> (bits) & ~BIT(X) | FORMER : (bits))

inline lose() {
    losses++;
    copy(st, was);
    promised = (firm -> promised & st.in : promised);
    firm = false;
    disconnect_all()
}

proctype run_faults()
{
    do
    :: d_step { !calm && snaps < SNAPS && IS_BEGUN -> snaps++; copy(was, st); firm = false }
    :: d_step { !calm && losses < LOSSES && MAY_LOSE ->
#ifndef NO_LOSSREPLID
          last_process++;
          process = last_process;
#endif
          lose() }
#ifdef BACK
    :: d_step { !calm && losses < LOSSES && MAY_LOSE && process != 1 && was.process != 1 -> process = 1; lose() }
#endif
    :: d_step { !calm && restarts < RESTARTS -> restarts++; last_process++; process = last_process; disconnect_all() }
#if LIMIT == 2
    :: d_step { !calm && losses > 0 && IS_BEGUN && guests < 2 -> guests++; st.joined++ }
#endif
#ifdef CUTS
    :: d_step { !calm && losses > 0 && node[X].phase == OFF && LIVES(X) -> cut = cut | BIT(X) }
    :: d_step { !calm && losses > 0 && node[Z].phase == OFF && LIVES(Z) -> cut = cut | BIT(Z) }
#endif
    /* W after it has told: no lease of before runs any more */
#if defined(CUTS) || defined(REBORN)
    :: d_step { cut & BIT(X) && alive & BIT(X) && IS_BEGUN && st.told & BIT(X) -> cut = cut & ~BIT(X); end_lease() }
    :: d_step { cut & BIT(Z) && alive & BIT(Z) && IS_BEGUN && st.told & BIT(Z) -> cut = cut & ~BIT(Z); end_lease() }
#endif
#ifdef NEW
    :: d_step { !calm && !(alive & BIT(Y)) -> alive = alive | BIT(Y) }
#endif
#ifdef REBORN
    /* in time, if nobody has decided yet */
    :: d_step { !calm && !(alive & BIT(X)) ->
          alive = alive | BIT(X);
          cut = cut | (IS_BEGUN && node[Y].era == st.era -> BIT(X) : 0);
          st.members = TURN_INTO_FORMER(st.members); st.told = TURN_INTO_FORMER(st.told);
          was.members = TURN_INTO_FORMER(was.members); was.told = TURN_INTO_FORMER(was.told);
          node[X].heard = answered & ~(SESSIONS | OTHERS);
#ifndef NO_LOSSLOG
          node[X].kept = node[X].heard;
#endif
          if
          :: used && chain < CHAINS - 1 -> chain++; used = false
          :: else
          fi }
#endif
#ifdef ACCEPT
    :: d_step { !calm && st.missing && IS_BEGUN ->
          st.missing = 0; st.accepted = true; st.lost = st.lost | made; firm = true }
#endif
#ifdef QUIET
    :: !calm -> calm = true
    :: timeout -> atomic {
          stuck = stuck || alive & BIT(X) && node[X].phase != DECIDES || alive & BIT(Y) && node[Y].phase != DECIDES ||
              st.missing & (number[0] | number[1]) & ~(IS_GONE(0) | IS_GONE(1)) ;
          assert(!stuck) };
       do :: calm = true od
#endif
    od
}
#ifndef QUIET
#ifdef NO_LOSSSENT
#define MAY_READ (node[Y].phase != OFF)
#else
#define MAY_READ (node[Y].phase == DECIDES)
#endif
#ifdef NO_LOSSLEASE
#define MAY_ASK (node[Y].phase != OFF)
#else
#define MAY_ASK (node[Y].phase == DECIDES)
#endif
#ifdef NO_LOSSCOMPARE
#define IS_WHOLE true
#else
#define IS_WHOLE (st.missing == 0)
#endif

proctype run_checks()
{
    do
    :: !reads -> skip /* refused */
    /* Redis runs the read at once; the reply takes time. */
    :: d_step { !reads && MAY_READ && IS_WHOLE && !(st.marked & 1) -> reads = true; clean = true; want = 1;
          late = IS_LATE(1); lost = IS_LOST }
#if ENDINGS > 1
    :: d_step { !reads && MAY_READ && IS_WHOLE && KEY(1) && !(st.marked & 2) -> reads = true; clean = true; want = 2;
          late = IS_LATE(2); lost = IS_LOST }
#endif
#if SESSIONS
    /* a key that nobody revokes */
    :: d_step { !reads && MAY_READ && IS_WHOLE -> reads = true; lost = IS_LOST }
#endif
    :: atomic { reads && node[Y].phase == DECIDES ->
#if PROBE == 3
          assert(!(losses && node[Y].era == st.era && made && !(st.in & 1)));
#endif
          assert(!late);
          assert(!lost);
          d_step {
#ifdef CACHE
              cached = cached | (clean -> want : 0);
#endif
              end_read() } }
#ifdef CACHE
    :: d_step { !asks && !lease && MAY_ASK && IS_WHOLE -> asks = true; behind = node[Y].inbox }
    :: d_step { asks && !(node[Y].inbox & behind) -> asks = false; behind = 0; lease = true }
    :: atomic { lease && node[Y].phase == DECIDES && cached & 1 ->
          d_step { late = late || IS_LATE(1); lost = lost || IS_LOST };
          assert(!late);
          assert(!lost) }
#endif
    od
}
#endif

init {
    atomic {
        d_step {
            st.process = 1; st.era = 1; st.members = EACH; st.told = EACH; st.joined = NODES;
            subscribed = EACH;
            node[X].phase = DECIDES; node[X].era = 1; node[X].joined = NODES;
            node[Y].phase = DECIDES; node[Y].era = 1; node[Y].joined = NODES;
            node[Z].phase = WAITS; node[Z].era = 1; node[Z].joined = NODES
        };
#ifdef NEW
        d_step {
            alive = alive & ~BIT(Y); st.members = st.members & ~BIT(Y); disconnect(Y); node[Y].era = 0;
            node[Y].joined = 0 }
#endif
        if /* the older state: that of now, one when only Y had registered, or the empty store */
        :: copy(was, st)
#ifdef YOUNG
        :: was.members = BIT(Y); was.joined = 1; was.process = 1; was.era = 1; was.told = BIT(Y)
        :: true
#endif
        fi;
        run run_node(Z); run run_node(X); run run_node(Y); run run_maker(); run run_faults();
#ifndef QUIET
        run run_checks()
#endif
    }
}
