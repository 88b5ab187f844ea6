"""A Slurm of two nodes on one host: two slurmd, one slurmctld, a munged of its
own, all children of this process, in a temporary directory. Needs root."""
import os
import shutil
import socket
import stat
import subprocess
import tempfile
import time

from harness import Skip, end_all_of, free_port

CONF = '''ClusterName=two
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={d}/munge.socket
CredType=cred/munge
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool.%n
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/slurmd.%n.pid
SlurmctldLogFile={d}/slurmctld.log
SlurmdLogFile={d}/slurmd.%n.log
TmpFS={d}/tmp.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=2
GresTypes=gpu
NodeName=n01 NodeHostname={host} NodeAddr=127.0.0.1 Port={node1} CPUs=8 Gres=gpu:2 State=UNKNOWN
NodeName=n02 NodeHostname={host} NodeAddr=127.0.0.1 Port={node2} CPUs=8 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
'''


class Slurm:
    """Use as a context; env is what srun and sbatch need to reach it."""

    def __enter__(self):
        if os.geteuid() != 0:
            raise Skip('not as an ordinary user: slurmd needs root')
        for name in ('munged', 'slurmctld', 'slurmd', 'srun'):
            if not shutil.which(name):
                raise Skip('%s is not installed (tests/tools/deps interop)' % name)
        self.started = []
        self.d = tempfile.mkdtemp(prefix='flaunch-slurm-')
        os.chmod(self.d, 0o755)
        self.env = {'SLURM_CONF': self.d + '/slurm.conf'}
        try:
            self.start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        if self.started:
            subprocess.run(['scancel', '-u', 'root'], env=self.full_env(),
                           stderr=subprocess.DEVNULL, timeout=20)
        end_all_of(reversed(self.started))
        shutil.rmtree(self.d, ignore_errors=True)

    def full_env(self):
        return {**os.environ, **self.env}

    def launch(self, *argv):
        name = os.path.join(self.d, '%s.%d.out' % (argv[0], len(self.started)))
        with open(name, 'wb') as out:
            self.started.append(subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self.full_env(), start_new_session=True))

    def start_all(self):
        d = self.d
        for name in ('state', 'spool.n01', 'spool.n02', 'tmp.n01', 'tmp.n02'):
            os.mkdir(os.path.join(d, name))
        key = os.open(d + '/munge.key', os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(key, os.urandom(1024))
        os.close(key)
        with open(d + '/slurm.conf', 'w') as f:
            f.write(CONF.format(d=d, host=socket.gethostname().split('.')[0],
                                port=free_port(), node1=free_port(),
                                node2=free_port()))
        # Two devices that pass for GPUs.
        with open(d + '/gres.conf', 'w') as f:
            for i in range(2):
                os.mknod('%s/gpu%d' % (d, i), 0o600 | stat.S_IFCHR,
                         os.makedev(1, 3))
                f.write('Name=gpu File=%s/gpu%d\n' % (d, i))
        self.launch('munged', '--foreground', '--force', '--num-threads=2',
                    '--socket=' + d + '/munge.socket',
                    '--key-file=' + d + '/munge.key',
                    '--pid-file=' + d + '/munged.pid',
                    '--log-file=' + d + '/munged.log',
                    '--seed-file=' + d + '/munged.seed')
        self.wait(lambda: os.path.exists(d + '/munge.socket'))
        self.launch('slurmctld', '-D', '-c', '-f', d + '/slurm.conf')
        # The nodes' names are host names on the nodes, as on any cluster.
        with open('/etc/hosts') as hosts, open(d + '/hosts', 'w') as f:
            f.write(hosts.read() + '\n127.0.0.1 n01 n02\n')
        for node in ('n01', 'n02'):
            self.launch('unshare', '-m', 'sh', '-c',
                        'mount --bind %s/hosts /etc/hosts && '
                        'exec slurmd -D -N %s -f %s/slurm.conf' % (d, node, d))
        self.wait(self.is_idle)

    def is_idle(self):
        done = subprocess.run(['sinfo', '-h', '-N', '-o', '%t'],
                              env=self.full_env(), stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        return done.stdout.split() == [b'idle', b'idle']

    def wait(self, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError('Slurm did not come up:\n' + self.logs())
            time.sleep(0.1)

    def logs(self):
        text = ''
        for name in sorted(os.listdir(self.d)):
            if name.endswith(('.log', '.out')):
                with open(os.path.join(self.d, name), errors='replace') as f:
                    text += '--- %s\n%s' % (name, f.read()[-2000:])
        return text
