"""A wait in vain says for what, how long and where; the launcher, asked for
details, who waited when it gave the job up."""
from scenario import *


def test_the_clients_error_names_what_is_missing():
    r = flaunch(prog('store_wait'), '300', '+k1', 'k2', '+k3', 'k4')
    assert r.code == 1, r
    assert re.search(r'^store 127\.0\.0\.1 port \d+: waited 0\.[3-9] s in vain '
                     r'for keys k2, k4$', r.err, re.M), r
    r = flaunch(prog('store_wait'), '300', 'k2')
    assert 'in vain for key k2' in r.err, r
    r = flaunch(prog('store_wait'), '60000', '+k1', '+k2')
    assert r.code == 0 and r.err == '', r


def test_the_launcher_lists_who_waits_for_what():
    script = ('if [ $RANK = 0 ]; then exec "$0" 100000 +here never; fi; '
              'if [ $RANK = 1 ]; then exec "$0" 100000 "odd\nkey"; fi; '
              'exec sleep 100')
    for end in (['--timeout=2'], []):
        args = [*end, '--nproc-per-node=3', 'sh', '-c',
                script if end else script.replace('exec sleep 100',
                                                  'sleep 2; exit 3'),
                prog('store_wait')]
        r = flaunch(*args, env={'FLAUNCH_DEBUG': 'detail',
                                'OMP_NUM_THREADS': '1'})
        assert r.code == (124 if end else 3), r
        waits = sorted(re.findall(r'store: 127\.0\.0\.1:\d+ waits for key (.*)',
                                  r.err))
        assert waits == ['/never', '/odd\\x0akey'], r
        quiet = flaunch(*args, env={'OMP_NUM_THREADS': '1'})
        assert 'waits for key' not in quiet.err, quiet
