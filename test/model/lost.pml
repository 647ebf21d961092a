/* Lost answers of a replacement (src/lease/README.md, Scheduled revocations; key_replace.lua, key_confirm.lua, key_revoke.lua).
 * An integration with one key asks for another one. It waits for the answer or gives up and asks again, at the same node or
 * another, until it has an answer; then it uses the new key, now or later. Each request is read by its node, which looks at the
 * key, and sends a script, which may be long on its way. The answer arrives, or a proxy reads and drops it, or it surely does
 * not arrive: then the node discards the new key, later. A node may die after each step. That a key was used is noted later,
 * or never.
 *
 * Kept as long as the old key's end has not come: the old key, or one whose secret has arrived, is accepted.
 * Kept for ever: once a secret has arrived, its key is accepted.
 * Always: at most one successor lives, and no end comes that a discarded one has set.
 *
 * Every rule holds by default; -DNO_<RULE> removes one, and a promise must then break:
 *   NO_LOSTLATER   with overlap 0 the old key is revoked by the script
 *   NO_LOSTEND     a discard leaves the end that the replacement has set
 *   NO_LOSTBY      a discard withdraws the end although another successor has set it since
 *   NO_LOSTONE     a repeated request leaves an earlier successor alive
 *   NO_LOSTSEEN    a script goes ahead although another one came since its node looked
 *   NO_LOSTGONE    a node looks for a client that has gone
 * -DOVERLAP: the old key ends when its time has come; otherwise also when a successor is used.
 * -DN=n: requests at most.
 * -DPROBE=n asserts that a case is never reached; it must fail, which shows that the search gets there. */
#ifndef N
#define N 3
#endif
#define NONE 0

/* The store. */
bool old_lives = true, end_set, end_came;
byte by = NONE;              /* the successor that has replaced it last */
bool made[N + 1], lives[N + 1], used[N + 1]; /* used: as the store knows */
bool taken[N + 1];           /* discarded before it was made */
bool discarded[N + 1];       /* while it was the one that replaced the old key */
/* The integration. */
bool arrived[N + 1], gone[N + 1];
byte asked = 0, holds = NONE;

#define is_answered (holds != NONE)

inline discard(i)
{
    atomic {
        if
        :: !made[i] -> taken[i] = true
        :: made[i] && used[i] -> skip
        :: made[i] && !used[i] ->
            discarded[i] = lives[i] && by == i && old_lives;
            lives[i] = false;
#ifndef NO_LOSTEND
            if
#ifndef NO_LOSTBY
            :: by == i && old_lives && !end_came -> end_set = false; by = NONE
#else
            :: old_lives && !end_came -> end_set = false; by = NONE
#endif
            :: else -> skip
            fi
#else
            skip
#endif
        fi
    }
}

/* A request at its node. */
proctype Request(byte i)
{
    byte seen;
    bool did = false;

    /* It may be read late, and its node may die before, or look once more. */
look:
    atomic {
        if
        :: true -> goto over
#ifndef NO_LOSTGONE
        :: gone[i] -> goto over
        :: !gone[i] -> seen = by
#else
        :: true -> seen = by
#endif
        fi
    }
    atomic {
        if
        :: true -> goto over /* the node dies before it sends the script */
        :: taken[i] || !old_lives -> skip
#ifndef NO_LOSTSEEN
        :: !taken[i] && old_lives && by != seen -> goto look
        :: !taken[i] && old_lives && by == seen ->
#else
        :: !taken[i] && old_lives ->
#endif
            if
            :: by != NONE && lives[by] && used[by] -> skip /* 409 */
            :: else ->
#ifndef NO_LOSTONE
                if
                :: by != NONE -> lives[by] = false
                :: else -> skip
                fi;
#endif
                made[i] = true; lives[i] = true; did = true;
                by = i;
                end_set = true;
#ifdef NO_LOSTLATER
                old_lives = false
#endif
            fi
        fi
    }
    if
    :: !did -> goto over
    :: did && !gone[i] && !is_answered -> atomic { /* the answer arrives, in time */
            if
            :: !gone[i] && !is_answered -> arrived[i] = true; holds = i; goto over
            :: else -> skip
            fi
        }
    :: did -> goto over /* a proxy drops it, or the node dies */
    :: did -> skip
    fi;
    /* It surely did not arrive: the client never reads it. */
    atomic {
        if
        :: holds != i -> gone[i] = true
        :: else -> goto over
        fi
    }
    if
    :: true -> discard(i)
    :: true -> skip /* the node dies */
    fi;
over:
    skip
}

/* The script is sent, and its outcome is unknown: the node discards what may come later. */
proctype Doubt(byte i)
{
end:
    atomic { gone[i] && holds != i -> skip }
    if
    :: true -> discard(i)
    :: true -> skip
    fi
}

proctype Confirm(byte i)
{
    atomic {
        if
        :: lives[i] && !used[i] ->
            used[i] = true;
#ifndef OVERLAP
            if
            :: by == i && end_set -> old_lives = false
            :: else -> skip
            fi
#else
            skip
#endif
        :: else -> skip
        fi
    }
}

proctype Integration()
{
    byte i;

    do
    :: atomic { !is_answered && asked < N -> asked++; i = asked; run Request(i); run Doubt(i) };
        if
        :: atomic { is_answered -> break }
        :: atomic { !is_answered -> gone[i] = true } /* it gives up */
        fi
    :: atomic { is_answered -> break }
    :: atomic { asked == N -> break }
    od;
    /* It uses the new key, now, later or never. */
    if
    :: is_answered && lives[holds] -> run Confirm(holds)
    :: true -> skip
    fi
}

/* The end comes at a time of its own, if it is set. */
proctype Time()
{
end:
    atomic { end_set && old_lives -> end_came = true; old_lives = false }
}

#define is_lost (!end_came && !old_lives && !(is_answered && lives[holds]))
#define is_taken_away (is_answered && !lives[holds])
#define is_two (lives[1] + lives[2] + (N > 2 -> lives[N] : 0) > 1)

#define is_left (end_came && by != NONE && discarded[by])

proctype Promise()
{
end:
    atomic { is_lost || is_taken_away || is_two || is_left ->
        assert(!(is_lost)); assert(!(is_taken_away)); assert(!(is_two)); assert(!(is_left))
    }
}

#ifdef PROBE
proctype Probe()
{
end:
#if PROBE == 1
    atomic { is_answered && holds == N && made[1] && !lives[1] -> assert(false) }   /* the last of several answers */
#elif PROBE == 2
    atomic { made[1] && !lives[1] && old_lives && !end_set -> assert(false) }       /* an end was withdrawn */
#elif PROBE == 3
    atomic { is_answered && used[holds] && !old_lives && !end_came -> assert(false) } /* ended by use */
#elif PROBE == 4
    atomic { taken[1] && !made[1] -> assert(false) }                                /* discarded before it was made */
#endif
}
#endif

init
{
    atomic {
        run Integration();
        run Time();
        run Promise();
#ifdef PROBE
        run Probe()
#endif
    }
}
