"""Logs are where they are said to be, and no earlier one is touched."""
from scenario import *
import test_logs


def snapshot(base):
    return {path: (hashlib.sha256(open(path, 'rb').read()).hexdigest(),
                   os.stat(path).st_mtime_ns)
            for root, _, names in os.walk(base)
            for path in (os.path.join(root, n) for n in names)
            if not os.path.islink(path)}


def test_a_second_run_leaves_the_first_ones_files():
    with TempDir() as d:
        flaunch('-r3', '--log-dir', d, 'sh', '-c', test_logs.SAY)
        first = snapshot(d)
        latest = os.readlink(d + '/latest')
        flaunch('-r3', '--log-dir', d, 'sh', '-c', 'echo second')
        second = snapshot(d)
        assert len(first) == 2 and len(second) == 4
        assert {k: second[k] for k in first} == first
        assert os.readlink(d + '/latest') != latest


def test_a_file_named_latest_is_left_alone():
    with TempDir() as d:
        with open(d + '/latest', 'w') as f:
            f.write('mine')
        r = flaunch('-r3', '--log-dir', d, 'true')
        assert r.code == 0 and open(d + '/latest').read() == 'mine', r


def test_odd_places_work_and_impossible_ones_are_named():
    with TempDir() as d:
        for name in ('a b', 'über/日本', 'n' * 250, 'line\nbreak', b'\xff\xfe'):
            path = os.path.join(os.fsencode(d), os.fsencode(name))
            r = flaunch('-r1', b'--log-dir=' + path, 'echo', 'x',
                        env={'LC_ALL': 'C'})
            assert r.code == 0 and r.err == '', r
            assert os.path.exists(path + b'/latest/attempt_0/0/stdout.log')
        os.symlink(d + '/nowhere', d + '/dangling')
        with open(d + '/file', 'w'):
            pass
        for name, words in (('dangling', 'dangling'), ('file', 'Not a directory'),
                            ('x' * 300, 'File name too long'),
                            ('file\nwith', None)):
            r = flaunch('-r1', '--log-dir=%s/%s' % (d, name), 'touch', d + '/ran')
            if words is not None:
                assert r.code == 2 and words in r.err, r
                assert len(lines(r.err)) == 1, r
                assert not os.path.exists(d + '/ran')


def test_a_read_only_file_system_is_named():
    with TempDir() as d:
        r = flaunch_on_disk(d, 'ro,size=64k', '-r1', '--log-dir', d + '/x',
                            'echo', 'ran')
        assert r.code == 2 and 'Read-only file system' in r.err, r
        assert d in r.err and 'ran' not in r.out, r
