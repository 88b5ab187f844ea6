#!/usr/bin/env python3
"""Run all tests, or those named: run.py --build DIR [--strict] [NAME ...]

NAME is a part of a test's name, such as unit/test_store or e2e/test_launch.
With --strict a test that is skipped for lack of something other than a GPU is
a failure: CI installs all that is needed, and tests as root and as a user. The last line counts.
"""
import argparse
import concurrent.futures
import glob
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNIT_SECONDS = 300
# Files of tests that mostly wait.
AT_ONCE = 6
TEST_SECONDS = int(os.environ.get('FLAUNCH_TEST_SECONDS', 300))


class Tally:
    def __init__(self, strict):
        self.strict = strict
        self.passed = self.failed = self.skipped = 0

    def ok(self, name, seconds):
        self.passed += 1
        print('ok      %s (%.1f s)' % (name, seconds), flush=True)

    def fail(self, name, why):
        self.failed += 1
        print('FAIL    %s\n%s' % (name, why), flush=True)

    def skip(self, name, why):
        # The last two are what another step of CI runs: as root or as a user,
        # with a plain build.
        if self.strict and not why.startswith(('no GPU', 'as root', 'not as')):
            self.fail(name, 'skipped where nothing may be: ' + why)
            return
        self.skipped += 1
        print('SKIP    %s: %s' % (name, why), flush=True)


def run_program(tally, name, argv):
    """A cmocka program, or one that only passes or fails."""
    start = time.monotonic()
    try:
        done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=UNIT_SECONDS)
    except subprocess.TimeoutExpired as e:
        text = (e.output or b'').decode(errors='replace')
        tally.fail(name, 'still running after %d s\n%s' % (UNIT_SECONDS, text))
        return
    seconds = time.monotonic() - start
    text = done.stdout.decode(errors='replace')
    good = re.findall(r'^\[       OK \] (\S+)', text, re.M)
    bad = sorted(set(re.findall(r'^\[  FAILED  \] (\w+)\s*$', text, re.M)))
    for test in good:
        tally.ok('%s: %s' % (name, test), seconds / max(1, len(good)))
    for test in bad:
        tally.fail('%s: %s' % (name, test), text)
    if not good and not bad and done.returncode == 0:
        tally.ok(name, seconds)
    elif done.returncode != 0 and not bad:
        tally.fail(name, 'ended with %d\n%s' % (done.returncode, text))


def too_long(signum, frame):
    raise TimeoutError('still running after %d s' % TEST_SECONDS)


def run_module(tally, path, name, wanted):
    """Every function test_* of a Python file."""
    sys.path.insert(0, os.path.dirname(path))
    sys.path.insert(0, os.path.join(ROOT, 'tests', 'e2e'))
    spec = importlib.util.spec_from_file_location(name.replace('/', '_'), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from harness import Skip, end_all
    for key, test in list(vars(module).items()):
        full = '%s: %s' % (name, key[5:])
        if not key.startswith('test_') or not callable(test):
            continue
        if wanted and not any(w in full for w in wanted):
            continue
        start = time.monotonic()
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(TEST_SECONDS)
        try:
            test()
            signal.alarm(0)
            tally.ok(full, time.monotonic() - start)
        except Skip as e:
            tally.skip(full, str(e))
        except Exception:
            tally.fail(full, traceback.format_exc())
        finally:
            signal.alarm(0)
            end_all()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--strict', action='store_true')
    parser.add_argument('--file', help='only the Python tests of this file')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    os.chdir(ROOT)
    # Whoever started us may have ignored signals (a script's background job
    # does): our children must find none ignored or blocked.
    for signo in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM,
                  signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD):
        signal.signal(signo, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    build = os.path.abspath(args.build)
    os.environ['FLAUNCH_TEST_BUILD'] = build
    tally = Tally(args.strict)
    # What is killed together with its guard leaves a directory behind.
    with tempfile.TemporaryDirectory(prefix='flaunch-run-') as run_dirs:
        os.environ['XDG_RUNTIME_DIR'] = run_dirs
        run_all(args, build, tally)
    print('%d passed, %d failed, %d skipped'
          % (tally.passed, tally.failed, tally.skipped))
    return 1 if tally.failed or not tally.passed else 0


def run_all(args, build, tally):
    for kind in ('unit', 'fault', 'fuzz') if args.file is None else ():
        for path in sorted(glob.glob('%s/tests/%s/*' % (build, kind))):
            base = os.path.basename(path)
            name = '%s/%s' % (kind, base)
            if '.' in base or not os.access(path, os.X_OK):
                continue
            if args.names and not any(w in name for w in args.names):
                continue
            argv = [path]
            if kind == 'fuzz':
                argv += sorted(glob.glob('tests/fuzz/corpus/%s/*' % base))
            run_program(tally, name, argv)
    patterns = ['e2e/test_*', 'e2e/nodes/test_*', 'e2e/scenarios/B*',
                'interop/test_*']
    if 'model' in args.names:  # minutes: only when it is asked for
        patterns.append('model/test_*')
    later = []
    for pattern in patterns:
        for path in sorted(glob.glob('tests/%s.py' % pattern)):
            if args.file not in (None, path):
                continue
            name = os.path.relpath(path, 'tests')[:-3]
            if args.file is None and waits_for_hosts(path):
                later.append(path)
            else:
                run_module(tally, path, name, args.names)
    run_at_once(tally, args, later)


def waits_for_hosts(path):
    """Tests of several hosts mostly wait for time to pass."""
    with open(path) as f:
        return 'from hosts import' in f.read()


def run_file(args, path):
    """One file of tests in a process and session of its own: what it says."""
    argv = [sys.executable, __file__, '--build', args.build, '--file', path,
            *(['--strict'] if args.strict else []), *args.names]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True)
    return done.stdout.decode(errors='replace')


def run_at_once(tally, args, paths):
    """Several files at a time; their sums are added."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for path, text in zip(paths, pool.map(lambda p: run_file(args, p), paths)):
            found = re.search(r'^(\d+) passed, (\d+) failed, (\d+) skipped\s*\Z',
                              text, re.M)
            if found is None:
                tally.fail(path, text)
                continue
            print(text[:found.start()], end='', flush=True)
            tally.passed += int(found.group(1))
            tally.failed += int(found.group(2))
            tally.skipped += int(found.group(3))


if __name__ == '__main__':
    sys.exit(main())
