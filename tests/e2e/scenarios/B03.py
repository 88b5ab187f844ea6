"""A hang-up that was ignored at the start stays ignored."""
from scenario import *


def ignored(pid):
    with open('/proc/%d/status' % pid) as f:
        mask = int(re.search(r'^SigIgn:\s*(\w+)$', f.read(), re.M).group(1), 16)
    return bool(mask & 1 << signal.SIGHUP - 1)


def test_nohup_protects_the_job():
    token = new_token()
    p = start(['--nproc_per_node=2', 'sleep', '100'], token=token,
              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    workers = wait_for_workers(token, 'sleep', 2)
    p.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert p.poll() is None
    assert all(ignored(pid) for pid in workers)
    p.terminate()  # TERM always works
    assert finish(p).code == 143
    assert_nothing_left(token)


def test_without_nohup_a_hang_up_stops_the_job():
    token = new_token()
    p = start(['--nproc_per_node=2', 'sleep', '100'], token=token)
    workers = wait_for_workers(token, 'sleep', 2)
    assert not any(ignored(pid) for pid in workers)
    p.send_signal(signal.SIGHUP)
    assert finish(p).code == 129
    assert_nothing_left(token)
