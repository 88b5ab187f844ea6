"""The models of the rendezvous, checked by SPIN: as they are they hold, and with a
seeded bug they do not. FLAUNCH_TEST_MODEL=big looks at three nodes with every
trouble as well (minutes, gigabytes)."""
from harness import *

SAFETY = (['-DSAFETY'], [])
ASSERTS = (['-DSAFETY'], ['-E'])
LIVENESS = (['-DNFAIR=3'], ['-a', '-f'])
BIG = os.environ.get('FLAUNCH_TEST_MODEL') == 'big'
SMALL = {'CRASHES': 1, 'BREAKS': 0, 'CUTS': 1, 'LEAVES': 0, 'ROUNDS': 3, 'INCS': 2}


def check(model, kind, seconds=280, **defines):
    """Errors that SPIN finds, and states that it has seen."""
    if shutil.which('spin') is None:
        raise Skip('spin is not installed')
    compile_args, run_args = kind
    with TempDir() as d:
        def run(*argv):
            done = subprocess.run(argv, cwd=d, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=seconds)
            return done.stdout.decode()
        text = run('spin', *['-D%s=%s' % (k, v) for k, v in defines.items()],
                   *(['-DLIVENESS'] if kind is LIVENESS else []), '-a',
                   os.path.join(ROOT, 'tests', 'model', model + '.pml'))
        assert os.path.exists(d + '/pan.c'), text
        text = run('gcc', '-O2', '-w', '-DCOLLAPSE', '-DVECTORSZ=2048',
                   *compile_args, '-o', 'pan', 'pan.c')
        assert os.path.exists(d + '/pan'), text
        text = run('./pan', '-m200000', *run_args)
    errors = [line for line in text.splitlines() if 'errors: ' in line]
    assert len(errors) == 1 and 'max search depth too small' not in text, text
    states = [line for line in text.splitlines() if 'states, stored' in line]
    return int(errors[0].split('errors: ')[1]), int(states[0].split()[0]), text


def holds(model, kind, at_least, **defines):
    errors, states, text = check(model, kind, **defines)
    assert errors == 0, text
    assert states >= at_least, text  # it has really looked
    print('%s %s: %d states' % (model, defines, states), flush=True)


def breaks(model, kind, words, **defines):
    errors, _, text = check(model, kind, **defines)
    assert errors == 1 and words in text, text


def test_no_rank_is_held_twice_and_no_stale_message_obeyed():
    holds('rendezvous', SAFETY, 1000000)


def test_the_same_with_three_nodes():
    if BIG:
        holds('rendezvous', SAFETY, 1000000, seconds=3000, N=3, **SMALL)
    else:
        holds('rendezvous', SAFETY, 100000, N=3,
              **dict(SMALL, ROUNDS=2, CUTS=0, INCS=1))


def test_the_same_where_two_nodes_are_needed():
    holds('rendezvous', SAFETY, 10000, MIN=2, **SMALL)


def test_every_job_ends():
    holds('rendezvous', LIVENESS, 100000, **SMALL)


def test_every_job_ends_where_connections_break_and_nodes_leave():
    holds('rendezvous', LIVENESS, 30000,
          **dict(SMALL, CRASHES=0, CUTS=0, BREAKS=1, LEAVES=1))


def test_a_silent_node_declared_dead_while_it_lives_is_found():
    breaks('rendezvous', ASSERTS, 'assertion violated', BUG_NO_FENCE=1)


def test_a_late_start_is_found():
    breaks('rendezvous', ASSERTS, 'assertion violated', BUG_LATE_START=1)


def test_a_round_that_does_not_wait_is_found():
    breaks('rendezvous', ASSERTS, 'assertion violated', BUG_NO_WAIT=1, **SMALL)


def test_a_confusion_of_connections_is_found():
    breaks('rendezvous', ASSERTS, 'assertion violated', BUG_NO_INC=1)


def test_a_coordinator_that_waits_for_the_silent_is_found():
    breaks('rendezvous', LIVENESS, 'acceptance cycle', BUG_NO_LOSS=1, **SMALL)


def test_a_coordinator_that_waits_for_the_dead_at_the_end_is_found():
    breaks('rendezvous', LIVENESS, 'acceptance cycle', BUG_NO_END=1, **SMALL)


def test_workers_are_dead_when_the_coordinator_says_so():
    holds('lease', SAFETY, 10000)


def test_a_lease_that_begins_with_the_answer_is_found():
    breaks('lease', ASSERTS, 'assertion violated', BUG_OF_ACK=1)


def test_a_lease_that_the_stopped_agent_watches_is_found():
    breaks('lease', ASSERTS, 'assertion violated', BUG_NO_GUARD=1)


def test_a_host_with_less_patience_than_the_lease_is_found():
    breaks('lease', ASSERTS, 'assertion violated', BUG_HOST_T=1)
