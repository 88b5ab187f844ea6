"""What needs a GPU: `make check-gpu` on a machine that has one."""
import subprocess

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
