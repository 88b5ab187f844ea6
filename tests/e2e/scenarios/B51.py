"""In the background of a terminal nobody reads it."""
from scenario import *


def test_a_background_job_goes_on():
    with TempDir() as d:
        pid, fd = pty.fork()
        if pid == 0:
            os.execvpe('bash', ['bash', '-mc',
                                '"$0" sh -c "cat; echo end > %s/file" & wait'
                                % d, FLAUNCH], clean_env())
        wait_until(lambda: os.path.exists(d + '/file'), 'the end of the job')
        os.waitpid(pid, 0)
        os.close(fd)


def test_the_terminal_is_the_foreground_jobs():
    with TempDir() as d:
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(FLAUNCH, [FLAUNCH, 'sh', '-c', 'test -t 0 && '
                                'echo tty > %s/file' % d], clean_env())
        wait_until(lambda: os.path.exists(d + '/file'), 'a worker with a tty')
        os.waitpid(pid, 0)
        os.close(fd)
