"""Clocks differ or jump, and nobody is thought dead for it."""
from hosts import *

T = 4


def test_an_hour_ahead_and_an_hour_behind():
    faketime = shutil.which('faketime')
    if faketime is None:
        raise Skip('no faketime')
    if ASAN:
        raise Skip('not as a sanitized build: its library must come first')
    for offset in ('+1h', '-1h'):
        with Hosts(2) as h:
            args = ['--heartbeat-timeout=%d' % T, '--nnodes=2',
                    '--master-addr=h0']
            ps = [h.start(0, *args, '--node-rank=0', 'sleep', '6'),
                  h.popen(1, faketime, '-f', offset, FLAUNCH, *args,
                          '--node-rank=1', 'sleep', '6')]
            results = h.finish_all(ps)
        assert codes(results) == [0, 0], (offset, results)


def test_a_pause_of_half_the_time_is_nothing_and_of_three_times_is_the_end():
    with Hosts(2) as h:
        ps = h.start_all('--heartbeat-timeout=%d' % T, 'sh', '-c',
                         'echo ready; exec sleep 100')
        for p in ps:
            p.stdout.readline()
        os.kill(ps[1].pid, signal.SIGSTOP)
        time.sleep(T / 2)  # the fault itself
        os.kill(ps[1].pid, signal.SIGCONT)
        time.sleep(T / 2)
        assert ps[0].poll() is None and ps[1].poll() is None
        os.kill(ps[1].pid, signal.SIGSTOP)
        r = finish(ps[0], 30 * T)
        os.kill(ps[1].pid, signal.SIGCONT)
        results = [r] + h.finish_all([ps[1]])
    assert codes(results) == [125, 125], results
    assert 'lost node 1 (h1): nothing was heard of it for %d s' % T in r.err, r
