"""After a stop there is no restart."""
from scenario import *


def test_workers_and_launcher_killed_in_either_order():
    for i in range(10 if ASAN else 50):
        token = new_token()
        p = start(['--nproc_per_node=2', '--max-restarts=5', 'sleep', '100'],
                  token=token, env={'OMP_NUM_THREADS': '1'})
        workers = wait_for_workers(token, 'sleep', 2)
        if i % 2:
            p.terminate()
        for pid in workers:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        if not i % 2:
            time.sleep(0.02)
            p.terminate()
        r = finish(p)
        assert r.code != 0, r
        after = r.err.split('SIGTERM: ')[-1]
        assert 'restart' not in after, r
        assert_nothing_left(token)
