"""libflaunch in real processes: under flaunch, by hand, alone."""
import os
import re
import shutil
import signal
import subprocess
import time

from harness import *


def need_gloo():
    if not os.path.exists(os.path.join(BUILD, 'libflaunch_gloo.so')):
        raise Skip('gloo is not installed')


def test_every_rank_knows_its_place():
    r = flaunch('--nproc_per_node=3', prog('init'))
    assert r.code == 0, r
    assert sorted(lines(r.out)) == [
        'flaunch %d/3 local %d/3 cpu none 1' % (i, i) for i in range(3)], r


def test_alone_it_is_a_job_of_one():
    r = program(prog('init'))
    assert r.code == 0 and r.out == 'none 0/1 local 0/1 cpu none 0\n', r
    need_gloo()
    r = program(prog('init'), 'backend=gloo', 'ops')
    assert r.code == 0 and r.out == 'rank 0: all right\n', r


def test_a_slurm_allocation_alone_is_a_job_of_one():
    r = program(prog('init'), env={'SLURM_NTASKS': '4', 'SLURM_JOB_ID': '1'})
    assert r.code == 0 and r.out.startswith('none 0/1'), r


def test_collectives_of_all_types_and_operations():
    need_gloo()
    for n in (1, 2, 4):
        r = flaunch('--nproc_per_node=%d' % n, prog('init'), 'backend=gloo',
                    'ops')
        assert r.code == 0, r
        assert sorted(lines(r.out)) == ['rank %d: all right' % i
                                        for i in range(n)], r


def test_calls_are_compared_where_details_are_asked_for():
    need_gloo()
    for r in by_hand(3, 'backend=gloo', 'ops', env={'FLAUNCH_DEBUG': 'detail'}):
        assert r.code == 0 and 'all right' in r.out, r
    said = same_words(by_hand(3, 'backend=gloo', 'mismatch',
                              env={'FLAUNCH_DEBUG': 'detail'}))
    assert said == ('error 1: ranks do not make the same call: rank 0 calls '
                    'flaunch_all_reduce with 1 elements of type 0 (operation '
                    'or root 0), rank 1 calls flaunch_all_reduce with 2 of '
                    'type 0 (0)\n'), said


def test_the_plain_environment_needs_no_launcher():
    for n in (1, 2, 4):
        results = by_hand(n)
        for rank, r in enumerate(results):
            assert r.code == 0, results
            assert r.out == 'env %d/%d local %d/%d cpu none 1\n' % (
                rank, n, rank, n), r
    need_gloo()
    for r in by_hand(3, 'backend=gloo', 'ops'):
        assert r.code == 0 and 'all right' in r.out, r


def test_a_missing_rank_is_named_by_all_in_time():
    results = by_hand(4, 'timeout_ms=4000', ranks=[0, 1, 3])
    for r in results:
        assert r.code == 1, results
        assert re.match(r'error 5: rank 2 of 4 did not come within \d+\.\d s; '
                        r'here are rank 0 on ', r.out), r


def test_a_missing_rank_0_is_told():
    for r in by_hand(3, 'timeout_ms=500', ranks=[1, 2]):
        assert r.code == 1 and 'cannot reach the store' in r.out, r
        assert 'Connection refused' in r.out, r


def test_the_timeout_of_the_environment_counts():
    start_s = time.monotonic()
    results = by_hand(2, ranks=[0], env={'FLAUNCH_INIT_TIMEOUT': '0.5'})
    assert results[0].code == 1 and 'rank 1 of 2' in results[0].out, results
    assert time.monotonic() - start_s < 60
    results = by_hand(1, env={'FLAUNCH_INIT_TIMEOUT': 'soon'})
    assert 'FLAUNCH_INIT_TIMEOUT=soon' in results[0].out, results


def test_the_same_rank_twice_is_told():
    # Rank 2 stays away: with it the job could be whole before the double.
    for r in by_hand(3, 'timeout_ms=60000', ranks=[0, 1, 1]):
        assert r.code == 1 and 'rank 1 is there twice: pid' in r.out, r


def test_two_ranks_without_local_rank_on_one_host_are_told():
    for r in by_hand(2, env={'LOCAL_RANK': None, 'LOCAL_WORLD_SIZE': None}):
        assert r.code == 1 and 'LOCAL_RANK is not set' in r.out, r


def test_half_an_environment_is_an_error():
    r = program(prog('init'), env={'RANK': '0', 'WORLD_SIZE': '2'})
    assert r.code == 1 and 'MASTER_ADDR is not' in r.out, r
    r = program(prog('init'), env={'WORLD_SIZE': '2'})
    assert r.code == 1 and 'RANK is not' in r.out, r


def test_a_rank_that_leaves_ends_the_job_with_its_name():
    r = flaunch('--nproc_per_node=3', prog('init'), 'skip=1', 'timeout_ms=4000')
    assert r.code == 1, r
    assert 'rank 1 of 3 did not come within' in r.out, r


def test_wrong_options_are_told():
    for args, words in ((['backend=mpi'], 'unknown backend mpi'),
                        (['launcher=lsf'], 'unknown launcher lsf'),
                        (['launcher=torchrun'], 'torchrun was asked for'),
                        (['size=3'], 'options.size is 3')):
        r = program(prog('init'), *args)
        assert r.code == 1 and words in r.out, r


def test_a_port_that_is_taken_is_told():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        port = str(s.getsockname()[1])
        r = program(prog('init'), env={
            'RANK': '0', 'WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1',
            'MASTER_PORT': port})
    assert r.code == 1, r
    assert 'cannot serve the store at 127.0.0.1 port ' + port in r.out, r
    assert 'Address already in use' in r.out, r


def test_nccl_on_this_machine_says_what_is_missing():
    if os.path.exists('/dev/nvidia0'):
        raise Skip('no GPU may be here, and there is one')
    start_s = time.monotonic()
    said = same_words(by_hand(2, 'backend=nccl'))
    assert 'the CUDA runtime cannot be used' in said or 'CUDA error' in said, said
    assert time.monotonic() - start_s < 60


def test_the_library_prints_what_it_found_when_asked():
    r = flaunch(prog('init'), env={'FLAUNCH_DEBUG': 'env'})
    assert 'libflaunch: flaunch: chosen; rank 0 of 1' in r.err, r
    assert re.search(r'^descends from flguard <- flaunch <- ', r.err, re.M), r
    assert own_lines(r) == [], r


def test_the_example_trains_alike_with_1_2_and_4_workers():
    losses = {}
    for n in (1, 2, 4):
        r = flaunch('--nproc_per_node=%d' % n, example('train'),
                    os.path.join(ROOT, 'worker/examples/digits.csv'))
        assert r.code == 0, r
        accuracy = float(re.search(r'^accuracy (\S+)$', r.out, re.M).group(1))
        assert accuracy >= 0.95, r
        losses[n] = [float(x) for x in
                     re.findall(r'^epoch \d+ loss (\S+)$', r.out, re.M)]
        assert len(losses[n]) == 30, r
    for n in (2, 4):
        for a, b in zip(losses[1], losses[n]):
            assert abs(a - b) <= 1e-3 + 0.05 * a, (n, a, b)
    # Before rounding has had time to grow they agree much closer.
    for n in (2, 4):
        assert abs(losses[1][0] - losses[n][0]) < 1e-4, losses


def test_the_distributed_part_of_the_example_is_short():
    with open(os.path.join(ROOT, 'worker/examples/train.c')) as f:
        text = f.read()
    part = re.search(r'/\* --- the distributed part --- \*/(.*?)/\* --- \*/',
                     text, re.S).group(1)
    ours = [line for line in lines(part) if line.strip()]
    calls = [line for line in lines(text.replace(part, ''))
             if 'flaunch_' in line and not line.startswith((' *', '#'))]
    assert len(ours) + len(calls) <= 15, (ours, calls)


def test_a_missing_shim_is_told_by_all():
    with TempDir() as d:
        shutil.copy(example('hello'), d + '/hello')
        shutil.copy(os.path.join(BUILD, 'libflaunch.so.0'), d)
        os.makedirs(d + '/x')
        shutil.move(d + '/hello', d + '/x/hello')
        r = flaunch('--nproc_per_node=2', d + '/x/hello',
                    env={'LD_LIBRARY_PATH': None})
        assert r.code == 1, r
        assert r.err.count('the gloo backend cannot be used') >= 1, r
        assert 'libgloo-dev' in r.err, r


def test_a_client_that_reaches_itself_has_not_reached_the_store():
    """With one port to choose from, TCP connects a client of it to itself."""
    script = '''
import fcntl, os, socket, struct, sys
s = socket.socket()
fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"lo", 1))  # SIOCSIFFLAGS: up
s.close()
with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
    f.write("50000 50000")
os.execv(sys.argv[1], sys.argv[1:])
'''
    inside = ['unshare', '--user', '--map-root-user', '--net', 'python3', '-c',
              script]
    probe = program(*inside, '/bin/true')
    if probe.code != 0:
        raise Skip('no user namespaces here')
    r = program(*inside, prog('init'), 'timeout_ms=1000', env={
        'RANK': '1', 'WORLD_SIZE': '2', 'LOCAL_RANK': '1',
        'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '50000'})
    # Later tries find their only port in TIME_WAIT.
    assert r.code == 1, r
    assert 'Connection refused' in r.out or 'Cannot assign' in r.out, r


def test_nothing_of_the_process_is_touched():
    """flaunch_init on a second thread: no handler, no output, no descriptor
    that exec keeps."""
    for backend in ('none', 'gloo', 'nccl'):
        if backend == 'gloo' and not os.path.exists(
                os.path.join(BUILD, 'libflaunch_gloo.so')):
            continue
        for r in by_hand(2, backend, program=prog('rules'),
                         env=standin_env() if backend == 'nccl' else None):
            assert r.code == 0 and r.out == r.err == '', (backend, r)


def test_a_program_built_with_an_older_header_works():
    """Its options end where the first version's did, with other names."""
    with TempDir() as d:
        with open(d + '/old.c', 'w') as f:
            f.write('''
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
struct flaunch;
struct flaunch_error { int domain; int code; char text[1024]; };
struct flaunch_options {
    size_t size;
    const char *backend;
    const char *launcher;
    uint64_t timeout_ms;
    int device_plus_1;
    int no_set_device_rank;
};
int flaunch_init(struct flaunch **, const struct flaunch_options *,
                 struct flaunch_error *);
int flaunch_world_size(const struct flaunch *);
void flaunch_finalize(struct flaunch *);
int main(void)
{
    struct { struct flaunch_options options; char guard[64]; } memory = {
        { sizeof(struct flaunch_options), "none", NULL, 60000, 0, 0 },
        "what lies behind is none of the library's business" };
    struct flaunch_error error;
    struct flaunch *job;
    if (flaunch_init(&job, &memory.options, &error) < 0)
        return printf("%s\\n", error.text), 1;
    printf("%d\\n", flaunch_world_size(job));
    flaunch_finalize(job);
}
''')
        if ASAN:
            raise Skip('not as a sanitized build: the program would need it')
        subprocess.run(['cc', '-Wall', '-Werror', '-o', d + '/old', d + '/old.c',
                        '-L' + BUILD, '-lflaunch', '-Wl,-rpath,' + BUILD],
                       check=True)
        r = flaunch('--nproc-per-node=2', d + '/old')
        assert r.code == 0 and r.out == '2\n2\n', r


def test_another_servers_port_is_told():
    """Something that listens and never speaks the store's language."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        r = program(prog('init'), 'timeout_ms=30000', env={
            'RANK': '1', 'WORLD_SIZE': '2', 'LOCAL_RANK': '1',
            'LOCAL_WORLD_SIZE': '2', 'MASTER_ADDR': '127.0.0.1',
            'MASTER_PORT': str(s.getsockname()[1])})
    assert r.code == 1 and 'is no store of PyTorch 2.2 or later' in r.out, r


def test_a_rank_that_waits_in_vain_names_those_who_wait_too():
    """The store is there, as under a launcher, and rank 0 is not."""
    script = ('test $RANK = 0 && exec sleep 5; FLAUNCH_LAUNCHER=torchrun '
              'exec "$0" timeout_ms=3000')
    r = flaunch('--nproc-per-node=3', '--max-spread=100', 'sh', '-c', script,
                prog('init'))
    assert re.search(r'error 5: rank 0 did not come within \d+\.\d s; here: '
                     r'rank [12] on \S+, rank [12] on ', r.out), r


def test_ranks_of_two_hosts_meet_and_compute():
    """Over a cable between two network namespaces, with an address that all
    know, and with one that rank 0 leaves in a file: rank 0 reaches its own
    store over loopback, and host-b must not be sent there."""
    need_gloo()
    two_hosts = os.path.join(ROOT, 'tests', 'tools', 'two-hosts')
    if program('unshare', '--user', '--map-root-user', '--net', 'true').code:
        raise Skip('no user namespaces here')
    common = 'export WORLD_SIZE=3 LOCAL_WORLD_SIZE=%d; '
    with TempDir() as d:
        for i, where in enumerate(('MASTER_ADDR=10.77.0.1 MASTER_PORT=29517 ',
                                   'URL=dist_url=file://%s/meet ' % d)):
            os.mkdir('%s/%d' % (d, i))
            run = where + 'RANK=%d LOCAL_RANK=%d sh -c "exec ' + prog('init') + \
                ' backend=gloo ops timeout_ms=60000 \\$URL"'
            r = program(two_hosts, '%s/%d' % (d, i),
                        common % 2 + run % (0, 0) + ' & ' + run % (1, 1) +
                        ' && wait $!', common % 1 + run % (2, 0))
            assert r.code == 0, r
            assert sorted(lines(r.out)) == ['rank %d: all right' % i
                                            for i in range(3)], r


def test_a_rank_that_comes_late_hears_the_bad_verdict():
    """Rank 2 was told, and has left the store, when rank 1 comes."""
    port = str(free_port())

    def rank(i, *args):
        return popen([prog('init'), 'timeout_ms=60000', *args], env={
            'RANK': str(i), 'WORLD_SIZE': '3', 'LOCAL_RANK': str(i),
            'LOCAL_WORLD_SIZE': '3', 'MASTER_ADDR': '127.0.0.1',
            'MASTER_PORT': port,
            'CUDA_VISIBLE_DEVICES': '', **(standin_env(
                cuda='count_error=3') if i == 2 else {})})
    first, last = rank(0), rank(2, 'backend=nccl')
    results = [finish(last)]
    results += [finish(p) for p in (rank(1), first)]
    assert 'CUDA error 3' in same_words(results), results


def test_dist_url_and_horovod_are_options():
    url = 'dist_url=tcp://127.0.0.1:%d' % free_port()
    for i, r in enumerate(by_hand(2, url, env={'MASTER_ADDR': None,
                                               'MASTER_PORT': None})):
        assert r.code == 0 and r.out.startswith('env %d/2' % i), r
    r = program(prog('init'), 'dist_url=http://x', env={
        'RANK': '0', 'WORLD_SIZE': '2'})
    assert r.code == 1 and 'tcp://HOST:PORT and file:///PATH are known' in \
        r.out, r
    r = flaunch(prog('init'), 'horovod')
    assert r.code == 1 and 'the option horovod is set, and neither Horovod nor ' \
        'an MPI launcher' in r.out, r
