/*
 * A worker that does not want to be stopped: eleven children (plain, in a
 * session of their own, orphaned and deaf to every signal, stopped), and
 * itself. All of it ends by itself after two minutes, whatever happens.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define LIFE_SECONDS 120

static void sleep_out(void)
{
    time_t end = time(NULL) + LIFE_SECONDS;

    while (time(NULL) < end) {
        sleep(1);
    }
    _exit(0);
}

static void deafen(void)
{
    int signo;

    for (signo = 1; signo < NSIG; signo++) {
        (void)signal(signo, SIG_IGN);
    }
}

static void child_plain(void)
{
    sleep_out();
}

static void child_session(void)
{
    (void)setsid();
    sleep_out();
}

static void child_orphan(void)
{
    (void)setsid();
    if (fork() == 0) {
        deafen();
        sleep_out();
    }
    _exit(0);
}

static void child_stopped(void)
{
    (void)raise(SIGSTOP);
    sleep_out();
}

int main(void)
{
    static void (*const kinds[])(void) = { child_plain, child_session,
                                           child_orphan, child_stopped };
    int i;

    for (i = 0; i < 11; i++) {
        if (fork() == 0) {
            kinds[i % 4]();
        }
    }
    deafen();
    sleep_out();
    return 0;
}
