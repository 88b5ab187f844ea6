"""Other launchers, where they are installed: command lines up to the program."""
import os
import shutil
import subprocess
import sys


def hydra(n):
    path = shutil.which('mpiexec.hydra')
    return [path, '-n', str(n)] if path else None


def mpirun(n):
    path = shutil.which('mpirun.openmpi')
    if not path:
        return None
    version = subprocess.run([path, '--version'], stdout=subprocess.PIPE)
    # With its thread pool it loses exits, and hangs, from 32 processes on.
    pool = '--mca' if b' 4.' in version.stdout.splitlines()[0] else '--prtemca'
    return [path, '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none',
            pool, 'odls_base_num_threads', '0', '-n', str(n)]


def torchrun(n):
    argv = [os.environ.get('TORCH_PYTHON', sys.executable), '-m',
            'torch.distributed.run']
    if subprocess.run(argv + ['--help'], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return None
    return argv + ['--no-python', '--nproc-per-node=%d' % n]


PEERS = (('hydra', hydra), ('mpirun', mpirun), ('torchrun', torchrun))
