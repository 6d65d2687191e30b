# SPDX-License-Identifier: Apache-2.0
"""Training tasks: a task turns a batch into a loss.

A task holds the network ``net`` and the other modules that its loss needs. Everything in ``state_dict()`` goes
into a checkpoint.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._errors import ArgumentError
from . import embedder, models


class Task(nn.Module):
    """The network and the loss. ``run`` is the network as it is called: compiled, or itself."""

    views = 1

    def __init__(self, net: models.Net) -> None:
        super().__init__()
        self.net = net
        self._run: list[Callable[[Tensor], Tensor]] = []

    def use(self, run: Callable[[Tensor], Tensor]) -> None:
        self._run = [run]

    def run(self, x: Tensor) -> Tensor:
        return self._run[0](x) if self._run else self.net(x)

    def loss(self, views: Sequence[Tensor], label: Tensor | None) -> Tensor:
        raise NotImplementedError

    def after_update(self, update: int, total: int) -> None:
        """Called when the weights have changed."""


class Supervised(Task):
    """Classification: cross entropy with one label, or with a mix of two."""

    def __init__(self, net: models.Net, smoothing: float) -> None:
        super().__init__(net)
        self.smoothing = smoothing

    def loss(self, views: Sequence[Tensor], label: Tensor | None) -> Tensor:
        assert label is not None
        return F.cross_entropy(self.run(views[0]).float(), label, label_smoothing=self.smoothing)


def _mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, (inside, outside) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(inside, outside, bias=i + 2 == len(widths)))
        if i + 2 < len(widths):
            layers += [nn.BatchNorm1d(outside), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class SimCLR(Task):
    """Two views of an image are near each other and far from all others of the batch."""

    views = 2

    def __init__(self, net: models.Net, dim: int, temperature: float) -> None:
        super().__init__(net)
        self.project = _mlp(net.width, net.width, dim or 128)
        self.temperature = temperature or 0.5

    def loss(self, views: Sequence[Tensor], label: Tensor | None) -> Tensor:
        # both views are in one batch, so that norms use the statistics of both
        z = F.normalize(self.project(self.run(torch.cat(list(views)))).float(), dim=1)
        n = len(z) // 2
        near = z @ z.T / self.temperature
        near = near.masked_fill(torch.eye(2 * n, dtype=torch.bool, device=z.device), -math.inf)
        target = torch.arange(2 * n, device=z.device).roll(n)
        return F.cross_entropy(near, target)


class _Prototypes(nn.Module):
    """DINO's head: a bottleneck on the sphere, then prototypes of unit length."""

    def __init__(self, width: int, dim: int) -> None:
        super().__init__()
        hidden = min(2048, 4 * width)
        self.body = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                                  nn.Linear(hidden, 256))
        self.prototypes = nn.Parameter(torch.randn(dim, 256))

    def forward(self, x: Tensor) -> Tensor:
        z = F.normalize(self.body(x).float(), dim=1)
        return z @ F.normalize(self.prototypes.float(), dim=1).T


class Dino(Task):
    """The student predicts, from any view, what a moving average of itself sees in the whole image."""

    def __init__(self, net: models.Net, dim: int, temperature: float, local: int) -> None:
        super().__init__(net)
        self.views = 2 + local
        self.head = _Prototypes(net.width, dim or 4096)
        self.teacher = copy.deepcopy(net)
        self.teacher_head = copy.deepcopy(self.head)
        for p in (*self.teacher.parameters(), *self.teacher_head.parameters()):
            p.requires_grad_(False)
        self.register_buffer("center", torch.zeros(1, dim or 4096))
        self.temperature = temperature or 0.1
        self.teacher_temperature = 0.04

    def _targets(self, whole: Sequence[Tensor]) -> list[Tensor]:
        with torch.no_grad():
            out = self.teacher_head(self.teacher.features(torch.cat(list(whole)))).float()
            targets = F.softmax((out - self.center) / self.teacher_temperature, dim=1)
            if self.training:
                self.center.lerp_(out.mean(0, keepdim=True), 0.1)
        return list(targets.chunk(2))

    def loss(self, views: Sequence[Tensor], label: Tensor | None) -> Tensor:
        targets = self._targets(views[:2])
        whole = self.head(self.run(torch.cat(list(views[:2])))).chunk(2)
        parts: Sequence[Tensor] = ()
        if len(views) > 2:  # views of one size go through the network together
            parts = self.head(self.run(torch.cat(list(views[2:])))).chunk(len(views) - 2)
        seen = [F.log_softmax(v / self.temperature, dim=1) for v in (*whole, *parts)]
        terms = [-(t * v).sum(1).mean() for i, t in enumerate(targets) for k, v in enumerate(seen) if k != i]
        return torch.stack(terms).mean()

    @torch.no_grad()
    def after_update(self, update: int, total: int) -> None:
        momentum = 1 - 0.004 * (math.cos(math.pi * update / max(total, 1)) + 1) / 2
        for mine, theirs in ((self.teacher, self.net), (self.teacher_head, self.head)):
            torch._foreach_lerp_(list(mine.parameters()), [p.detach() for p in theirs.parameters()], 1 - momentum)
            for a, b in zip(mine.buffers(), theirs.buffers()):
                a.copy_(b)


class Distill(Task):
    """The features follow a teacher's: cosine distance after a linear map."""

    def __init__(self, net: models.Net, teacher: Callable[[Tensor], Tensor], width: int) -> None:
        super().__init__(net)
        self.project = nn.Linear(net.width, width)
        self._teacher = [teacher]  # not a part of the checkpoint

    def loss(self, views: Sequence[Tensor], label: Tensor | None) -> Tensor:
        with torch.no_grad():
            target = self._teacher[0](views[0]).float()
        mine = self.project(self.run(views[0])).float()
        return 1 - F.cosine_similarity(mine, target, dim=1).mean()


# options that only these methods use
_ONLY = {"mixup": ("supervised",), "cutmix": ("supervised",), "mix_share": ("supervised",),
         "label_smoothing": ("supervised",), "tta": ("supervised",),
         "erase": ("supervised", "distill"), "crop": ("supervised", "distill"), "teacher": ("distill",),
         "dim": ("simclr", "dino"), "temperature": ("simclr", "dino"), "local_crops": ("dino",)}


def check(o: SimpleNamespace) -> None:
    """Refuses options that have no effect."""
    for name in sorted(o.given):
        if o.method not in _ONLY.get(name, (o.method,)):
            raise ArgumentError(f"{name}: has no effect with `method` {o.method}; it is for {' and '.join(_ONLY[name])}")
        if o.val is None and name in ("eval_every", "knn", "probe", "tta"):
            raise ArgumentError(f"{name}: needs `val`, a pack to evaluate the model on")
        if name == "mix_share" and o.mixup <= 0 and o.cutmix <= 0:
            raise ArgumentError("mix_share: has no effect without `mixup` or `cutmix`")


def make(o: SimpleNamespace, side: int, classes: int, device: torch.device) -> Task:
    """Returns the task of a run."""
    head = classes if o.method == "supervised" else 0
    net = models.build(o.model, side, head, checkpointing=o.checkpointing)
    if o.method == "supervised":
        return Supervised(net, o.label_smoothing)
    if o.method == "simclr":
        return SimCLR(net, o.dim, o.temperature)
    if o.method == "dino":
        return Dino(net, o.dim, o.temperature, o.local_crops)
    if o.teacher is None:
        raise ArgumentError("teacher: distill needs one: a model name, a checkpoint, or a TorchScript or exported file")
    try:
        teacher = embedder.load(o.teacher, side, device).vectors
    except ArgumentError as error:
        raise ArgumentError(f"teacher: {str(error).removeprefix('model: ')}") from None
    with torch.no_grad():
        width = teacher(torch.zeros(2, 3, side, side, device=device)).shape[1]
    return Distill(net, teacher, width)


def batch_views(batch: Any, count: int) -> list[Tensor]:
    return [batch[f"view{i}"] for i in range(count)]
