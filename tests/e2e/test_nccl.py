"""The backend nccl from detection to the first all-reduce and its end, on
stand-ins for CUDA and NCCL that work on host memory, and fail as told."""
import re
import time

from harness import *


def nccl(n, *args, cuda=None, script=None, env=None, rank=None, ranks=None,
         timeout_ms=60000, seconds=LONG):
    """rank: {rank: (cuda script, nccl script)} where only some differ."""
    rank_env = {r: {k: v for k, v in standin_env(*scripts).items() if v}
                for r, scripts in (rank or {}).items()}
    return by_hand(n, 'timeout_ms=%d' % timeout_ms, *args,
                   program=prog('nccl_job'), rank_env=rank_env, ranks=ranks,
                   seconds=seconds,
                   env={**standin_env(cuda, script), **(env or {})})


def sums(n, launcher='env'):
    odd = sum(range(2, n + 1, 2))
    even = sum(range(1, n + 1, 2))
    return ['%s %d/%d cuda:%d sum %d part %d'
            % (launcher, i, n, i, odd + even, odd if i % 2 else even)
            for i in range(n)]


def assert_well(results, n):
    assert all(r.code == 0 for r in results), results
    assert sorted(lines(''.join(r.out for r in results))) == sorted(sums(n))


def fails(words, results, count=None):
    """All say the same, in which words are."""
    assert count is None or len(results) == count
    assert all(r.code == 1 for r in results), results
    said = same_words(results)
    assert re.search(words, said), said
    return said


def test_sums_over_all_and_over_parts():
    for n in (1, 2, 4, 8):
        assert_well(nccl(n), n)


def test_under_flaunch():
    r = flaunch('--nproc-per-node=4', prog('nccl_job'), env=standin_env())
    assert r.code == 0 and sorted(lines(r.out)) == sums(4, 'flaunch'), r


def test_two_jobs_in_one_process_and_restarts_use_new_ids():
    r = flaunch('--nproc-per-node=2', '--max-restarts=1', 'sh', '-c',
                '"$0" twice && test $FLAUNCH_ATTEMPT = 1', prog('nccl_job'),
                env=standin_env())
    assert r.code == 0, r
    assert sorted(lines(r.out)) == sorted(sums(2, 'flaunch') * 4), r


def test_many_ranks_have_several_roots():
    """Two roots of 130 ranks: the stand-in's count theirs by NCCL's rule."""
    n = 260
    r = flaunch('--nproc-per-node=%d' % n, prog('nccl_job'), 'timeout_ms=200000',
                env=standin_env(cuda='count=%d' % n), seconds=280)
    assert r.code == 0 and sorted(lines(r.out)) == sorted(sums(n, 'flaunch')), r


def test_a_missing_rank_is_named():
    fails(r'rank 1 of 3 did not come within', nccl(3, ranks=[0, 2],
                                                   timeout_ms=3000))


def test_a_rank_that_never_reaches_nccl_is_named():
    """It hangs in ncclCommInitRank; the others wait for it there."""
    said = fails(r'NCCL did not come up within \d+\.\d s: in ncclCommInitRank: '
                 r'ranks 0, 1, 2; in the first all-reduce or done: ranks none',
                 nccl(3, rank={1: (None, 'init=never')}, timeout_ms=4000))
    assert 'NCCL 2.28.9 (' in said and 'libnccl.so.2), cuda:' in said, said


def test_a_rank_that_is_there_twice_is_told():
    results = nccl(3, ranks=[0, 1, 1])
    fails('rank 1 is there twice: pid', results)


def test_different_worlds_are_told():
    fails('WORLD_SIZE 3 and rank 0 has 2', by_hand(
        2, program=prog('nccl_job'), env=standin_env(),
        rank_env={1: {'WORLD_SIZE': '3'}}))


def test_rank_0_makes_no_id():
    fails(r'rank 0 on .*: ncclGetUniqueId: NCCL error 2: unhandled system '
          r'error: scripted to make no id',
          nccl(3, rank={0: (None, 'id=2')}))
    fails(r'ncclGetUniqueId does not come back|published no NCCL id within',
          nccl(2, rank={0: (None, 'id=never')}, timeout_ms=3000))


def test_rank_0_dies_between_the_check_in_and_the_id():
    results = nccl(2, rank={0: (None, 'id=exit')}, timeout_ms=5000)
    assert results[0].code == 9 and results[1].code == 1, results
    # Refused where rank 1 comes only now: it has not been checked in then.
    assert re.search(r'store 127\.0\.0\.1 port \d+: .*(Connection reset|Broken '
                     r'pipe|Connection refused)', results[1].out), results


def test_different_versions_are_told_with_their_paths():
    fails(r'has NCCL version 22809 \(.*/libnccl\.so\.2\) and rank 2 on .* has '
          r'22703 \(.*/libnccl\.so\.2\)',
          nccl(3, rank={2: (None, 'version=22703')}))


def test_two_ranks_on_one_gpu_are_told():
    fails(r'ranks 0 and 2 on .* both use the GPU GPU-.* \(as cuda:0 and cuda:2 '
          r'with CUDA_VISIBLE_DEVICES=\(not set\) and \(not set\)\)',
          nccl(3, rank={2: ('uuid=0', None)}))
    fails('both use the GPU', nccl(2, env={'CUDA_VISIBLE_DEVICES': '3'}))


def test_ranks_may_share_a_gpu_where_the_user_says_so():
    env = {'CUDA_VISIBLE_DEVICES': '3', 'NCCL_MULTI_RANK_GPU_ENABLE': '1'}
    for r in nccl(2, env=env):
        assert r.code == 0 and 'cuda:0 sum 3' in r.out, r
    for r in by_hand(2, program=prog('nccl_job'), rank_env={
            0: {'NCCL_HOSTID': 'a'}, 1: {'NCCL_HOSTID': 'b'}}, env={
                **standin_env(), 'CUDA_VISIBLE_DEVICES': '3'}):
        assert r.code == 0 and 'cuda:0 sum 3' in r.out, r


def test_each_rank_may_see_its_own_gpu_only():
    results = by_hand(2, program=prog('nccl_job'), env=standin_env(), rank_env={
        0: {'CUDA_VISIBLE_DEVICES': '5'}, 1: {'CUDA_VISIBLE_DEVICES': '2'}})
    assert [r.out for r in results] == [
        'env %d/2 cuda:0 sum 3 part %d\n' % (i, i + 1) for i in range(2)]


def test_one_rank_without_a_driver_is_told_by_all_at_once():
    start_s = time.monotonic()
    fails(r'rank 1 on .*: the backend nccl needs a GPU and none is to be had '
          r'here: CUDA error 35: CUDA driver version is insufficient .* \(no '
          r'NVIDIA driver is loaded here\)',
          nccl(3, rank={1: ('count_error=35,driver=0', None)}))
    assert time.monotonic() - start_s < 60


def test_an_old_driver_is_no_missing_one():
    fails(r'counting GPUs: CUDA error 35: .*\(the driver is older than the '
          r'runtime\); driver 11040, runtime 13000',
          nccl(2, 'backend=auto', rank={1: ('count_error=35,driver=11040', None)}))


def test_hidden_gpus_are_told():
    fails(r'CUDA error 100: no CUDA-capable device',
          nccl(2, env={'CUDA_VISIBLE_DEVICES': ''}))
    fails(r'CUDA error 100: .*CUDA_VISIBLE_DEVICES=9',
          nccl(2, 'backend=auto', env={'CUDA_VISIBLE_DEVICES': '9'}))


def test_a_driver_that_counts_no_gpu_is_told():
    fails('none is to be had here: CUDA counts none', nccl(2, cuda='none'))


def test_a_busy_gpu_is_told():
    fails(r'rank 1 on .*: CUDA device 1: CUDA error 46: .*another process has it',
          nccl(2, rank={1: ('set_error=46', None)}))


def test_a_driver_that_hangs_is_told_in_time():
    fails(r'rank 1 on .*: the CUDA driver hangs',
          nccl(2, rank={1: ('hang', None)}, timeout_ms=4000))


def test_a_missing_or_old_nccl_is_told():
    with TempDir() as d:
        for name in ('libcudart.so', 'libcuda.so.1'):
            shutil.copy(os.path.join(BUILD, 'tests', 'standin', name), d)
        if shutil.which('ldconfig') and 'libnccl.so.2' in program(
                'ldconfig', '-p').out:
            raise Skip('no GPU machine may have NCCL in this test')
        fails(r'NCCL cannot be used \(libnccl.*\); install NCCL 2\.18',
              nccl(2, env={'LD_LIBRARY_PATH': d}))
    fails(r'NCCL 21602 \(.*\) is too old', nccl(2, script='version=21602'))


def test_errors_of_the_initialisation_come_with_their_words():
    fails(r'rank 1 on .*: ncclCommInitRankConfig: NCCL error 4: invalid '
          r'argument: scripted to fail at once', nccl(2, rank={
              1: (None, 'init=now:4')}))
    for number, text in ((1, 'unhandled cuda error'),
                         (2, 'unhandled system error'), (5, 'invalid usage'),
                         (6, 'remote process exited')):
        fails(r'rank 1 on .*: ncclCommInitRankConfig: NCCL error %d: %s.*: '
              r'scripted to fail later' % (number, text),
              nccl(3, rank={1: (None, 'init=later:%d' % number)}))


def test_a_stuck_abort_is_told():
    results = nccl(2, rank={1: (None, 'init=never,abort=never')},
                   timeout_ms=3000)
    assert results[0].code == results[1].code == 1, results
    assert 'end this process with _exit' not in results[0].out, results
    assert re.match(r'error 7 -%d: .*NCCL does not come back from its abort: end '
                    r'this process with _exit' % 35, results[1].out), results


def test_a_first_all_reduce_that_does_not_flow_is_told():
    fails(r'NCCL did not come up .*: in ncclCommInitRank: ranks none; in the '
          r'first all-reduce or done: ranks 0, 1',
          nccl(2, script='warmup=never', timeout_ms=3000))
    fails(r'the first all-reduce over 2 ranks gave 1',
          nccl(2, script='warmup=wrong'))
    fails(r'the first all-reduce: NCCL error 5: invalid usage',
          nccl(2, script='warmup=5'))


def test_blocking_communicators_keep_the_deadline():
    assert_well(nccl(2, env={'NCCL_COMM_BLOCKING': '1'}), 2)
    results = nccl(2, rank={1: (None, 'init=never')}, timeout_ms=3000,
                   env={'NCCL_COMM_BLOCKING': '1'})
    for r in results:
        assert r.code == 1 and 'NCCL did not come up within' in r.out, results
        assert 'NCCL_COMM_BLOCKING=1 is set' in r.out, results


def test_settings_that_spoil_things_are_noted():
    r = program(prog('nccl_job'), env={**standin_env(), 'NCCL_COMM_ID': 'h:1'})
    assert r.code == 0, r
    r = program(prog('nccl_job'), env={
        **standin_env(nccl='id=2'), 'NCCL_COMM_ID': 'h:1'})
    assert 'NCCL_COMM_ID is set: every communicator' in r.out, r
    r = program(prog('nccl_job'), env={
        **standin_env(), 'NCCL_COMM_ID': 'h:1', 'FLAUNCH_DEBUG': 'env'})
    assert 'NCCL_COMM_ID is set: every communicator' in r.err, r
    results = by_hand(2, program=prog('nccl_job'),
                      env={**standin_env(), 'FLAUNCH_DEBUG': 'env'},
                      rank_env={1: {'NCCL_PROTO': 'LL'}})
    assert 'settings differ' in results[0].err, results


def test_an_interface_that_is_not_there_is_told_with_those_that_are():
    fails(r'rank 1 on .*: NCCL_SOCKET_IFNAME=nosuch matches no network '
          r'interface of this host: lo', by_hand(
              2, program=prog('nccl_job'), env=standin_env(),
              rank_env={1: {'NCCL_SOCKET_IFNAME': 'nosuch'}}))
    assert_well(nccl(2, env={'NCCL_SOCKET_IFNAME': 'lo'}), 2)


def test_auto_takes_what_the_machine_has():
    assert_well(nccl(2, 'backend=auto'), 2)
    if not os.path.exists(os.path.join(BUILD, 'libflaunch_gloo.so')):
        raise Skip('gloo is not installed')
    none = standin_env(cuda='count_error=35,driver=0')
    for r in by_hand(2, 'backend=auto', env=none):
        assert r.code == 0 and ' cpu gloo 1' in r.out, r
    fails(r'rank 1 on .* has no GPU \(CUDA error 35.*\), and rank 0 on .* uses '
          r'one', nccl(2, 'backend=auto',
                       rank={1: ('count_error=35,driver=0', None)}))


def test_auto_with_nothing_says_what_to_install():
    with TempDir() as d:
        os.makedirs(d + '/x')
        shutil.copy(example('hello'), d + '/x/hello')
        shutil.copy(os.path.join(BUILD, 'libflaunch.so.0'), d)
        code = ('import ctypes, sys\n'
                'class O(ctypes.Structure): _fields_ = [("size", '
                'ctypes.c_size_t), ("backend", ctypes.c_char_p)]\n'
                'class E(ctypes.Structure): _fields_ = [("d", ctypes.c_int), '
                '("c", ctypes.c_int), ("text", ctypes.c_char * 1024)]\n'
                'e = E(); o = O(ctypes.sizeof(O), b"auto"); j = '
                'ctypes.c_void_p()\n'
                'rc = ctypes.CDLL(sys.argv[1]).flaunch_init(ctypes.byref(j), '
                'ctypes.byref(o), ctypes.byref(e))\n'
                'print(rc, e.text.decode())\n')
        if ASAN:
            raise Skip('not as a part of Python: the sanitizer must come first')
        r = program('python3', '-c', code, d + '/libflaunch.so.0',
                    env={**standin_env(cuda='count_error=35,driver=0')})
        assert 'neither a GPU nor gloo is to be had here: install gloo' in \
            r.out, r


def test_cpu_only_programs_need_no_cuda():
    r = program(prog('init'), env={'LD_LIBRARY_PATH': '/nonexistent'})
    assert r.code == 0 and ' cpu none 0' in r.out, r


def test_programs_without_a_backend_get_their_device():
    r = flaunch('--nproc-per-node=2', prog('init'), env=standin_env())
    assert sorted(lines(r.out)) == [
        'flaunch %d/2 local %d/2 cuda:%d none 1' % (i, i, i)
        for i in range(2)], r


def test_a_forked_child_is_no_rank():
    assert_well(nccl(2, 'fork'), 2)


def test_a_rank_that_leaves_without_a_word_holds_nobody_up():
    start_s = time.monotonic()
    assert_well(nccl(3, 'exit'), 3)
    assert time.monotonic() - start_s < 100


def test_a_device_may_be_chosen_by_hand():
    r = program(prog('nccl_job'), 'device=6', env=standin_env())
    assert r.code == 0 and 'cuda:6' in r.out, r
    r = program(prog('nccl_job'), 'device=8', env=standin_env())
    assert r.code == 1 and 'CUDA device 8 was asked for, and 8 are visible' in \
        r.out, r
