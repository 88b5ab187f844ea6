"""What the scenarios use beside the harness."""
import hashlib
import pty
import random
import re
import resource
import signal
import subprocess
import time

from harness import *


def new_token():
    return 's%s' % uuid.uuid4().hex


def states_of(pid):
    """(pid, state letter) of the children."""
    found = []
    for child in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % child) as f:
                fields = f.read().rpartition(')')[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append((int(child), fields[0]))
    return found


def wait_for_workers(token, name, n):
    """The pids of n processes of that name, when they are there."""
    def found():
        pids = [pid for pid, known in left_behind(token) if known == '(%s)' % name]
        return pids if len(pids) >= n else None
    return wait_until(found, '%d workers named %s' % (n, name))


def flaunch_on_disk(d, mount_options, *args):
    """flaunch where d is a file system of its own."""
    mount = 'mount -t tmpfs -o %s none %s && exec "$@"' % (mount_options, d)
    wrap = ['unshare', '-rm', 'sh', '-c', mount, 'sh']
    if program(*wrap, 'true').code != 0:
        raise Skip('no user namespace to mount in')
    return program(*wrap, FLAUNCH, *args)


def flaunch_plain(*args):
    """Only the exit code, without a look at what is left."""
    return subprocess.run([FLAUNCH, *args], env=clean_env(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode
