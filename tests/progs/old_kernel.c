/*
 * Runs a program as if the kernel were old: the calls named below say ENOSYS.
 *     old_kernel PROGRAM [ARGS]
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#define PTY_PEER 0x5441 /* TIOCGPTPEER */

#define LOAD_NUMBER                                                            \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define MISSING(number)                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                       \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)

int main(int argc, char **argv)
{
    struct sock_filter rules[] = {
        LOAD_NUMBER,
        MISSING(SYS_close_range),
        MISSING(SYS_memfd_create),
        MISSING(SYS_clone3),
        MISSING(SYS_faccessat2),
        /* One request of ioctl(2). */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTY_PEER, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof(rules) / sizeof(rules[0]),
                                  .filter = rules };

    if (argc < 2) {
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("old_kernel");
        return 3;
    }
    (void)execv(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
