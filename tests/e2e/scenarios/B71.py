"""The start and the end are noticed at once, and idling is free."""
from scenario import *


def test_fifty_launches_in_a_row():
    begin = time.monotonic()
    for _ in range(50):
        assert flaunch_plain('--nproc_per_node=2', 'true') == 0
    assert time.monotonic() - begin < 30


def test_idle_means_asleep():
    token = new_token()
    p = start(['--nproc_per_node=8', 'sleep', '100'], token=token)
    wait_for_workers(token, 'sleep', 8)
    guard = guard_of(p.pid)
    def switches(pid):
        with open('/proc/%d/status' % pid) as f:
            return int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', f.read(),
                                 re.M).group(1))
    time.sleep(0.5)
    before = switches(p.pid) + switches(guard)
    time.sleep(3)
    woken = switches(p.pid) + switches(guard) - before
    with open('/proc/%d/status' % p.pid) as f:
        peak = int(re.search(r'VmHWM:\s*(\d+)', f.read()).group(1))
    p.terminate()
    finish(p)
    assert woken < 20, woken
    assert ASAN or peak < 10 * 1024, peak
    assert_nothing_left(token)
