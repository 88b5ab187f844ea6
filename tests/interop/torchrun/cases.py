"""The command lines of cases.tsv, run under any launcher, and what came of it.

cases.tsv: tab-separated, one row for each command line; \\n, \\t, \\r, \\xNN
and \\\\ are escapes. Given:

id, what   stable name; what it is about
args       after the launcher's name, in the shell's quoting; " ;; " parts
           agents that start together
env        added to a bare environment
act        in order: in=TEXT standard input, up=N wait for N workers, a number
           of seconds, TERM (or another) to the launcher, TERM:1 to agent 1
limit      seconds, 20 if empty

In args and env {W} is the workers' directory, {D} the row's own (the working
directory; TMPDIR is {D}/tmp), {PORT} a free port, {PY} the workers'
interpreter.

Found, for the real torchrun in the table:

rc         of each agent; 128 + N for a signal; "limit" if still there then
left       worker processes alive half a second after the launcher's end
secs       from the first signal to the end
out, werr  lines of the workers ("w:") on the launcher's stdout and stderr,
           sorted; "0>" and "1>" tell of which agent
seen       the workers' environment where it is not the launcher's own; values
           in order of restart and rank, joined by | unless equal
files      what is left in {D}, with the text of short files
lerr       the launcher's own lines, without frames of tracebacks and help

What changes from run to run is made uniform: UUID, RND, HEX, PORT1..., N.
"""
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, 'cases.tsv')
WORKERS = os.path.join(HERE, 'workers')
INPUT = ['id', 'what', 'args', 'env', 'act', 'limit']
RESULT = ['rc', 'left', 'secs', 'out', 'werr', 'seen', 'files', 'lerr']
# What a table tells of a run is cut short; the whole is in the log.
OWN_LINES = 40
OWN_LINE = 900
SHORT_TEXT = 400
# Between two agents: the first is there before the second looks for it.
AGENT_PAUSE = 0.3


def read_table(path=TABLE):
    """The rows, as dictionaries by column."""
    with open(path, encoding='utf-8') as f:
        lines = [line.rstrip('\n').split('\t') for line in f
                 if line.strip() and not line.startswith('#')]
    names = lines[0]
    return [dict(zip(names, line + [''] * (len(names) - len(line))))
            for line in lines[1:]]


def write_table(rows, comment, path=TABLE):
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write('# %s\n%s\n' % (comment, '\t'.join(INPUT + RESULT)))
        for row in rows:
            f.write('\t'.join(row.get(c, '') for c in INPUT + RESULT) + '\n')
    os.rename(path + '.new', path)


def field(lines):
    """Lines as one field."""
    text = '\\n'.join(line.replace('\\', '\\\\').replace('\t', '\\t')
                      .replace('\r', '\\r') for line in lines)
    return re.sub(r'[\x00-\x1f\x7f\ufffd]',
                  lambda m: '\\x%02x' % ord(m.group()), text)


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


# What changes from run to run, and what is put in its place.
UNIFORM = [(re.compile(pattern), text) for pattern, text in (
    (r'\bpython3?(\.\d+)?(?= -u)|/[\w./+-]*/bin/python3?(\.\d+)?\b', 'PY'),
    (r'(?<![0-9a-f])[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])',
     'UUID'),
    (r'(torchelastic|flaunch)_[A-Za-z0-9_]{8}(?![A-Za-z0-9_])', r'\1_RND'),
    (r"(?<=/)([^/\s]*)_[A-Za-z0-9_]{8}(?=/attempt_|$|\s|/ |')", r'\1_RND'),
    (r'/flaunch\.[0-9a-f]{16}/', '/flaunch.HEX/'),
    (r'\b\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d\b', 'TIME'),
    (r'(?i)\b(pid: |pid=|process |PID )\d+', r'\1N'),
    (r'\b\d{30,}(?![0-9a-z])', 'BIG'),
    (r'/[\w./+-]*/site-packages/', 'SITE/'),
    (r'\bElapsed: [\d.]+', 'Elapsed: X'),
    (r'\b0x[0-9a-f]{6,}', '0xN'),
    (r'(  host +: ).*', r'\1HOST'),
)]


# Signals of the C library itself: its posix_spawn, which make uses, leaves them
# ignored, and whoever started us may have come that way.
INTERNAL_SIGNALS = 1 << 31 | 1 << 32


def hide_internal_signals(found):
    mask = int(found.group(2), 16) & ~INTERNAL_SIGNALS
    return '%s%0*x' % (found.group(1),
                       len(found.group(2)) if '\t' in found.group(1) else 1,
                       mask)


class Case:
    """One row, in a directory of its own."""

    def __init__(self, row, launcher, python):
        self.row = row
        self.launcher = launcher
        self.python = python
        self.dir = tempfile.mkdtemp(prefix='case_')
        self.port = str(free_port())
        self.ports = {}
        self.agents = []
        for d in ('tmp', 'up', 'dump'):
            os.mkdir(self.path(d))

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def fill(self, text):
        for name, value in (('{D}', self.dir), ('{W}', WORKERS),
                            ('{PORT}', self.port), ('{PY}', self.python)):
            text = text.replace(name, value)
        return text

    def clean(self, text):
        text = text.replace(self.dir, 'D').replace(WORKERS, 'W')
        for pattern, uniform in UNIFORM:
            text = pattern.sub(uniform, text)
        text = re.sub(r'(SigIgn:\t|\bignored=)([0-9a-f]+)',
                      hide_internal_signals, text)
        return text.replace(self.port, 'PORT0')

    # ------------------------------------------------------------------ run

    def run(self):
        """What came of it, by column."""
        try:
            return self.run_in_directory()
        finally:
            for p in self.agents:
                if p.poll() is None:
                    p.kill()
                    p.wait()
            shutil.rmtree(self.dir, ignore_errors=True)

    def run_in_directory(self):
        end = time.monotonic() + float(self.row['limit'] or 20)
        self.start(self.environment())
        begin = self.act(end)
        codes = [self.wait(p, end) for p in self.agents]
        secs = '%.0f' % (time.monotonic() - begin) if begin else ''
        found = {'rc': ','.join(codes), 'left': str(self.count_left()),
                 'secs': secs}
        if any(p.returncode < 0 for p in self.agents):
            self.wait_quiet()
        found.update(self.output())
        found['seen'] = self.seen()
        found['files'] = self.files()
        return found

    def environment(self):
        env = {'PATH': os.path.dirname(self.python) +
               ':/usr/local/bin:/usr/bin:/bin',
               'HOME': self.dir, 'LC_ALL': 'C.UTF-8',
               'TMPDIR': self.path('tmp'), 'CASE': self.dir,
               'PYTHONPATH': WORKERS, 'PYTHONDONTWRITEBYTECODE': '1'}
        for assignment in shlex.split(self.fill(self.row['env'])):
            name, value = assignment.split('=', 1)
            env[name] = value
        with open(self.path('base.json'), 'w') as f:
            json.dump(env, f)
        return env

    def start(self, env):
        text = [a[3:] for a in self.row['act'].split() if a[:3] == 'in=']
        for i, args in enumerate(self.row['args'].split(' ;; ')):
            if i > 0:
                time.sleep(AGENT_PAUSE)
            with open(self.path('out.%d' % i), 'wb') as out, \
                    open(self.path('err.%d' % i), 'wb') as err, \
                    open(self.path('in'), 'w+') as given:
                given.write(''.join(text) + '\n')
                given.seek(0)
                self.agents.append(subprocess.Popen(
                    self.launcher + shlex.split(self.fill(args)),
                    cwd=self.dir, env=env, stdout=out, stderr=err,
                    stdin=given if text else subprocess.DEVNULL,
                    start_new_session=True))

    def act(self, end):
        """When the first signal was sent, or None."""
        begin = None
        for a in self.row['act'].split():
            if a.startswith('up='):
                self.wait_up(int(a[3:]), end)
            elif re.match(r'[\d.]+$', a):
                time.sleep(float(a))
            elif not a.startswith('in='):
                name, _, which = a.partition(':')
                agent = self.agents[int(which or 0)]
                begin = begin or time.monotonic()
                if agent.poll() is None:
                    agent.send_signal(getattr(signal, 'SIG' + name))
        return begin

    def wait_up(self, n, end):
        while (len(os.listdir(self.path('up'))) < n and time.monotonic() < end
               and any(p.poll() is None for p in self.agents)):
            time.sleep(0.02)

    @staticmethod
    def wait(process, end):
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return 'limit'
        code = process.returncode
        return str(code if code >= 0 else 128 - code)

    def count_left(self):
        """Workers that outlived the launcher; they are ended here."""
        pids = [int(p) for p in os.listdir(self.path('up')) if p.isdigit()]
        for _ in range(10):
            live = [p for p in pids if self.is_ours(p)]
            if not live:
                return 0
            time.sleep(0.05)
        for p in live:
            os.kill(p, signal.SIGKILL)
        return len(live)

    def wait_quiet(self):
        """A launcher that was killed may have somebody clean up after it."""
        for _ in range(10):
            if not any(self.is_ours(int(p)) for p in os.listdir('/proc')
                       if p.isdigit()):
                return
            time.sleep(0.05)

    def is_ours(self, pid):
        try:
            with open('/proc/%d/environ' % pid, 'rb') as f:
                return ('CASE=' + self.dir).encode() in f.read()
        except OSError:
            return False

    # -------------------------------------------------------------- results

    def read(self, name):
        with open(self.path(name), 'rb') as f:
            return self.clean(f.read().decode('utf-8', 'backslashreplace'))

    def output(self):
        out, werr, lerr = [], [], []
        for i in range(len(self.agents)):
            tag = '%d>' % i if len(self.agents) > 1 else ''
            for name, mine in (('out', out), ('err', werr)):
                lines = self.read('%s.%d' % (name, i)).split('\n')
                if lines[-1] == '':
                    lines.pop()
                elif lines:
                    lines[-1] += '<no newline>'
                mine += sorted(tag + line for line in lines if 'w:' in line)
                own = own_lines([line for line in lines if 'w:' not in line])
                lerr += [tag + ('out: ' if name == 'out' else '') + line
                         for line in own]
        return {'out': field(out), 'werr': field(werr),
                'lerr': field(lerr[:OWN_LINES])}

    def seen(self):
        dumps = []
        for name in os.listdir(self.path('dump')):
            with open(self.path('dump', name)) as f:
                dumps.append(json.load(f))
        dumps.sort(key=lambda d: d.pop('#'))
        lines = []
        for name in sorted({name for d in dumps for name in d}):
            values = [self.value(name, d.get(name, '<absent>')) for d in dumps]
            lines.append('%s=%s' % (name, values[0] if len(set(values)) == 1
                                    else '|'.join(values)))
        return field(lines)

    def value(self, name, value):
        if name == 'MASTER_PORT':
            return self.port_name(value)
        if name == 'FLAUNCH_STORE':
            host, _, port = value.rpartition(':')
            return '%s:%s' % (host, self.port_name(port))
        if name == 'MASTER_ADDR' and value in (socket.getfqdn(),
                                               socket.gethostname()):
            return 'FQDN'
        return self.clean(value)

    def port_name(self, port):
        if port == self.port:
            return 'PORT0'
        if port in ('0', '29400', '29500', '<absent>'):
            return port
        return self.ports.setdefault(port, 'PORT%d' % (len(self.ports) + 1))

    def files(self):
        """Every file and empty directory, with the text of short files."""
        lines = []
        for top, dirs, names in os.walk(self.dir):
            if top == self.dir:
                dirs[:] = [d for d in dirs if d not in ('up', 'dump')]
                names = [n for n in names if not re.match(
                    r'(out|err)\.\d|in$|base\.json', n)]
            dirs[:] = [d for d in dirs if not d.startswith('torchinductor_')]
            names = [n for n in names if not n.startswith('pytorch-errorfile-')]
            if not dirs and not names and top not in (self.dir,
                                                      self.path('tmp')):
                lines.append(self.clean(top) + '/')
            lines += [self.file_line(os.path.join(top, n)) for n in
                      names + [d for d in dirs
                               if os.path.islink(os.path.join(top, d))]]
        return field(sorted(lines))

    def file_line(self, path):
        name = self.clean(path)
        if os.path.islink(path):
            target = self.clean('/' + os.readlink(path))
            return '%s -> %s' % (name, target[1:])
        if not os.path.isfile(path):
            return name + ' special'
        with open(path, 'rb') as f:
            text = f.read().decode('utf-8', 'backslashreplace')
        text = self.clean(hide_ours(text))
        if os.path.basename(path).startswith('filtered_'):
            text = ''.join(sorted(text.splitlines(True)))
        if path.endswith('.json'):
            text = clean_error_file(text)
        return '%s <%s>' % (name, '\\n'.join(text.split('\n'))
                            if len(text) < SHORT_TEXT else 'long')


def hide_ours(text):
    """An error file with what is flaunch's own, numbers mostly, as "OURS"."""
    if '"flaunch"' not in text:
        return text
    record = json.loads(text)
    message = record['message']
    holder = record if isinstance(message, str) else message
    holder['extraInfo']['flaunch'] = 'OURS'
    return json.dumps(record)


def clean_error_file(text):
    text = re.sub(r'"timestamp": "1[6-9]\d{8}"', '"timestamp": "EPOCH"',
                  text.replace('1700000000', 'FIXED'))
    text = re.sub(r'("py_callstack": "Traceback).*?(\\n[A-Za-z][\w.]+: [^"]*")',
                  r'\1...\2', text)
    return re.sub(r' after [\d.]+ s"', ' after N s"', text)


GLOG = re.compile(r'^([WEI])\d{4} [\d:.]+ \d+ \S+\] ?(.*)')
GLOG_LEVELS = {'W': 'WARNING ', 'E': 'ERROR ', 'I': 'INFO '}


def own_lines(lines):
    """The launcher's own: no frames of tracebacks, no headers, no help."""
    found, frames, usage = [], False, False
    for line in lines:
        m = GLOG.match(line)
        if m:
            line = GLOG_LEVELS[m.group(1)] + m.group(2)
        body = re.sub(r'^(WARNING|ERROR|INFO) ', '', line)
        if 'Traceback (most recent call last)' in line:
            frames = True
            continue
        if line.startswith('usage:'):
            found.append('usage: ...')
            usage = True
            continue
        if usage and (line.startswith(' ') or not line):
            continue
        if frames and (body.startswith('  ') or not body):
            continue
        frames = False
        if set(body) == {'*'} or line == 'WARNING ' or re.match(
                r'frame #|Exception raised from|<omitting python', body):
            continue
        if body.startswith('Setting OMP_NUM_THREADS'):
            line = 'WARNING Setting OMP_NUM_THREADS ... 1 (banner)'
        if line.startswith('{') and '"timestamp"' in line:
            line = clean_event(line)
        if line.strip():
            found.append(line[:OWN_LINE])
    return found


def clean_event(line):
    """A JSON line of --event-log-handler=console."""
    line = re.sub(r'"worker_pid\\": \[\d+\]', '"worker_pid": [N]', line)
    line = re.sub(r'"(timestamp|duration_ms|worker_id|hostname)": [^,}]+',
                  r'"\1": X', line)
    return re.sub(r'"raw_error": "Traceback.*?(?=", ")', '"raw_error": "...',
                  line)
