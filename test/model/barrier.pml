/* Leases, ordered invalidation, the registry of live sessions and the barrier, on one Redis.
 *
 * The promise: once a DELETE has been answered "revoked", no node accepts the key for a request that starts later.
 * One key; NN nodes; a DELETE that is asked MAXDEL times at most (by way of any node); one Redis, which may restart at any
 * time, or be failed over with -DFAILOVER. Each connection may break at any time and lose what is in flight;
 * acknowledgements may be lost; each process may pause anywhere, which is what interleaving means. Time has no end: a tick
 * may come at any moment, timers count down. README.md tells what is left out, and ties the rules to the code.
 *
 * Every rule holds by default; -DNO_<RULE> removes one, and the promise must then break:
 *   NO_SAMECONN    the echo of a heartbeat comes on another connection than the invalidations
 *   NO_FROMSEND    the lease runs from the receipt of the echo, not from the clock read before the heartbeat was sent
 *   NO_REGFIRST    a heartbeat does not register its session; something does so later
 *   NO_NONCE       the echo of a heartbeat that was given up counts for the newest one
 *   NO_FLUSH       a lost subscription keeps cache and lease
 *   NO_FILLINV     a read fills the cache although an invalidation came since it was sent
 *   NO_FILLSESS    a read fills the cache although a new session began since it was sent
 *   NO_USE         the cache answers without a look at the lease
 *   NO_FRESHCLOCK  the lease is compared with a clock that was read before the request came
 *   NO_JOIN        a check that joins a read is decided by its reply, whatever came between
 *   NO_JOINLEASE   the same, but for reads that may fill the cache only: the lease is not looked at
 *   NO_JOINFILL    the same, but under a running lease only: invalidations and sessions are not looked at
 *   NO_DROPFIRST   a node acknowledges, and drops the entry a moment later
 *   NO_WAIT        the revoker answers without waiting for those that have not acknowledged
 *   NO_MARGIN      the revoker waits L, not L and the worst difference of the clocks
 *   NO_FROMREPLY   the wait runs from when the script was sent, not from its reply
 *   NO_CONNAGE     "all have acknowledged" counts at once after Redis has restarted
 *   NO_REBARRIER   a DELETE that finds the key revoked already is answered at once
 *   NO_EVICTRULE   registry entries may vanish at any time (a TTL, and a clock that was set)
 *   NO_LEAVERULE   a draining node leaves the registry first and stops using its cache later
 *   NO_SESSIONID   two processes share one entry of the registry (-DNN=2)
 *   NO_SWEEPWAIT   an entry that was marked is swept without having waited (-DSWEEP)
 *   NO_SWEEPSAME   an entry that was marked is swept after the wait, whatever it has become (-DSWEEP)
 *   NO_SWEEPMARK   an entry is swept that nobody has marked (-DSWEEP)
 *   NO_MARKUNIQUE  marks do not differ (-DSWEEP)
 *   NO_UNMARK      a heartbeat leaves a marked entry as it is (-DSWEEP)
 *   NO_DURABLE     the script is answered before it is on disk
 *   NO_HBWAIT      a heartbeat grants a lease without acknowledgements of replicas (-DFAILOVER)
 *   NO_FENCE       after a failover "all have acknowledged" counts at once (-DFAILOVER)
 *   NO_FOLLOWED    it counts W after connecting to the new master, whoever follows it by then (-DFAILOVER)
 *   NO_LEASEMAX    the wait is by the leases that the new master knows of (-DFAILOVER)
 *   NO_FENCEREADS  a read decides without a lease (-DFAILOVER)
 *   NO_REPLSYNC    a failover may lose an answered revocation (-DFAILOVER, -DHAND)
 *   NO_REASSERT    and the node that answered it does not look whether the new master has it (-DOURS)
 *   NO_RUNID       a replica is believed, and reads that end at another Redis than the invalidations (-DHAND)
 *   NO_STOREID     a heartbeat that reaches another store grants a lease (-DOTHER)
 *   NO_SLOTKEY     a script declares no name of the slot: every primary runs it, wherever the slot is (-DMOVE)
 *   NO_WHOLE       it declares a name that exists: the source runs it while that name is there (-DMOVE)
 *   NO_REJOIN      a node that follows the slot keeps membership, cache and lease (-DMOVE)
 *   NO_MOVEAGE     a revoker that follows the slot counts the age of a connection that it had there before (-DMOVE)
 *   NO_CATCHUP     a session after a broken connection keeps the cache, and reads nothing of what it missed (-DSTREAM)
 *   NO_BEGIN       it reads that, but has lease and fills before it knows (-DSTREAM)
 *   NO_CONFIRMED   it reads that before SUBSCRIBE is confirmed (-DSTREAM)
 *   NO_HEARD       a node takes for heard what a heartbeat's reply names, before the echo has come (-DSTREAM)
 *   NO_KNOWN       it reads what comes after an entry that was trimmed (-DSTREAM)
 *   NO_SERVER      it reads that at another Redis than the one where it has subscribed (-DSTREAM -DHAND)
 * NO_ACKNUMBER (acknowledgements of any barrier count for the newest) is expected to hold: see README.md.
 * -DFAILOVER adds two replicas, of which one is promoted and the other one follows it later, and the old master, which goes
 * on for as long. -DR=n of them must acknowledge a heartbeat (and a revocation): 1, or 2, all there are.
 * -DHAND instead: no Sentinel and one replica, which lags, and takes the master's place by hand. Reads may end at either.
 * -DOTHER: now and then another store stands where ours was: an empty one, another database.
 * -DMOVE: two primaries; the slot with all names moves from one to the other, name by name. Each of a node's connections
 * follows it by itself, at some time or never.
 * -DSTREAM: revocations are a stream, too, which may be trimmed. A node whose connection breaks keeps its cache, and reads
 * what it missed before its next session begins. Without it, every session begins with an empty cache.
 * -DOURS: every DELETE is asked of node 0, which keeps its word even with -DNO_REPLSYNC; else of any node, or one that is gone.
 * -DNO_SHORT removes the short path: every DELETE waits W, acknowledgements and registry are not used. It holds.
 * -DSWEEP adds a sweeper, a barrier of some other key. -DSMALL leaves out clean leaves and heartbeats that are given up.
 * -DSTEADY: connections break by a restart only; -DCALM: never. They leave out behaviour, to find counter-examples sooner.
 * -DPROBE=n asserts that a case is never reached; it must fail, which shows that the search gets there.
 */
#ifndef NN
#define NN 1
#endif
#ifndef L
#define L 1                /* lease, in ticks of a perfect clock */
#endif
#ifndef D
#define D 1                /* a slow clock may stretch a lease by D ticks */
#endif
#ifndef MAXDEL
#define MAXDEL 2           /* the second is the client's repetition */
#endif
#define LONGEST (L+D)
#ifdef NO_MARGIN
#define W L
#else
#define W LONGEST
#endif
#ifndef R
#define R 1
#endif
/* What the revoker waits: by the longest lease that its master knows of, or that there may be. */
#if defined(FAILOVER) && defined(NO_LEASEMAX)
#define WAITS (knows_lease[MASTER] -> W : 0)
#else
#define WAITS W
#endif
#ifdef NO_CONNAGE
#define CONNAGE_OK true
#else
#define CONNAGE_OK (rage >= WAITS)
#endif
#ifdef NO_SESSIONID
#define SLOT(i) 0
#else
#define SLOT(i) (i)
#endif
#ifndef PROBE
#define PROBE 0
#endif
#ifdef NO_ACKNUMBER
#define COUNTS(b) true
#else
#define COUNTS(b) (b == barrier)
#endif

mtype = { HB, REG, DEREG, INV, ECHO };

bool answered = false;         /* a DELETE has been answered "revoked" */

/* Timers, moved by Clock. */
byte lr[NN];                   /* what is left of node i's lease */
byte hbage[NN];                /* ticks since node i read the clock for its outstanding heartbeat */
byte wr = 0;                   /* what is left of the revoker's wait */
byte rage = W;                 /* age of the revoker's connection to Redis, no more than W is told */

/* Redis: master 0, and master 1 after a failover. Master 1 is a replica of the first until then, and a third Redis is too,
 * until it is moved. */
bool revoked[2];
bool regd[4];                  /* registry: regd[2*master + slot] */
bool subscribed[NN];           /* node i's subscriber connection is alive in Redis */
#if defined(FAILOVER) || defined(HAND)
bit  home[NN];                 /* the master that node i is connected to */
bit  master = 0;               /* the master that takes revocations */
#define HOME(i) home[i]
#define MASTER master
#elif defined(MOVE)
bit  home[NN];                 /* the primary that node i listens to */
bit  owner = 0;                /* the primary that has the slot */
#define HOME(i) home[i]
#define MASTER owner
#else
#define HOME(i) 0
#define MASTER 0
#endif
#ifdef FAILOVER
bool cut_off = false;          /* the replica that will be promoted hears nothing of its master any more */
bool moved = false;            /* the other replica follows the new master */
bool demoted = false;          /* and so does the old one */
bool counted = true;           /* the old master's count of its replicas, as it last looked: some */
bool knows_lease[2];           /* lease_max */
/* Replicas that acknowledge. A master that does not know yet that it was replaced has those that have not left it. */
#define OF_FIRST ((!cut_off) + (!moved))
#define OF_SECOND (moved + demoted)
#ifdef NO_HBWAIT
#define ENOUGH(i) (HOME(i) == 0 -> !demoted && counted : true)
#else
#define ENOUGH(i) (HOME(i) == 0 -> !demoted && OF_FIRST >= R : OF_SECOND >= R)
#endif
#endif
#if defined(HAND) || defined(MOVE)
bit  rhome[NN];                /* where node i's reads end */
#define RHOME(i) rhome[i]
#else
#define RHOME(i) HOME(i)
#endif
#ifdef HAND
#define ENOUGH(i) (HOME(i) == MASTER)    /* a replica takes none */
#endif
#ifdef MOVE
bit  chome[NN];                /* where node i's heartbeats end */
bit  asked = 0;                /* the primary that the revoker asks */
bool moving = false;           /* the slot is MIGRATING at its owner, and IMPORTING at the other primary */
bit  record_at = 0;            /* where the key's record is, */
bit  registry_at = 0;          /* and the registry: each moves in one step */
#define CHOME(i) chome[i]
/* Whether primary p runs a script of the slot. It answers ASK or MOVED else, and no node sends ASKING. */
#if defined(NO_SLOTKEY)
#define RUNS(p) true
#elif defined(NO_WHOLE)
#define RUNS(p) (p == owner && (!moving || record_at == p))
#else
#define RUNS(p) (p == owner && !moving)
#endif
#define ENOUGH(i) RUNS(CHOME(i))
#else
#define CHOME(i) HOME(i)
#endif
#ifdef OTHER
bool away = false;             /* another store stands where ours was */
#else
#define away false
#endif
/* The Redis that the revoker asks, and whether one lacks what node i itself was told to be done. */
#ifdef OURS
bool kept = false;             /* node 0 has seen the script's reply: it keeps that before it answers anybody */
#define ASKED HOME(0)
#define KEEP kept = true
#else
#ifdef MOVE
#define ASKED asked
#else
#define ASKED MASTER
#endif
#define KEEP skip
#endif
#if defined(OURS) && !defined(NO_REASSERT)
#define LACKS(i, where) (i == 0 && kept && !revoked[where])
#else
#define LACKS(i, where) false
#endif
#ifdef NO_DURABLE
bool fsynced = true;
#endif
#ifdef STREAM
bool trimmed = false;          /* the key's entry is gone, and all before it */
#endif

/* Connections of a node: "invalidations", "changes" and "reads". Whoever breaks one of the last two tells the node in the
 * same step: until a node notices, a dead connection is a slow one. */
chan inv[NN] = [3] of { mtype, byte };     /* Redis -> node: INV barrier, ECHO fresh */
bool broken[NN];                           /* it is dead, and the node has not noticed */
chan cq[NN]  = [3] of { mtype, byte };     /* node -> Redis: HB fresh, REG, DEREG */
#ifdef NO_SAMECONN
chan cr[NN]  = [2] of { mtype, byte };     /* Redis -> node: echoes that come as replies */
#endif
byte hbfly[NN];                            /* heartbeats and echoes in flight, at most 2 */
bool hbout[NN];                            /* a heartbeat is outstanding */
byte rd[NN];                               /* the one read in flight: */
#define IDLE 0
#define SENT 1
#define SAYS_NO 2
#define SAYS_YES 3
bool clean[NN];                            /* no invalidation and no new session since it was sent */
bool rlate[NN];                            /* the check that sent it started after the answer */
byte join[NN];                             /* checks that share it: */
#define NOBODY 0
#define EARLY 1
#define LATE 2                             /* at least one of them started after the answer */
#ifdef STREAM
byte known[NN];                            /* the newest entry of the stream up to which node i has heard everything: */
#define NOTHING 0
#define BEFORE 1                           /* one before the key's, or where that will be */
#define BEHIND 2                           /* the key's, or one after it */
byte sr[NN];                               /* the read of what comes after it: as rd, or */
#define UNSURE 4                           /* it has failed, or the known entry is not there */
#endif

/* The revoker's. */
chan rq = [MAXDEL] of { byte };            /* revoker -> Redis: script of barrier n */
chan rr = [1] of { byte, bool };           /* Redis -> revoker: registry; was it revoked before? */
byte barrier = 0;                          /* the newest barrier's number */
byte acked = 0;                            /* the slots that have acknowledged it */
bool rbroken = false;                      /* its connection is dead, and it has not noticed */

/* Used within one d_step only: a search that goes back does not restore them. */
hidden mtype h_kind; hidden byte h_number; hidden byte h_count; hidden byte h_registry; hidden byte h_again;

inline drain(c)     { do :: nempty(c) -> c?_ :: empty(c) -> break od; skip }
inline drain2(c)    { do :: nempty(c) -> c?_,_ :: empty(c) -> break od; skip }
inline drainhb(c,i) { do :: nempty(c) -> c?h_kind,h_number; if :: (h_kind == HB || h_kind == ECHO) -> hbfly[i]-- :: else fi
                         :: empty(c) -> break od; skip }
/* A nonce without bound, abstracted: what is in flight of a heartbeat that is given up becomes stale (0). */
inline stale(c)     { h_count = len(c);
                      do :: h_count > 0 -> c?h_kind,h_number; if :: (h_kind == HB || h_kind == ECHO) -> h_number = 0 :: else fi; c!h_kind,h_number; h_count-- :: else -> break od; skip }
inline give_up(i)   { hbout[i] = false; hbage[i] = 0; stale(inv[i]); stale(cq[i]); stale_replies(i) }
#ifdef NO_SAMECONN
inline stale_replies(i) { stale(cr[i]) }
inline drain_replies(i) { drainhb(cr[i],i) }
#else
inline stale_replies(i) { skip }
inline drain_replies(i) { skip }
#endif
inline cutinv(i)     { subscribed[i] = false; drainhb(inv[i],i); broken[i] = true }
inline cutchanges(i) { drainhb(cq[i],i); drain_replies(i); give_up(i) }
inline drop_check(i) { rd[i] = IDLE; clean[i] = false; rlate[i] = false; join[i] = NOBODY }
#ifdef STREAM
inline cutreads(i)   { drop_check(i); sr[i] = (sr[i] == IDLE -> IDLE : UNSURE) }
#else
inline cutreads(i)   { drop_check(i) }
#endif
inline cutrevoker()  { drain(rq); drain2(rr); rbroken = true }
inline sendread(i, l) { rd[i] = SENT; clean[i] = true; rlate[i] = l; join[i] = NOBODY }
inline push(i, what, n) { if :: nfull(inv[i]) -> inv[i]!what,n
                             :: full(inv[i]) -> if :: what == ECHO -> hbfly[i]-- :: else fi; cutinv(i)   /* the output buffer's limit */
                          fi }
inline publish(i, n) { if :: (subscribed[i] && HOME(i) == ASKED) -> push(i, INV, n) :: else fi }

#ifdef SWEEP
bool marked = false;                       /* the entry: somebody has waited for it in vain */
bool swseen = false, swhb = false;         /* a marked entry is waited for; it has been written or marked again since */
byte swr = 0;
#ifdef NO_SWEEPMARK
#define SWEEPABLE true
#else
#define SWEEPABLE marked
#endif
#ifdef NO_MARKUNIQUE
#define MARK marked = true; swhb = false
#else
#define MARK marked = true
#endif
#ifdef NO_UNMARK
#define UNMARK skip
#else
#define UNMARK swhb = swhb || (swseen && marked); marked = false
#endif
#ifdef NO_SWEEPWAIT
#define SWEEP_WAITED true
#else
#define SWEEP_WAITED (swr == 0)
#endif
#ifdef NO_SWEEPSAME
#define SWEEP_SAME true
#else
#define SWEEP_SAME (!swhb)
#endif
#endif

/* The reply of a heartbeat names the stream's last entry. It counts when the echo comes, and goes with it here. */
#ifdef STREAM
#define LAST(p) (revoked[p] -> BEHIND : BEFORE)
#define NAMES(p) 2*LAST(p)
#else
#define NAMES(p) 0
#endif
/* Whether node i's leave is refused, or reaches another registry than ours. */
#ifdef MOVE
#define STAYS(i) (!RUNS(CHOME(i)))
#else
#define STAYS(i) away
#endif
/* One command of node i on "changes", executed by Redis. */
inline exec(i) {
  cq[i]?h_kind,h_number;
  if
  :: h_kind == HB ->
     if
#if defined(FAILOVER) || defined(HAND) || defined(MOVE)
     :: !ENOUGH(i) || LACKS(i, HOME(i)) -> hbfly[i]--; hbout[i] = false; hbage[i] = 0
#endif
#if defined(OTHER) && !defined(NO_STOREID)
     :: away ->
#if PROBE == 13
        assert(false);
#endif
        hbfly[i]--; hbout[i] = false; hbage[i] = 0
#endif
     :: else ->
#ifndef NO_REGFIRST
        regd[2*CHOME(i) + SLOT(i)] = regd[2*CHOME(i) + SLOT(i)] || !away;
#if PROBE == 11
        assert(MASTER == HOME(i));
#endif
#ifdef FAILOVER
        if :: HOME(i) == 0 && !cut_off -> regd[2 + SLOT(i)] = true; knows_lease[1] = true :: else fi;
        knows_lease[HOME(i)] = true;
#endif
#endif
#ifdef SWEEP
        UNMARK;                              /* else the entry is as it should be, and is not written */
#endif
#ifdef NO_HEARD
        known[i] = LAST(CHOME(i));
#endif
#ifdef NO_SAMECONN
        cr[i]!ECHO,h_number
#else
        if :: subscribed[i] && HOME(i) == CHOME(i) -> push(i, ECHO, h_number + NAMES(CHOME(i))) :: else -> hbfly[i]-- fi
#endif
     fi
  :: h_kind == REG   -> regd[2*CHOME(i) + SLOT(i)] = true
  :: h_kind == DEREG -> regd[2*CHOME(i) + SLOT(i)] = regd[2*CHOME(i) + SLOT(i)] && STAYS(i)
  fi
}

#define TICK(v) v = (v > 0 -> v-1 : 0)
#define AGE(i)  hbage[i] = (hbout[i] && hbage[i] < LONGEST -> hbage[i]+1 : hbage[i])
active proctype Clock() {
  do
  :: d_step { TICK(lr[0]); AGE(0);
#if NN > 1
       TICK(lr[1]); AGE(1);
#endif
#ifdef SWEEP
       TICK(swr);
#endif
       TICK(wr); rage = (rage < W -> rage+1 : rage) }
  od
}

/* Each batch of reads has a look at the Redis that it reached before it. */
#if defined(HAND) && !defined(NO_RUNID)
#define KNOWN(i) (RHOME(i) == MASTER && RHOME(i) == HOME(i))
#elif defined(MOVE)
#define KNOWN(i) (RUNS(RHOME(i)) && record_at == RHOME(i))
#else
#define KNOWN(i) true
#endif
inline read(i) { rd[i] = (revoked[RHOME(i)] || away || !KNOWN(i) || LACKS(i, RHOME(i)) -> SAYS_NO : SAYS_YES) }

#ifdef STREAM
#ifdef NO_SERVER
#define AT_HOME(i) true
#else
#define AT_HOME(i) (KNOWN(i) && RHOME(i) == HOME(i))
#endif
#ifdef NO_KNOWN
#define IS_GONE(i) false
#define IS_LISTED(i) (known[i] == BEFORE && revoked[RHOME(i)] && !trimmed)
#else
#define IS_GONE(i) (known[i] == BEFORE -> trimmed : !revoked[RHOME(i)])
#define IS_LISTED(i) (known[i] == BEFORE && revoked[RHOME(i)])
#endif
inline read_stream(i) { sr[i] = (away || !AT_HOME(i) || IS_GONE(i) -> UNSURE : (IS_LISTED(i) -> SAYS_NO : SAYS_YES)) }
#endif

/* Crash and restart: connections and registry are lost. */
inline restart() {
  regd[0] = false; regd[1] = false;
#ifdef SWEEP
  marked = false; swhb = swseen;
#endif
  cutinv(0); cutchanges(0); cutreads(0);
#if NN > 1
  cutinv(1); cutchanges(1); cutreads(1);
#endif
  cutrevoker()
}

#ifdef MOVE
/* One primary does, for all that are connected to it. */
inline restart_primary(p) {
  regd[2*p] = false; regd[2*p+1] = false;
  leave_primary(0, p);
#if NN > 1
  leave_primary(1, p);
#endif
  if :: asked == p -> cutrevoker() :: else fi
}
inline leave_primary(i, p) {
  if :: HOME(i) == p -> cutinv(i) :: else fi;
  if :: CHOME(i) == p -> cutchanges(i) :: else fi;
  if :: RHOME(i) == p -> cutreads(i) :: else fi
}
/* SETSLOT NODE, with the last name: what is refused while names move is refused until then. */
inline moved_name() { if :: record_at == 1 && registry_at == 1 -> owner = 1; moving = false :: else fi }
#endif

#ifdef FAILOVER
/* A revocation is answered when replicas have it: mark and answer are one step here. That the one that is promoted has it
 * is assumed (NO_REPLSYNC): so no revocation is answered by the old master once it is cut off. */
#ifdef NO_REPLSYNC
#define REPLICATED (ASKED == 0 -> !demoted && OF_FIRST >= R : OF_SECOND >= R)
#else
#define REPLICATED (MASTER == 0 -> !cut_off : OF_SECOND >= R)
#endif
#if R < 2 && !defined(NO_FOLLOWED)
#define FOLLOWED rage = (OF_SECOND == R -> 0 : rage)    /* the first acknowledgement counts */
#else
#define FOLLOWED skip
#endif
#elif defined(MOVE)
#define REPLICATED (RUNS(asked) && record_at == asked)
#else
#define REPLICATED (ASKED == MASTER && !away)
#endif
/* The revoker leaves the master that was replaced: with its node, or at once. */
#ifdef OURS
#define PROMOTE master = 1
#else
#define PROMOTE master = 1; cutrevoker()
#endif
/* The new master has what it got as a replica, and the old one forgets what it has not. Or the new one had all. */
#ifdef NO_REPLSYNC
#define TAKE_OVER PROMOTE
#define FOLLOW revoked[0] = revoked[1]
#else
#define TAKE_OVER PROMOTE; revoked[1] = revoked[0]
#define FOLLOW skip
#endif
active proctype Redis() {
  do
  :: d_step { nempty(cq[0]) -> exec(0) }
  :: d_step { rd[0] == SENT -> read(0) }
#ifdef STREAM
  :: d_step { sr[0] == SENT -> read_stream(0) }
  :: d_step { !trimmed && revoked[MASTER] -> trimmed = true }
#if NN > 1
  :: d_step { sr[1] == SENT -> read_stream(1) }
#endif
#endif
#if NN > 1
  :: d_step { nempty(cq[1]) -> exec(1) }
  :: d_step { rd[1] == SENT -> read(1) }
#endif
  /* One script: mark, publish, return the registry. Of a barrier that was given up nobody reads the reply. */
  :: d_step { nempty(rq) && REPLICATED -> rq?h_number;
#if PROBE == 10
        assert(h_number == barrier);
#endif
        h_again = revoked[ASKED]; revoked[ASKED] = true;
#if defined(FAILOVER) && defined(NO_REPLSYNC)
        revoked[1] = revoked[1] || !cut_off;
#endif
#ifdef NO_DURABLE
        if :: !h_again -> fsynced = false :: else fi;
#endif
        h_registry = regd[2*ASKED] + 2*regd[2*ASKED+1];
        publish(0, h_number);
#if NN > 1
        publish(1, h_number);
#endif
        if :: h_number == barrier -> rr!h_registry,h_again :: else fi }
#ifdef NO_DURABLE
  :: d_step { !fsynced -> fsynced = true }           /* some time later */
#endif
#ifndef CALM
#ifdef MOVE
  :: d_step { restart_primary(0) }
#ifndef NO_MOVEAGE                                   /* there the revoker's connection is old */
  :: d_step { restart_primary(1) }
#endif
#elif defined(NO_DURABLE)
  :: d_step { MASTER == 0 -> restart(); if :: !fsynced -> revoked[0] = false; fsynced = true :: else fi }
#else
  :: d_step { MASTER == 0 -> restart() }
#endif
#endif
#if !defined(CALM) && !defined(STEADY)
  :: d_step { subscribed[0] -> cutinv(0) }           /* each connection by itself */
  :: d_step { len(cq[0]) > 0 || hbout[0] -> cutchanges(0) }
  :: d_step { rd[0] != IDLE -> cutreads(0) }
#if NN > 1
  :: d_step { subscribed[1] -> cutinv(1) }
  :: d_step { len(cq[1]) > 0 || hbout[1] -> cutchanges(1) }
  :: d_step { rd[1] != IDLE -> cutreads(1) }
#endif
#endif
#ifdef NO_EVICTRULE
  :: d_step { regd[0] -> regd[0] = false }
#endif
#ifdef SWEEP
  /* The barrier of another key has waited for this entry in vain, and marks it. */
  :: d_step { regd[0] && !marked -> MARK }
  /* The script of a later one has returned the marked entry; the wait; compare and delete. */
  :: d_step { !swseen && regd[0] && SWEEPABLE -> swseen = true; swhb = false; swr = W }
  :: d_step { swseen && SWEEP_WAITED -> swseen = false;
        if :: SWEEP_SAME && regd[0] -> regd[0] = false; marked = false;
#if PROBE == 8
             assert(false);
#endif
           :: else fi;
        swhb = false; swr = 0 }
#endif
#ifdef FAILOVER
  :: d_step { !cut_off -> cut_off = true }
  :: d_step { MASTER == 0 -> TAKE_OVER; cut_off = true }
  :: d_step { MASTER == 1 && !moved -> moved = true; FOLLOWED }
  :: d_step { MASTER == 1 && !demoted -> demoted = true; FOLLOW; FOLLOWED }
#ifdef NO_HBWAIT
  :: d_step { counted && OF_FIRST == 0 -> counted = false }
#endif
#endif
#ifdef HAND
  /* The replica is made the master, and the master its replica. Each follows the other at some time. */
  :: d_step { MASTER == 0 -> TAKE_OVER }
  :: d_step { revoked[1-MASTER] != revoked[MASTER] -> revoked[1-MASTER] = revoked[MASTER] }
  /* The address leads to the other one, and a connection is made anew. */
  :: d_step { rhome[0] = 1 - rhome[0]; cutreads(0) }
#if NN > 1
  :: d_step { rhome[1] = 1 - rhome[1]; cutreads(1) }
#endif
#endif
#ifdef MOVE
  /* Each connection follows the slot by itself. Until then it is refused, as if it were broken. */
  :: d_step { chome[0] != owner -> chome[0] = owner; cutchanges(0) }
  :: d_step { rhome[0] != owner -> rhome[0] = owner; cutreads(0) }
#if NN > 1
  :: d_step { chome[1] != owner -> chome[1] = owner; cutchanges(1) }
  :: d_step { rhome[1] != owner -> rhome[1] = owner; cutreads(1) }
#endif
#ifndef NO_MOVEAGE
  /* So does the revoker's, and counts as a new one: the registry was at another primary until now. */
  :: d_step { asked != owner -> asked = owner; cutrevoker() }
#endif
  /* SETSLOT MIGRATING and IMPORTING; MIGRATE of each name. */
  :: d_step { !moving && owner == 0 -> moving = true }
  :: d_step { moving && record_at == 0 -> record_at = 1; revoked[1] = revoked[0]; revoked[0] = false; moved_name() }
  :: d_step { moving && registry_at == 0 -> registry_at = 1;
        regd[2] = regd[0]; regd[3] = regd[1]; regd[0] = false; regd[1] = false; moved_name() }
#endif
#if defined(OURS) && !defined(NO_REASSERT)
  /* Node 0 tells its master again what it answered. */
  :: d_step { HOME(0) == MASTER && LACKS(0, HOME(0)) -> revoked[HOME(0)] = true; publish(0, barrier);
#if NN > 1
        publish(1, barrier);
#endif
#if PROBE == 14
        assert(false);
#endif
        skip }
#endif
#ifdef OTHER
  :: d_step { away = !away }
#endif
  od
}

#ifdef NO_NONCE
#define NEWEST(v) true
#else
#define NEWEST(v) ((v & 1) == 1)
#endif
#ifdef NO_FLUSH
#define FLUSH skip
#else
#define FLUSH cached = false; lr[i] = 0
#endif
/* The connection has broken. It keeps the cache if it can catch up. */
#ifdef STREAM
#define GIVE_UP lr[i] = 0; cached = cached && known[i] != NOTHING; catching = false; sr[i] = IDLE
#define FORGET FLUSH; known[i] = NOTHING; catching = false; sr[i] = IDLE
#define LISTENS (up || catching)
#else
#define GIVE_UP FLUSH
#define FORGET FLUSH
#define LISTENS up
#endif
#if defined(STREAM) && !defined(NO_HEARD)
#define HEARD known[i] = (h_number >= 2 -> h_number >> 1 : known[i])
#else
#define HEARD skip
#endif
#ifdef NO_BEGIN
#define AT_ONCE true
#else
#define AT_ONCE false
#endif
#ifdef NO_FILLSESS
#define UNCLEAN_SESSION skip
#else
#define UNCLEAN_SESSION clean[i] = false
#endif
#ifdef NO_FILLINV
#define UNCLEAN_INV skip
#else
#define UNCLEAN_INV clean[i] = false
#endif
#define MAY_FILL (clean[i] && up && !left)
#ifdef NO_USE
#define LEASE true
#else
#define LEASE (lr[i] > 0)
#endif
#if defined(NO_JOIN)
#define JOIN_OK true
#elif defined(NO_JOINLEASE)
#define JOIN_OK MAY_FILL
#elif defined(NO_JOINFILL)
#define JOIN_OK (up && LEASE)
#else
#define JOIN_OK (MAY_FILL && LEASE)
#endif

#ifdef NO_DROPFIRST
#define DROP todrop = true
#else
#define DROP cached = false
#endif
#ifdef NO_FROMSEND
#define HBAGE 0
#else
#define HBAGE hbage[i]
#endif
inline invalidated(i) {
  inv[i]?INV,h_number; UNCLEAN_INV; DROP
#if PROBE == 9
  ; assert(h_number == barrier)
#endif
}
inline echoed(i, lease) {
  hbfly[i]--;
  if
  :: hbout[i] && NEWEST(h_number) -> HEARD; lr[i] = (lease > HBAGE && lease - HBAGE > lr[i] -> lease - HBAGE : lr[i]); hbage[i] = 0; hbout[i] = false
  :: else
  fi
}

/* One node. Its loop takes one event at a time; a pause may fall between any two statements. */
proctype Node(byte i) {
  bool up = false, cached = false, left = false, late = false, ok = false;
#ifdef STREAM
  bool catching = false;                             /* it has subscribed, and does not know yet what it missed */
#endif
#ifdef NO_DROPFIRST
  bool todrop = false;
#endif
  do
  /* A new session: SUBSCRIBE is confirmed on a new connection. */
#if !defined(STREAM)
  :: d_step { !up && !left -> up = true; broken[i] = false; subscribed[i] = true; drainhb(inv[i],i);
        UNCLEAN_SESSION; FLUSH }
#else
#ifdef NO_CONFIRMED
  :: d_step { !up && !left && !catching && known[i] != NOTHING && sr[i] == IDLE -> sr[i] = SENT }
  :: d_step { !up && !left && !catching && (known[i] == NOTHING || sr[i] != IDLE) ->
#else
  :: d_step { !up && !left && !catching ->
#endif
        broken[i] = false; subscribed[i] = true; drainhb(inv[i],i); UNCLEAN_SESSION; lr[i] = 0;
#ifdef NO_CATCHUP
        up = true
#else
        if
        :: known[i] == NOTHING -> up = true; cached = false
        :: else -> catching = true; up = AT_ONCE;
#ifndef NO_CONFIRMED
           sr[i] = SENT
#endif
        fi
#endif
        }
  /* What it missed is dropped, or all; and the session begins. */
  :: d_step { catching && sr[i] > SENT ->
#if PROBE == 17
        assert(!cached || sr[i] != SAYS_YES);
#endif
#if PROBE == 18
        assert(!cached || sr[i] != SAYS_NO);
#endif
        cached = cached && sr[i] == SAYS_YES; sr[i] = IDLE; catching = false; up = true; UNCLEAN_SESSION }
  /* An echo of an earlier session's heartbeat is on another channel. */
  :: d_step { catching && inv[i]?[ECHO,_] -> inv[i]?ECHO,h_number; hbfly[i]-- }
#endif
#if defined(FAILOVER) || defined(HAND)
  /* It hears that the master is another one. It may never. */
  :: d_step { !left && HOME(i) != MASTER -> home[i] = master; cutinv(i); broken[i] = false; cutchanges(i); cutreads(i);
#ifdef OURS
        if :: i == 0 -> cutrevoker() :: else fi;
#endif
        up = false; UNCLEAN_SESSION;
#ifdef HAND
        GIVE_UP
#else
        FORGET
#endif
        }
#endif
#ifdef MOVE
  /* It hears that the slot moved, or is told that its subscription has ended. It may never. */
  :: d_step { !left && HOME(i) != MASTER -> home[i] = MASTER; cutinv(i); broken[i] = false;
#ifdef NO_REJOIN
        subscribed[i] = up
#else
        up = false; UNCLEAN_SESSION; FORGET
#endif
        }
#endif
  /* The loss of the subscriber connection is noticed. */
  :: d_step { LISTENS && broken[i] -> up = false; UNCLEAN_SESSION; GIVE_UP }
#ifndef SMALL
  /* No echo for too long. */
  :: d_step { hbout[i] -> give_up(i) }
#endif
  /* A heartbeat: the clock is read, then it is sent. */
  :: d_step { up && !left && !hbout[i] && hbfly[i] < 2 && len(cq[i]) < 3 -> hbage[i] = 0; hbout[i] = true };
     if
     :: d_step { hbout[i] -> cq[i]!HB,1; hbfly[i]++ }
     :: d_step { !hbout[i] -> skip }                   /* the connection broke meanwhile */
     fi
#ifdef NO_REGFIRST
  :: d_step { up && !left && lr[i] > 0 && !regd[2*HOME(i)+SLOT(i)] && len(cq[i]) < 3 -> cq[i]!REG,0 }
#endif
  /* The subscriber connection, in order. */
  :: d_step { LISTENS && inv[i]?[INV,_] -> invalidated(i); if :: COUNTS(h_number) -> acked = acked | (1 << SLOT(i)) :: else fi }
#ifndef NO_DROPFIRST
  :: d_step { LISTENS && inv[i]?[INV,_] -> invalidated(i) }     /* the acknowledgement is lost */
#else
  :: d_step { todrop -> todrop = false; cached = false }
#endif
  /* An echo grants the lease, longer by D where the node's clock is slow. */
  :: d_step { up && inv[i]?[ECHO,_] -> inv[i]?ECHO,h_number; echoed(i, L) }
  :: d_step { up && inv[i]?[ECHO,_] -> inv[i]?ECHO,h_number; echoed(i, LONGEST) }
#ifdef NO_SAMECONN
  :: d_step { up && cr[i]?[ECHO,_] -> cr[i]?ECHO,h_number; echoed(i, L) }
  :: d_step { up && cr[i]?[ECHO,_] -> cr[i]?ECHO,h_number; echoed(i, LONGEST) }
#endif
  /* A check. */
  ::
#ifdef NO_FRESHCLOCK
     ok = LEASE;
     late = answered;
#else
     late = answered;                                /* the request starts here */
     ok = LEASE;                                     /* the clock is read after its bytes came */
#endif
     if
     :: cached && ok ->                              /* a pause may fall here */
#if PROBE == 1
        assert(false);
#endif
#if PROBE == 15
        assert(HOME(i) == 0);
#endif
        assert(!late); late = false; ok = false
     :: else -> d_step {
          if
          :: rd[i] == IDLE -> sendread(i, late)
          :: else -> join[i] = (late -> LATE : (join[i] == NOBODY -> EARLY : join[i]))
          fi;
          late = false; ok = false }
     fi
  /* The reply of a read decides who sent it; who joined it is refused by it, and accepted by it under the rule. */
  :: d_step { rd[i] == SAYS_NO -> drop_check(i) }
#if defined(FAILOVER) && !defined(NO_FENCEREADS)
  /* Nor does it accept without a lease, for it may come from a master that was replaced. */
  :: d_step { rd[i] == SAYS_YES && lr[i] == 0 -> drop_check(i) }
  :: d_step { rd[i] == SAYS_YES && lr[i] > 0 ->
#else
  :: d_step { rd[i] == SAYS_YES ->
#endif
        assert(!rlate[i]);
        if :: MAY_FILL -> cached = true :: else fi;
        if
        :: join[i] == NOBODY -> drop_check(i)
        :: join[i] != NOBODY && JOIN_OK ->
#if PROBE == 6
           assert(false);
#endif
           assert(join[i] != LATE); drop_check(i)
        :: else ->
#if PROBE == 7
           assert(join[i] == EARLY);
#endif
           sendread(i, join[i] == LATE)
        fi }
  /* A clean leave. */
#ifdef NO_LEAVERULE
  :: d_step { up && !left && len(cq[i]) < 3 -> left = true; cq[i]!DEREG,0 }
  :: d_step { left && cached -> cached = false; lr[i] = 0 }
#elif !defined(SMALL)
  :: d_step { up && !left && len(cq[i]) < 3 -> left = true; hbout[i] = false; hbage[i] = 0; cached = false; lr[i] = 0;
        clean[i] = false; cq[i]!DEREG,0 }
#endif
  od
}

/* The DELETEs, one after the other: of one client that asks again after each 503. */
active proctype Revoker() {
  byte snap = 0; bool al = false;
  do
  :: d_step { barrier < MAXDEL && !answered && !rbroken -> barrier++; acked = 0; drain2(rr); rq!barrier
#ifdef NO_FROMREPLY
       ; wr = WAITS
#endif
     };
     if
     :: d_step { nempty(rr) -> rr?snap,al; KEEP
#ifndef NO_FROMREPLY
        ; wr = WAITS
#endif
        }
     :: goto unknown                                 /* connection lost, or the deadline has passed; it may be executed yet: 503 */
     fi;
#ifdef NO_REBARRIER
     if :: al -> goto yes :: else fi;
#endif
     if
#ifndef NO_SHORT
     :: (snap & (7 - acked)) == 0 && CONNAGE_OK ->
#if PROBE == 2
        if :: snap != 0 -> assert(false) :: else fi;
#endif
#if PROBE == 5
        assert(snap != 3);
#endif
        skip
#endif
#ifdef NO_WAIT
     :: true -> skip
#endif
     :: wr == 0 ->
#if PROBE == 3
        if :: (snap & (7 - acked)) != 0 -> assert(false) :: else fi;
#endif
        skip
     :: goto unknown                                 /* it dies, or loses its connection: 503; the client asks again */
     fi;
yes: skip; d_step { answered = true;
#if PROBE == 12
       assert(MASTER == 0);
#endif
#if PROBE == 16
       assert(asked == 0);
#endif
#if PROBE == 4
       assert(barrier < 2);
#endif
       snap = 0; al = false; acked = 0; wr = 0 }
unknown: skip; d_step { snap = 0; al = false; acked = 0; wr = 0 }
  /* Redis restarted or changed: nobody has an older connection. */
#if defined(FAILOVER) && defined(NO_FENCE)
  :: d_step { rbroken -> rbroken = false; rage = (MASTER == 0 -> 0 : W); drain(rq); drain2(rr) }
#else
  :: d_step { rbroken -> rbroken = false; rage = 0; drain(rq); drain2(rr) }
#endif
#ifdef NO_MOVEAGE
  /* It uses a connection to the new primary that it has had for long, for another slot. */
  :: d_step { asked != owner -> asked = owner; rbroken = false; rage = W; drain(rq); drain2(rr) }
#endif
  :: answered || (barrier == MAXDEL && !rbroken) -> break
  od
}

init { atomic { run Node(0);
#if NN > 1
  run Node(1)
#endif
} }
