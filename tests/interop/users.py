#!/usr/bin/env python3
"""What users' scripts do: users.py WHAT [DIRECTORY]. Each prints lines that do
not depend on who launched it."""
import os
import sys

import torch
import torch.distributed as dist

RANK = int(os.environ['RANK'])
WORLD_SIZE = int(os.environ['WORLD_SIZE'])
STEPS = 6


def say(*words):
    """One write, so that lines of ranks do not mix under either launcher."""
    sys.stdout.flush()
    os.write(1, (' '.join(map(str, words)) + '\n').encode())


def leave():
    """Without the interpreter's end, in which gloo aborts now and then."""
    dist.barrier()
    dist.destroy_process_group()
    os._exit(0)


def small_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(),
                               torch.nn.Linear(32, 1))


def batch(step):
    generator = torch.Generator().manual_seed(1000 * step + RANK)
    x = torch.randn(16, 8, generator=generator)
    return x, x.sum(dim=1, keepdim=True)


def train(model, optimizer, steps, backward=torch.Tensor.backward):
    for step in steps:
        x, y = batch(step)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        backward(loss)
        optimizer.step()
        say('rank', RANK, 'step', step, 'loss %.5f' % loss.item())


def ddp():
    dist.init_process_group('gloo')
    model = torch.nn.parallel.DistributedDataParallel(small_model())
    train(model, torch.optim.SGD(model.parameters(), lr=0.05), range(STEPS))
    leave()


def fsdp():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    dist.init_process_group('gloo')
    mesh = init_device_mesh('cpu', (WORLD_SIZE,))
    model = small_model()
    for layer in model:
        if list(layer.parameters()):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, torch.optim.SGD(model.parameters(), lr=0.05), range(STEPS))
    leave()


def checkpoint(directory):
    """Save, fail once, go on in the next attempt from what was saved."""
    import torch.distributed.checkpoint as dcp
    attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])
    # torchrun keeps the keys of the first attempt, on which gloo may hang.
    store = dist.TCPStore(os.environ['MASTER_ADDR'],
                          int(os.environ['MASTER_PORT']), WORLD_SIZE, False)
    dist.init_process_group('gloo', rank=RANK, world_size=WORLD_SIZE,
                            store=dist.PrefixStore(str(attempt), store))
    model = torch.nn.parallel.DistributedDataParallel(small_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    state = {'model': model.state_dict(), 'step': -1}
    if os.path.exists(directory + '/.metadata'):
        dcp.load(state, checkpoint_id=directory)
        model.load_state_dict(state['model'])
        say('rank', RANK, 'attempt', attempt, 'resumes after', state['step'])
    for step in range(state['step'] + 1, STEPS):
        train(model, optimizer, [step])
        if step == 2 and attempt == 0:
            dcp.save({'model': model.state_dict(), 'step': step},
                     checkpoint_id=directory)
            dist.barrier()
            if RANK == WORLD_SIZE - 1:
                os._exit(3)
            dist.barrier()
    leave()


def accelerate():
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True)
    say('rank', accelerator.process_index, 'of', accelerator.num_processes,
        'local', accelerator.local_process_index, 'main',
        accelerator.is_main_process)
    model = small_model()
    model, optimizer = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.05))
    train(model, optimizer, range(STEPS), accelerator.backward)
    leave()


def lightning():
    import logging
    import lightning.pytorch as pl
    logging.getLogger('lightning.pytorch').setLevel(logging.ERROR)

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = small_model()

        def training_step(self, data, index):
            x, y = data
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            say('rank', self.global_rank, 'step', index,
                'loss %.5f' % loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.05)

    trainer = pl.Trainer(accelerator='cpu', devices=WORLD_SIZE, strategy='ddp',
                         max_epochs=1, logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    say('rank', trainer.global_rank, 'of', trainer.world_size, 'local',
        trainer.local_rank,
        type(trainer.strategy.cluster_environment).__name__)
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(3))
    trainer.fit(Model(), torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, x.sum(dim=1, keepdim=True)),
        batch_size=8))
    leave()


def first_of(names, otherwise):
    return next((int(os.environ[n]) for n in names if n in os.environ),
                otherwise)


def open_clip():
    """As open_clip and open_flamingo read the environment: the first of many
    launchers' variables counts, Slurm's and MPI's as well."""
    local = first_of(('LOCAL_RANK', 'MPI_LOCALRANKID', 'SLURM_LOCALID',
                      'OMPI_COMM_WORLD_LOCAL_RANK'), 0)
    rank = first_of(('RANK', 'PMI_RANK', 'SLURM_PROCID',
                     'OMPI_COMM_WORLD_RANK'), 0)
    size = first_of(('WORLD_SIZE', 'PMI_SIZE', 'SLURM_NTASKS',
                     'OMPI_COMM_WORLD_SIZE'), 1)
    if 'SLURM_PROCID' in os.environ:
        os.environ.update(LOCAL_RANK=str(local), RANK=str(rank),
                          WORLD_SIZE=str(size))
        dist.init_process_group('gloo', init_method='env://', rank=rank,
                                world_size=size)
        found = 'slurm'
    else:
        dist.init_process_group('gloo', init_method='env://')
        found = 'torchrun'
    device = 'cuda:%d' % local if torch.cuda.is_available() else 'cpu'
    say(found, 'rank', dist.get_rank(), 'of', dist.get_world_size(), 'local',
        local, device)
    leave()


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return i * i


def loader():
    """Helper processes of the loader, which must not be taken for workers."""
    dist.init_process_group('gloo')
    data = Squares()
    sampler = torch.utils.data.DistributedSampler(data, shuffle=False)
    seen = [int(x) for x in torch.utils.data.DataLoader(
        data, batch_size=None, sampler=sampler, num_workers=2)]
    total = torch.tensor(sum(seen))
    dist.all_reduce(total)
    say('rank', RANK, seen, total.item())
    leave()


def record():
    from torch.distributed.elastic.multiprocessing.errors import record as wrap

    @wrap
    def main():
        dist.init_process_group('gloo')
        dist.barrier()
        if RANK == 1:
            raise ValueError('planned: 7')
        dist.barrier()
    main()


if __name__ == '__main__':
    torch.set_num_threads(1)
    globals()[sys.argv[1]](*sys.argv[2:])
