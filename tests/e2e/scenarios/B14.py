"""OMP_NUM_THREADS is shared out, said, and never overridden."""
from scenario import *


def test_cpus_are_shared_out():
    cpu = sorted(os.sched_getaffinity(0))[0]

    def threads(n, env=None):
        r = flaunch('--nproc_per_node=%d' % n, 'sh', '-c',
                    'echo "<$OMP_NUM_THREADS>"', env=env,
                    preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        assert r.code == 0, r
        assert len(lines(r.err)) == (1 if n > 1 and not env else 0), r
        return lines(r.out)
    assert threads(2) == ['<1>', '<1>']
    assert threads(1) == ['<>']
    assert threads(2, {'OMP_NUM_THREADS': '7'}) == ['<7>', '<7>']
