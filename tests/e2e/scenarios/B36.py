"""N copies of "rank 0 of 1": signs of a job without a whole record are an
error; one task of a step is none. Real mpirun and hydra: tests/interop."""
from scenario import *


def test_signs_of_several_processes_are_named():
    for env, words in (
            ({'PMIX_RANK': '2', 'PMIX_NAMESPACE': 'x'}, 'PMIX_RANK=2 says'),
            ({'PMI_SIZE': '4', 'PMI_RANK': '1'}, 'PMI_SIZE=4 says'),
            ({'MV2_COMM_WORLD_RANK': '1'}, 'MV2_COMM_WORLD_SIZE is not set'),
            ({'SLURM_STEP_NUM_TASKS': '2'}, 'SLURM_STEP_NUM_TASKS=2 says')):
        r = program(prog('init'), env=env)
        assert r.code == 1 and words in r.out, r
        assert 'FLAUNCH_LAUNCHER=none makes it a job of one' in \
            r.out.replace('FLAUNCH_DEBUG=env prints what was found, ', ''), r
        r = program(prog('init'), env={**env, 'FLAUNCH_LAUNCHER': 'none'})
        assert r.code == 0 and r.out.startswith('none 0/1'), r


def test_one_task_of_a_step_is_a_job_of_one():
    r = program(prog('init'), env={
        'SLURM_PROCID': '0', 'SLURM_STEP_NUM_TASKS': '1', 'SLURM_STEP_ID': '0',
        'SLURM_LOCALID': '0'})
    assert r.code == 0 and r.out.startswith('slurm 0/1 local 0/1'), r


def test_a_stale_pmi_socket_is_not_written_to():
    """The number may be anybody's file by now."""
    with TempDir() as d:
        with open(d + '/file', 'wb') as f:
            fd = os.dup2(f.fileno(), 9, inheritable=True)
            r = program(prog('init'), pass_fds=[fd], env={
                'PMI_FD': '9', 'PMI_RANK': '1', 'PMI_SIZE': '2',
                'MPI_LOCALRANKID': '1', 'MPI_LOCALNRANKS': '2'})
            os.close(fd)
        assert r.code == 1 and 'PMI_FD=9 is no open socket' in r.out, r
        assert os.path.getsize(d + '/file') == 0
