"""As process 1 it handles signals and reaps everything."""
from scenario import *


def test_in_a_pid_namespace():
    inside = ['unshare', '--user', '--map-root-user', '--pid', '--fork',
              '--mount-proc']
    if program(*inside, 'true').code != 0:
        raise Skip('no user namespaces here')
    token = new_token()
    # unshare itself stays outside; it hands its child's status on.
    p = popen([*inside, FLAUNCH, '--nproc_per_node=2', 'sh', '-c',
               'echo up; while :; do (sleep 0.05 &); sleep 0.02; done'],
              token=token)
    for _ in range(2):
        assert p.stdout.readline() == b'up\n'
    flaunch_pid = wait_until(lambda: [c for c, name in children_of(p.pid)
                                      if name == 'flaunch'], 'process 1')[0]
    time.sleep(0.5)
    # What is dead for more than a moment has been reaped.
    guard = [c for c, name in children_of(flaunch_pid) if name == 'flguard'][0]
    def zombies(): return {c for c, state in states_of(guard) if state == 'Z'}
    early = zombies()
    time.sleep(1)
    assert not early & zombies()
    os.kill(flaunch_pid, signal.SIGTERM)
    r = finish(p)
    assert r.code == 143, r
    assert_nothing_left(token)
