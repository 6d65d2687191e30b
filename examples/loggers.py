# SPDX-License-Identifier: Apache-2.0
"""The loader's figures in loggers: python examples/loggers.py PACK [FOLDER]

Writes data.jsonl, TensorBoard events where torch and tensorboard are installed, and the run file that
`leat top FOLDER/run.jsonl` shows meanwhile. For Weights & Biases: WandB(wandb.init(project="…")).
"""

import os
import sys
import time

import leat
from leat import callbacks
import tiny_data

path = tiny_data.path_or_tiny()
folder = sys.argv[2] if len(sys.argv) > 2 else "."
os.makedirs(folder, exist_ok=True)


class Printed:
    """Replaces a W&B run in this example: anything with log(dict, step=) works."""

    def log(self, data, step=None):
        print(f"step {step} samples/s {data['data/samples_per_s']:.0f} waiting {100 * data['data/wait_share']:.0f} %"
              f" | {data['data/verdict']}")


loggers = [callbacks.JsonLines(os.path.join(folder, "data.jsonl"), every=10), callbacks.WandB(Printed(), every=20)]
try:
    from torch.utils.tensorboard import SummaryWriter

    loggers.append(callbacks.TensorBoard(SummaryWriter(folder), every=10))
except ImportError:
    print("no TensorBoard here")

with leat.Loader(path, batch_size=8, seed=1, image="RandomResizedCrop(32)", callbacks=loggers,
                 run=os.path.join(folder, "run.jsonl")) as loader:
    for epoch in range(2):
        for image, label, sample_id in loader:
            time.sleep(0.005)  # the training
