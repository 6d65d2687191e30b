# SPDX-License-Identifier: Apache-2.0
"""Optimizers, learning rate schedules, and the moving average of the weights.

A schedule is a function of the update's number alone: resuming needs no state of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

# learning rate for 256 samples, weight decay
_DEFAULTS = {"sgd": (0.5, 5e-5), "adamw": (2.5e-4, 0.05), "lamb": (1e-3, 0.02)}


class Sgd:
    """SGD with Nesterov momentum, as ``torch.optim.SGD`` computes it.

    Optimizers of torch import its compiler, which takes as long as importing torch: seconds of a run
    that takes a minute.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float, momentum: float) -> None:
        self.param_groups = [{"lr": lr, **group} for group in groups]
        self.momentum = momentum
        self.state: dict[Tensor, Tensor] = {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self._all():
            p.grad = None

    def _all(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            change: Any = [p.grad for p in params]
            if not params:
                continue
            if group["weight_decay"]:
                change = torch._foreach_add(change, params, alpha=group["weight_decay"])
            if self.momentum:
                for p, c in zip(params, change):
                    if p not in self.state:
                        self.state[p] = torch.zeros_like(c)
                kept = [self.state[p] for p in params]
                torch._foreach_mul_(kept, self.momentum)
                torch._foreach_add_(kept, change)
                change = torch._foreach_add(change, kept, alpha=self.momentum)
            torch._foreach_add_(params, change, alpha=-group["lr"])

    def state_dict(self) -> dict[str, Any]:
        return {"state": {i: {"momentum_buffer": self.state[p]} for i, p in enumerate(self._all()) if p in self.state}}

    def load_state_dict(self, given: dict[str, Any]) -> None:
        every = self._all()
        self.state = {every[i]: row["momentum_buffer"].to(every[i].device, every[i].dtype)
                      for i, row in given["state"].items()}


class Lamb(torch.optim.Optimizer):
    """Adam whose step is scaled, per tensor, by the norm of the weights over that of the step."""

    def __init__(self, params: Iterable[Any], lr: float, weight_decay: float = 0.0,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = torch.zeros(())
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                state["step"] += 1
                t = float(state["step"])
                mean, square = state["exp_avg"], state["exp_avg_sq"]
                mean.lerp_(p.grad, 1 - first)
                square.mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
                update = mean / (1 - first**t) / ((square / (1 - second**t)).sqrt_().add_(group["eps"]))
                ratio = torch.ones((), device=p.device)
                if group["weight_decay"] > 0:
                    update.add_(p, alpha=group["weight_decay"])
                    weights, step = p.norm().float(), update.norm().float()
                    ratio = torch.where((weights > 0) & (step > 0), weights / step, ratio)
                p.sub_(update * (ratio * group["lr"]).to(update.dtype))


def groups(modules: Iterable[nn.Module], weight_decay: float) -> list[dict[str, Any]]:
    """Parameters in two groups: norms, biases and other vectors are not decayed."""
    decayed, plain = [], []
    for module in modules:
        for p in module.parameters():
            if p.requires_grad:
                (decayed if p.ndim > 1 else plain).append(p)
    return [{"params": part, "weight_decay": decay}
            for part, decay in ((decayed, weight_decay), (plain, 0.0)) if part]


def name_of(o: SimpleNamespace, model_name: str) -> str:
    """Returns the name of the optimizer: --optimizer, or the one that suits the model."""
    if o.optimizer != "auto":
        return o.optimizer
    return "sgd" if "resnet" in model_name else "adamw"


def make(o: SimpleNamespace, name: str, modules: Iterable[nn.Module],
         on_gpu: bool) -> tuple[Any, float]:
    """Returns the optimizer and its learning rate for 256 samples."""
    lr, decay = _DEFAULTS[name]
    lr = o.lr or lr
    parts = groups(modules, o.weight_decay if o.weight_decay >= 0 else decay)
    if name == "sgd":
        return Sgd(parts, lr, o.momentum), lr
    if name == "adamw":
        return torch.optim.AdamW(parts, lr, fused=on_gpu, foreach=None if on_gpu else True), lr
    return Lamb(parts, lr), lr


class Schedule:
    """Learning rate of each update, as a share of the peak."""

    def __init__(self, kind: str, total: int, warmup: int) -> None:
        self.kind, self.total, self.warmup = kind, max(total, 1), warmup

    def share(self, update: int) -> float:
        if update < self.warmup:
            return (update + 1) / (self.warmup + 1)
        if self.kind == "constant":
            return 1.0
        done = min((update - self.warmup) / max(self.total - self.warmup, 1), 1.0)
        return 1.0 - done if self.kind == "onecycle" else 0.5 * (1.0 + math.cos(math.pi * done))


def schedule(o: SimpleNamespace, updates_per_epoch: int, total: int) -> Schedule:
    epochs = total / max(updates_per_epoch, 1)
    warmup = o.warmup if o.warmup >= 0 else min(5.0, 0.2 * epochs)
    return Schedule(o.schedule, total, min(round(warmup * updates_per_epoch), total))


class Average:
    """Exponential moving average of parameters and of the running statistics of norms.

    Statistics of the newest weights do not fit averaged weights. Counters are copied.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.decay = decay
        self.tensors = {name: t.detach().clone() for name, t in net.state_dict().items()}
        self._mean = [name for name, t in self.tensors.items() if t.is_floating_point()]
        self._copied = [name for name, t in self.tensors.items() if not t.is_floating_point()]

    @torch.no_grad()
    def update(self, net: nn.Module, updates: int) -> None:
        now = net.state_dict()
        decay = min(self.decay, (1 + updates) / (10 + updates))  # early weights are forgotten quickly
        mine = [self.tensors[name] for name in self._mean]
        torch._foreach_lerp_(mine, [now[name].detach() for name in self._mean], 1 - decay)
        if self._copied:
            torch._foreach_copy_([self.tensors[name] for name in self._copied], [now[name] for name in self._copied])

    def swap(self, net: nn.Module) -> None:
        """Exchanges the average with the weights of ``net``; a second call exchanges them back."""
        with torch.no_grad():
            for name, t in net.state_dict().items():
                kept: Tensor = t.detach().clone()
                t.copy_(self.tensors[name])
                self.tensors[name] = kept
