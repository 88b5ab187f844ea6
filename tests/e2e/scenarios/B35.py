"""A free port is held from the moment it is found."""
from scenario import *

NOISE = ('import socket\n'
         's = socket.create_server(("127.0.0.1", 0)); a = s.getsockname()\n'
         'print("ready", flush=True)\n'
         'while True:\n'
         '    c = socket.create_connection(a); d = s.accept()[0]\n'
         '    c.close(); d.close()\n')


def test_two_hundred_launches_beside_a_program_that_eats_ports():
    noise = popen([sys.executable, '-c', NOISE])
    noise.stdout.readline()
    for _ in range(25):
        batch = [start(['true']) for _ in range(8)]
        for p in batch:
            r = finish(p)
            assert r.code == 0, r
    end_all_of([noise])


def test_no_port_is_bound_twice():
    if shutil.which('strace') is None:
        raise Skip('no strace')
    with TempDir() as d:
        r = program('strace', '-f', '-e', 'trace=bind', '-o', d + '/log',
                    FLAUNCH, '--nproc_per_node=2', 'true')
        with open(d + '/log') as f:
            bound = [line for line in f if 'sin_port' in line]
    if r.code != 0 and 'ptrace' in r.err:
        raise Skip('not as somebody who may trace')
    assert r.code == 0, r
    assert len(bound) == 1 and 'htons(0)' in bound[0], bound
