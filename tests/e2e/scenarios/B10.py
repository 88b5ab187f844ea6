"""The machine cannot resolve a name, often its own."""
from hosts import *


def test_one_node_needs_no_name():
    wrap = ['unshare', '-Uru', 'sh', '-c', 'hostname no-such-host-9; exec "$@"',
            'sh']
    if program(*wrap, 'true').code != 0:
        raise Skip('no user namespace with a name of its own')
    r = program(*wrap, FLAUNCH, '--nproc_per_node=2', 'sh', '-c',
                'echo $MASTER_ADDR')
    assert r.code == 0 and r.out == '127.0.0.1\n' * 2, r


def test_a_name_that_does_not_exist_is_told_with_the_resolvers_words():
    with Hosts(1) as h:
        r = finish(h.start(0, '--nnodes=2', '--master-addr=no-such-host-9',
                           '--join-timeout=3', 'true'))
    assert r.code == 124, r
    assert 'could not join the host node at no-such-host-9:29500 in 3 s: ' \
        'cannot look up no-such-host-9: ' in r.err, r
    assert 'ame' in r.err, r  # "... Name or service not known" or its like


def test_node_0_is_told_by_its_rank_not_by_its_name():
    with Hosts(2) as h:
        for i in range(2):
            h.script('hostname nameless-%d' % i, i)
        results = h.finish_all(h.start_all('sh', '-c', 'echo $RANK $(hostname)'))
    assert codes(results) == [0, 0], results
    assert ranks_said(results) == ['0 nameless-0', '1 nameless-1'], results
