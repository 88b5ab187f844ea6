"""Pods: the environment that Kubernetes and Kubeflow give, names that begin to
resolve late, pods that are started again. The manifests are those of flaunch(1)."""
import json
import re

from hosts import *


def manifest(name):
    """A manifest of flaunch(1): its command, and what it says of the job."""
    with open(os.path.join(ROOT, 'man', 'flaunch.1')) as f:
        text = f.read()
    begin = text.index('.\\" example: ' + name + '\n')
    text = text[text.index('.EX\n', begin) + 4:text.index('.EE\n', begin)]
    text = text.replace('\\-', '-').replace('\\(dq', '"')
    command = json.loads(re.search(r'command: (\[[^]]*\])', text,
                                   re.S).group(1).replace('\n', ' '))
    assert command[0] == 'flaunch' and command[-1] == 'train.py', command
    return command[1:-1], text


SAY = ['sh', '-c', 'echo $RANK/$WORLD_SIZE $MASTER_ADDR']


def pods(h, n, start):
    """Start n pods whose names appear one second later, as DNS has them."""
    text = h.hosts_text()
    ps = [start(i) for i in range(n)]
    for p in ps[1:]:
        line = ''
        while 'cannot look up' not in line:
            line = p.stderr.readline().decode()
            assert 'OMP_NUM' in line or 'cannot look up' in line, line
    for i in range(n):
        h.set_hosts(i, text + ''.join(
            '%s %s\n' % (h.addr(j), name)
            for j in range(n) for name in ('train-%d.train' % j,
                                           'train-node-0-%d.train' % j)))
    return ps


def test_an_indexed_job_whose_names_come_late():
    args, text = manifest('indexed job')
    n = int(re.search(r'completions: (\d+)', text).group(1))
    assert int(re.search(r'parallelism: (\d+)', text).group(1)) == n
    assert 'completionMode: Indexed' in text and 'clusterIP: None' in text, text
    with Hosts(n) as h:
        ps = pods(h, n, lambda i: h.start(i, *args, *SAY,
                                          env={'JOB_COMPLETION_INDEX': str(i)}))
        results = h.finish_all(ps)
    assert codes(results) == [0] * n, results
    per = int(re.search(r'nproc-per-node=(\d+)', ' '.join(args)).group(1))
    assert ranks_said(results) == sorted(
        '%d/%d train-0.train' % (r, n * per) for r in range(n * per)), results


def test_a_trainjob():
    args, text = manifest('trainjob')
    n = int(re.search(r'numNodes: (\d+)', text).group(1))
    with Hosts(n) as h:
        ps = pods(h, n, lambda i: h.start(i, *args, *SAY, env={
            'PET_NNODES': str(n), 'PET_NPROC_PER_NODE': '2',
            'PET_NODE_RANK': str(i), 'PET_MASTER_PORT': '29500',
            'PET_MASTER_ADDR': 'train-node-0-0.train'}))
        results = h.finish_all(ps)
    assert codes(results) == [0] * n, results
    assert ranks_said(results) == sorted(
        '%d/%d train-node-0-0.train' % (r, 2 * n) for r in range(2 * n)), results


def test_a_pod_that_is_started_again():
    args, text = manifest('indexed job')
    with Hosts(2) as h:
        work = ['sh', '-c', 'echo $RANK $TORCHELASTIC_RESTART_COUNT; '
                'test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 100']

        def pod(i):
            return h.start(i, *args, '--nproc-per-node=1', '--max-restarts=3',
                           *work, env={'JOB_COMPLETION_INDEX': str(i)})
        for i in range(2):
            h.set_hosts(i, h.hosts_text() + '10.77.0.1 train-0.train\n')
        ps = [pod(0), pod(1)]
        for p in ps:
            p.stdout.readline()
        ps[1].kill()
        finish(ps[1])
        results = h.finish_all([ps[0], pod(1)])
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0 1', '1 1'], results
