#!/usr/bin/env python3
"""torchrun and flaunch side by side, for every command line of cases.tsv.

    conformance.py --launcher build/flaunch [--python PY] [ID or glob ...]

Prints a Markdown table of what is the same and what is meant to differ, then
the sum. PY runs the workers; rows that need PyTorch want one that has it, and
are skipped otherwise. Exit 1: some row is neither.

    conformance.py --launcher 'PY -m torch.distributed.run' --record

writes what the real torchrun does into cases.tsv.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import shlex
import signal
import subprocess
import sys

from cases import Case, HERE, read_table, write_table
from rules import COLUMNS, expected, read_differences

DIFFERENCES = os.path.join(HERE, 'differences.tsv')
# At most so many rows may differ by themselves, and not by a rule.
DIFFERENCES_MAX = 60


def has_pytorch(python):
    return subprocess.run([python, '-c', 'import torch.distributed'],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def needs_pytorch(row):
    return 'needs torch' in row['what']


def run_rows(rows, launcher, python, at_once):
    """(row, what came of it) in order, as they end."""
    pool = concurrent.futures.ThreadPoolExecutor(at_once)
    try:
        yield from zip(rows, pool.map(
            lambda row: Case(row, launcher, python).run(), rows))
    finally:
        pool.shutdown(cancel_futures=True)


class Outcome:
    """One row compared, column by column."""

    def __init__(self, row, found, differences):
        self.row = row
        self.same, self.better, self.wrong = [], [], []
        for column, (value, why) in expected(row, differences).items():
            if found[column] != value:
                self.wrong.append((column, value, found[column]))
            elif why is None:
                self.same.append(column)
            else:
                self.better.append((column, why))


def compare(launcher, python, ids=(), at_once=4):
    """The outcomes, and the rows left out for want of PyTorch."""
    rows = [r for r in read_table() if not ids or any(
        fnmatch.fnmatch(r['id'], g) for g in ids)]
    torch = has_pytorch(python)
    left_out = [r for r in rows if needs_pytorch(r) and not torch]
    differences = read_differences(DIFFERENCES)
    return [Outcome(row, found, differences) for row, found in run_rows(
        [r for r in rows if r not in left_out], launcher, python, at_once)
            ], left_out


def describe(outcomes):
    return '\n'.join('%s, %s:\n    expected %s\n    found    %s' % (
        (o.row['id'],) + w) for o in outcomes for w in o.wrong)


def print_table(outcomes, left_out):
    differences = read_differences(DIFFERENCES)
    print('| row | command line | same | meant to differ (why) |')
    print('| --- | --- | --- | --- |')
    for o in outcomes:
        args = ' '.join((o.row['env'] + ' flaunch ' + o.row['args']).split())
        print('| %s | `%s` | %s | %s |' % (
            o.row['id'], args.replace('|', '\\|').replace('`', "'"),
            ' '.join(o.same), '; '.join('%s: %s' % b for b in o.better)))
    print('\n| column | same | by a rule | by itself | wrong |')
    print('| --- | --- | --- | --- | --- |')
    for column in COLUMNS:
        better = [o for o in outcomes if column in dict(o.better)]
        alone = [o for o in better if (o.row['id'], column) in differences]
        print('| %s | %d | %d | %d | %d |' % (
            column, sum(column in o.same for o in outcomes),
            len(better) - len(alone), len(alone),
            sum(any(w[0] == column for w in o.wrong) for o in outcomes)))
    print('\n%d rows: %d the same in all columns, %d as intended, %d wrong%s'
          % (len(outcomes) + len(left_out),
             sum(not o.better and not o.wrong for o in outcomes),
             sum(bool(o.better) and not o.wrong for o in outcomes),
             sum(bool(o.wrong) for o in outcomes),
             ', %d left out for want of PyTorch' % len(left_out)
             if left_out else ''))


def record(args, launcher):
    rows = read_table()
    chosen = [r for r in rows if not args.ids or any(
        fnmatch.fnmatch(r['id'], g) for g in args.ids)]
    for row, found in run_rows(chosen, launcher, args.python, args.at_once):
        row.update(found)
        print('recorded', row['id'], 'rc', found['rc'], flush=True)
    write_table(rows, 'what torchrun 2.13.0 (CPU) did; the columns are '
                'described in cases.py')


def take_default_signals():
    """A script's background job ignores some, and so would the launchers."""
    for signo in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM,
                  signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD):
        signal.signal(signo, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def main():
    take_default_signals()
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--launcher', required=True)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--record', action='store_true')
    parser.add_argument('-j', dest='at_once', type=int, default=4)
    parser.add_argument('ids', nargs='*')
    args = parser.parse_args()
    launcher = shlex.split(args.launcher)
    if '/' in launcher[0]:
        launcher[0] = os.path.abspath(launcher[0])
    args.python = os.path.abspath(args.python)
    if args.record:
        return record(args, launcher)
    outcomes, left_out = compare(launcher, args.python, args.ids, args.at_once)
    print_table(outcomes, left_out)
    wrong = describe(outcomes)
    if wrong:
        print('\n' + wrong)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
