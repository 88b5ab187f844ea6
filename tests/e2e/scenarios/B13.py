"""Slurm's variables are there, but Slurm did not start these processes."""
from scenario import *

SALLOC = {'SLURM_JOB_ID': '1', 'SLURM_NTASKS': '4', 'SLURM_PROCID': '0',
          'SLURM_JOB_NAME': 'bash'}


def test_a_shell_of_an_allocation_is_a_job_of_one():
    r = program(prog('init'), env={**SALLOC, 'FLAUNCH_DEBUG': 'env'})
    assert r.code == 0 and r.out == 'none 0/1 local 0/1 cpu none 0\n', r
    assert 'slurm: an allocation and no step' in r.err, r
    assert 'none: chosen; a job of one process' in r.err, r


def test_an_interactive_step_is_a_job_of_one():
    r = program(prog('init'), env={
        **SALLOC, 'SLURM_LOCALID': '0', 'SLURM_STEP_ID': '4294967290',
        'SLURM_STEP_NUM_TASKS': '1'})
    assert r.code == 0 and r.out.startswith('none 0/1'), r


def test_around_flaunch_they_change_nothing():
    for more in ([], ['--keep-env']):
        r = flaunch('--nproc-per-node=2', *more, prog('init'), env=SALLOC)
        assert r.code == 0, r
        assert sorted(lines(r.out)) == [
            'flaunch %d/2 local %d/2 cpu none 1' % (i, i) for i in range(2)], r


def test_half_a_set_is_an_error():
    r = program(prog('init'), env={'RANK': '1', 'WORLD_SIZE': '2', **SALLOC})
    assert r.code == 1 and 'MASTER_ADDR is not set' in r.out, r
