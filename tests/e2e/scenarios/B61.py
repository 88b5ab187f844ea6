"""An NCCL unique id is good for one communicator: the stand-in refuses a
second use with "a unique id was used twice"."""
from scenario import *


def test_two_jobs_in_one_process():
    for r in by_hand(2, 'twice', program=prog('nccl_job'), env=standin_env()):
        assert r.code == 0 and r.out.count('sum 3') == 2, r


def test_a_restart_uses_a_new_id():
    r = flaunch('--nproc-per-node=2', '--max-restarts=2', '--restart-backoff=0',
                'sh', '-c', '"$0" && test $FLAUNCH_ATTEMPT = 2',
                prog('nccl_job'), env=standin_env())
    assert r.code == 0 and r.out.count('sum 3') == 6, r


def test_a_store_that_outlives_a_restart_gives_no_old_id():
    """As torchrun's does: several attempts, one after the other, in one store,
    with the same attempt number."""
    script = ('for i in 1 2 3; do FLAUNCH_LAUNCHER=torchrun "$0" || exit 1; '
              'done')
    r = flaunch('--nproc-per-node=3', 'sh', '-c', script, prog('nccl_job'),
                env=standin_env())
    assert r.code == 0 and r.out.count('torchrun') == 9, r
    assert r.out.count('sum 6') == 9, r


def test_a_failure_names_rank_device_and_nccls_last_words():
    r = program(prog('nccl_job'), env=standin_env(nccl='init=later:6'))
    assert re.match(r'error 7 -5: rank 0 on \S+: ncclCommInitRankConfig: NCCL '
                    r'error 6: remote process exited .*: scripted to fail '
                    r'later; .*NCCL 2\.28\.9 \(.*\), cuda:0', r.out), r
