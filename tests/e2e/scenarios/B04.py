"""No worker outlives a launcher that is killed."""
from scenario import *


def test_no_worker_outlives_the_launcher():
    for i in range(50):
        token = new_token()
        p = start(['--nproc_per_node=4', 'sleep', '1000'], token=token)
        time.sleep(random.random() * 0.05)
        p.kill()
        p.wait()
        assert_nothing_left(token)
