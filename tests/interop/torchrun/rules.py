"""What flaunch is to do where torchrun did what cases.tsv tells.

What differs everywhere by design is a rule here: it computes from the row the
one value that is expected of flaunch, which is then compared exactly. What
differs in a single row stands in differences.tsv, with its value and reason.
"""
import os
import re
import shlex
import signal

COLUMNS = ['rc', 'left', 'out', 'werr', 'seen', 'files']
# Exceptions by which torchrun tells that a value is bad, or a program missing.
BAD_VALUE = re.compile(r'\b(AssertionError|ValueError|KeyError|RuntimeError|'
                       r'OverflowError|ModuleNotFoundError|NotADirectoryError|'
                       r'OSError: \[Errno 22\])')
NOT_THERE = re.compile(r"FileNotFoundError: \[Errno 2\] No such file or "
                       r"directory: '|can't open file ")
NOT_EXECUTABLE = 'PermissionError: [Errno 13]'
FAILED = 'ChildFailedError'


def own(row):
    """The launcher's own lines."""
    return '\n'.join(split(row['lerr']))


def split(text):
    """The lines of a field; \\\\n is a newline within one of them."""
    return re.split(r'(?<!\\)\\n', text) if text else []


def n_agents(row):
    return row['args'].count(' ;; ') + 1


def names_of(row):
    """What the row gives by option or PET_ variable, spelled with dashes."""
    options = re.findall(r'(?:^| )--?([a-z][a-z_-]*)', row['args'])
    pets = re.findall(r'PET_(\w+)=', row['env'])
    return {n.replace('_', '-') for n in options} | {
        n.lower().replace('_', '-') for n in pets}


# ---------------------------------------------------------------- exit codes

def code_of(status):
    return status if status >= 0 else 128 - status


def failed_code(row):
    """The worker's own code, as torchrun's report tells it."""
    found = re.search(r'failed \(exitcode: (-?\d+)\)', row['lerr'])
    return str(code_of(int(found.group(1))))


def rc_usage(row):
    """A bad value is an error of usage: 2, with nothing started."""
    if row['rc'] == '1' and FAILED not in row['lerr'] and \
            BAD_VALUE.search(own(row)) and not row['out']:
        return '2'
    return None


def rc_missing(row):
    """A program that is not there is 127, one that cannot run 126."""
    if row['rc'] != '1':
        return None
    if NOT_EXECUTABLE in row['lerr']:
        return '126'
    return '127' if NOT_THERE.search(own(row)) else None


def rc_worker(row):
    """The first worker that fails gives the exit code."""
    if row['rc'] == '1' and FAILED in row['lerr']:
        return failed_code(row)
    return None


def rc_time(row):
    """A time limit of ours, that of the rendezvous too, is 124."""
    if row['rc'] == '1' and re.search(
            r'\b(RendezvousTimeoutError|DistStoreError: Timed out)', own(row)):
        return '124'
    return None


def rc_stop(row):
    """After a stop signal: 0 if all workers end with 0, else their code, and
    128 + the signal where they died of it or had to be killed; the same on all
    nodes."""
    sent = re.findall(r'(?:^| )([A-Z]+\d?)', row['act'])
    if not sent or 'SignalException' not in row['lerr']:
        return None
    words = shlex.split(row['args'])
    code = ''.join(w[5:] for w in words if w.startswith('exit=')) or '0'
    if '{W}/hold.py' not in words or 'ignore' in words:
        code = str(128 + getattr(signal, 'SIG' + sent[0]))
    return ','.join([code] * n_agents(row))


# --------------------------------------------------------------------- output

def out_cpus(row):
    """As many workers as this machine has CPUs for us."""
    if not re.search(r'--nproc-per-node=(cpu|auto) ', row['args']):
        return None
    return '\\n'.join(sorted('w: rank %d argv.py []' % i
                             for i in range(cpus())))


# ------------------------------------------------------------------ processes

def left_none(row):
    """No process is left behind, whatever happens to flaunch."""
    return '0' if row['left'] != '0' else None


# ---------------------------------------------------------------- environment

RUN_DIR = 'D/tmp/flaunch.HEX/'


def quota():
    """CPUs that the cgroups of this process leave it, rounded down."""
    least = float('inf')
    with open('/proc/self/cgroup') as f:
        path = next((line.strip()[3:] for line in f
                     if line.startswith('0::')), '/')
    while True:
        try:
            with open('/sys/fs/cgroup%s/cpu.max' % path.rstrip('/')) as f:
                most, period = f.read().split()
            if most != 'max':
                least = min(least, int(most) // int(period))
        except OSError:
            pass
        if path in ('', '/'):
            return max(1, least)
        path = os.path.dirname(path)


def cpus():
    return min(len(os.sched_getaffinity(0)), quota())


def each(n_workers):
    """OMP_NUM_THREADS: this machine's CPUs shared out."""
    return str(max(1, cpus() // n_workers))


def lookup(seen, name, i):
    """A worker's value: they are joined by | where they differ."""
    values = seen.get(name, '<absent>').split('|')
    return values[i if len(values) > 1 else 0]


def joined(values):
    return values[0] if len(set(values)) == 1 else '|'.join(values)


def local_ranks(seen, n):
    """As the names of the error files tell: LOCAL_RANK may be 0 for all."""
    names = [lookup(seen, 'TORCHELASTIC_ERROR_FILE', i) for i in range(n)]
    return [re.search(r'(\d+)/error.json', name).group(1) if name else '0'
            for name in names]


def error_files(row, seen, n):
    """Where nothing is asked to be kept, error files are in the run
    directory, by round from 1 and local rank."""
    if names_of(row) & {'log-dir', 'r', 'redirects', 't', 'tee'}:
        return [v.replace('/torchelastic_RND/', '/flaunch_RND/') for v in
                (lookup(seen, 'TORCHELASTIC_ERROR_FILE', i) for i in range(n))]
    return ['%s%d.%s.json' % (
        RUN_DIR, 1 + int(lookup(seen, 'TORCHELASTIC_RESTART_COUNT', i)), local)
            for i, local in enumerate(local_ranks(seen, n))]


def threads(row, seen, n):
    given = [lookup(seen, 'OMP_NUM_THREADS', i) for i in range(n)]
    return [v if v == '<absent>' else each(
        int(lookup(seen, 'LOCAL_WORLD_SIZE', i))) for i, v in enumerate(given)]


def address(row, seen):
    """One node is 127.0.0.1; of several, the address that was given."""
    if n_agents(row) == 1:
        return '127.0.0.1'
    return re.search(r'--(?:master-addr|rdzv-endpoint) ([\d.]+)',
                     row['args']).group(1)


def port(row, seen):
    """The one port, where it was given; 0 stands for a free one."""
    given = '{PORT}' in row['args'] or '{PORT}' in row['env']
    return 'PORT0' if given else 'PORT1'


def seen_by_workers(row):
    """What workers get: torchrun's variables, and ours."""
    if not row['seen']:
        return None
    seen = dict(line.split('=', 1) for line in split(row['seen']))
    n = max(len(v.split('|')) for v in seen.values())
    locals_ = local_ranks(seen, n)
    seen['MASTER_ADDR'] = address(row, seen)
    seen['MASTER_PORT'] = port(row, seen)
    if seen['TORCHELASTIC_ERROR_FILE']:
        seen['TORCHELASTIC_ERROR_FILE'] = joined(error_files(row, seen, n))
    if 'OMP_NUM_THREADS' in seen:
        seen['OMP_NUM_THREADS'] = joined(threads(row, seen, n))
    seen['PYTHONUNBUFFERED'] = '1'
    for ours, theirs in (('RANK', 'RANK'), ('WORLD_SIZE', 'WORLD_SIZE'),
                         ('LOCAL_WORLD_SIZE', 'LOCAL_WORLD_SIZE'),
                         ('NODE_RANK', 'GROUP_RANK'),
                         ('NNODES', 'GROUP_WORLD_SIZE'),
                         ('RUN_ID', 'TORCHELASTIC_RUN_ID'),
                         ('ATTEMPT', 'TORCHELASTIC_RESTART_COUNT')):
        seen['FLAUNCH_' + ours] = seen[theirs]
    seen['FLAUNCH_LOCAL_RANK'] = joined(locals_)
    seen['FLAUNCH_STORE'] = '%s:%s' % (seen['MASTER_ADDR'],
                                       seen['MASTER_PORT'])
    for name in re.findall(r'PET_\w+(?==)', row['env']):
        seen[name] = '<unset>'
    return '\\n'.join('%s=%s' % item for item in sorted(seen.items()))


# ---------------------------------------------------------------------- files

# Where our fields go in the launcher's own error file, both forms of it; what
# they hold is made uniform.
ERROR_FILE = re.compile(r'(?P<open>"extraInfo": \{.*?"timestamp": "\w+")\}|'
                       r'(?P<text>"timestamp": FIXED)\}>$')


def with_ours(found):
    if found.group('open'):
        return found.group('open') + ', "flaunch": "OURS"}'
    return found.group('text') + ', "extraInfo": {"flaunch": "OURS"}}>'

def files_usage(row):
    """An error of usage leaves nothing."""
    return '' if rc_usage(row) and row['files'] else None


def files_kept(row):
    """No empty directories; a link to the newest run beside it; a directory
    that we name carries our name; our fields are in the error file we write."""
    kept = [f for f in split(row['files']) if not f.endswith('/')]
    kept = [f.replace('/torchelastic_RND/', '/flaunch_RND/') for f in kept]
    kept = [ERROR_FILE.sub(with_ours, f) if f.startswith('D/mine.json ') else f
            for f in kept]
    runs = {re.sub(r'/attempt_.*', '', f) for f in kept if '/attempt_' in f}
    kept += ['%s/latest -> %s' % os.path.split(run) for run in runs]
    kept = '\\n'.join(sorted(kept))
    return kept if kept != row['files'] else None


# The first that has an answer counts.
RULES = {
    'rc': [rc_usage, rc_missing, rc_time, rc_worker, rc_stop],
    'left': [left_none],
    'out': [out_cpus],
    'werr': [],
    'seen': [seen_by_workers],
    'files': [files_usage, files_kept],
}


def expected(row, differences):
    """By column: the value that flaunch is to give, and why it is not
    torchrun's: None, a rule's text, or a reason from differences.tsv."""
    values = {}
    for column in COLUMNS:
        value, why = row[column], None
        for rule in RULES[column]:
            computed = rule(row)
            if computed is not None:
                if computed != value:
                    value, why = computed, ' '.join(rule.__doc__.split())
                break
        if (row['id'], column) in differences:
            value, why = differences[row['id'], column]
        values[column] = value, why
    return values


def read_differences(path):
    """{(id, column): (value, reason)}."""
    found = {}
    with open(path, encoding='utf-8') as f:
        for line in f:
            line = line.rstrip('\n')
            if line and not line.startswith('#'):
                row, column, value, reason = line.split('\t')
                # The CPUs of the machine it is run on, for two workers.
                found[row, column] = value.replace('{OMP2}', each(2)), reason
    return found
