"""Restarts leave no zombie, descriptor or memory behind."""
from scenario import *


def test_many_restarts():
    n = 300 if ASAN else 2000
    token = new_token()
    with TempDir() as d, open(d + '/err', 'w') as err:
        p = start(['--max-restarts=%d' % n, '--restart-backoff=0', 'sh', '-c',
                   'sleep 0 & exit 1'], token=token, stderr=err,
                  stdout=subprocess.DEVNULL)
        def attempt():
            with open(d + '/err') as f:
                return f.read().count('restart ')
        def state():
            with open('/proc/%d/status' % p.pid) as f:
                rss = int(re.search(r'VmRSS:\s*(\d+)', f.read()).group(1))
            zombies = sum(s == 'Z' for _, s in states_of(guard_of(p.pid)))
            return len(os.listdir('/proc/%d/fd' % p.pid)), rss, zombies
        wait_until(lambda: attempt() >= 100, '100 restarts')
        early = state()
        wait_until(lambda: attempt() >= n // 2, 'half of them')
        late = state()
        assert finish(p).code == 1
    # The store of an attempt holds some, and either look may miss it.
    assert late[0] <= early[0] + 12, (early, late)
    assert ASAN or late[1] <= early[1] + 1024, (early, late)
    assert late[2] <= 3, late
    assert_nothing_left(token)
