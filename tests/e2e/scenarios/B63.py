"""The environment arrives untouched."""
from scenario import *


def test_strange_variables_survive():
    odd = {'BASH_FUNC_m%%': '() { echo hi; }', 'FOO.BAR': '1', 'NL': 'a\nb',
           'EMPTY': '', 'RANK': '99'}
    show = ('import os; print(sorted((k, v) for k, v in os.environ.items() '
            'if k in %r))' % (list(odd),))
    ours = flaunch('python3', '-c', show, env=odd)
    plain = program('python3', '-c', show, env=dict(odd, RANK='0'))
    assert ours.code == 0 and ours.out == plain.out, (ours, plain)
    r = flaunch('sh', '-c', 'tr "\\0" "\\n" < /proc/$$/environ | grep -c ^RANK=',
                env=odd)
    assert r.out == '1\n', r


def test_an_environment_too_large_is_told():
    token = new_token()
    # Larger than exec takes once ours are added to it.
    env = {'V%d' % i: 'x' * 120000 for i in range(16)}
    env = dict(clean_env(env, token))
    def size(e): return sum(len(k) + len(v) + 2 + 8 for k, v in e.items())
    limit = 2 * 1024 * 1024
    fill = limit - size(env)
    while True:
        # As large as exec takes for flaunch itself; less is found here.
        env['FILL'], env['MORE'] = 'x' * min(fill, 120000), \
            'x' * max(0, fill - 120000)
        try:
            p = subprocess.Popen([FLAUNCH, 'true'], env=env,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
            break
        except OSError:
            fill -= 256
    r = finish(p)
    assert r.code == 126 and 'too large' in r.err, r
    assert_nothing_left(token)
