/*
 * What rank 0 and the others of a check-in leave in the store.
 */
#ifndef FLAUNCH_WORKER_CHECKIN_KEYS_H
#define FLAUNCH_WORKER_CHECKIN_KEYS_H

/*
 * nonce         rank 0's, and behind it whose it is
 * seq           how many slots were given out
 * mail/N        a record, in slot N from 1
 * answer/TOKEN  to the record of that token
 */
#define CHECKIN_PREFIX "flaunch/checkin/"
#define CHECKIN_KEY_MAX 128

/* How an answer begins. */
#define CHECKIN_AGAIN "again " /* and the nonce to echo */
#define CHECKIN_OK "ok "       /* and where rank 0 is reached */
#define CHECKIN_FAIL "fail "   /* and the verdict */

#endif
