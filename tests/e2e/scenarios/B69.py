"""Bytes in, bytes out: odd names of scripts and directories."""
from scenario import *


def test_odd_names_everywhere():
    with TempDir() as d:
        for name in ('a b/ü/日本', 'new\nline', b'\xff\xfe'):
            place = os.path.join(os.fsencode(d), os.fsencode(name))
            os.makedirs(place)
            script = place + b'/scr ipt\xc3\xa9.py'
            with open(script, 'w') as f:
                f.write('import os, sys\n'
                        'os.write(1, os.fsencode(sys.argv[1]) + b"\\n")\n'
                        'os.write(1, os.fsencode(os.getcwd()) + b"\\n")\n'
                        'sys.exit(5)\n')
            p = popen([FLAUNCH, '-t1', b'--log-dir=' + place + b'/logs', script,
                       b'\xe9 x'], cwd=place,
                      env={'LC_ALL': 'C', 'TMPDIR': os.fsdecode(place)})
            out, err = p.communicate(timeout=LONG)
            assert p.returncode == 5, err
            log = open(place + b'/logs/latest/attempt_0/0/stdout.log', 'rb').read()
            assert log == b'\xe9 x\n' + place + b'\n', log
            # Every line of the report is flaunch's or indented: none is made
            # by a newline in a name.
            for line in err.splitlines():
                assert line.startswith((b'flaunch: ', b'  ')), err
