# SPDX-License-Identifier: Apache-2.0
"""The loaders of a training run: pipelines by method, image size and device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from .. import ops
from .._dataset import Dataset
from .._errors import ArgumentError, DataError
from .._loader import Loader
from .models import SMALL

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_DTYPES = {"16-mixed": "float16", "bf16-mixed": "bfloat16", "bf16-true": "bfloat16"}


class Facts:
    """Facts about a pack that training needs: classes, image size, fingerprint."""

    def __init__(self, path: str, label: str) -> None:
        with Dataset(path) as pack:
            self.path = path
            self.samples = len(pack)
            self.fingerprint = pack.fingerprint
            names = {f.name: f.type for f in pack.fields}
            if not self.samples:
                raise DataError(f"{path}: has no samples")
            self.image = next((f.name for f in pack.fields if f.type == "image"), "")
            if not self.image:
                raise ArgumentError(f"{path}: has no image field")
            self.labelled = names.get(label) == "int"
            self.class_names = pack.classes(label) if self.labelled else []
            self.largest = int(pack.column(label).max()) if self.labelled else -1
            self.smallest = int(pack.column(label).min()) if self.labelled else 0
            first = pack[0][self.image]
            self.side = max(first.width, first.height) if first is not None else 0  # type: ignore[attr-defined]

    def classes(self, wanted: int, label: str) -> int:
        """Returns the number of classes; raises where the labels do not fit."""
        if not self.labelled:
            raise ArgumentError(f"{self.path}: has no int field '{label}' with labels; use `method` simclr or "
                                "dino, or name the field with `label`")
        count = wanted or len(self.class_names) or self.largest + 1
        if self.largest >= count or self.smallest < 0:
            if self.smallest < 0:
                raise ArgumentError(f"{self.path}: has the label {self.smallest}, and classes are numbered from 0: leave such "
                                    "samples out, for example with leat pack --where 'label >= 0'")
            raise ArgumentError(f"{self.path}: has the label {self.largest}, but there are {count} classes (0 to {count - 1})")
        return count


def side_of(o: SimpleNamespace, facts: Facts) -> int:
    """Returns the side of the training images."""
    side = o.image_size or (facts.side if 0 < facts.side <= SMALL else 224)
    if o.size_start >= side:
        raise ArgumentError(f"size_start: {o.size_start} is not smaller than the images of {side} pixels at the end")
    return side


def side_at(o: SimpleNamespace, side: int, epoch: int) -> int:
    """Returns the side in one epoch: it grows in steps of 32, or 8 for small images, over the first 80 % of the run."""
    if not o.size_start:
        return side
    share = min(epoch / max(0.8 * o.epochs, 1), 1.0)
    step = 8 if side <= SMALL else 32
    return min(side, o.size_start + round(share * (side - o.size_start) / step) * step)


def _finish(precision: str) -> list[Any]:
    return [ops.Normalize(MEAN, STD), ops.ToDtype(_DTYPES.get(precision, "float32"))]


def _crop(o: SimpleNamespace, side: int, small: bool) -> list[Any]:
    kind = o.crop if o.crop != "auto" else "pad" if small else "resized"
    if kind == "resized":
        return [ops.RandomResizedCrop(side)]
    fit = [ops.Resize(side), ops.CenterCrop(side)]
    if kind == "none":
        return fit
    return [*fit, ops.RandomCrop(side, padding=max(side // 8, 1), padding_mode="reflect")]


def train_pipeline(o: SimpleNamespace, side: int, small: bool, precision: str) -> list[Any]:
    """Augmentations of supervised training and distillation."""
    made = _crop(o, side, small)
    if o.flip > 0:
        made.append(ops.RandomHorizontalFlip(o.flip))
    if o.jitter > 0:
        made.append(ops.ColorJitter(o.jitter, o.jitter, o.jitter, min(o.jitter / 4, 0.5)))
    made += _finish(precision)
    if o.erase > 0:
        # the mean colour, not black, so that the running statistics of norms stay as for whole images
        made.insert(-2, ops.Cutout(max(side // 4, 1), o.erase, value=[round(255 * m) for m in MEAN]))
    return made + _mixes(o)


def _mixes(o: SimpleNamespace) -> list[Any]:
    """Returns MixUp or CutMix for a share of the batches; with both, each for half of that share, never together."""
    share = o.mix_share
    if o.mixup > 0 and o.cutmix > 0:
        return [ops.MixUp(o.mixup, p=share / 2), ops.CutMix(o.cutmix, p=share / (2 - share), unmixed=True)]
    return ([ops.MixUp(o.mixup, p=share)] if o.mixup > 0 else []) + ([ops.CutMix(o.cutmix, p=share)] if o.cutmix > 0 else [])


def view_pipeline(o: SimpleNamespace, side: int, small: bool, precision: str, *,
                  scale: tuple[float, float] = (0.2, 1.0), blur: float = 0.5) -> list[Any]:
    """Returns the ops of one random view for methods without labels: crop, colours, grey, blur."""
    strength = o.jitter if o.jitter >= 0 else 0.5
    made = [ops.RandomResizedCrop(side, scale=scale)]
    if o.flip > 0:
        made.append(ops.RandomHorizontalFlip(o.flip))
    if strength > 0:
        made.append(ops.ColorJitter(0.8 * strength, 0.8 * strength, 0.8 * strength, 0.2 * strength, p=0.8))
        made.append(ops.RandomGrayscale(0.2))
    if blur > 0 and not small:
        made.append(ops.GaussianBlur(max(side // 20 * 2 + 1, 3), p=blur))
    return made + _finish(precision)


def eval_pipeline(side: int, small: bool, precision: str) -> list[Any]:
    """The middle of the image, resized."""
    before = side if small else round(side * 256 / 224)
    return [ops.Resize(before), ops.CenterCrop(side), *_finish(precision)]


def views(o: SimpleNamespace, field: str, side: int, small: bool, precision: str) -> Any:
    """Returns the images of a batch: one, or several views of each sample."""
    if o.method == "simclr":
        view = view_pipeline(o, side, small, precision)
        return {"view0": (field, view), "view1": (field, view)}
    if o.method == "dino":
        whole = view_pipeline(o, side, small, precision, scale=(0.4, 1.0))
        part = view_pipeline(o, max(side * 3 // 7 // 4 * 4, 8), small, precision, scale=(0.05, 0.4))
        return {**{f"view{i}": (field, whole) for i in range(2)},
                **{f"view{i + 2}": (field, part) for i in range(o.local_crops)}}
    return {"view0": (field, train_pipeline(o, side, small, precision))}


def train_loader(o: SimpleNamespace, facts: Facts, side: int, precision: str, device: str,
                 channels_last: bool, classes: int, world: int, run: str | None) -> Loader:
    """Opens a loader for shuffled batches of this rank."""
    small = side <= SMALL
    mixed = o.mixup > 0 or o.cutmix > 0
    return Loader(facts.path, o.batch_size, views(o, facts.image, side, small, precision), order=o.order, seed=o.seed,
                  drop_last=facts.samples >= o.batch_size * world, threads=o.threads, memory=o.memory, on_error=o.on_error,
                  fields=[o.label] if facts.labelled else [], as_="torch", channels_last=channels_last,
                  label=o.label if mixed else None, classes=classes if mixed else 0,
                  device=device, decode=o.decode, run=run)


def eval_loader(o: SimpleNamespace, facts: Facts, batch: int, side: int, precision: str, device: str,
                channels_last: bool) -> Loader:
    """Opens a loader for every sample once, in order."""
    image = {"view0": (facts.image, eval_pipeline(side, side <= SMALL, precision))}
    return Loader(facts.path, batch, image, order="sequential",
                  drop_last=False, threads=o.threads, memory=o.memory, on_error=o.on_error,
                  fields=[o.label] if facts.labelled else [], as_="torch", channels_last=channels_last,
                  device=device, decode=o.decode)
