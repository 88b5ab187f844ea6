"""One node: start, environment, ends, mistakes."""
import os
import pwd
import re
import resource
import signal
import socket
import subprocess
import time

from harness import *


def test_ranks_and_sizes_are_exported():
    r = flaunch('--nproc_per_node=4', 'sh', '-c',
                'echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE '
                '$GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR')
    assert r.code == 0, r
    assert sorted(lines(r.out)) == ['%d %d 4 4 0 1 127.0.0.1' % (i, i)
                                    for i in range(4)], r


def worker_env(*options, env=None):
    r = flaunch(*options, 'env', env=env)
    assert r.code == 0, r
    return dict(line.split('=', 1) for line in lines(r.out) if '=' in line)


def test_torchruns_variables_are_all_there():
    env = worker_env('--role=trainer', '--rdzv-id=job7')
    want = {
        'ROLE_NAME': 'trainer', 'ROLE_RANK': '0', 'ROLE_WORLD_SIZE': '1',
        'TORCHELASTIC_RESTART_COUNT': '0', 'TORCHELASTIC_MAX_RESTARTS': '0',
        'TORCHELASTIC_RUN_ID': 'job7', 'TORCHELASTIC_USE_AGENT_STORE': 'True',
        'TORCH_NCCL_ASYNC_ERROR_HANDLING': '1', 'PYTHONUNBUFFERED': '1',
        'FLAUNCH_RUN_ID': 'job7', 'FLAUNCH_RANK': '0',
        'FLAUNCH_WORLD_SIZE': '1', 'FLAUNCH_LOCAL_RANK': '0',
        'FLAUNCH_LOCAL_WORLD_SIZE': '1', 'FLAUNCH_NODE_RANK': '0',
        'FLAUNCH_NNODES': '1', 'FLAUNCH_ATTEMPT': '0',
        'FLAUNCH_STORE': '127.0.0.1:' + env['MASTER_PORT'],
    }
    assert {k: env.get(k) for k in want} == want
    assert 'OMP_NUM_THREADS' not in env


def test_records_of_outer_launchers_are_taken_out():
    outer = {'PMI_RANK': '3', 'OMPI_COMM_WORLD_RANK': '3', 'SLURM_PROCID': '3',
             'SLURM_STEP_ID': '0', 'TORCHELASTIC_ERROR_FILE': '/x',
             'RANK': '9', 'PET_NPROC_PER_NODE': '1', 'FLAUNCH_OPT_ROLE': 'r',
             'SLURM_JOB_ID': '7', 'TORCHELASTIC_TIMER_FILE': '/t'}
    env = worker_env(env=outer)
    for name in ('PMI_RANK', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID',
                 'SLURM_STEP_ID', 'PET_NPROC_PER_NODE', 'FLAUNCH_OPT_ROLE'):
        assert name not in env, name
    assert env['RANK'] == '0' and env['ROLE_NAME'] == 'r'
    assert env['TORCHELASTIC_ERROR_FILE'] != '/x'
    assert env['SLURM_JOB_ID'] == '7' and env['TORCHELASTIC_TIMER_FILE'] == '/t'
    kept = worker_env('--keep-env', env=outer)
    assert kept['PMI_RANK'] == '3' and kept['RANK'] == '0'


def test_omp_num_threads_is_shared_out_and_never_overridden():
    cpus = len(os.sched_getaffinity(0))
    r = flaunch('--nproc_per_node=2', 'sh', '-c', 'echo $OMP_NUM_THREADS')
    assert set(lines(r.out)) <= {str(n) for n in range(1, cpus // 2 + 2)}, r
    assert 'OMP_NUM_THREADS=' in r.err, r
    r = flaunch('--nproc_per_node=2', 'sh', '-c', 'echo $OMP_NUM_THREADS',
                env={'OMP_NUM_THREADS': '5'})
    assert lines(r.out) == ['5', '5'] and 'OMP' not in r.err, r


def test_a_flaunch_inside_a_flaunch_works():
    r = flaunch('--nproc_per_node=2', FLAUNCH, '--nproc_per_node=2',
                'sh', '-c', 'echo $RANK $WORLD_SIZE')
    assert r.code == 0, r
    assert sorted(lines(r.out)) == ['0 2', '0 2', '1 2', '1 2'], r


def test_arguments_are_passed_on_byte_for_byte():
    args = ['', 'a b', '$x', '--nproc_per_node=9', '-h', 'ü\n*']
    r = flaunch('python3', '-c', 'import sys; print(sys.argv[1:])', *args)
    assert r.code == 0 and r.out.strip() == str(args), r


def test_arguments_longer_than_a_packet():
    r = flaunch('python3', '-c', 'import sys; print(len(sys.argv[1]))',
                'x' * 100000)
    assert r.code == 0 and r.out.strip() == '100000', r


def test_first_failure_stops_the_others_and_is_named():
    r = flaunch('--nproc_per_node=4', 'sh', '-c',
                'test $RANK = 2 && exit 7; exec sleep 100')
    assert r.code == 7, r
    said = own_lines(r)
    assert len(said) == 1 and re.fullmatch(
        r'flaunch: rank 2 \(pid \d+\) exited with code 7 after \d+\.\d s; '
        r'3 others stopped', said[0]), r


def test_a_signal_that_kills_a_worker_is_named():
    r = flaunch('--nproc_per_node=2', 'sh', '-c',
                'ulimit -c 0; test $RANK = 1 && kill -SEGV $$; exec sleep 100')
    assert r.code == 128 + signal.SIGSEGV, r
    assert re.search(r'rank 1 \(pid \d+\) was killed by SIGSEGV after .* s; '
                     r'1 other stopped', r.err), r


def test_a_worker_deaf_to_term_is_killed_after_the_grace():
    r = flaunch('--nproc_per_node=2', '--shutdown-timeout=1.5', 'python3', '-c',
                'import os, signal, time\n'
                'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
                'if os.environ["RANK"] == "1": time.sleep(0.5); os._exit(3)\n'
                'time.sleep(100)')
    assert r.code == 3, r
    # It says what it waits for, unless rank 0 was too slow to be deaf.
    if 'killed' in r.err:
        assert 'rank 1 failed; 1 other is still running and will be killed ' \
            '1.5 s after it' in r.err, r


def test_torchruns_variable_sets_the_grace():
    r = flaunch('--explain', 'true',
                env={'TORCH_ELASTIC_SHUTDOWN_TIMEOUT': '7'})
    assert 'time before SIGKILL: 7000 ms' in r.out, r


def running(token, n):
    """Wait until n workers of a test sleep."""
    wait_until(lambda: sum('sleep' in name for _, name in left_behind(token))
               >= n, 'workers that run')


def stop(signo, *args, n=2):
    token = 't%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=%d' % n, *args], token=token)
    running(token, n)
    p.send_signal(signo)
    r = finish(p)
    assert_nothing_left(token)
    return r


def test_a_stop_signal_stops_the_job_with_its_number():
    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP,
                  signal.SIGQUIT):
        r = stop(signo, 'sh', '-c', 'ulimit -c 0; exec sleep 100')
        assert r.code == 128 + signo, r
        assert signal.Signals(signo).name + ': 2 workers are stopping' in r.err, r


def test_a_stop_signal_that_all_take_well_is_0():
    r = stop(signal.SIGTERM, 'sh', '-c',
             'trap "kill $!; exit 0" TERM; sleep 100 & wait')
    assert r.code == 0, r


def test_a_workers_own_code_wins_over_the_stop_signal():
    r = stop(signal.SIGTERM, 'sh', '-c',
             'trap "kill $!; exit $RANK" TERM; sleep 100 & wait')
    assert r.code == 1, r


def test_a_second_signal_kills_at_once():
    token = 't%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=2', 'sh', '-c',
               'trap "" TERM INT; sleep 100'], token=token)
    running(token, 2)
    p.send_signal(signal.SIGINT)
    wait_until(lambda: p.stderr.readline().find(b'stopping') >= 0, 'a word')
    p.send_signal(signal.SIGINT)
    r = finish(p)
    assert r.code == 128 + signal.SIGINT, r
    assert_nothing_left(token)


def test_usr1_is_passed_on_and_the_job_goes_on():
    token = 't%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=2', 'python3', '-c',
               'import os, signal\n'
               'signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n'
               'os.write(1, b"ready\\n")\n'
               'signo = signal.sigwait([signal.SIGUSR1])\n'
               'os.write(1, signo.name.encode() + b"\\n")'],
              token=token)
    for _ in range(2):
        assert p.stdout.readline() == b'ready\n'
    p.send_signal(signal.SIGUSR1)
    r = finish(p)
    assert r.code == 0 and lines(r.out) == ['SIGUSR1', 'SIGUSR1'], r
    assert_nothing_left(token)


def test_an_ignored_int_stays_ignored():
    r = flaunch('sh', '-c', 'kill -INT $$; echo alive',
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert r.code == 0 and r.out == 'alive\n', r


def test_workers_get_the_mask_and_dispositions_we_were_given():
    show = ('grep -E "^(SigBlk|SigIgn)" /proc/self/status')
    plain = program('/bin/sh', '-c', show)
    r = flaunch('sh', '-c', show)
    assert r.out == plain.out, (r, plain)


def test_workers_get_descriptors_0_1_and_2_only():
    r = flaunch('sh', '-c', 'ls /proc/$$/fd', pass_fds=[])
    assert lines(r.out) == ['0', '1', '2'] or lines(r.out)[:3] == ['0', '1', '2'], r
    extra = os.open('/dev/null', os.O_RDONLY)
    os.set_inheritable(extra, True)
    r = flaunch('python3', '-c',
                'import os; print(os.path.exists("/proc/self/fd/%d"))' % extra,
                pass_fds=[extra])
    os.close(extra)
    assert r.out == 'False\n', r


def test_closed_descriptors_count_as_dev_null():
    token = 't%d' % time.monotonic_ns()
    with TempDir() as d:
        done = subprocess.run(
            ['sh', '-c', '"$0" sh -c \'ls -l /proc/$$/fd > %s/fds\' <&- >&- 2>&-'
             % d, FLAUNCH], env=clean_env(token=token), timeout=LONG)
        assert done.returncode == 0
        with open(d + '/fds') as f:
            text = f.read()
        assert text.count('/dev/null') == 3, text
    assert_nothing_left(token)


def test_earlier_children_are_not_touched():
    token = 't%d' % time.monotonic_ns()
    p = popen(['sh', '-c', 'sleep 100 </dev/null >/dev/null 2>&1 & echo $!; '
               'exec "$0" --nproc_per_node=2 true', FLAUNCH], token=token)
    r = finish(p)
    assert r.code == 0, r
    assert [pid for pid, _ in left_behind(token)] == [int(r.out)], r
    os.kill(int(r.out), signal.SIGKILL)
    assert_nothing_left(token)


def test_what_a_worker_leaves_behind_is_ended():
    r = flaunch('--shutdown-timeout=1', 'sh', '-c',
                'setsid sleep 100 & (sleep 100 &) ; exit 0')
    assert r.code == 0, r


def test_python_files_and_modules_run_under_python():
    with TempDir() as d:
        path = d + '/job.py'
        with open(path, 'w') as f:
            # Whole lines in one write: the workers share one pipe.
            f.write('import os, sys\nos.write(1, b"%s %s 0\\n" % ('
                    'os.environb[b"RANK"], str(sys.argv[1:]).encode()))\n')
        r = flaunch('--nproc_per_node=2', path, '--lr', '1')
        assert r.code == 0, r
        assert sorted(lines(r.out)) == ["0 ['--lr', '1'] 0",
                                        "1 ['--lr', '1'] 0"], r
        r = flaunch('-m', 'json.tool', '--help')
        assert r.code == 0 and 'usage' in r.out, r
        with open(d + '/mine', 'w') as f:
            f.write('#!/bin/sh\necho mine "$@"\n')
        os.chmod(d + '/mine', 0o755)
        r = flaunch(path, env={'PYTHON_EXEC': d + '/mine'})
        assert r.out == 'mine -u %s\n' % path, r
        os.chmod(path, 0o755)
        r = flaunch('--no-python', path)
        assert r.code == 126 and 'without #!' in r.err, r


def test_missing_and_wrong_programs_are_named_and_nothing_starts():
    with TempDir() as d:
        with open(d + '/plain', 'w') as f:
            f.write('x')
        for args, code, words in (
                ([d + '/none'], 127, 'No such file'),
                ([d + '/plain'], 126, 'not executable'),
                ([d], 126, 'is a directory'),
                ([d + '/none.py'], 127, 'cannot read'),
                (['no-such-program-here'], 127, 'is not in PATH')):
            r = flaunch('--nproc_per_node=2', *args)
            assert r.code == code and words in r.err, r
            assert len(lines(r.err)) == 1 and r.out == '', r
        r = flaunch('plain', cwd=d)
        assert r.code == 127 and 'write ./plain' in r.err, r


def test_wrong_options_are_named():
    for args, words in (
            (['--no-such-thing', 'true'], 'unknown option --no-such-thing'),
            (['-q', 'true'], 'unknown option -q'),
            (['--nproc-per-node=0', 'true'], 'from 1 to'),
            (['--nproc-per-node=-3', 'true'], 'from 1 to'),
            (['--nproc-per-node=two', 'true'], 'from 1 to'),
            (['--nproc-per-node=99999999999999999999', 'true'], 'from 1 to'),
            (['--nproc-per-node'], 'needs a value'),
            (['--master-port=70000', 'true'], 'from 0 to 65535'),
            (['--shutdown-timeout=soon', 'true'], 'give seconds'),
            (['--standalone=1', 'true'], 'takes no value'),
            (['--n', '2', 'true'], 'could mean several'),
            (['--nnodes=2', 'true'], 'say where the nodes meet'),
            (['--max-restarts=x', 'true'], 'give a number'),
            (['--tee=4', 'true'], 'give 0 (neither)'),
            (['-r1:3', 'true'], 'there is no local rank 1'),
            (['--local-ranks-filter=x', 'true'], 'give local ranks'),
            (['--raw', '--timestamps', 'true'], '--raw leaves'),
            ([], 'no program given')):
        r = flaunch(*args)
        assert r.code == 2 and words in r.err, (args, r)
        assert len(lines(r.err)) == 1 and r.out == '', (args, r)


def test_options_come_from_the_environment_too():
    def n(*args, **env):
        r = flaunch(*args, 'sh', '-c', 'echo $WORLD_SIZE', env=env)
        assert r.code == 0, r
        return lines(r.out)[0]
    assert n(PET_NPROC_PER_NODE='2') == '2'
    assert n(PET_NPROC_PER_NODE='2', FLAUNCH_OPT_NPROC_PER_NODE='3') == '3'
    assert n('--nproc_per_node', '1', FLAUNCH_OPT_NPROC_PER_NODE='3') == '1'
    assert n('--nproc-per', '2') == '2'
    r = flaunch('true', env={'PET_NNODES': '2'})
    assert r.code == 2 and 'PET_NNODES' in r.err, r


def test_harmless_options_of_torchrun_are_accepted():
    r = flaunch('--standalone', '--nnodes=1', '--node_rank=0', '--max-restarts',
                '0', '--rdzv-backend=c10d', '--rdzv_endpoint=localhost:0',
                '--monitor-interval=1', '--master_addr=127.0.0.1', '-r=0', 'true')
    assert r.code == 0 and r.err == '', r


def test_counts_of_cpus_and_gpus():
    r = flaunch('--nproc_per_node=cpu', 'sh', '-c', 'echo $WORLD_SIZE')
    assert 1 <= int(lines(r.out)[0]) <= len(os.sched_getaffinity(0)), r
    r = flaunch('--nproc_per_node=gpu', 'true', env={'CUDA_VISIBLE_DEVICES': ''})
    assert r.code == 2 and 'no GPU' in r.err, r
    r = flaunch('--nproc_per_node=auto', 'true', env={'CUDA_VISIBLE_DEVICES': ''})
    assert r.code == 0, r


def test_a_port_that_is_taken_is_told_with_its_holder():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        port = s.getsockname()[1]
        r = flaunch('--master-port=%d' % port, 'true')
        assert r.code == 125, r
        assert 'port %d is taken by pid %d (' % (port, os.getpid()) in r.err, r
        assert len(lines(r.err)) == 1, r
    r = flaunch('--master_port', str(port), 'sh', '-c', 'echo $MASTER_PORT')
    assert r.code == 0 and r.out.strip() == str(port), r


def test_too_few_descriptors_are_told_before_anything_starts():
    r = flaunch('--nproc_per_node=64', 'true', preexec_fn=lambda:
                resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
    assert r.code == 125 and 'ulimit -Hn' in r.err, r
    assert len(lines(r.err)) == 1, r


def test_workers_get_the_limit_of_descriptors_we_were_given():
    r = flaunch('sh', '-c', 'ulimit -Sn', preexec_fn=lambda:
                resource.setrlimit(resource.RLIMIT_NOFILE, (
                    150, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    assert r.out.strip() == '150', r


def test_dry_run_and_explain_start_nothing():
    r = flaunch('--dry-run', '--nproc_per_node=2', 'sh', '-c', 'echo started')
    assert r.code == 0 and r.err == '', r
    for words in ('workers: 2', 'world size: 2', 'argv[2]: echo started',
                  'rank 1: RANK=1 WORLD_SIZE=2', 'MASTER_ADDR=127.0.0.1'):
        assert words in r.out, r
    r = flaunch('--explain', 'true', env={'PET_NPROC_PER_NODE': '2'})
    assert r.code == 0, r
    assert '--nproc-per-node=2, from PET_NPROC_PER_NODE' in r.out, r
    assert '--nnodes=1, from the default' in r.out, r
    r = flaunch('--explain', '--nnodes=2', '--node-rank=1',
                '--master-addr=h0', 'true')
    assert r.code == 0 and '--node-rank=1, from the command line' in r.out, r
    r = flaunch('--dry-run', '--nnodes=2', '--node-rank=1',
                '--master-addr=h0', '--nproc-per-node=2', 'true')
    for words in ('nodes: 2', 'node rank: 1', 'this node joins',
                  'meeting at: h0, port 29500', 'rank 2: RANK=2 WORLD_SIZE=4'):
        assert r.code == 0 and words in r.out, r


def test_help_and_version():
    r = flaunch('--help')
    assert r.code == 0 and r.out.startswith('usage: flaunch'), r
    r = flaunch('-h')
    assert r.code == 0, r
    r = flaunch('--version')
    assert re.fullmatch(r'flaunch \d+\.\d+\.\d+\n', r.out), r
    with open('/dev/full', 'w') as full:
        r = flaunch('--help', stdout=full)
        assert r.code == 125, r


def test_a_program_linked_against_mpi_is_told_of():
    r = flaunch('--nproc_per_node=2', prog('mpi_like'))
    assert r.code == 0 and 'use mpirun -n 2' in r.err, r
    r = flaunch('--nproc_per_node=1', prog('mpi_like'))
    assert 'mpirun' not in r.err, r


def test_garbage_on_the_stores_port_disturbs_nobody():
    token = 't%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=2', 'sh', '-c',
               'echo $MASTER_PORT; read line; exit 0'], token=token,
              stdin=subprocess.PIPE)
    port = int(p.stdout.readline())
    for garbage in (b'GET / HTTP/1.1\r\n\r\n', b'\x16\x03\x01\x02\x00', b'\0',
                    os.urandom(100000), b'\x00\xce\xf7\x85\x3c\x01' +
                    b'\xff' * 8, b''):
        with socket.create_connection(('127.0.0.1', port)) as s:
            try:
                s.sendall(garbage)
            except OSError:
                pass
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.settimeout(LONG)
        s.sendall(b'\x00\xce\xf7\x85\x3c\x0d\x01\x02\x03\x04')
        assert s.recv(4) == b'\x01\x02\x03\x04'
    p.stdin.write(b'\n\n')
    p.stdin.flush()
    r = finish(p)
    assert r.code == 0, r
    assert_nothing_left(token)


def test_the_store_listens_on_loopback_only():
    token = 't%d' % time.monotonic_ns()
    p = start(['sh', '-c', 'echo $MASTER_PORT; exec sleep 100'], token=token)
    port = int(p.stdout.readline())
    with open('/proc/net/tcp') as f:
        rows = [line.split()[1] for line in f if ':%04X ' % port in line]
    p.terminate()
    finish(p)
    assert '0100007F:%04X' % port in rows, rows
    assert '00000000:%04X' % port not in rows, rows


def test_stdin_is_ours():
    p = start(['cat'], stdin=subprocess.PIPE)
    out, _ = p.communicate(b'hello', timeout=LONG)
    assert out == b'hello'


def test_many_workers():
    n = 100 if ASAN else 300
    r = flaunch('--nproc_per_node=%d' % n, 'sh', '-c', 'echo $RANK')
    assert r.code == 0, r
    assert sorted(map(int, lines(r.out))) == list(range(n))


def test_as_process_1_of_a_container():
    """In a PID namespace of its own, with an orphan to reap."""
    probe = subprocess.run(['unshare', '--user', '--map-root-user', '--pid',
                            '--fork', '--mount-proc', 'true'],
                           stderr=subprocess.PIPE)
    if probe.returncode != 0:
        raise Skip('no user namespaces here')
    token = 't%d' % time.monotonic_ns()
    p = subprocess.run(
        ['unshare', '--user', '--map-root-user', '--pid', '--fork',
         '--mount-proc', FLAUNCH, '--nproc_per_node=2', 'sh', '-c',
         '(sleep 0.1 &); echo $RANK'], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=clean_env(token=token), timeout=LONG)
    assert p.returncode == 0, p
    assert sorted(p.stdout.split()) == [b'0', b'1'], p
    assert_nothing_left(token)


def test_an_old_kernel_without_close_range_and_memfd_will_do():
    token = 't%d' % time.monotonic_ns()
    extra = os.open('/dev/null', os.O_RDONLY)
    os.set_inheritable(extra, True)
    r = finish(popen([prog('old_kernel'), FLAUNCH, '--nproc_per_node=2', 'sh',
                      '-c', 'test -e /proc/$$/fd/%d; echo $RANK $?' % extra],
                     token=token, pass_fds=[extra]))
    os.close(extra)
    assert r.code == 0, r
    assert sorted(lines(r.out)) == ['0 1', '1 1'], r
    assert_nothing_left(token)
    r = program(prog('old_kernel'), FLAUNCH, '--pty', 'sh', '-c',
                'test -t 1 && test -t 2 && echo pty')
    assert r.code == 0 and r.out == 'pty\n', r
    token = 't%d' % time.monotonic_ns()
    p = popen([prog('old_kernel'), FLAUNCH, '--nproc_per_node=2', 'sh', '-c',
               'trap "" TERM; setsid sleep 100 & sleep 100'], token=token)
    wait_until(lambda: sum('sleep' in n for _, n in left_behind(token)) >= 4,
               'all four')
    p.kill()
    p.communicate()
    assert_nothing_left(token)


def test_the_kernel_short_of_memory_prefers_workers():
    with open('/proc/self/oom_score_adj') as f:
        ours = int(f.read())
    token = 't%d' % time.monotonic_ns()
    p = start(['--nproc_per_node=2', 'sh', '-c',
               'echo $(cat /proc/self/oom_score_adj); exec sleep 100'],
              token=token)
    for _ in range(2):
        assert int(p.stdout.readline()) == min(ours + 100, 1000)
    running(token, 2)
    for pid in (p.pid, guard_of(p.pid)):
        with open('/proc/%d/oom_score_adj' % pid) as f:
            assert int(f.read()) == ours, pid
    p.terminate()
    finish(p)
    assert_nothing_left(token)
