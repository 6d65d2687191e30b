# SPDX-License-Identifier: Apache-2.0
"""Several processes: torchrun --nproc-per-node 2 examples/torch_ddp.py PACK

The loader finds its rank from torch.distributed. Training drops the last, smaller global batch so
that all ranks step together; evaluation sees every sample exactly once over all ranks.
"""

import gc
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import leat

dist.init_process_group("gloo")
pipeline = [leat.ops.RandomResizedCrop(32), leat.ops.ToDtype("float32")]
train = leat.Loader(sys.argv[1], batch_size=16, image=pipeline, seed=1, drop_last=True)
test = leat.Loader(sys.argv[1], batch_size=16, image="Resize((32, 32)); ToDtype(f32)", order="sequential")
classes = int(leat.open(sys.argv[1]).column("label").max()) + 1
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
    torch.nn.Linear(16, classes)))
optimizer = torch.optim.Adam(model.parameters(), 0.01)

for epoch in range(3):
    loss = None
    for image, label, sample_id in train:
        loss = torch.nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if loss is None:
        break  # all ranks: each has the same number of batches
    count = torch.zeros(3, dtype=torch.int64)  # seen, sum of their numbers, right
    with torch.no_grad():
        for image, label, sample_id in test:
            right = (model.module(image).argmax(1) == label).sum() if len(label) else torch.tensor(0)
            count += torch.stack([torch.tensor(len(label)), sample_id.sum(), right])
    dist.all_reduce(count)
    if dist.get_rank() == 0:
        seen, ids, right = count.tolist()
        print(f"epoch {epoch} ranks {train.world_size} ({train.rank_source}) loss {loss.item():.3f} "
              f"seen {seen} ids {ids} accuracy {right / seen:.2f}")
trained = loss is not None
del model, optimizer, loss  # they hold the process group: its threads would live on into the interpreter's end
gc.collect()  # DDP is part of reference cycles
first = dist.get_rank() == 0
dist.destroy_process_group()
if not trained:  # an exit code that a script sees
    if first:
        print(f"{sys.argv[1]}: no batch: drop_last needs at least {16 * train.world_size} samples for {train.world_size} ranks "
              "of 16", file=sys.stderr)
    sys.exit(1)
