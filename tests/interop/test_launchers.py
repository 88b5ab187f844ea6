"""libflaunch under every launcher that can be had here: the same program, the
same losses."""
import os
import re
import subprocess

from harness import *
from slurm import Slurm

DATA = os.path.join(ROOT, 'worker', 'examples', 'digits.csv')
PACKAGES = 'is not installed (tests/tools/deps interop)'


def need(name):
    path = shutil.which(name)
    if path is None:
        raise Skip('%s %s' % (name, PACKAGES))
    return path


def mpirun(n, *args):
    # From 32 processes on, mpirun 4 loses exits unless told not to use a pool.
    return [need('mpirun.openmpi'), '--allow-run-as-root', '--oversubscribe',
            '--bind-to', 'none', '-n', str(n), *args]


def hydra(n, *args):
    return [need('mpiexec.hydra'), '-n', str(n), *args]


def hydra_port(n, *args):
    return [need('mpiexec.hydra'), '-pmi-port', '-n', str(n), *args]


def horovodrun(n, *args):
    python = os.environ.get('HOROVOD_PYTHON')
    if python is None:
        raise Skip('HOROVOD_PYTHON names no Python with Horovod '
                   '(tests/tools/deps-horovod DIR makes one)')
    # Its only question to the library built with it is whether gloo is there,
    # which the launcher itself never uses.
    code = ('import sys\nfrom horovod.runner import launch\n'
            'launch.gloo_built = lambda verbose=False: True\n'
            'sys.exit(launch.run_commandline())')
    return [python, '-c', code, '--gloo', '-np', str(n), *args]


def flaunch_args(n, *args):
    return [FLAUNCH, '--nproc_per_node=%d' % n, *args]


def torchrun(n, *args):
    python = os.environ.get('TORCH_PYTHON') or shutil.which('python3')
    if not has_pytorch(python):
        raise Skip('PyTorch is not installed for %s' % python)
    return [python, '-m', 'torch.distributed.run', '--standalone',
            '--nproc_per_node=%d' % n, '--no-python', *args]


LAUNCHERS = {'openmpi': mpirun, 'hydra': hydra, 'hydra_port': hydra_port,
             'horovod': horovodrun, 'flaunch': flaunch_args,
             'torchrun': torchrun}


def run(argv, env=None):
    token = uuid.uuid4().hex
    # Whole stacks, so that what libpmix leaks is known as its own.
    extra = {'OMP_NUM_THREADS': '1',
             'ASAN_OPTIONS': 'fast_unwind_on_malloc=0'}
    extra.update(env or {})
    r = finish(popen(argv, env=extra, token=token), 300)
    assert_nothing_left(token)
    return r


def losses_of(result):
    assert result.code == 0, result
    found = [float(x) for x in
             re.findall(r'epoch \d+ loss (\S+)$', result.out, re.M)]
    assert len(found) == 30, result
    accuracy = float(re.search(r'accuracy (\S+)$', result.out, re.M).group(1))
    assert accuracy >= 0.95, result
    return found


wanted = []


def assert_trains(argv, env=None):
    if not wanted:
        wanted.extend(losses_of(run([example('train'), DATA])))
    found = losses_of(run(argv + [example('train'), DATA], env))
    # The order of sums differs, and with it the last digits.
    assert abs(found[0] - wanted[0]) < 1e-4, (found, wanted)
    for a, b in zip(found, wanted):
        assert abs(a - b) <= 1e-3 + 0.05 * a, (found, wanted)


def assert_places(argv, name, places, env=None):
    r = run(argv + [prog('init'), 'timeout_ms=100000'], env)
    assert r.code == 0, r
    # horovodrun puts the rank in front of each line.
    found = sorted(re.sub(r'^\[\d+\]<stdout>:', '', line)
                   for line in lines(r.out))
    assert found == ['%s %s cpu none 1' % (name, place) for place in places], r


def assert_nccl(name, launcher, env=None):
    """The backend nccl on stand-ins, with 2, 4 and 8 ranks; launcher(n) is the
    command in front."""
    for n in (2, 4, 8):
        r = run(launcher(n) + [prog('nccl_job'), 'timeout_ms=100000'],
                {**standin_env(), **(env or {})})
        assert r.code == 0, r
        found = sorted(re.sub(r'^\[\d+\]<stdout>:', '', line)
                       for line in lines(r.out))
        odd, even = sum(range(2, n + 1, 2)), sum(range(1, n + 1, 2))
        wanted = ['%s %d/%d sum %d part %d' % (
            name, i, n, odd + even, odd if i % 2 else even) for i in range(n)]
        assert [re.sub(r' cuda:\d+', '', line) for line in found] == wanted, r


def one_node(n):
    return ['%d/%d local %d/%d' % (i, n, i, n) for i in range(n)]


def test_nobody():
    assert_trains([])
    r = run([prog('nccl_job')], standin_env())
    assert r.code == 0 and r.out == 'none 0/1 cuda:0 sum 1 part 1\n', r


def test_flaunch():
    assert_trains(flaunch_args(4))
    assert_nccl('flaunch', flaunch_args)


def test_torchrun():
    assert_trains(torchrun(4))
    assert_places(torchrun(4), 'torchrun', one_node(4))
    assert_nccl('torchrun', torchrun)


def test_torchrun_with_python_and_c_ranks_in_one_job():
    argv = torchrun(4)
    argv.remove('--no-python')
    argv += [os.path.join(ROOT, 'tests', 'interop', 'mixed.py'),
             os.path.join(BUILD, 'libflaunch.so')]
    if ASAN:
        raise Skip('not as a part of Python: the sanitizer must come first')
    assert_trains(argv)


def test_open_mpi():
    assert_trains(mpirun(4))
    assert_places(mpirun(4), 'openmpi', one_node(4))
    assert_nccl('openmpi', mpirun)


def test_open_mpi_without_pmix_takes_an_address():
    env = {'PMIX_NAMESPACE': None, 'MASTER_ADDR': '127.0.0.1',
           'MASTER_PORT': str(free_port())}
    argv = mpirun(2, 'env', '-u', 'PMIX_NAMESPACE')
    assert_places(argv, 'openmpi', one_node(2), env)


def test_hydra():
    assert_trains(hydra(4))
    assert_places(hydra(4), 'hydra', one_node(4))
    assert_nccl('hydra', hydra)


def test_two_jobs_in_one_process():
    """PMIx gives its values anew; PMI has ended with the first job, and says
    so instead of speaking to whatever has its descriptor's number."""
    for name, argv in (('openmpi', mpirun(2)), ('hydra', hydra(2))):
        r = run(argv + [prog('nccl_job'), 'twice'], standin_env())
        assert r.out.count('sum 3') == (4 if name == 'openmpi' else 2), r
        assert r.code == 0 or name == 'hydra', r
        assert name == 'openmpi' or r.out.count(
            'PMI has ended: it serves one flaunch_init') == 2, r


def test_hydra_with_a_port():
    assert_trains(hydra_port(4))
    assert_places(hydra_port(4), 'hydra', one_node(4))
    assert_nccl('hydra', hydra_port)


def test_horovodrun():
    assert_trains(horovodrun(4))
    assert_places(horovodrun(4), 'horovod', one_node(4))
    assert_nccl('horovod', horovodrun)


def test_slurm():
    two_nodes = ['0/4 local 0/3', '1/4 local 1/3', '2/4 local 2/3',
                 '3/4 local 0/1']
    cyclic = ['0/4 local 0/2', '1/4 local 0/2', '2/4 local 1/2',
              '3/4 local 1/2']
    with Slurm() as slurm:
        for mpi in ('none', 'pmi2', 'pmix'):
            srun = ['srun', '--mpi=' + mpi, '-N2', '-n4']
            assert_trains(srun, slurm.env)
            assert_places(srun, 'slurm', two_nodes, slurm.env)
            # Both nodes are this machine, so each task gets its own GPU.
            own_gpu = ['sh', '-c', 'CUDA_VISIBLE_DEVICES=$SLURM_PROCID '
                       'exec "$0" "$@"']
            assert_nccl('slurm', lambda n: [
                'srun', '--mpi=' + mpi, '-N2', '-n%d' % n, *own_gpu], slurm.env)
        assert_places(['srun', '-N2', '-n4', '--ntasks-per-node=2',
                       '-m', 'cyclic'], 'slurm', cyclic,
                      slurm.env)
        # The second node alone, in a step beside another.
        assert_places(['srun', '-N1', '-n2', '-w', 'n02'], 'slurm',
                      one_node(2), slurm.env)
        check_batch(slurm)
        check_open_flamingos_script(slurm)


def check_batch(slurm):
    """A batch script's body is no task; what it starts with mpirun and hydra
    is theirs, though Slurm's variables are around it."""
    init = prog('init')
    script = '''#!/bin/sh
%s timeout_ms=100000 >body
mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -n 4 \\
    --map-by ppr:2:node %s timeout_ms=100000 >openmpi
mpiexec.hydra -n 4 -ppn 2 %s timeout_ms=100000 >hydra
srun --mpi=pmi2 -N1 -n1 mpirun.openmpi --allow-run-as-root --oversubscribe \\
    --bind-to none --mca ras ^slurm --mca plm ^slurm -n 2 \\
    %s timeout_ms=100000 >stale
''' % (init, init, init, init)
    with TempDir() as d:
        with open(d + '/job', 'w') as f:
            f.write(script)
        r = run(['sbatch', '--wait', '-N2', '--ntasks-per-node=2', '-D', d,
                 '-o', d + '/log', d + '/job'], slurm.env)
        with open(d + '/log') as f:
            log = f.read()
        assert read(d + '/body') == ['none 0/1 local 0/1 cpu none 0'], log
        for name in ('openmpi', 'hydra'):
            found = read(d + '/' + name)
            ranks = sorted(line.split()[1] for line in found)
            assert ranks == ['%d/4' % i for i in range(4)], (name, found, log)
            assert all(line.startswith(name) for line in found), (found, log)
        # Its PMI record is srun's, and nobody listens on its PMI_FD.
        assert read(d + '/stale') == ['openmpi %s cpu none 1' % place
                                      for place in one_node(2)], log
        assert r.code == 0, (r, log)


def read(path):
    with open(path) as f:
        return sorted(lines(f.read()))


def check_open_flamingos_script(slurm):
    """MASTER_ADDR and MASTER_PORT exported, the ranks from Slurm."""
    assert_places(['srun', '-N2', '-n4'], 'slurm',
                  ['0/4 local 0/3', '1/4 local 1/3', '2/4 local 2/3',
                   '3/4 local 0/1'],
                  {**slurm.env, 'MASTER_ADDR': '127.0.0.1',
                   'MASTER_PORT': str(free_port())})
