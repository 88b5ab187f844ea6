"""Limits that are too low are told by their names."""
from scenario import *


def limited(which, value):
    return lambda: resource.setrlimit(which, (value, value))


def test_descriptors():
    r = flaunch('--nproc_per_node=40', 'true',
                preexec_fn=limited(resource.RLIMIT_NOFILE, 64))
    assert r.code == 125 and 'ulimit -Hn' in r.err, r


def test_processes():
    if os.getuid() == 0:
        raise Skip('not as root: its number of processes has no limit')
    mine = len([1 for pid in filter(str.isdigit, os.listdir('/proc'))
                if os.path.exists('/proc/' + pid) and
                os.stat('/proc/' + pid).st_uid == os.getuid()])
    r = flaunch('--nproc_per_node=40', 'sleep', '100',
                env={'OMP_NUM_THREADS': '1'},
                preexec_fn=limited(resource.RLIMIT_NPROC, mine + 12))
    assert r.code == 125 and 'ulimit -u' in r.err, r


def test_workers_get_the_limits_we_were_given():
    r = flaunch('sh', '-c', 'ulimit -Sn; ulimit -c',
                preexec_fn=lambda: (
                    resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
                    resource.setrlimit(resource.RLIMIT_NOFILE, (
                        200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))))
    assert lines(r.out) == ['200', '0'], r


def test_many_workers_on_few_cpus():
    begin = time.monotonic()
    r = flaunch('--nproc_per_node=256', 'true')
    assert r.code == 0, r
    assert time.monotonic() - begin < 50
