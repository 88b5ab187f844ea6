"""The kill may fall between fork and exec."""
from scenario import *


def test_kills_in_the_first_milliseconds():
    for i in range(40 if ASAN else 200):
        token = new_token()
        p = start(['--nproc_per_node=4', 'sleep', '1000'], token=token)
        time.sleep(random.random() * 0.005)
        p.kill()
        p.wait()
        assert_nothing_left(token)
