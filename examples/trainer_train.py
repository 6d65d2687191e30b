# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Trainer: python examples/trainer_train.py PACK

The Trainer asks for its loader in one method: give it the leat loader there. Batches are plain
dicts, named as the model's forward() wants them.
"""

import sys
import tempfile

import torch
from transformers import Trainer, TrainingArguments

import leat


class Net(torch.nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2), torch.nn.ReLU(),
                                       torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                       torch.nn.Linear(16, classes))

    def forward(self, pixel_values, labels):
        logits = self.net(pixel_values)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


class LeatTrainer(Trainer):
    def get_train_dataloader(self):
        def rename(batch: leat.Batch) -> dict:
            return {"pixel_values": batch.image, "labels": batch.label}

        return leat.Loader(sys.argv[1], batch_size=self.args.per_device_train_batch_size, seed=self.args.seed,
                           drop_last=self.args.dataloader_drop_last, transform=rename,
                           image=[leat.ops.RandomResizedCrop(32), leat.ops.ToDtype("float32")])


torch.manual_seed(0)
classes = int(leat.open(sys.argv[1]).column("label").max()) + 1
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, num_train_epochs=3, per_device_train_batch_size=16, use_cpu=True,
                                  learning_rate=0.01, report_to=[], save_strategy="no", disable_tqdm=True,
                                  logging_strategy="epoch")
    result = LeatTrainer(Net(classes), arguments).train()
print(f"steps {result.global_step} loss {result.training_loss:.3f}")
