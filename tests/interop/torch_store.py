"""What PyTorch's own store and process groups do; run by a Python that has
PyTorch.

  torch_store.py server uv|threaded   a server; prints its port, ends with stdin
  torch_store.py methods HOST PORT [threaded]
                                      every method of a client, with "threaded"
                                      but for queues; prints results
  torch_store.py groups               a rank of a gloo job, by its environment
"""
import datetime
import os
import sys
import threading

import torch
import torch.distributed as dist


def seconds(n):
    return datetime.timedelta(seconds=n)


def server(backend):
    store = dist.TCPStore('127.0.0.1', 0, is_master=True,
                          wait_for_workers=False, use_libuv=backend == 'uv')
    print(store.port, flush=True)
    sys.stdin.read()


def client(host, port, **kwargs):
    return dist.TCPStore(host, int(port), is_master=False,
                         timeout=seconds(60), **kwargs)


def say(name, call, *args):
    """A result, or the error that a user would see, without the address."""
    try:
        result = call(*args)
        if name == 'list_keys':
            result = sorted(result)
    except Exception as e:  # noqa: BLE001: of any kind
        result = '%s: %s' % (type(e).__name__, str(e).splitlines()[0])
    print(name, result, flush=True)


def put(name, store, call, *args):
    """What has no reply, and is done when the next one has."""
    say(name, call, *args)
    store.num_keys()


def later(call, *args):
    timer = threading.Timer(0.3, call, args)
    timer.start()
    return timer


def queues(a, b):
    say('queue_len', a.queue_len, 'q')
    put('queue_push', a, a.queue_push, 'q', 'one')
    put('queue_push', b, b.queue_push, 'q', '')
    say('queue_len', a.queue_len, 'q')
    say('queue_pop', b.queue_pop, 'q')
    say('queue_pop', a.queue_pop, 'q')
    say('queue_pop now', lambda: a.queue_pop('q', block=False))
    timer = later(b.queue_push, 'q', 'late')
    say('queue_pop late', a.queue_pop, 'q')
    timer.join()
    a.set_timeout(seconds(1))
    say('queue_pop in vain', a.queue_pop, 'q')
    a.set_timeout(seconds(60))


def methods(host, port, backend='uv'):
    a = client(host, port)
    b = client(host, port, world_size=2, wait_for_workers=True)
    put('set', a, a.set, 'k', 'v1')
    say('get', b.get, 'k')
    put('set empty', a, a.set, 'e', '')
    say('get empty', b.get, 'e')
    put('set empty key', a, a.set, '', 'x')
    say('get empty key', b.get, '')
    put('bytes', a, a.set, 'bin', bytes(range(256)))
    say('bytes', b.get, 'bin')
    put('long', a, a.set, 'long', b'x' * (5 << 20))
    say('long', lambda: len(b.get('long')))
    put('utf8', a, a.set, '\u00e9', '\u00e9')
    say('add', a.add, 'c', 5)
    say('add', b.add, 'c', -7)
    say('add 0', a.add, 'z', 0)
    say('compare_set', a.compare_set, 'n', '', 'a')
    say('compare_set', b.compare_set, 'n', 'a', 'b')
    say('compare_set', a.compare_set, 'n', 'zzz', 'c')
    say('compare_set', a.compare_set, 'm', 'exp', 'new')
    say('check', a.check, ['k', 'c'])
    say('check', a.check, ['k', 'none'])
    say('wait', a.wait, ['k', 'c'])
    say('wait none', a.wait, [])
    say('wait in vain', a.wait, ['k', 'none'], seconds(1))
    say('num_keys', a.num_keys)
    say('delete_key', a.delete_key, 'k')
    say('delete_key', b.delete_key, 'k')
    put('append', a, a.append, 'l', 'xy')
    put('append', b, b.append, 'l', 'z')
    say('get', a.get, 'l')
    put('multi_set', a, a.multi_set, ['m1', 'm2', 'm1'], ['1', '22', '3'])
    say('multi_get', b.multi_get, ['m1', 'm2', 'c'])
    say('multi_get none', b.multi_get, [])
    timer = later(b.multi_set, ['w1', 'w2'], ['1', '2'])
    say('wait for two', a.wait, ['w1', 'c', 'w2'])
    timer.join()
    timer = later(b.set, 'late', 'now')
    say('get late', a.get, 'late')
    timer.join()
    if backend != 'threaded':
        queues(a, b)
    say('list_keys', a.list_keys)
    say('barrier alone', a.barrier, 'b1', 1)
    timer = later(b.barrier, 'b2', 2)
    say('barrier', a.barrier, 'b2', 2)
    timer.join()
    say('barrier in vain', lambda: a.barrier('b3', 2, timeout=seconds(1)))
    say('get barrier', a.get, 'b3')
    inner = dist.PrefixStore('0', a)
    outer = dist.PrefixStore('default_pg', inner)
    say('prefix', outer.set, 'a', 'b')
    say('prefix', b.get, '0/default_pg/a')
    say('prefix', outer.get, 'a')
    say('prefix', outer.num_keys)
    say('prefix', outer.list_keys)
    say('prefix in vain', outer.wait, ['none'], seconds(1))
    say('prefix barrier', outer.barrier, 'pb', 1)
    c = a.clone()
    say('clone', c.get, 'm2')
    say('world', b.add, 'init', 0)
    put('add to words', a, a.set, 'words', 'abc')
    try:
        c.add('words', 1)
        print('add to words: answered', flush=True)
    except Exception:  # noqa: BLE001: which one depends on when it is seen
        print('add to words: cut off', flush=True)
    say('others live on', a.add, 'c', 0)
    say('num_keys', a.num_keys)


def groups():
    dist.init_process_group('gloo', timeout=seconds(60))
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.ones(4) * (rank + 1)
    dist.all_reduce(x)
    assert x[0].item() == size * (size + 1) / 2, x
    pairs = [dist.new_group([r, r + 1]) for r in range(0, size - 1, 2)]
    mine = pairs[rank // 2]
    y = torch.ones(1) * rank
    dist.all_reduce(y, group=mine)
    assert y.item() == (rank // 2 * 2) * 2 + 1, y
    everyone = dist.new_group(list(range(size)))
    gathered = [torch.zeros(1) for _ in range(size)]
    dist.all_gather(gathered, torch.ones(1) * rank, group=everyone)
    assert [int(t) for t in gathered] == list(range(size)), gathered
    objects = [None] * size
    dist.all_gather_object(objects, {'rank': rank})
    assert [o['rank'] for o in objects] == list(range(size)), objects
    dist.monitored_barrier(timeout=seconds(60))
    store = dist.PrefixStore('mine', dist.distributed_c10d._get_default_store())
    n = store.add('arrived', 1)
    if n == size:
        store.set('all', 'yes')
    assert store.get('all') == b'yes'
    dist.barrier()
    dist.destroy_process_group()
    print('rank %d of %d is done' % (rank, size), flush=True)


if __name__ == '__main__':
    {'server': server, 'methods': methods, 'groups': groups}[sys.argv[1]](
        *sys.argv[2:])
