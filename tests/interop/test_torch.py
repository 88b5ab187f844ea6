"""Real PyTorch under flaunch, and our programs under the real torchrun."""
import os
import re
import subprocess
import sys

from harness import *

DDP = os.path.join(ROOT, 'tests', 'interop', 'ddp.py')


def python():
    """A Python that has PyTorch: TORCH_PYTHON, else python3 of PATH."""
    candidate = os.environ.get('TORCH_PYTHON') or shutil.which('python3')
    if not has_pytorch(candidate):
        raise Skip('PyTorch is not installed for %s (TORCH_PYTHON names '
                   'another)' % candidate)
    return candidate


def torchrun(*args, env=None):
    extra = {'OMP_NUM_THREADS': '1'}
    extra.update(env or {})
    return finish(popen([python(), '-m', 'torch.distributed.run', *args],
                        env=extra), 300)


GLOO_ABORT = 'terminate called without an active exception'


def losses(run):
    """The losses of a run, which is tried again where gloo aborted a rank in
    its own teardown: PyTorch does, whoever launched it."""
    for _ in range(3):
        result = run()
        if result.code == 0 or GLOO_ABORT not in result.err:
            break
    assert result.code == 0, result
    found = [float(x) for x in re.findall(r'^step \d+ loss (\S+)$', result.out,
                                          re.M)]
    assert len(found) == 20, result
    return found


def under_flaunch(n, *args):
    return losses(lambda: flaunch(
        '--nproc_per_node=%d' % n, DDP, *args, seconds=300,
        env={'PYTHON_EXEC': python(), 'OMP_NUM_THREADS': '1'}))


def test_ddp_gives_the_losses_it_gives_under_torchrun():
    for n in (1, 4):
        theirs = losses(lambda: torchrun('--standalone',
                                         '--nproc_per_node=%d' % n, DDP))
        ours = under_flaunch(n)
        assert ours == theirs, (ours, theirs)
        assert ours[-1] < ours[0] / 2, ours


def test_backend_and_url_are_arguments():
    under_flaunch(2, '--dist-backend=gloo', '--dist-url=env://',
                  '--no-set-device-rank')


def test_a_script_that_fails_ends_the_job_with_its_code():
    with TempDir() as d:
        with open(d + '/job.py', 'w') as f:
            f.write('import os, torch.distributed as dist\n'
                    'dist.init_process_group("gloo")\n'
                    'if dist.get_rank() == 1: os._exit(9)\n'
                    'dist.barrier()\n')
        r = flaunch('--nproc_per_node=3', d + '/job.py', seconds=300,
                    env={'PYTHON_EXEC': python()})
        # The peers of rank 1 may fail as well, but later.
        assert r.code == 9, r
        assert re.search(r'rank 1 \(pid \d+\) exited with code 9', r.err), r


def test_every_store_method_works_against_our_server():
    with TempDir() as d:
        with open(d + '/job.py', 'w') as f:
            f.write('''
import os, datetime, torch.distributed as dist
rank, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
s = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), n,
                  is_master=False, timeout=datetime.timedelta(seconds=60))
s.set("k%d" % rank, "v%d" % rank)
assert s.get("k%d" % (n - 1 - rank)) == b"v%d" % (n - 1 - rank)
s.add("sum", rank + 1)
s.wait(["k%d" % i for i in range(n)])
assert s.check(["k0", "k1"]) and not s.check(["none"])
if rank == 0:
    assert s.compare_set("c", "", "a") == b"a"
    assert s.compare_set("c", "z", "b") == b"a"
    s.append("l", "x"); s.append("l", "y")
    assert s.get("l") == b"xy"
    s.multi_set(["m1", "m2"], ["1", "22"])
    assert s.multi_get(["m1", "m2"]) == [b"1", b"22"]
    assert s.delete_key("m1") and not s.delete_key("m1")
    assert s.num_keys() >= n + 3
    try:
        s.wait(["never"], datetime.timedelta(milliseconds=200))
        raise SystemExit("no timeout")
    except dist.DistStoreError as e:
        assert "never" in str(e)
    assert s.get("l") == b"xy"
    s.set("done", "")
s.wait(["done"])
os.write(1, b"well\\n")
''')
        r = flaunch('--nproc_per_node=2', d + '/job.py', seconds=300,
                    env={'PYTHON_EXEC': python()})
        assert r.code == 0 and lines(r.out) == ['well', 'well'], r


def test_our_library_works_under_the_real_torchrun():
    r = torchrun('--standalone', '--nproc_per_node=3', '--no-python',
                 prog('init'))
    assert r.code == 0, r
    assert sorted(lines(r.out)) == [
        'torchrun %d/3 local %d/3 cpu none 1' % (i, i) for i in range(3)], r


def test_the_example_trains_under_the_real_torchrun():
    data = os.path.join(ROOT, 'worker', 'examples', 'digits.csv')
    r = torchrun('--standalone', '--nproc_per_node=2', '--no-python',
                 example('train'), data)
    assert r.code == 0 and 'accuracy 0.9' in r.out, r


def test_a_restart_by_torchrun_is_not_fooled_by_the_old_store():
    with TempDir() as d:
        r = torchrun('--nnodes=1', '--nproc_per_node=2', '--max-restarts=1',
                     '--master-port=%d' % free_port(), '--no-python', 'sh', '-c',
                     '%s && { test $RANK$TORCHELASTIC_RESTART_COUNT != 10 || '
                     'exit 3; }' % prog('init'))
        assert r.code == 0, r
        # Both ranks met in the second attempt, below a nonce of its own.
        assert len([line for line in lines(r.out)
                    if line.startswith('torchrun ')]) == 4, r


def test_a_restart_by_torchrun_uses_new_nccl_ids():
    """One store over the restart, and in each attempt the same attempt
    number twice."""
    r = torchrun('--nnodes=1', '--nproc_per_node=2', '--max-restarts=1',
                 '--master-port=%d' % free_port(), '--no-python', 'sh', '-c',
                 '"$0" && "$0" && { test $RANK$TORCHELASTIC_RESTART_COUNT != 10 '
                 '|| exit 3; }', prog('nccl_job'), env=standin_env())
    assert r.code == 0, r
    assert r.out.count('sum 3') == 8, r


def test_torchrun_inside_flaunch_is_the_inner_launcher():
    r = flaunch('--nproc_per_node=1', python(), '-m', 'torch.distributed.run',
                '--standalone', '--nproc_per_node=2', '--no-python',
                prog('init'), seconds=300)
    assert r.code == 0, r
    assert sorted(lines(r.out)) == [
        'torchrun %d/2 local %d/2 cpu none 1' % (i, i) for i in range(2)], r


def test_a_python_rank_and_a_c_rank_see_each_others_keys():
    with TempDir() as d:
        with open(d + '/job.py', 'w') as f:
            f.write('''
import datetime, os, sys, torch.distributed as dist
if os.environ["RANK"] == "1":
    os.execv(sys.argv[1], [sys.argv[1], "60000", "+of_c", "of_python"])
s = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), 2,
                  is_master=False, timeout=datetime.timedelta(seconds=60))
s.set("of_python", "p")
assert s.get("of_c") == b"v"
print("seen")
''')
        r = flaunch('--nproc_per_node=2', d + '/job.py', prog('store_wait'),
                    seconds=300, env={'PYTHON_EXEC': python()})
        assert r.code == 0 and r.out == 'seen\n', r
        r = torchrun('--standalone', '--nproc_per_node=2', d + '/job.py',
                     prog('store_wait'))
        assert r.code == 0 and r.out == 'seen\n', r


def test_c_ranks_meet_in_a_file_that_pytorch_has_open():
    with TempDir() as d:
        with open(d + '/job.py', 'w') as f:
            f.write('''
import os, subprocess, sys, torch.distributed as dist
path = sys.argv[1]
s = dist.FileStore(path, 3)
s.set("of_python", "p")
ranks = [subprocess.Popen(
    [sys.argv[2], "dist_url=file://" + path, "timeout_ms=60000"],
    env={**os.environ, "RANK": str(i), "WORLD_SIZE": "2",
         "LOCAL_RANK": str(i), "LOCAL_WORLD_SIZE": "2"}) for i in range(2)]
assert s.get("flaunch-address").startswith(b"flaunch1,")
assert [p.wait() for p in ranks] == [0, 0]
assert s.get("of_python") == b"p" and os.path.exists(path)
del s
assert not os.path.exists(path)
print("well")
''')
        r = program(python(), d + '/job.py', d + '/store', prog('init'),
                    seconds=300)
        assert r.code == 0 and r.out.endswith('well\n'), r
        assert sorted(lines(r.out))[:2] == [
            'env %d/2 local %d/2 cpu none 1' % (i, i) for i in range(2)], r
