#!/usr/bin/env python3
"""DistributedDataParallel as open_flamingo's train script sets it up: backend
and url are arguments, rank, local rank and world size come from the launcher's
environment. Prints `step S loss L` from rank 0; the global batch is the same
for any number of workers. With --checkpoint it goes on where the last run, of
any number of workers, ended."""
import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

GLOBAL_BATCH = 16
STEPS = 20


def init_distributed_device(args):
    args.local_rank = int(os.environ['LOCAL_RANK'])
    dist.init_process_group(backend=args.dist_backend,
                            init_method=args.dist_url)
    args.rank = dist.get_rank()
    args.world_size = dist.get_world_size()
    if torch.cuda.is_available():
        device = 'cuda:%d' % (0 if args.no_set_device_rank else args.local_rank)
        torch.cuda.set_device(device)
    else:
        device = 'cpu'
    return torch.device(device)


def load(args, model, data):
    """The first step that is still to be done."""
    if not args.checkpoint or not os.path.exists(args.checkpoint):
        return 0
    state = torch.load(args.checkpoint)
    model.load_state_dict(state['model'])
    data.set_state(state['data'])
    return state['step'] + 1


def save(args, model, data, step):
    if args.checkpoint and args.rank == 0:
        torch.save({'model': model.state_dict(), 'data': data.get_state(),
                    'step': step}, args.checkpoint + '.new')
        os.replace(args.checkpoint + '.new', args.checkpoint)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--dist-backend', default='gloo')
    parser.add_argument('--dist-url', default='env://')
    parser.add_argument('--no-set-device-rank', action='store_true')
    parser.add_argument('--checkpoint')
    parser.add_argument('--pause', type=float, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    device = init_distributed_device(args)

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(),
                                torch.nn.Linear(32, 1)).to(device)
    model = DistributedDataParallel(
        model, device_ids=[device.index] if device.type == 'cuda' else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(1)
    for step in range(load(args, model, data), STEPS):
        time.sleep(args.pause)
        x = torch.randn(GLOBAL_BATCH, 8, generator=data)
        y = x.sum(dim=1, keepdim=True)
        mine = slice(args.rank, GLOBAL_BATCH, args.world_size)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x[mine].to(device)),
                                            y[mine].to(device))
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if args.rank == 0:
            print('step %d loss %.6f' % (step, total.item() / args.world_size),
                  flush=True)
        save(args, model, data, step)
    dist.barrier()
    dist.destroy_process_group()
    # gloo's threads may still run; destroyed by the interpreter's end they
    # abort the process now and then ("terminate called without ..."), under
    # torchrun as well.
    os._exit(0)


if __name__ == '__main__':
    main()
