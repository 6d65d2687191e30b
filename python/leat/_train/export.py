# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of ``leat train`` for other programs: TorchScript, exported programs, ONNX."""

from __future__ import annotations

import importlib.util
import json
import os
import warnings
from typing import Any

import torch

from .._errors import ArgumentError, ExistsError, StorageError, reason
from . import checkpoint, models

_KINDS = (".pt", ".pt2", ".onnx")
NOTES = "leat.json"  # in TorchScript files and exported programs: the side of the images, the names of the classes


def _load(path: str) -> tuple[models.Net, dict[str, Any]]:
    folder = checkpoint.find(path)
    facts = checkpoint.read_state(folder)["facts"]
    net = models.build(facts["model"], facts["side"], facts["classes"] if facts["method"] == "supervised" else 0)
    checkpoint.load_weights(net, checkpoint.read_tensors(os.path.join(folder, "model.safetensors")), folder)
    return net.eval(), facts


def _write(net: models.Net, example: torch.Tensor, names: list[str], path: str, kind: str) -> None:
    batch = ({0: torch.export.Dim.DYNAMIC},)
    notes = {NOTES: json.dumps({"image_size": example.shape[2], "class_names": names})}
    if kind == ".pt":
        with warnings.catch_warnings():  # sizes are fixed on purpose, and stored in the notes
            warnings.simplefilter("ignore", torch.jit.TracerWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            traced = torch.jit.trace(net, example)
            torch.jit.save(traced, path, _extra_files=notes)
    elif kind == ".pt2":
        torch.export.save(torch.export.export(net, (example,), dynamic_shapes=batch), path, extra_files=notes)
    else:
        torch.onnx.export(net, (example,), path, dynamo=True, dynamic_shapes=batch, input_names=["image"],
                          output_names=["out"], external_data=False)


def write(path: str, output: str, force: bool) -> dict[str, Any]:
    """Writes the model of a run; its input is normalised images, its output logits or vectors."""
    kind = os.path.splitext(output)[1]
    if kind not in _KINDS:
        raise ArgumentError(f"{output}: a name that ends in .pt (TorchScript), .pt2 (exported program) or .onnx is expected")
    if os.path.exists(output) and not force:
        raise ExistsError(f"{output}: already exists (use `force` to replace it)")
    if kind == ".onnx" and not all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript")):
        raise ArgumentError(f"{output}: writing ONNX needs onnx and onnxscript: pip install onnx onnxscript")
    net, facts = _load(path)
    example = torch.zeros(2, 3, facts["side"], facts["side"])
    temporary = f"{os.path.splitext(output)[0]}.partial{kind}"
    try:
        with torch.no_grad():
            _write(net, example, facts["class_names"], temporary, kind)
            width = net(example).shape[1]
        os.replace(temporary, output)
    except OSError as error:
        raise StorageError(f"{output}: {reason(error)}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return {"output": output, "model": facts["model"], "image_size": facts["side"], "width": width,
            "mean": facts["mean"], "std": facts["std"], "class_names": facts["class_names"]}
