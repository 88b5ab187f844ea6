"""The caller's Python runs the script."""
from scenario import *


def test_the_first_python3_of_path_wins():
    with TempDir() as d:
        os.mkdir(d + '/bin')
        with open(d + '/bin/python3', 'w') as f:
            f.write('#!/bin/sh\necho mine "$@"\n')
        os.chmod(d + '/bin/python3', 0o755)
        with open(d + '/job.py', 'w') as f:
            f.write('print("python")\n')
        r = flaunch(d + '/job.py',
                    env={'PATH': d + '/bin:' + os.environ['PATH']})
        assert r.out == 'mine -u %s/job.py\n' % d, r
        os.rename(d + '/bin/python3', d + '/bin/python')
        r = flaunch(d + '/job.py', env={'PATH': d + '/bin'})
        assert r.code == 0 and r.out.startswith('mine'), r
        with open(d + '/bin/python', 'w') as f:
            f.write('#!/bin/sh\nexit 3\n')
        for env in ({}, {'FLAUNCH_DEBUG': 'detail'}):
            r = flaunch(d + '/job.py', env=dict({'PATH': d + '/bin'}, **env))
            assert r.code == 3, r
            assert 'running %s/bin/python' % d in r.err, r
            assert ('program: %s/bin/python' % d in r.err) == bool(env), r
        r = flaunch(d + '/job.py', env={'PATH': d})
        assert r.code == 127 and len(lines(r.err)) == 1, r
        assert 'neither python3 nor python is in PATH' in r.err, r
