# SPDX-License-Identifier: Apache-2.0
"""For Lightning: a DataModule over leat loaders.

>>> from leat.lightning import DataModule
>>> trainer.fit(model, DataModule(train="train.leat", val="val.leat", batch_size=64, image=[…]))

Lightning neither wraps nor changes a leat loader: ranks, epochs and mid-epoch checkpoints work
through the loader itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

try:
    from lightning import LightningDataModule
except ImportError:  # the older name of the package
    from pytorch_lightning import LightningDataModule  # type: ignore[assignment]

from ._loader import Loader


class DataModule(LightningDataModule):
    """Loaders for the stages of a Lightning trainer.

    ``options`` go to every loader; ``train_options``, ``val_options``, ``test_options`` and
    ``predict_options`` come on top for one. Training is shuffled and drops the last, smaller
    batch; the other stages read in order and never drop or repeat a sample.
    """

    def __init__(self, train: str | os.PathLike | None = None, val: str | os.PathLike | None = None,
                 test: str | os.PathLike | None = None, predict: str | os.PathLike | None = None, *,
                 train_options: Mapping[str, Any] | None = None,
                 val_options: Mapping[str, Any] | None = None,
                 test_options: Mapping[str, Any] | None = None,
                 predict_options: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__()
        self._paths = {"train": train, "val": val, "test": test, "predict": predict}
        in_order = {"order": "sequential", "drop_last": False}
        self._options = {
            "train": {"drop_last": True, **options, **(train_options or {})},
            "val": {**options, **in_order, **(val_options or {})},
            "test": {**options, **in_order, **(test_options or {})},
            "predict": {**options, **in_order, **(predict_options or {})},
        }
        self._loaders: list[Loader] = []
        # only for stages that have a pack: Lightning checks whether a method exists
        for stage, path in self._paths.items():
            if path is not None:
                setattr(self, f"{stage}_dataloader", self._hook(stage))

    def _hook(self, stage: str) -> Callable[[], Loader]:
        def make() -> Loader:
            path = self._paths[stage]
            assert path is not None
            loader = Loader(path, **{"as_": "torch", **self._options[stage]})
            self._loaders.append(loader)
            return loader

        return make

    def teardown(self, stage: str) -> None:
        for loader in self._loaders:
            loader.close()
        self._loaders.clear()
