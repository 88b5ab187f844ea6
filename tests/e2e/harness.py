"""What the end-to-end tests share: running flaunch, and looking for what it
left behind. A process of a test is known by a variable in its environment."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.environ.get('FLAUNCH_TEST_BUILD', os.path.join(ROOT, 'build'))
FLAUNCH = os.path.join(BUILD, 'flaunch')
PROGS = os.path.join(BUILD, 'tests', 'progs')
EXAMPLES = os.path.join(BUILD, 'examples')
ASAN = os.path.basename(BUILD) == 'asan'
# A deadline against hangs, never a measure.
LONG = 120


started = []


class Skip(Exception):
    """Raised with a reason: something that a machine may lack is not here."""


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return 'exit %s\n--- stdout\n%s\n--- stderr\n%s' % (
            self.code, self.out, self.err)


def clean_env(extra=None, token=None):
    """Our environment without what a launcher around the tests left in it."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(('FLAUNCH_', 'PET_', 'TORCHELASTIC_', 'SLURM_',
                                'OMPI_', 'PMI', 'HOROVOD_'))
           and k not in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'MASTER_ADDR',
                         'MASTER_PORT', 'LOCAL_WORLD_SIZE', 'OMP_NUM_THREADS',
                         'PYTHONUNBUFFERED', 'CUDA_VISIBLE_DEVICES')}
    env['FLAUNCH_TEST_TOKEN'] = token or uuid.uuid4().hex
    env.update(extra or {})
    if ASAN:
        # Its dlopen does not know the caller's run path.
        if env.get('LD_LIBRARY_PATH', '') is not None:
            env['LD_LIBRARY_PATH'] = ':'.join(
                filter(None, [BUILD, env.get('LD_LIBRARY_PATH')]))
        env['LSAN_OPTIONS'] = 'print_suppressions=0:suppressions=' + \
            os.path.join(ROOT, 'tests', 'tools', 'lsan.supp')
    return {k: v for k, v in env.items() if v is not None}


def left_behind(token):
    """Live processes that have the token: [(pid, name), ...]."""
    mark = ('FLAUNCH_TEST_TOKEN=%s' % token).encode()
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/environ' % pid, 'rb') as f:
                if mark not in f.read().split(b'\0'):
                    continue
            with open('/proc/%s/stat' % pid) as f:
                stat = f.read()
        except OSError:
            continue
        if stat[stat.rindex(')') + 2] not in 'ZX':
            found.append((int(pid), stat[stat.index('('):stat.rindex(')') + 1]))
    return found


def wait_until(condition, what, seconds=LONG):
    """Wait for a condition; never for a time."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError('not within %d s: %s' % (seconds, what))
        time.sleep(0.005)


def children_of(pid):
    """(pid, name) of the children, zombies included."""
    found = []
    for child in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % child) as f:
                fields = f.read()
        except OSError:
            continue
        name = fields[fields.index('(') + 1:fields.rindex(')')]
        if int(fields[fields.rindex(')') + 2:].split()[1]) == pid:
            found.append((int(child), name))
    return found


def guard_of(pid):
    for child, name in children_of(pid):
        if name == 'flguard':
            return child
    return None


def assert_nothing_left(token):
    wait_until(lambda: not left_behind(token),
               'an end of %s' % left_behind(token), 10)


def popen(argv, env=None, token=None, **kwargs):
    kwargs.setdefault('stdin', subprocess.DEVNULL)
    kwargs.setdefault('stdout', subprocess.PIPE)
    kwargs.setdefault('stderr', subprocess.PIPE)
    process = subprocess.Popen(argv, env=clean_env(env, token), **kwargs)
    started.append(process)
    return process


def end_all_of(processes):
    """TERM, and KILL for those that do not end of it; by pid."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def end_all():
    """After a test that failed half-way: end what it started, by pid."""
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
    started.clear()


def start(args, **kwargs):
    """Popen of flaunch."""
    return popen([FLAUNCH] + list(args), **kwargs)


def finish(process, seconds=LONG):
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError('still running after %d s\n%s\n%s' % (
            seconds, out, err))
    return Result(process.returncode, (out or b'').decode(errors='replace'),
                  (err or b'').decode(errors='replace'))


def flaunch(*args, env=None, seconds=LONG, **kwargs):
    """Run flaunch to its end and see that nothing is left."""
    token = uuid.uuid4().hex
    result = finish(start(args, env=env, token=token, **kwargs), seconds)
    assert_nothing_left(token)
    return result


def program(*args, env=None, seconds=LONG, **kwargs):
    """Run a program without flaunch."""
    return finish(popen(args, env=env, **kwargs), seconds)


def has_pytorch(python):
    try:
        return subprocess.run([python, '-c', 'import torch'],
                              stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def prog(name):
    return os.path.join(PROGS, name)


def example(name):
    path = os.path.join(EXAMPLES, name)
    if not os.path.exists(os.path.join(BUILD, 'libflaunch_gloo.so')):
        raise Skip('gloo is not installed')
    return path


def by_hand(n, *args, program=None, env=None, rank_env=None, ranks=None,
            seconds=LONG):
    """Start ranks with the plain environment, no launcher; their results.
    rank_env: {rank: what that one has beside it}."""
    port = str(free_port())
    token = 'h%d' % time.monotonic_ns()
    processes = []
    for rank in (range(n) if ranks is None else ranks):
        place = {'RANK': str(rank), 'WORLD_SIZE': str(n),
                 'LOCAL_RANK': str(rank), 'LOCAL_WORLD_SIZE': str(n),
                 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port}
        place.update(env or {})
        place.update((rank_env or {}).get(rank, {}))
        processes.append(popen([program or prog('init'), *args], env=place,
                               token=token))
    results = [finish(p, seconds) for p in processes]
    assert_nothing_left(token)
    return results


def same_words(results):
    """What all of them printed, which must be the same."""
    said = {r.out for r in results}
    assert len(said) == 1, said
    return said.pop()


def standin_env(cuda=None, nccl=None):
    """With our stand-ins for libcudart and libnccl, and their scripts."""
    return {'LD_LIBRARY_PATH': os.path.join(BUILD, 'tests', 'standin'),
            'STANDIN_CUDA': cuda, 'STANDIN_NCCL': nccl}


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


class TempDir:
    """A directory that others may enter, removed at the end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix='flaunch-test-')
        os.chmod(self.path, 0o755)
        return self.path

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)


def lines(text):
    return [line for line in text.splitlines() if line]


def own_lines(result):
    """What flaunch itself said, without the line on OMP_NUM_THREADS."""
    return [line for line in lines(result.err)
            if line.startswith('flaunch: ') and 'OMP_NUM_THREADS' not in line]
