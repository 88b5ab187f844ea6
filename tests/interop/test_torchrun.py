"""flaunch in the place of torchrun: command lines side by side, and what
users' scripts do under both."""
import json
import re
import sys

from harness import *
from test_torch import python, torchrun

sys.path.insert(0, os.path.join(ROOT, 'tests', 'interop', 'torchrun'))
import conformance  # noqa: E402

USERS = os.path.join(ROOT, 'tests', 'interop', 'users.py')


def test_every_command_line_does_what_it_did_under_torchrun():
    """Or what is meant: see rules.py and differences.tsv. Rows that need
    PyTorch are left out where there is none."""
    candidate = os.environ.get('TORCH_PYTHON') or shutil.which('python3')
    outcomes, left_out = conformance.compare([FLAUNCH], candidate)
    assert len(outcomes) + len(left_out) >= 360
    assert len(left_out) < 15, left_out
    wrong = conformance.describe(outcomes)
    assert not wrong, '\n' + wrong


def test_few_rows_differ_by_themselves_and_each_is_a_row():
    differences = conformance.read_differences(conformance.DIFFERENCES)
    ids = {r['id'] for r in conformance.read_table()}
    assert {name for name, _ in differences} <= ids
    assert len({name for name, _ in differences}) <= conformance.DIFFERENCES_MAX
    assert all(reason for _, reason in differences.values())


# ------------------------------------------------------------ real scripts

def both(what, *options, args=(), n=2, code=0):
    """The script's lines under each, in any order."""
    if ASAN:
        raise Skip('not as a sanitized build: a script sees no difference')
    found = []
    env = {'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': python()}
    for launch in (lambda *a: flaunch(*a, env=env, seconds=300),
                   lambda *a: torchrun('--standalone', *a)):
        with TempDir() as d:
            r = launch('--nproc_per_node=%d' % n, *options, USERS, what,
                       *[a.replace('{D}', d) for a in args])
        assert r.code == code, r
        found.append(sorted(line for line in lines(r.out)))
    assert found[0] == found[1] and found[0], found
    return found[0]


def need(module):
    if subprocess.run([python(), '-c', 'import ' + module],
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip('%s is not installed for %s' % (module, python()))


def test_ddp():
    assert len(both('ddp', n=3)) == 18


def test_fsdp():
    assert both('fsdp') == both('ddp')


def test_a_checkpoint_is_resumed_after_a_restart():
    found = both('checkpoint', '--max-restarts=1', args=['{D}/ck'])
    assert 'rank 1 attempt 1 resumes after 2' in found, found
    assert sum('step 5' in line for line in found) == 2, found
    # And to the same end as without one.
    assert [line for line in found if 'step 5' in line] == [
        line for line in both('ddp') if 'step 5' in line]


def test_accelerate():
    need('accelerate')
    found = both('accelerate')
    assert 'rank 1 of 2 local 1 main False' in found, found


def test_lightning():
    need('lightning')
    found = both('lightning')
    assert 'rank 1 of 2 local 1 TorchElasticEnvironment' in found, found


def test_open_clip_reads_the_environment():
    assert both('open_clip') == ['torchrun rank %d of 2 local %d cpu' % (i, i)
                                 for i in range(2)]


def test_open_clip_within_slurm_is_no_task_of_slurms():
    """A launcher inside a step: the step's numbers are not the worker's."""
    r = flaunch('--nnodes=1', '--nproc-per-node=2', USERS, 'open_clip',
                seconds=300, env={
                    'PYTHON_EXEC': python(), 'OMP_NUM_THREADS': '1',
                    'SLURM_JOB_ID': '7', 'SLURM_STEP_ID': '0',
                    'SLURM_PROCID': '0', 'SLURM_LOCALID': '0',
                    'SLURM_NTASKS': '1'})
    assert sorted(lines(r.out)) == [
        'torchrun rank %d of 2 local %d cpu' % (i, i) for i in range(2)], r


def test_data_loaders_have_helpers():
    assert '20540' in both('loader')[0]


def test_record_tells_why():
    with TempDir() as d:
        errors = []
        for name, launch in (('flaunch', flaunch), ('torchrun', torchrun)):
            path = '%s/%s.json' % (d, name)
            r = launch('--nproc_per_node=2', USERS, 'record', env={
                'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': python(),
                'TORCHELASTIC_ERROR_FILE': path})
            assert r.code == 1 and 'ValueError: planned: 7' in r.err, r
            with open(path) as f:
                errors.append(json.load(f)['message'])
    ours, theirs = errors
    assert ours['message'] == theirs['message'] == 'ValueError: planned: 7'
    assert ours['errorCode'] == theirs['errorCode'] == 1
    assert ours['extraInfo']['flaunch']['workers'][1]['fate'] == 'failed first'


# ---------------------------------------------------------------- events

def events(r):
    """Without what differs from run to run."""
    found = [json.loads(line) for line in lines(r.err) if line[0] == '{']
    for e in found:
        m = e['metadata']
        inner = json.loads(m['metadata'])
        for key in ('worker_pid', 'entry_point'):
            inner.pop(key, None)
        m['metadata'] = inner
        m['duration_ms'] = m['duration_ms'] is not None
        m['worker_id'] = m['worker_id'] is not None
        del e['timestamp'], m['run_id'], m['hostname'], m['total_run_time']
    return found


def test_events_are_torchruns_in_order_keys_and_values():
    fails = ('import os, sys, time; os.environ["RANK"] == "1" and sys.exit(3); '
             'time.sleep(30)')
    for program, code in (('pass', 0), (fails, 3)):
        with TempDir() as d:
            script = d + '/job.py'
            with open(script, 'w') as f:
                f.write(program)
            args = ['--nproc_per_node=2', '--event-log-handler=console',
                    '--max-restarts=1', script]
            ours = flaunch(*args, '', env={'PYTHON_EXEC': python(),
                                           'OMP_NUM_THREADS': '1'})
            theirs = torchrun(*args)
        assert ours.code == code and theirs.code == min(code, 1), (ours, theirs)
        assert json.dumps(events(ours)) == json.dumps(events(theirs)), (
            ours, theirs)


def test_pytorchs_timers_reach_our_watchdog():
    with TempDir() as d:
        with open(d + '/job.py', 'w') as f:
            f.write('import os, time\n'
                    'import torch.distributed.elastic.timer as timer\n'
                    'timer.configure(timer.FileTimerClient('
                    'os.environ["TORCHELASTIC_TIMER_FILE"]))\n'
                    'with timer.expires(after=100, scope="fine"): pass\n'
                    'if os.environ["RANK"] == "1":\n'
                    '    with timer.expires(after=0.5, scope="step"):\n'
                    '        time.sleep(200)\n'
                    'time.sleep(200)\n')
        r = flaunch('--nproc_per_node=2', d + '/job.py', seconds=150,
                    env={'PYTHON_EXEC': python(), 'OMP_NUM_THREADS': '1',
                         'TORCHELASTIC_ENABLE_FILE_TIMER': '1'})
    assert r.code == 137, r
    assert re.search('rank 1: the timer "step" of process', r.err), r
