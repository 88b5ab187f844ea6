"""The reader goes away: the job ends like any program in a pipeline, with 141
and nothing left."""
from scenario import *


def test_head_ends_the_job_cleanly():
    for i in range(20 if ASAN else 100):
        token = new_token()
        p = start(['--nproc-per-node=2', 'sh', '-c',
                   'i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done'],
                  token=token, env={'OMP_NUM_THREADS': '1'})
        assert p.stdout.readline().startswith(b'line')
        p.stdout.close()
        err = p.stderr.read().decode()
        assert p.wait(LONG) == 141, err
        assert len(lines(err)) == 1 and 'nobody reads our stdout' in err, err
        assert_nothing_left(token)
        p.stderr.close()


def test_one_worker_is_in_the_pipeline_itself():
    p = start(['yes'])
    p.stdout.readline()
    p.stdout.close()
    err = p.stderr.read().decode()
    assert p.wait(LONG) == 141 and 'SIGPIPE' in err, err
    p.stderr.close()


def test_workers_have_sigpipe_as_it_was():
    r = flaunch('--nproc-per-node=2', 'sh', '-c', 'grep SigIgn /proc/self/status')
    for line in lines(r.out):
        assert int(line.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0, r


def test_a_reader_that_leaves_between_attempts_ends_the_job():
    """Its restart is told to nobody."""
    with TempDir() as d:
        open(d + '/there', 'w').close()
        p = start(['--max-restarts=3', '--restart-backoff=300', 'sh', '-c',
                   'echo x; while test -e "$0"; do sleep 0.01; done; exit 3',
                   d + '/there'], stderr=subprocess.STDOUT)
        assert p.stdout.readline() == b'x\n'
        p.stdout.close()
        os.unlink(d + '/there')
        assert p.wait(LONG) == 3
