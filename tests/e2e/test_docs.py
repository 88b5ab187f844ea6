"""README and man pages say what is true."""
import re
import subprocess

from harness import *


def readme():
    with open(os.path.join(ROOT, 'README.md')) as f:
        return f.read()


def blocks(language):
    return re.findall(r'^```%s\n(.*?)^```' % language, readme(), re.S | re.M)


def copy_of_the_tree(path):
    """All tracked files with their times, and the build beside them."""
    names = subprocess.run(['git', '-c', 'safe.directory=*', 'ls-files', '-z',
                            '-co', '--exclude-standard'],
                           cwd=ROOT, stdout=subprocess.PIPE,
                           check=True).stdout.decode().split('\0')
    for name in filter(None, names):
        source = os.path.join(ROOT, name)
        target = os.path.join(path, name)
        if os.path.exists(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target)
    shutil.copytree(BUILD, os.path.join(path, 'build'), symlinks=True,
                    ignore=shutil.ignore_patterns('asan', 'clang', 'gcc',
                                                  'fuzz', 'nvidia'))


def test_every_command_of_the_readme_runs():
    if ASAN:
        raise Skip('not as a sanitized build: the README builds its own')
    if not os.path.exists(os.path.join(BUILD, 'libflaunch_gloo.so')):
        raise Skip('gloo is not installed')
    python = os.environ.get('TORCH_PYTHON') or shutil.which('python3')
    has_torch = has_pytorch(python)
    commands = '\n'.join(blocks('sh'))
    assert 'make check\n' in commands and 'make demo\n' in commands
    # This test is part of the one; CI runs both in a fresh clone.
    commands = commands.replace('make check\n', '')
    # And somebody else may have the ports of the examples.
    port = free_port()
    commands = commands.replace('--master_addr=127.0.0.1',
                                '--master_addr=127.0.0.1 --master_port=%d' % port)
    commands = commands.replace('--rdzv-endpoint=127.0.0.1',
                                '--rdzv-endpoint=127.0.0.1:%d' % port)
    assert commands.count(str(port)) == 3, commands
    if not has_torch:
        commands = re.sub(r'^.*ddp\.py$', '', commands, flags=re.M)
    with TempDir() as home, TempDir() as tree:
        copy_of_the_tree(tree)
        with open(tree + '/hello.c', 'w') as f:
            f.write(blocks('c')[0])
        env = clean_env({'HOME': home, 'PYTHON_EXEC': python})
        done = subprocess.run(['sh', '-eu', '-c', commands], cwd=tree, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300)
        text = done.stdout.decode(errors='replace')
        assert done.returncode == 0, text
    for words in ('accuracy 0.9', '3 3 4', '3 of 4', 'rank 1: 2 ranks are here',
                  'rank 0: 1 ranks are here', 'world size: 2',
                  '--nproc-per-node=2, from the command line'):
        assert words in text, (words, text)
    assert not has_torch or 'step 19 loss' in text, text


def test_the_c_example_of_the_readme_is_short():
    body = blocks('c')[0]
    assert len([line for line in lines(body.split('{', 1)[1])
                if line.strip()]) <= 15, body


def test_the_recipe_of_the_readme_compiles_and_is_three_lines():
    if ASAN:
        raise Skip('not as a sanitized build: programs would need it too')
    init, rest = blocks('c')[1].split('\n\n', 1)
    assert len(lines(init)) == 3, init
    with TempDir() as d:
        with open(d + '/recipe.c', 'w') as f:
            f.write('#include "worker/flaunch.h"\n#include <stdio.h>\n'
                    '#include <stdlib.h>\n'
                    'struct { int process_rank, num_processes, '
                    'local_device_idx; void *nccl_comm; } config;\n'
                    'static void exit_with(const char *text)\n'
                    '{ puts(text); exit(1); }\n'
                    'int main(void)\n{\n    struct flaunch_error error;\n'
                    '    struct flaunch *job;\n' + init + '\n' + rest +
                    'printf("%d of %d\\n", config.process_rank, '
                    'config.num_processes);\n}\n')
        subprocess.run(['cc', '-Wall', '-Werror', '-I', ROOT, '-o', d + '/recipe',
                        d + '/recipe.c', '-L' + BUILD, '-lflaunch',
                        '-Wl,-rpath,' + BUILD], check=True)
        r = flaunch('--nproc-per-node=2', d + '/recipe', env=standin_env())
        assert r.code == 0 and sorted(lines(r.out)) == ['0 of 2', '1 of 2'], r


def test_the_page_names_every_launcher_and_the_header_every_option():
    with open(os.path.join(ROOT, 'man', 'libflaunch.3')) as f:
        page = f.read()
    with open(os.path.join(ROOT, 'worker', 'launchers.c')) as f:
        names = re.search(r'names\[N_LAUNCHERS\] = \{(.*?)\}', f.read(), re.S)
    for name in re.findall(r'"(\w+)"', names.group(1)):
        assert re.search(r'^%s\t' % name, page, re.M), name
    with open(os.path.join(ROOT, 'worker', 'flaunch.h')) as f:
        fields = re.search(r'struct flaunch_options \{(.*?)^\};', f.read(),
                           re.S | re.M).group(1)
    for name in re.findall(r'(\w+);', re.sub(r'/\*.*?\*/', '', fields,
                                              flags=re.S)):
        assert name == 'size' or re.search(r'^\.I %s$' % name, page, re.M), name


def options_of(text, pattern):
    return set(re.findall(pattern, text))


def test_the_man_page_describes_every_option_and_no_other():
    with open(os.path.join(ROOT, 'man', 'flaunch.1')) as f:
        page = f.read().replace('\\-', '-')
    described = set()
    for head in re.findall(r'^\.TP\n(.*)$', page, re.M):
        described |= options_of(head, r'(--[a-z-]+)')
    real = options_of(flaunch('--help').out, r'(--[a-z-]+)')
    assert described == real, described ^ real


def test_the_pages_have_no_formatting_errors():
    if shutil.which('man') is None:
        raise Skip('man is not installed')
    for name in os.listdir(os.path.join(ROOT, 'man')):
        done = subprocess.run(
            ['man', '-l', '--warnings=all', '-Tutf8',
             os.path.join(ROOT, 'man', name)], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, env=dict(os.environ, MANWIDTH='80'))
        assert done.returncode == 0 and done.stderr == b'', (name, done.stderr)


def test_the_env_page_names_every_variable_that_is_set():
    with open(os.path.join(ROOT, 'man', 'flaunch-env.7')) as f:
        page = f.read()
    mine = set(clean_env())
    r = flaunch('--nproc_per_node=2', 'sh', '-c', 'test $RANK != 0 || env')
    for line in lines(r.out):
        name = line.split('=')[0]
        if name not in mine and name.isupper() and '=' in line \
                and name not in ('PWD', 'SHLVL', '_'):
            assert re.search(r'^%s\t' % name, page, re.M), name


def test_all_exported_names_are_documented():
    with open(os.path.join(ROOT, 'worker', 'flaunch.map')) as f:
        exported = set(re.findall(r'(flaunch_\w+);', f.read()))
    with open(os.path.join(ROOT, 'man', 'libflaunch.3')) as f:
        page = f.read()
    with open(os.path.join(ROOT, 'worker', 'flaunch.h')) as f:
        header = f.read()
    for name in exported:
        assert name + '(' in page and name + '(' in header, name
    real = subprocess.run(['nm', '-D', '--defined-only',
                           os.path.join(BUILD, 'libflaunch.so')],
                          stdout=subprocess.PIPE).stdout.decode()
    assert set(re.findall(r' T (flaunch_\w+)', real)) == exported


def test_what_is_installed_can_be_used():
    if ASAN:
        raise Skip('not as a sanitized build: programs would need it too')
    with TempDir() as d:
        done = subprocess.run(['make', '--no-print-directory', 'install',
                               'BUILD=' + BUILD, 'DESTDIR=' + d,
                               'PREFIX=/usr'], cwd=ROOT,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout.decode()
        for name in ('bin/flaunch', 'lib/libflaunch.a', 'lib/libflaunch.so',
                     'lib/libflaunch.so.0', 'include/flaunch.h',
                     'lib/pkgconfig/flaunch.pc', 'share/man/man1/flaunch.1',
                     'share/man/man3/libflaunch.3',
                     'share/man/man7/flaunch-env.7'):
            assert os.path.exists(d + '/usr/' + name), name
        flags = subprocess.run(
            ['pkg-config', '--cflags', '--libs', 'flaunch'],
            env=dict(os.environ, PKG_CONFIG_PATH=d + '/usr/lib/pkgconfig',
                     PKG_CONFIG_SYSROOT_DIR=d),
            stdout=subprocess.PIPE, check=True).stdout.decode().split()
        with open(d + '/p.cc', 'w') as f:  # the header is C++'s as well
            f.write('#include <flaunch.h>\n#include <cstdio>\n'
                    'int main() { std::puts(flaunch_version()); }\n')
        subprocess.run(['g++', '-Wall', '-Werror', '-o', d + '/p', d + '/p.cc',
                        '-I' + d + '/usr/include', '-L' + d + '/usr/lib',
                        *flags], check=True)
        said = subprocess.run([d + '/p'], stdout=subprocess.PIPE,
                              env=dict(os.environ,
                                       LD_LIBRARY_PATH=d + '/usr/lib'))
        assert said.returncode == 0 and said.stdout, said
        # And statically, with what the .pc file says of libuv.
        with open(d + '/s.c', 'w') as f:
            f.write('#include <flaunch.h>\nint main(void)\n'
                    '{ return flaunch_version()[0] == 0; }\n')
        subprocess.run(['gcc', '-o', d + '/s', d + '/s.c',
                        '-I' + d + '/usr/include', d + '/usr/lib/libflaunch.a',
                        '-luv', '-ldl', '-pthread'], check=True)
        assert subprocess.run([d + '/s']).returncode == 0
