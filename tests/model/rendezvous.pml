/*
 * The rendezvous of several nodes, as launcher/coordinator.c and rdzv_join.c have
 * it: join, seal, assign ranks, failure, restart, nodes that leave, die, fall
 * silent or reconnect, end.
 *
 * Agent 0 is the host node's and shares its fate with the coordinator: nothing
 * happens to it here. Others crash and may be started again, are cut off for a
 * while (TCP delivers later what was sent meanwhile), lose a connection, leave.
 * Each connection is an incarnation with channels of its own, so that messages of
 * an old one may arrive after those of a new one.
 *
 * There is no time: what a limit of time would bring about may happen at any
 * moment. Of the lease only its promise is here: a silent node is declared dead
 * when its workers are. That it is kept is shown by lease.pml.
 *
 * Properties: no two live nodes hold one rank (check_ranks), no stale message is
 * obeyed (the asserts at START and ENDED), every job ends (LTL ends, under weak
 * fairness).
 *
 * A seeded bug is one of
 *   BUG_NO_FENCE    a silent node is declared dead while its workers live
 *   BUG_LATE_START  a node starts workers although its lease is over
 *   BUG_NO_WAIT     the next round begins before all have said ENDED
 *   BUG_NO_INC      the coordinator does not look at the incarnation
 *   BUG_NO_LOSS     silence is never death
 *   BUG_NO_END      who dies before it confirms the end is waited for
 */
#ifndef N
#define N 2 /* agents: 2 or 3 */
#endif
#ifndef MIN
#define MIN 1
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef BREAKS
#define BREAKS 1
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef LEAVES
#define LEAVES 1
#endif
#ifndef ROUNDS
#define ROUNDS 4 /* later ones are not looked at: the job ends */
#endif
#ifndef INCS
#define INCS 3 /* connections of an agent */
#endif

mtype = { START, STOP, END, FAILED, ENDED, LEAVE, BYE, EOF };
mtype = { JOINING, RUNNING, STOPPING, ENDING, OVER };
mtype = { NONE, HERE, RUN, STOPPED, TOLD };

/* Two channels each way for every agent: an incarnation's is its parity's. */
chan up[2 * N] = [4] of { mtype, byte, byte };   /* incarnation, round */
chan down[2 * N] = [3] of { mtype, byte, byte, byte }; /* and rank */
#define CH(a, i) ((a) * 2 + (i) % 2)

/* --- what agents know ------------------------------------------------------- */
bool alive[N];
bool conn[N]; /* it has a connection */
bool live[N]; /* its workers run */
bool done[N]; /* it has left for good */
byte inc[N];  /* of its newest connection */
byte round[N];
byte rank[N];
bool cut[N]; /* nothing comes through */
bool expired[N]; /* the lease of this connection is over */

/* --- what the coordinator knows ---------------------------------------------- */
mtype phase = JOINING;
mtype row[N] = NONE;
byte row_inc[N];
bool leaving[N];
byte cround = 0;
byte restarts = 0;
bool failure = false;
bool change = false;

#if N > 2
#define COUNT(what)                                                            \
    ((row[0] == what) + (row[1] == what) + (row[2] == what))
#define ANY_LIVE (live[0] || live[1] || live[2])
#define ALL_DONE (done[0] && (done[1] || !alive[1]) && (done[2] || !alive[2]))
#else
#define COUNT(what) ((row[0] == what) + (row[1] == what))
#define ANY_LIVE (live[0] || live[1])
#define ALL_DONE (done[0] && (done[1] || !alive[1]))
#endif

#define EACH(s) s = 0; do :: s < N ->
#define HCAE(s) s++ :: else -> break od; s = 0

inline check_ranks(a)
{
    EACH(s)
        assert(s == a || !live[s] ||
               (round[s] == round[a] && rank[s] != rank[a]));
    HCAE(s)
}

/* --- coordinator: each inline uses the caller's s and n ---------------------- */

inline round_stop()
{
    if
    :: phase == RUNNING ->
        phase = STOPPING;
        EACH(s)
            if
            :: row[s] == RUN ->
                down[CH(s, row_inc[s])]!STOP(row_inc[s], cround, 0)
            :: else
            fi;
        HCAE(s)
    :: else
    fi
}

inline job_end()
{
    phase = ENDING;
    EACH(s)
        if
        :: s > 0 && row[s] == HERE ->
            row[s] = TOLD;
            down[CH(s, row_inc[s])]!END(row_inc[s], cround, 0)
        :: else
        fi;
    HCAE(s)
}

/* Nothing of the round is left. */
inline round_over()
{
    EACH(s)
        if
        :: row[s] == STOPPED -> row[s] = HERE
        :: else
        fi;
    HCAE(s)
    if
    :: failure && restarts < RESTARTS ->
        restarts++;
        phase = JOINING
    :: !failure && change ->
        phase = JOINING
    :: else -> job_end()
    fi
}

inline round_over_maybe()
{
    if
    :: (phase == RUNNING || phase == STOPPING) && COUNT(RUN) == 0 ->
        round_over()
    :: else
    fi
}

inline seal()
{
    phase = RUNNING;
    cround++;
    failure = false;
    change = false;
    EACH(s)
        if
        :: row[s] == HERE ->
            row[s] = RUN;
            down[CH(s, row_inc[s])]!START(row_inc[s], cround, n);
            n++
        :: else
        fi;
    HCAE(s)
    n = 0
}

/* A node is gone. */
inline lose(a)
{
    if
    :: row[a] == RUN || row[a] == STOPPED ->
        failure = failure || !leaving[a];
        row[a] = NONE;
        round_stop()
    :: else -> row[a] = NONE
    fi;
    leaving[a] = false;
    round_over_maybe()
}

inline take_ended(a, i)
{
#ifndef BUG_NO_WAIT
    assert(!live[a] || round[a] != cround || i != inc[a]);
#endif
    if
    :: leaving[a] ->
        leaving[a] = false;
        row[a] = TOLD;
        down[CH(a, i)]!END(i, cround, 0)
    :: else -> row[a] = STOPPED
    fi;
    round_over_maybe()
}

#ifdef BUG_NO_INC
#define KNOWN(a, i) (row[a] != NONE)
#else
#define KNOWN(a, i) (row[a] != NONE && (i) == row_inc[a])
#endif
#define CURRENT(a, r) (row[a] == RUN && (r) == cround)

inline take(a, m, i, r)
{
    if
    :: KNOWN(a, i) ->
        if
#ifdef BUG_NO_END
        :: m == EOF && row[a] == TOLD
        :: m == BYE || (m == EOF && row[a] != TOLD) -> lose(a)
#else
        :: m == BYE || m == EOF -> lose(a)
#endif
        :: m == FAILED && CURRENT(a, r) -> failure = true; round_stop()
        :: m == LEAVE && row[a] == RUN ->
            leaving[a] = true;
            change = true;
            round_stop()
        :: m == ENDED && CURRENT(a, r) -> take_ended(a, i)
        :: else
        fi
    :: else
    fi
}

#define TAKE(a, c)                                                             \
    atomic { !cut[a] && nempty(up[c]) -> up[c]?m(i, r);                        \
             take(a, m, i, r); m = 0; i = 0; r = 0 }
#ifdef BUG_NO_FENCE
#define SILENT(a) atomic { cut[a] && row[a] != NONE -> lose(a) }
#else
#define SILENT(a)                                                              \
    atomic { cut[a] && row[a] != NONE && (expired[a] || !conn[a]) -> lose(a) }
#endif

active proctype coordinator()
{
    byte s, n, r, i;
    mtype m;

    do
    :: phase == OVER -> break
    :: TAKE(0, 1)
    :: TAKE(1, 2)
    :: TAKE(1, 3)
#if N > 2
    :: TAKE(2, 4)
    :: TAKE(2, 5)
#endif
#ifndef BUG_NO_LOSS
    :: SILENT(1)
#if N > 2
    :: SILENT(2)
#endif
#endif
    :: atomic { phase == JOINING && COUNT(HERE) >= MIN &&
                cround < ROUNDS -> seal() }
    :: atomic { phase == JOINING &&
                (COUNT(HERE) < MIN || cround == ROUNDS) ->
                job_end() }
    :: atomic { phase == ENDING && COUNT(TOLD) == 0 ->
                phase = OVER; row[0] = NONE; conn[0] = false; done[0] = true }
#ifdef BUG_NO_WAIT
    :: atomic { phase == STOPPING -> round_over() }
#endif
    od
}

/* --- an agent ------------------------------------------------------------------ */

/* The handshake is one step. Whoever comes while a round runs is given one. */
inline connect(a)
{
    inc[a]++;
    conn[a] = true;
    expired[a] = false;
    row_inc[a] = inc[a];
    if
    :: phase == ENDING ->
        row[a] = TOLD;
        down[CH(a, inc[a])]!END(inc[a], cround, 0)
    :: else ->
        row[a] = HERE;
        change = true;
        round_stop()
    fi
}

/* The connection is over for the agent, and its guard has killed all. */
inline away(a)
{
    if
    :: conn[a] -> up[CH(a, inc[a])]!EOF(inc[a], 0)
    :: else
    fi;
    live[a] = false;
    conn[a] = false
}

inline start(a, r, k)
{
    assert(!live[a]);
    round[a] = r;
    rank[a] = k;
    live[a] = true;
    check_ranks(a)
}

proctype agent(byte a)
{
    byte s, i, r, k;
    mtype m;

    do
    :: done[a] || (!alive[a] && phase == OVER) -> break
    :: atomic { alive[a] && !done[a] && !conn[a] && !cut[a] && phase != OVER &&
                row[a] == NONE && inc[a] < INCS && a > 0 &&
                empty(down[CH(a, inc[a] + 1)]) &&
                empty(up[CH(a, inc[a] + 1)]) -> connect(a) }
    :: atomic { alive[a] && !conn[a] && (phase == OVER || inc[a] == INCS) ->
                done[a] = true }
    :: atomic { conn[a] && !cut[a] && nempty(down[CH(a, inc[a])]) ->
                down[CH(a, inc[a])]?m(i, r, k);
                if
                :: i != inc[a]
                :: else ->
                    if
#ifdef BUG_LATE_START
                    :: m == START -> start(a, r, k)
#else
                    :: m == START && !expired[a] -> start(a, r, k)
#endif
                    :: m == STOP && live[a] && r == round[a] ->
                        live[a] = false;
                        up[CH(a, inc[a])]!ENDED(inc[a], r)
                    :: m == END ->
                        conn[a] = false;
                        done[a] = true;
                        up[CH(a, inc[a])]!BYE(inc[a], 0)
                    :: else
                    fi
                fi;
                m = 0; i = 0; r = 0; k = 0 }
    /* The host node has closed it. */
    :: atomic { conn[a] && !cut[a] && a > 0 &&
                (row[a] == NONE || row_inc[a] != inc[a]) &&
                empty(down[CH(a, inc[a])]) -> away(a) }
    /* The lease is over: its guard kills, and in the end it sees that itself. */
    :: atomic { cut[a] && conn[a] && !expired[a] ->
                expired[a] = true; live[a] = false }
    :: atomic { conn[a] && expired[a] -> away(a) }
    /* What a closed connection still holds is nobody's. */
    :: atomic { nempty(down[CH(a, inc[a] + 1)]) ->
                down[CH(a, inc[a] + 1)]?m(i, r, k);
                m = 0; i = 0; r = 0; k = 0 }
    :: atomic { !conn[a] && nempty(down[CH(a, inc[a])]) ->
                down[CH(a, inc[a])]?m(i, r, k);
                m = 0; i = 0; r = 0; k = 0 }
    /* Workers end well, or fail. */
    :: atomic { conn[a] && live[a] && len(up[CH(a, inc[a])]) < 2 ->
                live[a] = false;
                if
                :: up[CH(a, inc[a])]!FAILED(inc[a], round[a])
                :: skip
                fi;
                up[CH(a, inc[a])]!ENDED(inc[a], round[a]) }
    od
}

/* --- what goes wrong --------------------------------------------------------------- */

proctype trouble(byte a)
{
    byte crashes = CRASHES, breaks = BREAKS, cuts = CUTS, leaves = LEAVES;

    do
    :: phase == OVER -> break
    :: break /* nothing more; a dead node stays dead, a cut is for ever */
    :: atomic { crashes > 0 && alive[a] && !done[a] ->
                crashes--;
                away(a);
                alive[a] = false }
    :: atomic { !alive[a] -> alive[a] = true }
    :: atomic { breaks > 0 && conn[a] && !cut[a] -> breaks--; away(a) }
    :: atomic { cuts > 0 && !cut[a] -> cuts--; cut[a] = true }
    :: atomic { cut[a] -> cut[a] = false }
    :: atomic { leaves > 0 && conn[a] && live[a] && !cut[a] &&
                len(up[CH(a, inc[a])]) < 2 ->
                leaves--;
                live[a] = false;
                up[CH(a, inc[a])]!LEAVE(inc[a], round[a]);
                up[CH(a, inc[a])]!ENDED(inc[a], round[a]) }
    od
}

init
{
    byte a;

    atomic {
        inc[0] = 1;
        conn[0] = true;
        alive[0] = true;
        row[0] = HERE;
        row_inc[0] = 1;
        run agent(0);
        a = 1;
        do
        :: a < N ->
            alive[a] = true;
            run agent(a);
            run trouble(a);
            a++
        :: else -> break
        od
    }
}

#ifdef LIVENESS
ltl ends { <>(phase == OVER && !ANY_LIVE && ALL_DONE) }
#endif
