"""Root and few CPUs are no reason to refuse."""
from scenario import *


def test_more_workers_than_cpus():
    cpu = sorted(os.sched_getaffinity(0))[0]
    r = flaunch('--nproc_per_node=8', 'true', env={'OMP_NUM_THREADS': '1'},
                preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    assert r.code == 0 and r.err == '', r
