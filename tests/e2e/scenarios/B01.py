"""The last screenful holds the cause."""
from scenario import *


def test_the_last_25_lines_name_the_rank_the_code_and_the_text():
    p = popen(['sh', '-c', '"$0" "$@" 2>&1 | tail -25', FLAUNCH,
               '--nproc-per-node=4', 'sh', '-c',
               'if [ $RANK = 2 ]; then echo "ValueError: bad shard 17" >&2; '
               'exit 7; fi; sleep 100'])
    r = finish(p)
    last = r.out
    assert 'rank 2 (pid' in last and 'code 7' in last, last
    assert 'ValueError: bad shard 17' in last, last
    assert not re.search(r'^flaunch: rank [013]', last, re.M), last
    assert 'stopped by flaunch: ranks 0-1, 3' in last, last
    assert 'Traceback' not in last and 'also failed' not in last, last


def test_a_python_exception_is_in_the_block():
    r = flaunch('--nproc-per-node=2', sys.executable, '-c',
                'import os, time\n'
                'if os.environ["RANK"] == "0": time.sleep(100)\n'
                'raise ValueError("bad shard 17")')
    block = r.err[r.err.index('flaunch: rank 1'):]
    assert '    ValueError: bad shard 17\n' in block, r
    assert len(lines(block)) <= 40
