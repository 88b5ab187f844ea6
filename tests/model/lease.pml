/*
 * The lease of a joining node, as rdzv_join.c, coordinator_watch.c and guard.c have
 * it. Heartbeats and their answers take any time, and are held up for a while by a
 * cut; the agent may be stopped, its guard is not. Time goes in ticks; T of them
 * are the heartbeat timeout.
 *
 * Property: when the coordinator declares the node dead, its workers are.
 *
 * A seeded bug is one of
 *   BUG_OF_ACK    the lease begins when the answer comes, not when the heartbeat
 *                 was sent
 *   BUG_NO_GUARD  the agent kills, and not its guard
 *   BUG_HOST_T    the host node's limit is a tick shorter
 */
#ifndef T
#define T 4
#endif
#ifdef BUG_HOST_T
#define HOST_T (T - 1)
#else
#define HOST_T T
#endif

bool live = true;     /* the workers */
bool dead = false;    /* says the coordinator */
bool stopped = false; /* the agent, by SIGSTOP */
bool cut = false;
byte heard = 0; /* ticks since the host node heard of it */
byte lease = 0; /* ticks since the newest acknowledged heartbeat was sent */

/* Two heartbeats may be under way. 0: none, 1: to the host node, 2: its answer. */
byte beat[2];
byte age[2];

#define OLDER(x) x = (x < T -> x + 1 : x)
#define BEAT(b)                                                                \
    :: atomic { !stopped && live && beat[b] == 0 -> beat[b] = 1; age[b] = 0 }  \
    :: atomic { !cut && beat[b] == 1 -> heard = 0; beat[b] = 2 }               \
    :: atomic { !cut && !stopped && beat[b] == 2 -> ANSWERED(b); beat[b] = 0 }
#ifdef BUG_OF_ACK
#define ANSWERED(b) lease = 0
#else
#define ANSWERED(b) lease = (age[b] < lease -> age[b] : lease)
#endif

active proctype beats()
{
    do
    :: dead -> break
    BEAT(0)
    BEAT(1)
    od
}

/* Guards act at once when a lease is over. */
active proctype clock()
{
    do
    :: dead -> break
    :: atomic {
        OLDER(heard);
        OLDER(lease);
        OLDER(age[0]);
        OLDER(age[1]);
        if
#ifdef BUG_NO_GUARD
        :: lease >= T && !stopped -> live = false
#else
        :: lease >= T -> live = false
#endif
        :: else
        fi }
    od
}

active proctype host()
{
    atomic { heard >= HOST_T -> dead = true; assert(!live) }
}

active proctype trouble()
{
    do
    :: dead -> break
    :: stopped = !stopped
    :: cut = !cut
    od
}
