"""Several hosts on this machine: network namespaces joined by a bridge, each with
an address, a name and an /etc/hosts of its own. They are made inside a namespace
of their own, so that nothing is seen outside and all is gone with its processes;
as root, else in a user namespace."""
from harness import *

NET4 = '10.77.0'
NET6 = 'fd77:'


class Hosts:
    """h0 is 10.77.0.1 and fd77::1, h1 the next ones; use it with `with`."""

    def __init__(self, n):
        self.n = n
        self.user = [] if os.geteuid() == 0 else ['-U', '--preserve-credentials']
        self.dir = tempfile.mkdtemp(prefix='flaunch-hosts-')
        self.processes = []
        self.token = uuid.uuid4().hex
        self.programs = []

    def __enter__(self):
        for tool in ('ip', 'nft', 'unshare', 'nsenter'):
            if shutil.which(tool, path=os.environ['PATH'] + ':/usr/sbin:/sbin') is None:
                self.__exit__()
                raise Skip('no %s' % tool)
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        end_all_of([p for p in self.programs if p.poll() is None])
        for p in reversed(self.processes):
            p.kill()
            p.wait()
            p.stdout.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def hold(self, argv):
        """A process that keeps namespaces alive."""
        p = subprocess.Popen(argv, env=clean_env(
            {'PATH': os.environ['PATH'] + ':/usr/sbin:/sbin'}, self.token),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.processes.append(p)
        started.append(p)
        if p.stdout.readline() != b'ready\n':
            raise Skip('no network namespaces can be made here')
        return p

    def make(self):
        """All is done from inside: only there are we root without being it."""
        user = ['-r'] if self.user else []
        self.outer = self.hold(['unshare', *user, '-n', '-m', 'sh', '-c',
                                'ip link set lo up && '
                                'ip link add br0 type bridge && '
                                'echo 0 >/proc/sys/net/ipv6/conf/br0/accept_dad; '
                                'ip link set br0 up && '
                                'ip addr add %s.254/24 dev br0 && '
                                'echo ready && exec sleep 100000' % NET4])
        self.hosts = []
        for i in range(self.n):
            with open('%s/hosts.%d' % (self.dir, i), 'w') as f:
                f.write(self.hosts_text())
            self.hosts.append(self.hold(
                self.outside() + ['unshare', '-n', '-u', '-m', 'sh', '-c',
                                  'hostname h%d && ip link set lo up && '
                                  'mount --bind %s/hosts.%d /etc/hosts && '
                                  'echo ready && exec sleep 100000'
                                  % (i, self.dir, i)]))
            self.script('ip link add v%d type veth peer name eth0 netns %d && '
                        'ip link set v%d master br0 up'
                        % (i, self.hosts[i].pid, i))
            self.script('echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad; '
                        'ip addr add %s/24 dev eth0 && '
                        'ip addr add %s/64 dev eth0 nodad && '
                        'ip link set eth0 up'
                        % (self.addr(i), self.addr6(i)), i)

    def hosts_text(self):
        return '127.0.0.1 localhost\n::1 localhost\n' + ''.join(
            '%s h%d\n%s h%d-v6\n' % (self.addr(i), i, self.addr6(i), i)
            for i in range(self.n))

    def addr(self, i):
        return '%s.%d' % (NET4, i + 1)

    def addr6(self, i):
        return '%s:%x' % (NET6, i + 1)

    def outside(self):
        return ['nsenter', '-t', str(self.outer.pid), *self.user, '-n', '-m']

    def inside(self, i):
        return ['nsenter', '-t', str(self.hosts[i].pid), *self.user, '-n', '-u',
                '-m', '--']

    def script(self, text, i=None):
        argv = (self.outside() if i is None else self.inside(i)) + ['sh', '-c', text]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, PATH=os.environ['PATH'] +
                                       ':/usr/sbin:/sbin'),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise AssertionError('%s: %s' % (text, done.stdout.decode()))
        return done.stdout.decode()

    def set_hosts(self, i, text):
        """Another /etc/hosts: names appear, vanish, or point elsewhere."""
        with open('%s/hosts.%d' % (self.dir, i), 'w') as f:
            f.write(text)

    # --- programs ---------------------------------------------------------

    def popen(self, i, *argv, **kwargs):
        """On a host, in a token of its own unless one is given."""
        if 'token' not in kwargs:
            kwargs['token'] = uuid.uuid4().hex
        p = popen(self.inside(i) + list(argv), **kwargs)
        self.programs.append(p)
        p.token = kwargs['token']
        return p

    def start(self, i, *args, **kwargs):
        return self.popen(i, FLAUNCH, *args, **kwargs)

    def start_all(self, *args, nodes=None, **kwargs):
        """One flaunch on each host, meeting at h0; Popen objects by host."""
        nodes = range(self.n) if nodes is None else nodes
        n = len(nodes)
        return [self.start(i, '--nnodes=%d' % n, '--node_rank=%d' % rank,
                           '--master_addr=%s' % self.addr(nodes[0]), *args,
                           **kwargs) for rank, i in enumerate(nodes)]

    def finish_all(self, processes, seconds=LONG):
        results = [finish(p, seconds) for p in processes]
        for p in processes:
            assert_nothing_left(p.token)
        return results

    # --- faults, at the bridge's end of a cable ------------------------------

    def fault(self, way, i, rule):
        """way: "from" what host i sends, "to" what it is sent."""
        hook = 'ingress' if way == 'from' else 'egress'
        self.script("nft 'add table netdev t; add chain netdev t %s%d "
                    "{ type filter hook %s device v%d priority 0; }; "
                    "add rule netdev t %s%d %s'"
                    % (way, i, hook, i, way, i, rule))

    def cut(self, i):
        """Silence both ways; nobody sees a carrier go."""
        self.fault('from', i, 'drop')
        self.fault('to', i, 'drop')

    def drop_from(self, i):
        self.fault('from', i, 'drop')

    def drop_to(self, i):
        self.fault('to', i, 'drop')

    def lose(self, i, percent):
        for way in ('from', 'to'):
            self.fault(way, i, 'meta protocol { ip, ip6 } numgen random mod '
                       '100 < %d drop' % percent)

    def unplug(self, i):
        self.script('ip link set v%d down' % i)

    def heal(self):
        self.script('nft delete table netdev t 2>/dev/null; '
                    'for i in $(seq 0 %d); do ip link set v$i up; done'
                    % (self.n - 1))


def ranks_said(results):
    """What workers printed, all nodes together, sorted."""
    return sorted(line for r in results for line in lines(r.out))


def codes(results):
    return [r.code for r in results]
