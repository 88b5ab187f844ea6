"""Killed by SIGKILL: who sent it, and out of memory only with evidence."""
from scenario import *


def test_sigkill_is_named_and_was_not_ours():
    r = flaunch('--nproc-per-node=2', 'sh', '-c',
                '[ $RANK = 1 ] && kill -9 $$; sleep 60')
    assert r.code == 137, r
    assert 'rank 1 (pid' in r.err and 'was killed by SIGKILL' in r.err, r
    assert 'SIGKILL was not sent by flaunch' in r.err, r
    assert 'see dmesg' in r.err and 'memory limit' not in r.err, r
    assert re.search(r'peak memory \d+ MiB', r.err), r


def memory_groups():
    """Where a group with a memory limit can be made: (parent, version)."""
    with open('/proc/self/mountinfo') as f:
        mounts = [line.split(' - ') for line in f]
    for left, right in mounts:
        place = left.split()[4]
        kind = right.split()
        if kind[0] == 'cgroup' and 'memory' in kind[2].split(','):
            yield place, 1
        if kind[0] == 'cgroup2':
            try:
                with open(place + '/cgroup.subtree_control') as f:
                    if 'memory' in f.read().split():
                        yield place, 2
            except OSError:
                pass


def test_a_memory_limit_is_named_where_the_kernel_tells():
    if os.getuid() != 0:
        raise Skip('not as an ordinary user: a memory limit needs a cgroup')
    for parent, version in memory_groups():
        group = '%s/flaunch-test-%d' % (parent, os.getpid())
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            limit = 'memory.max' if version == 2 else 'memory.limit_in_bytes'
            with open('%s/%s' % (group, limit), 'w') as f:
                f.write(str(64 << 20))
            script = ('import os\n'
                      'if os.environ["RANK"] == "1": x = b"x" * (200 << 20)\n'
                      'import time; time.sleep(60)')
            p = start(['--nproc-per-node=2', sys.executable, '-c', script],
                      preexec_fn=lambda: open(group + '/cgroup.procs',
                                              'w').write('0'))
            r = finish(p)
        finally:
            wait_until(lambda: removed(group), 'an empty group', 10)
        assert r.code == 137, r
        assert 'was not sent by flaunch; the memory limit' in r.err, r
        assert 'killed 1 process for it' in r.err, r
        return
    raise Skip('as root, but no memory controller can be written here')


def removed(group):
    try:
        os.rmdir(group)
    except OSError:
        return False
    return True
