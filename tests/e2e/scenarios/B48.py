"""A worker that cannot be killed does not wedge the launcher. The stand-in for
D state is a frozen process."""
from scenario import *


class Frozen:
    """A process that not even SIGKILL ends, until the block is left."""

    def __init__(self, pid):
        self.group = '/sys/fs/cgroup/freezer/flaunch-test-%d' % os.getpid()
        self.pid = pid

    def put(self, name, text):
        with open(os.path.join(self.group, name), 'w') as f:
            f.write(text)

    def __enter__(self):
        if os.getuid() != 0:
            raise Skip('as root only: the freezer is root\'s')
        try:
            os.mkdir(self.group)
            self.put('tasks', str(self.pid))
            self.put('freezer.state', 'FROZEN')
        except OSError:
            raise Skip('no freezer of cgroups version 1 here')

    def __exit__(self, *unused):
        self.put('freezer.state', 'THAWED')
        wait_until(lambda: not open(self.group + '/tasks').read(), 'its end')
        os.rmdir(self.group)


def test_what_survives_sigkill_is_named_after_ten_seconds():
    token = 'u%d' % time.monotonic_ns()
    with TempDir() as d, open(d + '/err', 'w+') as err:
        # A file: the frozen worker would hold the end of a pipe.
        p = start(['--shutdown-timeout=0', '--max-restarts=3', 'sleep',
                   '100'], token=token,
                  stdout=subprocess.DEVNULL, stderr=err)
        worker = wait_until(lambda: [pid for pid, name in left_behind(token)
                                     if 'sleep' in name], 'a worker')[0]
        with Frozen(worker):
            p.terminate()
            assert p.wait(LONG) == 125
        err.seek(0)
        text = err.read()
        assert 'process %d (sleep, state ' % worker in text, text
        assert 'survived SIGKILL for 10 s' in text, text
        assert 'restart' not in text, text
    assert_nothing_left(token)
