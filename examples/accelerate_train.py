# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Accelerate: torchrun --nproc-per-node 2 examples/accelerate_train.py PACK

The model and the optimizer are prepared; the loader need not be (prepare() returns it
unchanged): it already yields this rank's share, and Accelerate's own sharding would split it again.
"""

import sys

import torch
from accelerate import Accelerator

import leat

accelerator = Accelerator(cpu=True)
loader = leat.Loader(sys.argv[1], batch_size=16, seed=1, drop_last=True,
                     image=[leat.ops.RandomResizedCrop(32), leat.ops.ToDtype("float32")])
classes = int(leat.open(sys.argv[1]).column("label").max()) + 1
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                            torch.nn.Flatten(), torch.nn.Linear(16, classes))
model, optimizer, prepared = accelerator.prepare(model, torch.optim.Adam(model.parameters(), 0.01), loader)
assert prepared is loader

for epoch in range(3):
    seen = torch.zeros(1, dtype=torch.int64)
    for image, label, sample_id in loader:
        image, label = image.to(accelerator.device), label.to(accelerator.device)
        loss = torch.nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        seen += len(label)
    total = accelerator.reduce(seen).item()
    if accelerator.is_main_process:
        print(f"epoch {epoch} ranks {accelerator.num_processes} ({loader.rank_source}) "
              f"loss {loss.item():.3f} seen {total}")
# a model that still holds the process group keeps its threads alive into the interpreter's end, where they may abort
model, optimizer = accelerator.free_memory(model, optimizer)
del loss, prepared
accelerator.end_training()
