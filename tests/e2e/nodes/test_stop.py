"""Stop signals, time limits, pauses: what one node hears, all do."""
from hosts import *


def wait_said(process, words):
    """Read stderr until a line has the words; what was read."""
    text = ''
    while words not in text:
        line = process.stderr.readline().decode()
        assert line, text
        text += line
    return text


def wait_out(process, n):
    """Wait for n lines of the workers."""
    return [process.stdout.readline().decode().strip() for _ in range(n)]


CLEAN = ['sh', '-c', 'trap "echo bye; exit 0" TERM; echo ready; '
         'while :; do sleep 0.05; done']
DIES = ['sh', '-c', 'echo ready; exec sleep 100']


def stop_on(node, program, signo=signal.SIGTERM):
    with Hosts(2) as h:
        ps = h.start_all('--nproc_per_node=2', *program)
        for p in ps:
            wait_out(p, 2)
        ps[node].send_signal(signo)
        results = h.finish_all(ps)
    name = signal.Signals(signo).name
    for i, r in enumerate(results):
        said = '%s: 2 workers are stopping' if i == node else \
            name + ' on h%d' % node + ': 2 workers are stopping'
        assert (said % name if i == node else said) in r.err, r
    return results


def test_a_signal_to_either_node_stops_the_job():
    for node in (0, 1):
        results = stop_on(node, CLEAN)
        assert codes(results) == [0, 0], results
        assert ranks_said(results) == ['bye'] * 4, results
        results = stop_on(node, DIES)
        assert codes(results) == [143, 143], results


def test_the_signal_itself_reaches_the_workers_of_all_nodes():
    results = stop_on(1, ['sh', '-c', 'trap "echo int; exit 7" INT; echo ready;'
                          ' while :; do sleep 0.05; done'], signal.SIGINT)
    assert codes(results) == [7, 7], results
    assert ranks_said(results) == ['int'] * 4, results


def test_a_second_signal_kills_everywhere():
    with Hosts(2) as h:
        ps = h.start_all('sh', '-c', 'trap "" TERM; echo ready; '
                         'while :; do sleep 0.05; done')
        for p in ps:
            wait_out(p, 1)
        ps[1].terminate()
        wait_said(ps[0], 'SIGTERM on h1')
        ps[1].terminate()
        results = h.finish_all(ps, 20)
    assert codes(results) == [143, 143], results


def test_a_time_limit_on_one_node_ends_all_with_124():
    with Hosts(2) as h:
        ps = [h.start(i, '--nnodes=2', '--node-rank=%d' % i, '--master-addr=h0',
                      *(['--timeout=1'] if i else []), 'sleep', '100')
              for i in range(2)]
        results = h.finish_all(ps)
    assert codes(results) == [124, 124], results
    assert '--timeout=1 is over on h1: 1 worker is stopping' in results[0].err, \
        results


def test_the_spread_is_that_of_the_whole_job():
    """Rank 0 ends well on one node; the other is to follow within a second."""
    with Hosts(2) as h:
        results = h.finish_all(h.start_all(
            '--max-spread=1', 'sh', '-c', 'test $RANK = 0 || exec sleep 100'))
    assert codes(results) == [124, 124], results
    assert '--max-spread=1 is over and rank 1 still runs' in results[1].err, \
        results


def test_a_job_on_several_nodes_is_not_paused():
    with Hosts(2) as h:
        ps = h.start_all(*CLEAN)
        for p in ps:
            wait_out(p, 1)
        ps[1].send_signal(signal.SIGTSTP)
        wait_said(ps[1], 'SIGTSTP is ignored: a job on several nodes cannot be '
                  'paused on one of them')
        ps[0].terminate()
        results = h.finish_all(ps)
    assert codes(results) == [0, 0], results


def test_other_signals_are_this_nodes_alone():
    with Hosts(2) as h:
        ps = h.start_all('sh', '-c', 'trap "echo usr1 $RANK" USR1; '
                         'trap "exit 0" TERM; echo ready; '
                         'while :; do sleep 0.05; done')
        for p in ps:
            wait_out(p, 1)
        ps[1].send_signal(signal.SIGUSR1)
        assert wait_out(ps[1], 1) == ['usr1 1']
        ps[1].terminate()
        results = h.finish_all(ps)
    assert codes(results) == [0, 0], results
    assert results[0].out == '', results


def test_early_nodes_wait_for_late_ones_and_the_host_is_last():
    """By either node; no limit but the heartbeat, whose time is shorter."""
    for early in (0, 1):
        with Hosts(2) as h:
            ps = h.start_all('--heartbeat-timeout=2', 'sh', '-c',
                             'test $RANK = %d || sleep 4' % early)
            results = h.finish_all(ps)
        assert codes(results) == [0, 0], results


def test_the_store_outlives_rank_0():
    program = ('import os, time\n'
               'from store import Store\n'
               'if os.environ["RANK"] == "0": raise SystemExit\n'
               's = Store(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))\n'
               'for i in range(40):\n'
               '    s.set("k%d" % i, "v"); assert s.get("k%d" % i) == b"v"\n'
               '    time.sleep(0.02)\n'
               'print("done")\n')
    with Hosts(2) as h:
        results = h.finish_all(h.start_all(
            '--no-python', sys.executable, '-c', program,
            env={'PYTHONPATH': os.path.join(ROOT, 'tests', 'e2e')}))
    assert codes(results) == [0, 0], results
    assert results[1].out == 'done\n', results
