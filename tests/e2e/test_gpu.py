"""What needs a GPU: `make check-gpu` on a machine that has one."""
import glob
import re
import signal
import subprocess
import time

from harness import *


def gpus():
    if not os.path.exists('/dev/nvidia0') or not shutil.which('nvidia-smi'):
        raise Skip('no GPU here')
    done = subprocess.run(['nvidia-smi', '-L'], stdout=subprocess.PIPE)
    n = len(lines(done.stdout.decode()))
    if n == 0:
        raise Skip('no GPU that nvidia-smi lists')
    return n


def test_gpus_are_counted_as_the_driver_counts_them():
    n = gpus()
    r = flaunch('--nproc_per_node=gpu', 'sh', '-c', 'echo $WORLD_SIZE')
    assert r.code == 0 and lines(r.out) == [str(n)] * n, r


def cpus_of(text):
    """"0-3,8" as a set."""
    found = set()
    for part in filter(None, text.strip().split(',')):
        first, _, last = part.partition('-')
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_workers_are_bound_to_the_cpus_beside_their_gpus():
    """Against what the kernel says of each GPU's slot, in PCI order."""
    n = gpus()
    done = subprocess.run(['nvidia-smi', '--query-gpu=pci.bus_id',
                           '--format=csv,noheader'], stdout=subprocess.PIPE)
    slots = sorted(line.strip().lower()[-12:]
                   for line in lines(done.stdout.decode()))
    r = flaunch('--nproc_per_node=gpu', '--numa-binding=node', 'sh', '-c',
                'echo $RANK $(sed -n "s/Cpus_allowed_list:.//p" '
                '/proc/self/status)', env={'OMP_NUM_THREADS': '1'})
    assert r.code == 0 and len(lines(r.out)) == n, r
    for line in lines(r.out):
        rank, bound = line.split()
        with open('/sys/bus/pci/devices/%s/local_cpulist'
                  % slots[int(rank)]) as f:
            near = cpus_of(f.read()) & os.sched_getaffinity(0)
        # A machine that tells no node has one.
        assert cpus_of(bound) == (near or os.sched_getaffinity(0)), r


def test_a_virtual_local_rank_sees_one_gpu():
    n = gpus()
    r = flaunch('--nproc_per_node=gpu', '--virtual-local-rank', 'sh', '-c',
                'echo $LOCAL_RANK $CUDA_VISIBLE_DEVICES',
                env={'OMP_NUM_THREADS': '1'})
    assert sorted(lines(r.out)) == sorted('0 %d' % i for i in range(n)), r


def test_ddp_trains_on_gpus_with_nccl():
    n = gpus()
    python = os.environ.get('TORCH_PYTHON') or shutil.which('python3')
    probe = subprocess.run([python, '-c',
                            'import torch; assert torch.cuda.is_available()'],
                           stderr=subprocess.DEVNULL)
    if probe.returncode != 0:
        raise Skip('no GPU build of PyTorch for %s' % python)
    r = flaunch('--nproc_per_node=%d' % n,
                os.path.join(ROOT, 'tests/interop/ddp.py'),
                '--dist-backend=nccl', env={'PYTHON_EXEC': python},
                seconds=300)
    assert r.code == 0 and 'step 19 loss' in r.out, r


def nccl_env(extra=None):
    """The real libraries: the system's, or those of `make deps-nvidia`."""
    gpus()
    if 'libnccl.so.2' in program('ldconfig', '-p').out:
        return dict(extra or {})
    wheels = os.environ.get('NVIDIA') or os.path.join(ROOT, 'build', 'nvidia')
    paths = [d for name in ('nccl', 'cu13') for d in
             glob.glob(os.path.join(wheels, 'nvidia', name, 'lib'))]
    if len(paths) < 2:
        raise Skip('no GPU build of NCCL here: make deps-nvidia')
    return {'LD_LIBRARY_PATH': ':'.join(paths), **(extra or {})}


def test_nccl_with_one_rank_from_init_to_end():
    start_s = time.monotonic()
    r = program(prog('nccl_job'), 'twice', env=nccl_env(), seconds=300)
    assert r.code == 0, r
    assert lines(r.out) == ['none 0/1 cuda:0 sum 1 part 1'] * 2, r
    print('two jobs of one rank: %.1f s' % (time.monotonic() - start_s))


def test_nccl_with_all_gpus():
    n = gpus()
    r = flaunch('--nproc-per-node=%d' % n, prog('nccl_job'), env=nccl_env(),
                seconds=300)
    assert r.code == 0, r
    assert len(re.findall(r'sum %d ' % (n * (n + 1) // 2), r.out)) == n, r


ONE_GPU = {'CUDA_VISIBLE_DEVICES': '0', 'NCCL_SOCKET_IFNAME': 'lo',
           'NCCL_P2P_DISABLE': '1', 'NCCL_SHM_DISABLE': '1'}


def test_two_ranks_on_one_gpu():
    """NCCL takes them for two hosts."""
    results = by_hand(2, 'timeout_ms=120000', program=prog('nccl_job'),
                      env=nccl_env(ONE_GPU), seconds=300,
                      rank_env={i: {'NCCL_HOSTID': 'h%d' % i} for i in (0, 1)})
    for i, r in enumerate(results):
        assert r.code == 0 and 'env %d/2 cuda:0 sum 3 ' % i in r.out, results


def test_two_ranks_on_one_gpu_without_asking_are_refused_by_name():
    said = same_words(by_hand(2, 'timeout_ms=120000', program=prog('nccl_job'),
                              env=nccl_env(ONE_GPU), seconds=300))
    assert re.search(r'ranks 0 and 1 on \S+ both use the GPU GPU-', said), said


def test_a_rank_stopped_in_init_is_given_up_and_aborted():
    """Rank 1 is stopped after the check-in; rank 0 aborts a pending init."""
    env = nccl_env(ONE_GPU)
    port = str(free_port())
    ranks = [popen([prog('nccl_job'), 'timeout_ms=20000'], env={
        **env, 'RANK': str(i), 'WORLD_SIZE': '2', 'LOCAL_RANK': str(i),
        'LOCAL_WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1',
        'MASTER_PORT': port, 'NCCL_HOSTID': 'h%d' % i,
        **({'NCCL_DEBUG': 'INFO'} if i else {})}) for i in range(2)]
    while b'NCCL INFO' not in ranks[1].stdout.readline():
        assert ranks[1].poll() is None
    ranks[1].send_signal(signal.SIGSTOP)
    start_s = time.monotonic()
    r = finish(ranks[0], 120)
    print('given up and aborted after %.1f s of 20' % (
        time.monotonic() - start_s))
    ranks[1].kill()
    assert r.code == 1 and re.search('NCCL did not come up|did not come', r.out), r
