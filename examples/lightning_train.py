# SPDX-License-Identifier: Apache-2.0
"""Lightning: python examples/lightning_train.py PACK [DEVICES]"""

import sys

import lightning
import torch

import leat
from leat.lightning import DataModule


class Net(lightning.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2), torch.nn.ReLU(),
                                       torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                       torch.nn.Linear(16, classes))
        self.seen = 0

    def training_step(self, batch, index):
        self.seen += len(batch.label)
        return torch.nn.functional.cross_entropy(self.net(batch.image), batch.label)

    def validation_step(self, batch, index):
        self.seen_val = getattr(self, "seen_val", 0) + len(batch.label)

    def on_train_epoch_end(self) -> None:
        total = self.all_gather(torch.tensor(self.seen)).sum().item()
        validated = self.all_gather(torch.tensor(self.seen_val)).sum().item()
        if self.global_rank == 0:
            print(f"epoch {self.current_epoch} trained {total} validated {validated}", flush=True)
        self.seen = self.seen_val = 0

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.01)


if __name__ == "__main__":
    devices = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    data = DataModule(train=sys.argv[1], val=sys.argv[1], batch_size=16, seed=1,
                      image=[leat.ops.RandomResizedCrop(32), leat.ops.ToDtype("float32")],
                      train_options={"drop_last": False})
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=devices, logger=False,
                                strategy="ddp" if devices > 1 else "auto", num_sanity_val_steps=0,
                                enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False)
    classes = int(leat.open(sys.argv[1]).column("label").max()) + 1
    trainer.fit(Net(classes), data)
