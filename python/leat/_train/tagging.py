# SPDX-License-Identifier: Apache-2.0
"""``leat.tag``: classes or boxes of each image of a pack, as columns. Parts, ranks and resuming are those of ``embed``."""

from __future__ import annotations

import os
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import ops
from .._dataset import Dataset
from .._errors import ArgumentError, DataError, StorageError, counted, reason
from . import embedding

_TOP_CLASSES, _TOP_BOXES = 5, 100
_BOX = 6  # numbers of a box: x1, y1, x2, y2, class, score


def _read_names(path: str) -> list[str]:
    """Reads the names of the classes, one per line. A repeated name gets its number, so that both stay distinct."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except OSError as error:
        raise StorageError(f"{path}: {reason(error)}") from None
    except UnicodeDecodeError:
        raise ArgumentError(f"classes: {path}: not a text file") from None
    seen: set[str] = set()
    names = []
    for i, name in enumerate(lines):
        names.append(f"{name} ({i})" if name in seen or not name else name)
        seen.add(names[-1])
    if not names:
        raise ArgumentError(f"classes: {path}: is empty")
    return names


def _scores(row: np.ndarray, activation: str) -> np.ndarray:
    """Returns the scores of the classes from the output of a model, in double precision; NaN where the output is not finite."""
    row = row.astype(np.float64)
    if activation == "none":
        return row
    if not np.isfinite(row).all():
        return np.full(row.shape, np.nan)
    if activation == "sigmoid":
        return np.exp(-np.logaddexp(0, -row))
    shifted = np.exp(row - row.max())
    return shifted / shifted.sum()


def _entropy(scores: np.ndarray) -> float:
    """Returns the entropy in nats of scores, scaled to a sum of 1."""
    kept = scores[scores > 0]
    share = kept / kept.sum() if len(kept) else kept
    return float(abs((share * np.log(share)).sum()))


class _Counted:
    """How many images have each tag."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.counts: Counter[int] = Counter()

    def classes(self, dim: int) -> dict[str, list[str]] | None:
        return {"tag": self.names} if self.names else None

    def recount(self, made: Dataset) -> np.ndarray:
        """Counts the tags of a complete pack; returns them."""
        tags = made.column("tag")
        self.counts.update(tags[tags >= 0].tolist())
        self.names = made.classes("tag")
        return tags

    def by_name(self) -> dict[str, int]:
        return {self.names[tag] if self.names else str(tag): n for tag, n in self.counts.most_common()}


class Tags(_Counted):
    """Columns of the best class, its score, and the next best classes."""

    kind = "tags"

    def __init__(self, o: SimpleNamespace, names: list[str]) -> None:
        super().__init__(names)
        self.top, self.activation, self.logits, self.model = o.top or _TOP_CLASSES, o.activation, o.logits, o.model
        self.not_finite, self.given = 0, bool(o.classes)

    def fit(self, dim: int) -> None:
        """Checks that there is a name for each class: fewer names of a checkpoint are ignored, fewer given names are an error."""
        if self.given and len(self.names) != dim:
            raise ArgumentError(f"classes: {counted(len(self.names), 'name')}, but {self.model} gives {counted(dim, 'score')}")
        self.names = self.names if len(self.names) == dim else []

    def check(self, found: Any) -> Any:
        """Checks the output of the model for a batch: rows of scores."""
        self.fit(found.shape[1])
        return found

    def fields(self, dim: int) -> dict[str, Any]:
        self.fit(dim)
        k = min(self.top, dim)
        made: dict[str, Any] = {"tag": int, "tag_score": float, "tag_margin": float, "tag_entropy": float,
                                "tags": ("int32", (k,)), "tag_scores": ("float32", (k,))}
        return {**made, "logits": ("float32", (dim,))} if self.logits else made

    def sample(self, row: np.ndarray) -> dict[str, Any]:
        scores = _scores(row, self.activation)
        if not np.isfinite(scores).all():
            self.not_finite += 1
            return {**self.missing(len(row)), **({"logits": row} if self.logits else {})}
        order = np.argsort(-row, kind="stable")
        best = order[:self.top]
        self.counts[int(best[0])] += 1
        second = float(scores[order[1]]) if len(order) > 1 else 0.0
        made = {"tag": int(best[0]), "tag_score": float(scores[best[0]]), "tag_margin": float(scores[best[0]]) - second,
                "tag_entropy": _entropy(scores), "tags": best.astype(np.int32), "tag_scores": scores[best].astype(np.float32)}
        return {**made, "logits": row} if self.logits else made

    def missing(self, dim: int) -> dict[str, Any]:
        k, none = min(self.top, dim), float("nan")
        made: dict[str, Any] = {"tag": -1, "tag_score": none, "tag_margin": none, "tag_entropy": none,
                                "tags": np.full(k, -1, np.int32), "tag_scores": np.full(k, none, np.float32)}
        return {**made, "logits": np.full(dim, none, np.float32)} if self.logits else made

    def facts(self, dim: int) -> dict[str, Any]:
        return {"counts": self.by_name(), "not_finite": self.not_finite}

    def recall(self, made: Dataset, wanted: np.ndarray) -> dict[str, Any]:
        self.not_finite = int(((self.recount(made) < 0) & wanted).sum())
        return self.facts(0)


class Boxes(_Counted):
    """Columns of the best boxes. A row of a part has the number of boxes, or -1 if any is not finite, then six numbers
    per box."""

    def __init__(self, o: SimpleNamespace, names: list[str]) -> None:
        super().__init__(names)
        self.top, self.model, self.total, self.not_finite = o.top or _TOP_BOXES, o.model, 0, 0
        self.kind = f"boxes {self.top} v2"

    def pack(self, found: list[Any]) -> np.ndarray:
        rows = np.zeros((len(found), 1 + _BOX * self.top), np.float32)
        for row, one in zip(rows, found):
            boxes, labels, scores = (one[name].float().cpu().numpy() for name in ("boxes", "labels", "scores"))
            if boxes.shape != (len(scores), 4) or labels.shape != scores.shape:
                raise DataError(f"{self.model}: gives {len(scores)} scores for boxes of shape {boxes.shape}")
            if not all(np.isfinite(a).all() for a in (boxes, labels, scores)):
                row[0] = -1
                continue
            if len(labels) and labels.min() < 0:
                raise DataError(f"{self.model}: gives the class {int(labels.min())}: classes are 0 or more")
            if len(labels) and self.names and labels.max() >= len(self.names):
                raise ArgumentError(f"classes: {counted(len(self.names), 'name')}, but {self.model} gives the class {int(labels.max())}")
            best = np.argsort(-scores, kind="stable")[:self.top]
            row[0] = len(best)
            row[1:1 + _BOX * len(best)] = np.column_stack([boxes, labels, scores])[best].ravel()
        return rows

    def fields(self, dim: int) -> dict[str, Any]:
        return {"tag": int, "tag_score": float, "box_count": int, "boxes": ("float32", (None, 4)),
                "box_tags": ("int32", (None,)), "box_scores": ("float32", (None,))}

    def sample(self, row: np.ndarray) -> dict[str, Any]:
        count = int(row[0])
        if count < 0:
            self.not_finite += 1
            return self.missing(0)
        found = row[1:1 + _BOX * count].reshape(count, _BOX)
        tag, score = (int(found[0, 4]), float(found[0, 5])) if count else (-1, 0.0)
        if count:
            self.counts[tag] += 1
        self.total += count
        return {"tag": tag, "tag_score": score, "box_count": count, "boxes": np.ascontiguousarray(found[:, :4]),
                "box_tags": found[:, 4].astype(np.int32), "box_scores": np.ascontiguousarray(found[:, 5])}

    def missing(self, dim: int) -> dict[str, Any]:
        return {"tag": -1, "tag_score": float("nan"), "box_count": 0, "boxes": np.zeros((0, 4), np.float32),
                "box_tags": np.zeros(0, np.int32), "box_scores": np.zeros(0, np.float32)}

    def facts(self, dim: int) -> dict[str, Any]:
        return {"counts": self.by_name(), "boxes": self.total, "not_finite": self.not_finite}

    def recall(self, made: Dataset, wanted: np.ndarray) -> dict[str, Any]:
        self.recount(made)
        self.not_finite = int((np.isnan(made.column("tag_score")) & wanted).sum())
        self.total = int(made.column("box_count").sum())
        return self.facts(0)


def _boxes_work(o: SimpleNamespace, made: Any, device: Any, columns: Boxes) -> embedding.Work:
    """Returns the work for a detector, which gets a list of images in their own size, with values from 0 to 1."""
    import torch

    given = [name for name, value in (("image_size", o.image_size), ("logits", o.logits),
                                      ("activation", o.activation != "softmax")) if value]
    if given:
        raise ArgumentError(f"{given[0]}: has no effect on a model of boxes")
    cast = torch.autocast(device.type, {"16-mixed": torch.float16}.get(o.precision, torch.bfloat16),
                          enabled=o.precision != "32")

    @torch.inference_mode()
    def compute(images: list[Any]) -> np.ndarray:
        with cast:
            return columns.pack(made.boxes([image.to(device) for image in images]))

    return embedding.Work(compute, np.asarray, [ops.Normalize((0, 0, 0), (1, 1, 1)), ops.ToDtype("float32")], "cpu",
                          "torch", made.identity, columns, collate="list")


def prepare(o: SimpleNamespace) -> embedding.Work:
    """Returns the model and the columns that it makes."""
    if not os.path.exists(o.model):
        raise ArgumentError(f"model: {o.model}: no such file or run of leat train (models of torchvision and timm: save "
                            "them as TorchScript or ONNX)")
    names = _read_names(o.classes) if o.classes else []
    made, device = embedding.load_model(o)
    names = names or made.class_names
    if made.boxes is not None:
        return _boxes_work(o, made, device, Boxes(o, names))
    forward = made.logits or made.scores
    if forward is None:
        raise ArgumentError(f"model: {o.model} has no classifier: give a run of leat train --method supervised, or a "
                            "TorchScript, exported or ONNX file that gives scores of classes")
    columns = Tags(o, names)
    return embedding.model_work(o, made, device, lambda image: columns.check(forward(image)), columns)
