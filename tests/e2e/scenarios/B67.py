"""A program that cannot run is told in one line with the way out."""
from scenario import *


def test_each_reason_has_its_line():
    with TempDir() as d:
        def put(name, data, mode=0o755):
            with open(d + '/' + name, 'wb') as f:
                f.write(data)
            os.chmod(d + '/' + name, mode)
            return d + '/' + name
        with open('/bin/true', 'rb') as f:
            elf = bytearray(f.read())
        elf[18:20] = b'\xf3\x00'  # another machine
        for path, code, words in (
                (d + '/missing', 127, 'No such file'),
                (put('plain', b'#!/bin/sh\n', 0o644), 126, 'chmod +x'),
                (put('dos', b'#!/bin/sh\r\necho\r\n'), 126, 'Windows'),
                (put('lost', b'#!/no/such/shell\n'), 126, '/no/such/shell'),
                (put('empty', b''), 126, 'without #!'),
                (d, 126, 'directory'),
                (put('other', bytes(elf)), 126, 'another machine'),
                ('not-in-path', 127, 'not in PATH')):
            begin = time.monotonic()
            r = flaunch('--nproc_per_node=2', path,
                        env={'OMP_NUM_THREADS': '1'})
            assert r.code == code and words in r.err, (path, r)
            assert len(lines(r.err)) == 1, (path, r)
            assert time.monotonic() - begin < 10
