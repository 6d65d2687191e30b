# SPDX-License-Identifier: Apache-2.0
"""The plan of a run: made first, printed, and compared with what was measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .loop import Trainer

_PLANNED = {"resnet18": "resnet18", "resnet34": "resnet34", "resnet50": "resnet50", "resnet101": "resnet101",
            "vit_s": "vit_s", "vit_b": "vit_b", "convnext_t": "convnext_t"}
_PRECISIONS = {"32": "fp32", "tf32": "fp32"}


def words(pack: str, o: SimpleNamespace, trainer: Trainer) -> list[str]:
    """Returns the command line of ``leat plan`` for this run."""
    made = ["plan", "--dataset", pack, "--batch", str(o.batch_size), "--image", str(trainer.side),
            "--epochs", str(o.epochs), "--dtype", "f16" if "16" in trainer.precision else "f32", "--order", o.order]
    made += ["--threads", str(o.threads)] if o.threads else []
    made += ["--memory", str(o.memory)] if o.memory else []
    local = int(os.environ.get("LOCAL_WORLD_SIZE", trainer.ranks.world))
    made += ["--gpus", str(local if _on_gpu(trainer) else 0), "--nodes", str(max(trainer.ranks.world // max(local, 1), 1)),
             "--model", _PLANNED.get(o.model, "generic")]
    return made + _step(o, trainer) if _on_gpu(trainer) else made


def _step(o: SimpleNamespace, trainer: Trainer) -> list[str]:
    """Returns the options of a training step, which is planned for GPUs only."""
    made = ["--optimizer", _optimizer(o, trainer), "--precision", _PRECISIONS.get(trainer.precision, trainer.precision)]
    made += ["--lr", f"{trainer.base_lr:g}"] if o.scale_lr else []
    if trainer.compiles():
        made.append("--compile")
    if o.model in _PLANNED:
        return made
    count = sum(p.numel() for p in trainer.task.net.parameters())
    kept, macs = _cost(trainer)
    return [*made, "--params", str(count), "--activation-bytes", str(max(kept, 1)),
            "--gmacs", f"{macs / 1e9:.6g}"]


def _on_gpu(trainer: Trainer) -> bool:
    return trainer.device.type == "cuda"


def _optimizer(o: SimpleNamespace, trainer: Trainer) -> str:
    """Returns the optimizer as the plan names it; the plan counts the bytes of its state."""
    if trainer.optimizer_name == "sgd":
        return "momentum" if o.momentum > 0 else "sgd"
    return "adamw"  # LAMB has as much state


def _cost(trainer: Trainer) -> tuple[int, float]:
    """Measures bytes of activations and multiply-adds per sample in a forward pass over two samples."""
    from torch.utils.flop_counter import FlopCounterMode  # imported here because it imports triton

    net, kept = trainer.task.net, [0]

    def count(module: Any, inputs: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            kept[0] += output.numel() * (2 if "16" in trainer.precision else 4)

    hooks = [m.register_forward_hook(count) for m in net.modules() if not list(m.children())]
    training = net.training
    net.eval()
    image = torch.zeros(2, 3, trainer.side, trainer.side, device=trainer.device,
                        dtype=next(net.parameters()).dtype)
    try:
        with torch.no_grad(), FlopCounterMode(display=False) as flops:
            net(image)
    finally:
        net.train(training)
        for hook in hooks:
            hook.remove()
    return kept[0] // 2, flops.get_total_flops() / 4


def make(pack: str, o: SimpleNamespace, trainer: Trainer) -> dict[str, Any] | None:
    """Prints the plan on stderr, unless quiet; returns its figures, or None when it could not be made."""
    command = [sys.executable, "-P", "-m", "leat", *words(pack, o, trainer)]
    page = subprocess.run(command, capture_output=True, text=True, check=False)
    if not o.quiet:
        print(page.stdout or page.stderr, file=sys.stderr, flush=True)
    found = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    try:
        return json.loads(found.stdout)
    except ValueError:
        return None


def _deep(values: Any, *names: str) -> float | None:
    for name in names:
        values = values.get(name) if isinstance(values, dict) else None
    return float(values) if isinstance(values, (int, float)) else None


def _loader_bytes(predicted: dict[str, Any]) -> float | None:
    """Returns the bytes that the loader is expected to hold. The plan's budget is larger: with it, work never waits."""
    parts = [_deep(predicted, "ram", f"{name}_bytes") for name in ("queue", "assembling", "borrowed", "pages", "workers")]
    return None if None in parts else sum(parts)  # type: ignore[arg-type]


def compare(predicted: dict[str, Any], result: dict[str, Any], trainer: Trainer) -> dict[str, Any]:
    """Compares predicted with measured values; prints and returns both."""
    on_gpu = _on_gpu(trainer)
    rate = _deep(predicted, "speed", "samples_per_s", "mid") if on_gpu else None
    if not on_gpu:
        trainer.say("plan: how fast a CPU trains a model is not predicted")
    measured = {"images_per_s": result["images_per_s"],
                "epoch_seconds": trainer.facts.samples / max(result["images_per_s"], 1e-9),
                "vram_bytes": float(torch.cuda.max_memory_allocated()) if on_gpu else None,
                "loader_bytes": float(result["loader_bytes"])}
    vram = _deep(predicted, "vram", "total_bytes")
    if vram:  # PyTorch does not see the driver's context
        vram -= _deep(predicted, "vram", "context_bytes") or 0
    guesses = {"images_per_s": rate, "epoch_seconds": trainer.facts.samples / rate if rate else None,
               "vram_bytes": vram,
               "loader_bytes": _loader_bytes(predicted)}
    for name, guess in guesses.items():
        if guess and measured[name]:
            trainer.say(f"plan: {name} predicted {guess:.4g}, measured {measured[name]:.4g} "
                        f"({100 * (measured[name] / guess - 1):+.0f} %)")
    return {name: {"predicted": guesses[name], "measured": measured[name]} for name in guesses}
