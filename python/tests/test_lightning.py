# SPDX-License-Identifier: Apache-2.0
"""Lightning's checkpoints in the middle of an epoch hold the loader's state."""

import os
import warnings

import pytest

import leat


@pytest.mark.torch
def test_mid_epoch_checkpoint(plain, tmp_path):
    lightning = pytest.importorskip("lightning")
    import torch

    from leat.lightning import DataModule

    class Net(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3 * 8 * 8, 10)
            self.seen: list[tuple[int, list[int]]] = []

        def training_step(self, batch, index):
            self.seen.append((self.current_epoch, batch.sample_id.tolist()))
            return torch.nn.functional.cross_entropy(self.layer(batch.image.flatten(1)), batch.label)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    def fit(resume: str | None = None) -> Net:
        data = DataModule(train=plain, batch_size=10, image="Resize((8, 8)); ToDtype(f32)", seed=3,
                          order="random")
        keep = lightning.pytorch.callbacks.ModelCheckpoint(tmp_path, "step-{step}", every_n_train_steps=14,
                                                           save_top_k=-1, auto_insert_metric_name=False)
        trainer = lightning.Trainer(max_steps=25, accelerator="cpu", logger=False, callbacks=[keep],
                                    enable_progress_bar=False, enable_model_summary=False)
        net = Net()
        trainer.fit(net, data, ckpt_path=resume)
        return net

    package = os.path.dirname(leat.__file__)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        whole = fit()  # two epochs of ten batches, and five; saved after fourteen
        rest = fit(str(tmp_path / "step-14.ckpt"))
    assert len(whole.seen) == 25 and rest.seen == whole.seen[14:]
    assert not [str(w.message) for w in caught if w.filename.startswith(package) or "dataloader" in str(w.message).lower()]


@pytest.mark.torch
def test_data_module_stages(plain):
    pytest.importorskip("lightning")
    from leat.lightning import DataModule

    data = DataModule(train=plain, val=plain, batch_size=10, image="Resize((8, 8))",
                      val_options={"batch_size": 7})
    train, val = data.train_dataloader(), data.val_dataloader()
    assert (len(train), train.order, train.drop_last) == (10, "random", True)
    assert (len(val), val.order, val.batch_size) == (15, "sequential", 7)
    assert sum(len(b.label) for b in val) == 101
    data.teardown("fit")
    with pytest.raises(leat.StateError):
        iter(train)
