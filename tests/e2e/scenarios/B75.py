"""Rank 0 reads the descriptor itself: no byte can be lost."""
from scenario import *


def test_fifty_megabytes_through_a_pipe():
    data = random.Random(1).randbytes(1 << 20) * 50
    p = start(['--nproc_per_node=2', 'sh', '-c',
               'test $RANK = 1 || { head -c 100000; sleep 0.2; cat; } | sha256sum'],
              stdin=subprocess.PIPE)
    out, _ = p.communicate(data, timeout=LONG)
    assert out.split()[0].decode() == hashlib.sha256(data).hexdigest()
