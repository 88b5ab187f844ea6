"""flaunch on the nodes of a real Slurm: two slurmd on this machine."""
import re
import sys

sys.path.insert(0, __file__.rpartition('/')[0])
from harness import *
from slurm import Slurm

SAY = ['sh', '-c', 'echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE '
       '$GROUP_RANK/$GROUP_WORLD_SIZE']
FOUR = ['0/4 0/2 0/2', '1/4 1/2 0/2', '2/4 0/2 1/2', '3/4 1/2 1/2']


def srun(slurm, *args, env=None):
    return finish(popen(['srun', *args], env={**slurm.env, **(env or {})}))


def sbatch(slurm, script, *args, wait=True):
    """Run a script as a batch job: its output, and what sbatch returns."""
    with TempDir() as d:
        with open(d + '/job', 'w') as f:
            f.write(script)
        r = finish(popen(['sbatch', *(['--wait'] if wait else []), '-D', d, '-o',
                          d + '/log', *args, d + '/job'], env=slurm.env))
        with open(d + '/log') as f:
            return f.read(), r.code


def said(text):
    return sorted(line for line in lines(text)
                  if not line.startswith('flaunch: '))


def manual(name):
    """An example of flaunch(1), between its marks."""
    with open(os.path.join(ROOT, 'man', 'flaunch.1')) as f:
        text = f.read()
    begin = text.index('.\\" example: ' + name + '\n')
    text = text[text.index('.EX\n', begin) + 4:text.index('.EE\n', begin)]
    return text.replace('\\-', '-').replace('\\e', '\\').replace('\\&', '')


def test_in_a_step_nothing_else_is_needed():
    with Slurm() as slurm:
        r = srun(slurm, '-N2', '--ntasks-per-node=1', FLAUNCH,
                 '--nproc-per-node=2', *SAY)
        assert r.code == 0 and said(r.out) == FOUR, r
        # GPUs of the node, and the name of the job.
        r = srun(slurm, '-N2', '--ntasks-per-node=1', '--gres=gpu:2', FLAUNCH,
                 'sh', '-c', 'echo $RANK $TORCHELASTIC_RUN_ID ${SLURM_PROCID-no}')
        assert r.code == 0, r
        assert [line.split()[0] for line in said(r.out)] == list('0123'), r
        assert re.fullmatch(r'0 slurm-\d+\.0 no', said(r.out)[0]), r
        # A flaunch inside a flaunch is a job of its own.
        r = srun(slurm, '-N2', '--ntasks-per-node=1', FLAUNCH, FLAUNCH,
                 '--nproc-per-node=2', *SAY)
        assert r.code == 0 and said(r.out) == ['0/2 0/2 0/1', '0/2 0/2 0/1',
                                               '1/2 1/2 0/1', '1/2 1/2 0/1'], r
        # Two steps of one job at once do not meet each other.
        log, code = sbatch(slurm, '#!/bin/sh\nfor i in 1 2; do srun --overlap -N2 '
                           '--ntasks-per-node=1 %s sh -c "sleep 1; echo '
                           '\\$RANK/\\$WORLD_SIZE" & done; wait\n' % FLAUNCH,
                           '-N2', '--ntasks-per-node=1')
        assert code == 0 and said(log) == ['0/2', '0/2', '1/2', '1/2'], log
        check_one_node(slurm)
        check_refusals(slurm)
        check_signals(slurm)
        check_a_lost_node(slurm)
        check_the_manuals_scripts(slurm)


def check_one_node(slurm):
    """One node is never refused: batch script, step, shell of salloc."""
    r = srun(slurm, '-N1', '-n1', FLAUNCH, *SAY)
    assert r.code == 0 and said(r.out) == ['0/1 0/1 0/1'], r
    log, code = sbatch(slurm, '#!/bin/sh\n%s --nproc-per-node=2 sh -c '
                       '"echo \\$RANK"\n' % FLAUNCH, '-N1', '-n4')
    assert code == 0 and said(log) == ['0', '1'], log
    # A step on the second of two nodes.
    log, code = sbatch(slurm, '#!/bin/sh\nsrun -N1 -n1 -w n02 %s sh -c '
                       '"echo \\$RANK \\$SLURMD_NODENAME"\n' % FLAUNCH, '-N2')
    assert code == 0 and said(log) == ['0 n02'], log


def check_refusals(slurm):
    """And the command in the message is the right one."""
    log, code = sbatch(slurm, '#!/bin/sh\n%s true\n' % FLAUNCH, '-N2')
    assert code == 2, log
    command = re.search(r"'(srun .*) flaunch \.\.\.'", log).group(1)
    assert command == 'srun --nodes=2 --ntasks-per-node=1', log
    log, code = sbatch(slurm, '#!/bin/sh\n%s %s sh -c "echo \\$RANK/\\$WORLD_SIZE"\n'
                       % (command, FLAUNCH), '-N2')
    assert code == 0 and said(log) == ['0/2', '1/2'], log
    r = srun(slurm, '-N2', '--ntasks-per-node=2', FLAUNCH, 'true')
    assert r.code == 2, r
    assert 'srun has started 2 flaunch on this node' in r.err, r
    command = re.search(r"'(srun .*) flaunch (--nproc-per-node=\d+) \.\.\.'",
                        r.err)
    assert command.groups() == ('srun --nodes=2 --ntasks-per-node=1',
                                '--nproc-per-node=2'), r
    # Who says --nnodes=1 means it.
    r = srun(slurm, '-N2', '--ntasks-per-node=2', FLAUNCH, '--nnodes=1', *SAY)
    assert r.code == 0 and said(r.out) == ['0/1 0/1 0/1'] * 4, r


TRAPS = ['sh', '-c', 'trap "echo usr1 $RANK" USR1; trap "echo term $RANK; '
         'sleep 0.5; exit 85" TERM; echo ready; while :; do sleep 0.05; done']


def check_signals(slurm):
    """USR1 before the limit, TERM at preemption; 85 asks for a requeue. Slurm
    signals every process of a step by itself, so a worker may hear it twice."""
    p = popen(['srun', '-N2', '--ntasks-per-node=1', FLAUNCH,
               '--nproc-per-node=2', *TRAPS], env=slurm.env)
    assert [p.stdout.readline() for _ in range(4)] == [b'ready\n'] * 4
    job = program('squeue', '-h', '-o', '%i', env=slurm.env).out.split()[0]
    program('scancel', '--signal=USR1', job + '.0', env=slurm.env)
    got = set()
    while len(got) < 4:
        line = p.stdout.readline()
        assert line.startswith(b'usr1 '), (line, got)
        got.add(line)
    program('scancel', '--signal=TERM', job + '.0', env=slurm.env)
    r = finish(p)
    assert sorted(set(said(r.out)) - {'usr1 %d' % i for i in range(4)}) == [
        'term %d' % i for i in range(4)], r
    assert r.code == 85, r


def check_a_lost_node(slurm):
    """An agent dies: the job ends on the other node too, and with a cause."""
    with TempDir() as d:
        # srun may give up on what it has not read; files are complete.
        r = srun(slurm, '-N2', '--ntasks-per-node=1', '--kill-on-bad-exit=0',
                 '--wait=0', '-o', d + '/out.%t', FLAUNCH, 'sh', '-c',
                 'if [ $GROUP_RANK = 1 ]; then kill -9 $(ps -o ppid= -p $PPID); '
                 'fi; exec sleep 100')
        with open(d + '/out.0') as f:
            text = f.read()
    assert r.code != 0, r
    assert 'lost node 1 (' in text and 'its connection was closed' in text, (
        text, r)


def check_the_manuals_scripts(slurm):
    script = manual('slurm').replace('flaunch ', FLAUNCH + ' ')
    # The test's nodes have two pretended GPUs.
    script = script.replace('train.py', 'sh -c "echo \\$RANK/\\$WORLD_SIZE"')
    script = re.sub(r'--gpus-per-node=\d+', '--gpus-per-node=2', script)
    log, code = sbatch(slurm, script)
    assert code == 0, log
    assert said(log) == ['%d/4' % i for i in range(4)], (script, log)
