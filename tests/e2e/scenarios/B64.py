"""What cannot succeed is not tried again and again."""
from scenario import *


def test_a_missing_program_is_tried_once():
    r = flaunch('--max-restarts=10', './no-such')
    assert r.code == 127 and len(lines(r.err)) == 1, r


def test_the_waits_grow():
    r = flaunch('--max-restarts=3', '--restart-backoff=0.1', 'false')
    assert r.code == 1, r
    assert re.findall(r'restart \d of 3 in (\S+) s', r.err) == [
        '0.1', '0.2', '0.4'], r
