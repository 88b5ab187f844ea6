"""NVIDIA's own libraries, as far as they go without a driver: real unique ids
between real processes, real errors. `make deps-nvidia` fetches them."""
import glob
import re
import struct

from harness import *

NVIDIA = os.environ.get('NVIDIA') or os.path.join(ROOT, 'build', 'nvidia')


def need_nccl():
    if os.path.exists('/dev/nvidia0'):
        raise Skip('no GPU may be here, and there is one')
    path = os.path.join(NVIDIA, 'nvidia', 'nccl', 'lib', 'libnccl.so.2')
    if not os.path.exists(path):
        raise Skip('NCCL is not there: make deps-nvidia')
    if ASAN:
        raise Skip('not as a sanitized build: the sanitizer must come first')
    return path


def real_libraries():
    cudart = glob.glob(os.path.join(NVIDIA, 'nvidia', 'cu13', 'lib'))
    return ':'.join([os.path.dirname(need_nccl()), *cudart])


def test_without_a_driver_every_rank_says_so_at_once():
    said = same_words(by_hand(3, 'timeout_ms=60000', program=prog('nccl_job'),
                              env={'LD_LIBRARY_PATH': real_libraries()}))
    assert re.match(r'error 5 -\d+: rank \d on .*: the backend nccl needs a GPU '
                    r'and none is to be had here: CUDA error 35: CUDA driver '
                    r'version is insufficient .*\(no NVIDIA driver is loaded '
                    r'here\)', said), said


def test_real_ids_reach_real_initialisations():
    """The CUDA runtime is the stand-in, NCCL is real: it makes ids, every rank
    hands the same to it, and its own runtime finds no driver."""
    nccl = need_nccl()
    standin = os.path.join(BUILD, 'tests', 'standin')
    results = by_hand(4, 'timeout_ms=60000', program=prog('nccl_job'), env={
        **standin_env(), 'LD_PRELOAD': standin + '/libspy.so ' + nccl})
    made = re.findall(r'^made ([0-9a-f]{256})$', results[0].out, re.M)
    assert len(made) == 1, results
    # A magic number, then the address of a socket.
    family, port = struct.unpack_from('<H', bytes.fromhex(made[0]), 8)[0], \
        struct.unpack_from('>H', bytes.fromhex(made[0]), 10)[0]
    assert family in (socket.AF_INET, socket.AF_INET6) and port > 0, made
    said = set()
    for r in results:
        assert re.findall(r'^got ([0-9a-f]{256})$', r.out, re.M) == made, r
        said.add(re.search(r'^error.*$', r.out, re.M).group(0))
    assert len(said) == 1, said
    assert re.match(r'error 7 -5: rank \d on .*: ncclCommInitRankConfig: NCCL '
                    r'error 1: unhandled cuda error.*: .*driver version is '
                    r'insufficient.*; NCCL 2\.28\.9 \(' + re.escape(nccl),
                    said.pop()), said


def test_a_wrong_interface_is_told_by_the_real_nccl_too():
    nccl = need_nccl()
    results = by_hand(2, 'timeout_ms=60000', program=prog('nccl_job'), env={
        **standin_env(), 'LD_PRELOAD': nccl,
        'NCCL_SOCKET_IFNAME': 'nosuch'})
    assert 'NCCL_SOCKET_IFNAME=nosuch matches no network interface' in \
        same_words(results)


def test_the_examples_for_gpus_were_built_with_real_headers():
    need_nccl()
    for name, words in (('all_reduce', 'the ranks add up to 6'),
                        ('bandwidth', '1048576')):
        path = os.path.join(BUILD, 'tests', 'cuda', name)
        r = flaunch('--nproc-per-node=3', path,
                    *(['-e', '1M', '-f', '2', '-n', '2']
                      if name == 'bandwidth' else []))
        assert r.code == 0 and words in r.out, r
