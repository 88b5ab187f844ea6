"""Every process takes memory on GPU 0. The counting of CUDA_VISIBLE_DEVICES in
the launcher: unit/test_machine."""
from scenario import *


def test_the_launcher_never_loads_cuda():
    done = program('ldd', FLAUNCH)
    assert 'cuda' not in done.out and 'nccl' not in done.out, done
    p = start(['--nproc-per-node=2', 'sh', '-c', 'echo up; exec sleep 100'],
              env=standin_env())
    assert p.stdout.readline() == b'up\n'
    with open('/proc/%d/maps' % p.pid) as f:
        maps = f.read()
    assert 'libcuda' not in maps and 'libnccl' not in maps, maps
    p.terminate()
    finish(p)


def test_the_first_call_that_makes_a_context_is_on_the_own_device():
    """The stand-in counts devices without one; what is opened is the rank's
    own, on every thread that NCCL runs on."""
    for i, r in enumerate(by_hand(3, program=prog('nccl_job'),
                                  env=standin_env('only_own'))):
        assert r.code == 0 and 'cuda:%d ' % i in r.out, r
