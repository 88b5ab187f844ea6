"""What goes wrong on a node, and what all of them then say and do."""
from hosts import *

# T for tests that wait for it.
T = 3
QUICK = '--heartbeat-timeout=%d' % T


def worker_pids(process, name='sleep'):
    return [pid for pid, known in left_behind(process.token)
            if known == '(%s)' % name]


def wait_running(processes, n, name='sleep'):
    for p in processes:
        wait_until(lambda p=p: len(worker_pids(p, name)) >= n,
                   '%d workers' % n)


def agent_of(process):
    return process.pid


def said(result, words):
    assert words in result.err, (words, result)


def test_one_failure_stops_all_and_is_told_on_all():
    with Hosts(3) as h:
        results = h.finish_all(h.start_all(
            '--nproc_per_node=2', 'sh', '-c',
            'if [ $RANK = 3 ]; then sleep 0.5; echo dying words >&2; exit 9; fi; '
            'exec sleep 100'))
    assert codes(results) == [9, 9, 9], results
    for r in results:
        said(r, 'rank 3 on h1 (pid ')
        said(r, 'exited with code 9 after 0.5 s; 1 other stopped\n')
        said(r, '  job none on h1, running ')
        said(r, '    dying words\n')
        said(r, 'stopped by flaunch: rank 2\n')
        said(r, '  on other nodes: 4 stopped by flaunch\n')
    # The same lines everywhere.
    reports = {r.err[r.err.index('  job none'):] for r in results}
    assert len(reports) == 1, reports


def test_last_lines_on_another_screen_are_said_to_be_there():
    with Hosts(2) as h:
        results = h.finish_all(h.start_all(
            'sh', '-c', 'test $RANK = 1 || exec sleep 100; echo dying >&2; exit 9',
            stderr=subprocess.STDOUT))
    assert codes(results) == [9, 9], results
    assert 'its last lines stand on the screen of h1\n' in results[0].out, results
    assert 'dying' not in results[0].out, results


def test_restarts_are_counted_for_the_job():
    with Hosts(2) as h:
        results = h.finish_all(h.start_all(
            '--max-restarts=2', '--restart-backoff=0', 'sh', '-c',
            'echo $RANK $TORCHELASTIC_RESTART_COUNT $FLAUNCH_ATTEMPT; '
            'test $RANK != $((TORCHELASTIC_RESTART_COUNT % 2)) && '
            'exec sleep 100; sleep 0.3; exit 4'))
    assert codes(results) == [4, 4], results
    assert ranks_said(results) == sorted(
        '%d %d %d' % (r, a, a) for r in (0, 1) for a in (0, 1, 2)), results
    for r in results:
        said(r, '; restart 1 of 2 in 0 s\n')
        said(r, '; restart 2 of 2 in 0 s\n')


def test_each_round_has_a_fresh_store():
    program = ('import os\n'
               'from store import Store\n'
               's = Store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))\n'
               'n = s.add("count", 1)\n'
               'while s.add("count", 0) < 2: pass\n'
               'print(os.environ["FLAUNCH_ATTEMPT"], n, flush=True)\n'
               's.add("said", 1)\n'
               'while s.add("said", 0) < 2: pass\n'
               'os._exit(1 if os.environ["FLAUNCH_ATTEMPT"] == "0" else 0)\n')
    with Hosts(2) as h:
        results = h.finish_all(h.start_all(
            '--max-restarts=1', '--restart-backoff=0', '--no-python',
            sys.executable, '-c', program,
            env={'PYTHONPATH': os.path.join(ROOT, 'tests', 'e2e')}))
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0 1', '0 2', '1 1', '1 2'], results


def test_a_worker_that_is_killed():
    with Hosts(2) as h:
        ps = h.start_all('--nproc_per_node=2', 'sleep', '100')
        wait_running(ps, 2)
        os.kill(worker_pids(ps[1])[0], signal.SIGKILL)
        results = h.finish_all(ps)
    assert codes(results) == [137, 137], results
    for r in results:
        said(r, ' on h1 (pid ')
        said(r, 'SIGKILL')


def test_a_guard_that_is_killed_is_a_lost_node():
    with Hosts(2) as h:
        ps = h.start_all('--nproc_per_node=2', 'sleep', '100')
        wait_running(ps, 2)
        guard = guard_of(ps[1].pid)
        os.kill(guard, signal.SIGKILL)
        results = h.finish_all(ps)
    assert codes(results) == [125, 125], results
    said(results[0], 'the guard (pid %d) ended on h1\n' % guard)
    said(results[1], 'the guard (pid %d) ended; killing what is left\n' % guard)


def test_the_guard_of_the_host_node_is_killed():
    with Hosts(2) as h:
        ps = h.start_all('sleep', '100')
        wait_running(ps, 1)
        guard = guard_of(ps[0].pid)
        os.kill(guard, signal.SIGKILL)
        results = h.finish_all(ps)
    assert codes(results) == [125, 125], results
    said(results[1], 'the guard (pid %d) ended on h0\n' % guard)


def test_an_agent_that_is_killed_is_a_lost_node():
    with Hosts(3) as h:
        ps = h.start_all('--nproc_per_node=2', 'sleep', '100')
        wait_running(ps, 2)
        ps[2].kill()
        begin = time.monotonic()
        results = h.finish_all(ps)
        assert time.monotonic() - begin < 10 * T
    assert codes(results) == [125, 125, -9], results
    for r in results[:2]:
        said(r, 'lost node 2 (h2): its connection was closed')


def test_the_host_node_is_lost():
    with Hosts(3) as h:
        ps = h.start_all('--nproc_per_node=2', '--max-restarts=5', 'sleep', '100')
        wait_running(ps, 2)
        ps[0].kill()
        results = h.finish_all(ps)
    assert codes(results) == [-9, 125, 125], results
    for r in results[1:]:
        said(r, 'lost the host node h0 (10.77.0.1:29500): its connection ')
        assert len(own_lines(r)) <= 4, r  # one loss, and an end


def test_a_stopped_agent_is_lost_and_its_workers_are_killed():
    with Hosts(2) as h:
        ps = h.start_all(QUICK, 'sleep', '100')
        wait_running(ps, 1)
        os.kill(ps[1].pid, signal.SIGSTOP)
        begin = time.monotonic()
        r = finish(ps[0])
        assert r.code == 125, r
        said(r, 'lost node 1 (h1): nothing was heard of it for %d s' % T)
        # By its guard, while it is stopped.
        wait_until(lambda: not worker_pids(ps[1]), 'an end of the workers')
        assert time.monotonic() - begin < 10 * T
        os.kill(ps[1].pid, signal.SIGCONT)
        results = h.finish_all([ps[1]])
    assert codes(results) == [125], results
    said(results[0], 'lost the host node h0')


def test_a_short_pause_of_an_agent_is_nothing():
    with Hosts(2) as h:
        ps = h.start_all('--heartbeat-timeout=6', 'sleep', '11')
        wait_running(ps, 1)
        for p in (ps[1], ps[0]):
            os.kill(p.pid, signal.SIGSTOP)
            time.sleep(3)  # half of T: the fault that is tried
            os.kill(p.pid, signal.SIGCONT)
            # Two pauses in a row, without a heartbeat between, are one long one.
            time.sleep(2)
        results = h.finish_all(ps)
    assert codes(results) == [0, 0], results


def test_what_a_guard_killed_has_not_ended_well():
    """Both agents are stopped for longer than T; the joining one wakes up first
    and finds its workers dead, and a host node that has not declared it so."""
    with Hosts(2) as h:
        ps = h.start_all(QUICK, 'sleep', '100')
        wait_running(ps, 1)
        for p in ps:
            p.send_signal(signal.SIGSTOP)
        wait_until(lambda: not worker_pids(ps[1]), 'an end of the workers')
        assert worker_pids(ps[0])  # the host node has no lease
        ps[1].send_signal(signal.SIGCONT)
        r = finish(ps[1])
        ps[0].send_signal(signal.SIGCONT)
        results = h.finish_all([ps[0]]) + [r]
    assert codes(results) == [125, 125], results
    said(results[0], 'lost node 1 (h1): ')
    said(r, 'lost the host node h0')


def silent(fault, code_there=125):
    """A fault that nobody is told of: both sides find out by T."""
    with Hosts(2) as h:
        ps = h.start_all(QUICK, 'sleep', '100')
        wait_running(ps, 1)
        fault(h)
        begin = time.monotonic()
        results = h.finish_all(ps)
        assert time.monotonic() - begin < 10 * T
    assert codes(results) == [125, code_there], results
    said(results[0], 'lost node 1 (h1): ')
    said(results[1], 'lost the host node h0 (10.77.0.1:29500): ')


def test_a_silent_cable():
    silent(lambda h: h.cut(1))


def test_a_cable_that_is_pulled():
    silent(lambda h: h.unplug(1))


def test_one_way_nothing_comes_from_the_node():
    silent(lambda h: h.drop_from(1))


def test_one_way_nothing_goes_to_the_node():
    silent(lambda h: h.drop_to(1))


def test_ten_percent_loss_is_nothing():
    with Hosts(2) as h:
        h.lose(1, 10)
        results = h.finish_all(h.start_all('--nproc_per_node=2', 'sleep', '15'))
    assert codes(results) == [0, 0], results


def test_half_a_second_of_delay_is_nothing():
    """Each way; the program that carries it stands on the joining host."""
    with Hosts(2) as h:
        proxy = h.popen(1, os.path.join(ROOT, 'tests', 'tools', 'delay-proxy'),
                        '127.0.0.1:29500', '10.77.0.1:29500', '500')
        assert proxy.stdout.readline() == b'ready\n'
        results = h.finish_all([
            h.start(0, '--nnodes=2', '--node-rank=0', '--heartbeat-timeout=3',
                    'sleep', '6'),
            h.start(1, '--nnodes=2', '--node-rank=1', '--heartbeat-timeout=3',
                    '--master-addr=127.0.0.1', 'sleep', '6')])
    assert codes(results) == [0, 0], results


def test_names_that_stop_resolving_are_nothing():
    """They were needed to join; a restart needs them no more."""
    with Hosts(2) as h:
        ps = [h.start(i, '--nnodes=2', '--node-rank=%d' % i, '--master-addr=h0',
                      '--max-restarts=1', '--restart-backoff=0', 'sh', '-c',
                      'echo ready; test $FLAUNCH_ATTEMPT = 1 && exit 0; '
                      'test $RANK = 0 || exec sleep 100; read line; exit 1',
                      stdin=subprocess.PIPE) for i in range(2)]
        for p in ps:
            assert p.stdout.readline() == b'ready\n'
        for i in range(2):
            h.set_hosts(i, '127.0.0.1 localhost\n')
        results = h.finish_all(ps)
    assert codes(results) == [0, 0], results


def test_load_is_nothing():
    """Hogs on every CPU, at a higher priority than ours where we may."""
    with Hosts(2) as h:
        hogs = [h.popen(0, 'sh', '-c', 'while :; do :; done')
                for _ in range(4 * os.cpu_count())]
        results = h.finish_all(h.start_all(
            '--heartbeat-timeout=5', '--nproc_per_node=2', 'sleep', '12'))
        end_all_of(hogs)
    assert codes(results) == [0, 0], results


def test_clocks_that_jump_are_nothing():
    if os.geteuid() != 0:
        raise Skip('not as an ordinary user: the clock cannot be set')
    # A time namespace shifts the monotonic clock, as another machine's is.
    if subprocess.run(['unshare', '-T', '--monotonic', '86400', 'true'],
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip('not with this kernel: no time namespaces')
    with Hosts(2) as h:
        ps = [h.start(0, QUICK, '--nnodes=2', '--node-rank=0', 'sleep', '5'),
              h.popen(1, 'unshare', '-T', '--fork', '--monotonic', '86400',
                      '--boottime', '86400', FLAUNCH, QUICK, '--nnodes=2',
                      '--node-rank=1', '--master-addr=h0', 'sleep', '5')]
        results = h.finish_all(ps)
    assert codes(results) == [0, 0], results


def test_a_reconnecting_node_takes_part_again():
    """Its connection breaks, and nothing else: a restart, and on it goes."""
    with Hosts(2) as h:
        ps = h.start_all('--max-restarts=1', '--restart-backoff=0', 'sh', '-c',
                         'echo $FLAUNCH_ATTEMPT; test $FLAUNCH_ATTEMPT = 1 || '
                         'exec sleep 100')
        wait_running(ps, 1)
        h.script('ss -K state established "( sport = 29500 )" >/dev/null', 0)
        results = h.finish_all(ps)
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0', '0', '1', '1'], results
    said(results[1], 'lost the host node h0 (10.77.0.1:29500): its connection ')
    said(results[0], 'restart 1 of 1')


def test_the_host_node_is_lost_after_a_reconnection():
    """While the next attempt is waited for: the job has run, so it is over."""
    with Hosts(2) as h:
        ps = h.start_all('--max-restarts=1', '--restart-backoff=20', 'sleep',
                         '100', env={'FLAUNCH_DEBUG': 'detail'})
        wait_running(ps, 1)
        h.script('ss -K state established "( sport = 29500 )" >/dev/null', 0)
        joined = 0
        while joined < 2:
            line = ps[1].stderr.readline().decode()
            assert line
            joined += 'joined the host node' in line
        ps[0].kill()
        results = h.finish_all(ps, 60)
    assert codes(results) == [-9, 125], results
    said(results[1], 'lost the host node h0 (10.77.0.1:29500): its connection ')


def test_a_node_that_comes_back_takes_its_place():
    """As a pod that is started again; the number of nodes is fixed."""
    with Hosts(2) as h:
        args = ['--max-restarts=2', '--restart-backoff=0', '--nnodes=2',
                '--master-addr=h0', 'sh', '-c',
                'echo $RANK $FLAUNCH_ATTEMPT; test $FLAUNCH_ATTEMPT = 1 || '
                'exec sleep 100']
        ps = [h.start(i, '--node-rank=%d' % i, *args) for i in range(2)]
        wait_running(ps, 1)
        ps[1].kill()
        finish(ps[1])
        q = h.start(1, '--node-rank=1', *args)
        results = h.finish_all([ps[0], q])
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0 0', '0 1', '1 1'], results


def test_a_lost_node_that_does_not_come_back():
    with Hosts(2) as h:
        ps = h.start_all('--max-restarts=2', '--restart-backoff=0',
                         '--join-timeout=3', 'sleep', '100')
        wait_running(ps, 1)
        ps[1].kill()
        results = h.finish_all(ps)
    assert codes(results) == [124, -9], results
    said(results[0], 'lost node 1 (h1): its connection was closed; restart 1 of '
         '2 in 1 s')
    said(results[0], 'not all nodes have joined in 3 s: 1 of 2 nodes here (0: '
         'h0); missing: 1')


def test_nothing_is_left_on_any_node():
    """Agents are killed at random moments, from the start to the end."""
    rng = __import__('random').Random(7)
    with Hosts(2) as h:
        for _ in range(25):
            ps = h.start_all('--nproc_per_node=2', QUICK, '--join-timeout=5',
                             'sh', '-c', 'setsid sleep 100 & sleep 100 & exec sleep 100')
            time.sleep(rng.random() * 0.15)
            victim = rng.choice(ps)
            victim.kill()
            for p in ps:
                if p is not victim and rng.random() < 0.3:
                    p.terminate()
            results = h.finish_all(ps)
            assert 0 not in codes(results), results


def test_no_round_with_a_rank_twice():
    """A node is cut off; the others go on without it only when its workers are
    dead, though its agent knows of nothing."""
    with Hosts(2) as h:
        with TempDir() as d:
            args = ['--nnodes=1:2', '--max-restarts=3', '--restart-backoff=0',
                    '--rdzv-conf=last_call_timeout=1', QUICK,
                    '--rdzv-endpoint=h0', 'sh', '-c',
                    'while :; do date +%%s.%%N >%s/$FLAUNCH_ATTEMPT.$(hostname);'
                    ' sleep 0.02; done' % d]
            ps = [h.start(i, *args) for i in range(2)]
            wait_until(lambda: os.path.exists(d + '/0.h1'), 'the first round')
            os.kill(ps[1].pid, signal.SIGSTOP)
            h.cut(1)
            wait_until(lambda: os.path.exists(d + '/1.h0'), 'the second round')
            began = os.stat(d + '/1.h0').st_mtime
            last = float(open(d + '/0.h1').read())
            assert last < began, (last, began)
            assert not worker_pids(ps[1], 'sh')
            ps[0].send_signal(signal.SIGTERM)
            results = h.finish_all([ps[0]])
            os.kill(ps[1].pid, signal.SIGCONT)
            results += h.finish_all([ps[1]])
    assert codes(results)[0] == 143, results
