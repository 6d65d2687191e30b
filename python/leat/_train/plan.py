# SPDX-License-Identifier: Apache-2.0
"""The plan of a run: made first, printed, and compared with what was measured."""

from __future__ import annotations

import json
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
    """The command line of ``leat plan`` for this run."""
    made = ["plan", "--dataset", pack, "--batch", str(o.batch_size), "--image", str(trainer.side),
            "--epochs", str(o.epochs), "--precision", _PRECISIONS.get(trainer.precision, trainer.precision)]
    if o.model in _PLANNED:
        return [*made, "--model", _PLANNED[o.model]]
    count = sum(p.numel() for p in trainer.task.net.parameters())
    return [*made, "--model", "generic", "--params", str(count)]


def make(pack: str, o: SimpleNamespace, trainer: Trainer) -> dict[str, Any] | None:
    """Prints the plan on stderr; its figures, or None when it could not be made."""
    command = [sys.executable, "-P", "-m", "leat", *words(pack, o, trainer)]
    page = subprocess.run(command, capture_output=True, text=True, check=False)
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


def compare(predicted: dict[str, Any], result: dict[str, Any], trainer: Trainer) -> dict[str, Any]:
    """Predicted against measured, printed and returned."""
    epochs = max(result["epochs"], 1)
    measured = {"images_per_s": result["images_per_s"],
                "epoch_seconds": trainer.facts.samples / max(result["images_per_s"], 1e-9),
                "vram_bytes": float(torch.cuda.max_memory_allocated()) if trainer.device.type == "cuda" else None,
                "ram_bytes": float(trainer.loader.stats()["budget_peak_bytes"]) if trainer.loader else None}
    rows = {}
    for name, places in (("images_per_s", (("rate", "samples_per_s"), ("samples_per_s",))),
                         ("epoch_seconds", (("time", "epoch_s"), ("epoch_s",), ("epoch_seconds",))),
                         ("vram_bytes", (("vram", "total"), ("vram", "bytes"), ("vram_bytes",))),
                         ("ram_bytes", (("ram", "total"), ("ram", "bytes"), ("ram_bytes",)))):
        guess = next((v for v in (_deep(predicted, *p) for p in places) if v is not None), None)
        rows[name] = {"predicted": guess, "measured": measured[name]}
        if guess is not None and measured[name]:
            trainer.say(f"plan: {name} predicted {guess:.4g}, measured {measured[name]:.4g} "
                        f"({100 * (measured[name] / guess - 1):+.0f} %)")
    rows["epochs"] = epochs  # type: ignore[assignment]
    return rows
