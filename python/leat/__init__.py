# SPDX-License-Identifier: Apache-2.0
"""leat keeps accelerators fed: packs, loads, plans and diagnoses training data.

>>> import leat
>>> leat.pack("photos", "photos.leat")
>>> loader = leat.Loader("photos.leat", batch_size=64, image=[leat.ops.RandomResizedCrop(224)])
>>> for image, label, sample_id in loader: ...
"""

from __future__ import annotations

from . import _start  # noqa: F401, I001  first: Ctrl-C ends the command from here on

import importlib
import os as _os
from collections.abc import Sequence as _Sequence
from typing import TYPE_CHECKING
from typing import Any as _Any
from typing import Literal as _Literal

from ._errors import (AdviceWarning, ArgumentError, BudgetError, DataError, Error, ExistsError, ForkError, FormatError,
                      InternalError, LimitError, MissingKeyError, NotFoundError, SampleIndexError, StateError,
                      StorageError, UnsupportedError)
from ._leat import Tensor
from ._leat import version as __version__

if TYPE_CHECKING:
    from . import callbacks, ops
    from ._batch import Batch, Ragged
    from ._curate import curate
    from ._dataset import Dataset, Image, Sample
    from ._diagnose import Diagnosis, diagnose, judge
    from ._from_dataset import from_dataset
    from ._images import check, dedup_images, dedup_semantic
    from ._loader import Loader
    from ._mix import Mix
    from ._pack import append, export, merge, pack, split
    from ._plugin import Plugin, load_plugin, numba_signature
    from ._schema import Field
    from ._select import select
    from ._train import embed, export_model, predict, tag, train
    from ._text import decontaminate_text, dedup_text, filter_text, score_text, text_names, text_signatures
    from ._text_arrow import dedup_parquet, dedup_table, filter_parquet, filter_table
    from ._view import View, view
    from ._writer import Writer, compact, delete

# Modules that need NumPy are imported when they are first used: `import leat` is quick.
_LATER = {
    "Batch": "_batch", "Ragged": "_batch", "Dataset": "_dataset", "Image": "_dataset",
    "Sample": "_dataset", "Loader": "_loader", "Mix": "_mix", "Field": "_schema", "Writer": "_writer",
    "compact": "_writer", "delete": "_writer",
    "Plugin": "_plugin", "load_plugin": "_plugin", "numba_signature": "_plugin",
    "Diagnosis": "_diagnose", "diagnose": "_diagnose", "judge": "_diagnose",
    "dedup_parquet": "_text_arrow", "dedup_table": "_text_arrow", "filter_parquet": "_text_arrow", "filter_table": "_text_arrow", "filter_text": "_text", "dedup_text": "_text", "decontaminate_text": "_text", "score_text": "_text", "text_names": "_text", "text_signatures": "_text",
    "append": "_pack", "pack": "_pack", "export": "_pack", "merge": "_pack", "split": "_pack", "from_dataset": "_from_dataset", "ops": "ops", "lightning": "lightning",
    "callbacks": "callbacks", "train": "_train", "embed": "_train",
    "export_model": "_train", "predict": "_train", "tag": "_train", "check": "_images", "dedup_images": "_images", "select": "_select", "View": "_view", "view": "_view",
    "dedup_semantic": "_images", "curate": "_curate",
}

__all__ = [
    "AdviceWarning", "ArgumentError", "Batch", "BudgetError", "DataError", "Dataset", "Diagnosis", "Error", "ExistsError", "Field",
    "ForkError", "FormatError", "Image", "InternalError", "LimitError", "Loader", "Mix", "MissingKeyError",
    "NotFoundError",
    "Plugin", "Ragged", "Sample", "SampleIndexError", "StateError", "StorageError", "Tensor", "UnsupportedError", "View", "Writer",
    "append", "callbacks", "check", "compact", "curate", "decontaminate_text", "dedup_images", "dedup_parquet", "dedup_table", "dedup_text", "delete", "diagnose", "embed",
    "dedup_semantic",
    "export", "export_model", "filter_parquet", "filter_table", "filter_text", "from_dataset",
    "judge", "load_plugin", "merge", "numba_signature", "open", "ops", "pack", "predict", "score_text", "select", "split", "tag", "text_names",
    "text_signatures",
    "train", "view", "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'leat' has no attribute {name!r}")
    module = importlib.import_module(f".{_LATER[name]}", __name__)
    value = module if name == _LATER[name] else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def open(path: str | _os.PathLike, *, verify: bool = True, image: _Any = None,
         fields: _Sequence[str] | None = None, as_tuple: bool = False, seed: int = 0,
         orientation: _Literal["apply", "ignore"] = "apply", channels_last: bool = False,
         as_: _Literal["auto", "torch", "numpy", "jax", "dlpack"] = "auto", rgb: bool = False, follow: _Any = None,
         **roles: _Any) -> Dataset:
    """Opens a pack, or a set of shards, for random access; with ``image`` as a map-style dataset.

    ``help(leat.Dataset)`` explains the options."""
    from ._dataset import Dataset

    return Dataset(path, verify=verify, image=image, fields=fields, as_tuple=as_tuple, seed=seed,
                   orientation=orientation, channels_last=channels_last, as_=as_, rgb=rgb, follow=follow, **roles)
