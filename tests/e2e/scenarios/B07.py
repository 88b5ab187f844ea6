"""Local rank is not the device number. The choice itself: unit/test_worker; the
launcher's side of "gpu" counts: e2e/test_launch."""
from scenario import *


def job(n, cuda=None, env=None, rank_env=None):
    return by_hand(n, program=prog('nccl_job'), rank_env=rank_env,
                   env={**standin_env(cuda), **(env or {})})


def test_one_gpu_for_each_task_is_device_0():
    for i, r in enumerate(job(3, rank_env={
            i: {'CUDA_VISIBLE_DEVICES': str(7 - i)} for i in range(3)})):
        assert r.code == 0 and 'env %d/3 cuda:0 ' % i in r.out, r


def test_a_subset_is_counted_from_0():
    for i, r in enumerate(job(2, env={'CUDA_VISIBLE_DEVICES': '6,3'})):
        assert r.code == 0 and 'env %d/2 cuda:%d ' % (i, i) in r.out, r


def test_more_ranks_than_gpus_are_told_with_the_numbers():
    said = same_words(job(3, cuda='count=2', env={'SLURM_STEP_GPUS': '0,1'}))
    assert re.match(r'error 5 -\d+: rank 2 on .*: local rank 2 of 3 has no GPU: '
                    r'2 are visible \(CUDA_VISIBLE_DEVICES=\(not set\), '
                    r'SLURM_STEP_GPUS=0,1\); start 2 workers on this node, or '
                    r'make more visible', said), said


def test_one_gpu_for_all_is_told_with_both_ranks():
    said = same_words(job(2, env={'CUDA_VISIBLE_DEVICES': '0'}))
    assert 'ranks 0 and 1 on' in said and 'both use the GPU' in said, said


def test_a_worker_with_one_gpu_stops_the_job():
    r = flaunch('--nproc-per-node=2', prog('nccl_job'),
                env={**standin_env(), 'CUDA_VISIBLE_DEVICES': '0'})
    assert r.code == 1 and 'both use the GPU' in r.out, r
