"""--nnodes=MIN:MAX: nodes come and go while the job runs."""
from hosts import *

LOOP = ['sh', '-c', 'echo $FLAUNCH_ATTEMPT $RANK/$WORLD_SIZE '
        '$TORCHELASTIC_RESTART_COUNT; while [ ! -e $STOP ]; do sleep 0.05; done']


def elastic(h, i, *more, d, limits='1:2', **kwargs):
    return h.start(i, '--nnodes=' + limits, '--rdzv-backend=c10d',
                   '--rdzv-endpoint=h0', '--rdzv-conf=last_call_timeout=1',
                   '--restart-backoff=0', *more, *LOOP,
                   env={'STOP': d + '/stop'}, **kwargs)


def next_line(process):
    return process.stdout.readline().decode().strip()


def stop(d):
    open(d + '/stop', 'w').close()


def test_a_node_that_comes_later_gets_a_new_round():
    with Hosts(2) as h, TempDir() as d:
        a = elastic(h, 0, d=d)
        assert next_line(a) == '0 0/1 0'
        b = elastic(h, 1, d=d)
        assert next_line(a) == '1 0/2 0'
        assert next_line(b) == '1 1/2 0'
        stop(d)
        results = h.finish_all([a, b])
    assert codes(results) == [0, 0], results
    assert 'h1 joins: a new round: 1 worker is stopping' in results[0].err, results


def test_logs_of_earlier_rounds_are_kept():
    with Hosts(2) as h, TempDir() as d:
        args = ['--log-dir=' + d, '--tee=1', '--local-ranks-filter=0']
        a = elastic(h, 0, *args, d=d)
        next_line(a)
        b = elastic(h, 1, d=d)
        next_line(b)
        stop(d)
        results = h.finish_all([a, b])
        run = [e for e in os.listdir(d) if e != 'stop'][0]
        assert sorted(os.listdir(os.path.join(d, run))) == [
            'attempt_0', 'attempt_0.1'], os.listdir(os.path.join(d, run))
    assert codes(results) == [0, 0], results


def test_a_node_that_is_told_to_stop_leaves_and_the_job_goes_on():
    with Hosts(2) as h, TempDir() as d:
        ps = [elastic(h, i, d=d) for i in range(2)]
        assert [next_line(p) for p in ps] == ['0 0/2 0', '0 1/2 0']
        ps[1].terminate()
        left = h.finish_all([ps[1]])[0]
        assert left.code == 143, left
        assert next_line(ps[0]) == '1 0/1 0'  # and no restart is used up
        stop(d)
        results = h.finish_all([ps[0]])
    assert codes(results) == [0], results
    assert 'node 1 (h1) leaves (SIGTERM): 1 worker is stopping' in \
        results[0].err, results


def test_a_stop_signal_to_the_host_node_stops_all():
    with Hosts(2) as h, TempDir() as d:
        ps = [elastic(h, i, d=d) for i in range(2)]
        [next_line(p) for p in ps]
        ps[0].terminate()
        results = h.finish_all(ps)
    assert codes(results) == [143, 143], results


def test_a_lost_node_uses_up_a_restart():
    with Hosts(3) as h, TempDir() as d:
        ps = [elastic(h, i, '--max-restarts=1', d=d, limits='1:3')
              for i in range(3)]
        assert sorted(next_line(p) for p in ps) == [
            '0 0/3 0', '0 1/3 0', '0 2/3 0']
        ps[2].kill()
        assert sorted(next_line(p) for p in ps[:2]) == ['1 0/2 1', '1 1/2 1']
        ps[1].kill()
        results = h.finish_all(ps)
    assert codes(results) == [125, -9, -9], results
    assert 'lost node 2 (h2): its connection was closed; restart 1 of 1' in \
        results[0].err, results
    assert 'lost node 1 (h1): its connection was closed\n' in results[0].err, \
        results


def test_below_the_minimum_nodes_are_waited_for():
    with Hosts(3) as h, TempDir() as d:
        ps = [elastic(h, i, '--max-restarts=3', d=d, limits='2:3')
              for i in range(2)]
        assert sorted(next_line(p) for p in ps) == ['0 0/2 0', '0 1/2 0']
        ps[1].kill()
        finish(ps[1])
        q = elastic(h, 2, '--max-restarts=3', d=d, limits='2:3')
        assert sorted(next_line(p) for p in (ps[0], q)) == ['1 0/2 1', '1 1/2 1']
        stop(d)
        results = h.finish_all([ps[0], q])
    assert codes(results) == [0, 0], results


def test_a_spare_node_takes_over():
    with Hosts(3) as h, TempDir() as d:
        ps = [elastic(h, i, '--max-restarts=3', d=d) for i in range(2)]
        assert sorted(next_line(p) for p in ps) == ['0 0/2 0', '0 1/2 0']
        spare = elastic(h, 2, '--max-restarts=3', d=d)
        wait_until(lambda: h.script('ss -Htn state established '
                                    '"( sport = 29400 )"', 0).count('10.77') >= 4,
                   'a third agent')
        ps[1].kill()
        assert next_line(ps[0]) == '1 0/2 1'
        assert next_line(spare) == '1 1/2 1'
        stop(d)
        results = h.finish_all([ps[0], spare])
    assert codes(results) == [0, 0], results


def test_a_spare_node_ends_with_the_job():
    with Hosts(3) as h, TempDir() as d:
        ps = [elastic(h, i, d=d) for i in range(2)]
        [next_line(p) for p in ps]
        spare = elastic(h, 2, d=d)
        wait_until(lambda: h.script('ss -Htn state established '
                                    '"( sport = 29400 )"', 0).count('10.77') >= 4,
                   'a third agent')
        stop(d)
        results = h.finish_all(ps + [spare])
    assert codes(results) == [0, 0, 0], results
    assert results[2].out == '', results
