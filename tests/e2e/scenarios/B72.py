"""A warning is said once, then seldom, and every retry has an end."""
from hosts import *


def test_a_joiner_to_a_dead_master():
    with Hosts(2) as h:
        r = finish(h.start(1, '--nnodes=2', '--node-rank=1', '--master-addr=h0',
                           '--join-timeout=25', 'true'))
    assert r.code == 124, r
    said = own_lines(r)
    # 15 lines a minute at most.
    assert 2 <= len(said) <= 6, r
    assert said[-1].startswith('flaunch: could not join the host node'), r


def test_a_master_that_is_killed_in_mid_run():
    with Hosts(2) as h:
        ps = h.start_all('sh', '-c', 'echo ready; exec sleep 100')
        for p in ps:
            p.stdout.readline()
        ps[0].kill()
        results = h.finish_all(ps, 30)
    assert results[1].code == 125, results
    lost = [line for line in own_lines(results[1]) if 'lost the host' in line]
    assert 1 <= len(lost) <= 2 and len(own_lines(results[1])) <= 4, results
