# SPDX-License-Identifier: Apache-2.0
"""Models that turn images into vectors: checkpoints of leat, names, TorchScript, exported programs, ONNX."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._errors import ArgumentError, DataError
from . import checkpoint, export, models

Forward = Callable[[Tensor], Tensor]
Detect = Callable[[list[Tensor]], list[dict[str, Tensor]]]


class Embedder:
    """``vectors`` and, where the model has a classifier, ``logits``; the side of its images.

    ``scores`` is what a model from a file returns: it may be logits. ``boxes`` is there instead when the model takes a
    list of images, as detectors of torchvision do.
    """

    def __init__(self, vectors: Forward, side: int, logits: Forward | None = None,
                 class_names: list[str] | None = None, identity: str = "", scores: Forward | None = None,
                 boxes: Detect | None = None) -> None:
        self.vectors, self.side, self.logits, self.scores, self.boxes = vectors, side, logits, scores, boxes
        self.class_names = class_names or []
        self.identity = identity


def _one(found: Any, path: str, images: int) -> Tensor:
    """Returns the first tensor of a foreign model's output, as a row for each image."""
    while isinstance(found, (tuple, list)) and found:
        found = found[0]
    if isinstance(found, dict) and found:
        found = next(iter(found.values()))
    if not isinstance(found, Tensor):
        raise DataError(f"{path}: the model returns a {type(found).__name__}, not a tensor")
    if found.ndim < 2 or found.shape[0] != images or found.numel() == 0:
        raise DataError(f"{path}: gives numbers of shape {list(found.shape)} for {images} image{'s' * (images > 1)}: a row for each "
                        f"is needed, as in [{images}, 512]")
    return found.flatten(1) if found.ndim != 4 else found.mean((2, 3))


def _digest(path: str) -> str:
    """Returns a hash of a file: the same name with other content is another model."""
    made = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            made.update(data)
    return made.hexdigest()[:16]


def from_checkpoint(path: str, device: torch.device) -> Embedder:
    """A model that ``leat train`` wrote."""
    folder = checkpoint.find(path)
    facts = checkpoint.read_state(folder)["facts"]
    classes = facts["classes"] if facts["method"] == "supervised" else 0
    net = models.build(facts["model"], facts["side"], classes)
    weights = os.path.join(folder, "model.safetensors")
    tensors = checkpoint.read_tensors(weights)
    checkpoint.load_weights(net, tensors, folder)
    net.to(device).eval()
    return Embedder(net.features, facts["side"], net if classes else None, facts["class_names"],
                    f"{facts['model']} {_digest(weights)}")


def _foreign(module: Any, path: str, notes: dict[str, Any]) -> Embedder:
    """A model from a file. Files of ``leat export --checkpoint`` contain the side of their images."""
    try:
        said = json.loads(notes[export.NOTES]) if notes[export.NOTES] else {"image_size": 224}
        side, names = int(said["image_size"]), [str(name) for name in said.get("class_names", [])]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path}: the note {export.NOTES} in it is damaged") from None

    def forward(x: Tensor) -> Tensor:
        try:
            return _one(module(x), path, len(x))
        except (AssertionError, RuntimeError) as error:
            raise _failed(error, f"{path}: fails on images of {x.shape[2]} pixels (`image_size` gives another "
                                 "size)") from None

    return Embedder(forward, side, None, names, f"{os.path.basename(path)} {_digest(path)}", forward)


def _failed(error: Exception, what: str) -> Exception:
    """Returns the error of a foreign model as one line."""
    if isinstance(error, torch.OutOfMemoryError):
        return error
    why = [line for line in str(error).splitlines() if line.strip()]
    return DataError(f"{what}: {why[-1] if why else type(error).__name__}")


def _takes_list(module: Any) -> bool:
    """Returns whether a TorchScript model takes a list of images, each in its own size."""
    arguments = module.forward.schema.arguments
    return len(arguments) > 1 and str(arguments[1].type) == "List[Tensor]"


def _detector(module: Any, path: str) -> Detect:
    """A model of boxes: dicts of boxes, labels and scores, one per image."""

    def detect(images: list[Tensor]) -> list[dict[str, Tensor]]:
        try:
            found = module(images)
        except (AssertionError, RuntimeError) as error:
            raise _failed(error, f"{path}: fails on a list of images") from None
        found = found[-1] if isinstance(found, tuple) else found  # scripted models of torchvision: losses, detections
        known = isinstance(found, list) and len(found) == len(images) and all(
            isinstance(one, dict) and one.keys() >= {"boxes", "labels", "scores"} for one in found)
        if not known:
            raise DataError(f"{path}: boxes, labels and scores are expected for each image, as models of "
                            "torchvision.models.detection give them")
        return found

    return detect


def _from_torchscript(path: str, device: torch.device) -> Embedder:
    notes: dict[str, Any] = {export.NOTES: ""}
    try:
        module = torch.jit.load(path, map_location=device, _extra_files=notes).eval()
    except (RuntimeError, ValueError) as error:
        raise DataError(f"{path}: not a TorchScript file: {str(error).splitlines()[0]}") from None
    made = _foreign(module, path, notes)
    if _takes_list(module):
        made.boxes, made.scores = _detector(module, path), None
    return made


def _from_exported(path: str, device: torch.device) -> Embedder:
    notes: dict[str, Any] = {export.NOTES: ""}
    if not zipfile.is_zipfile(path):
        raise DataError(f"{path}: not an exported program: not a zip file")
    try:
        module = torch.export.load(path, extra_files=notes).module().to(device)
    except Exception as error:
        raise DataError(f"{path}: not an exported program: {str(error).splitlines()[0]}") from None
    return _foreign(module, path, notes)


def _from_onnx(path: str, device: torch.device) -> Embedder:
    try:
        import onnxruntime  # type: ignore[import-not-found]
    except ImportError:
        raise ArgumentError(f"{path}: ONNX models need onnxruntime: pip install onnxruntime") from None
    wanted = ["CUDAExecutionProvider"] if device.type == "cuda" else []
    try:
        session = onnxruntime.InferenceSession(path, providers=[*wanted, "CPUExecutionProvider"])
    except Exception as error:
        raise DataError(f"{path}: not an ONNX model: {str(error).splitlines()[0]}") from None
    first = session.get_inputs()[0]
    sides = [n for n in first.shape[2:] if isinstance(n, int)]  # a dimension with a name accepts any size

    def forward(x: Tensor) -> Tensor:
        try:
            found = session.run(None, {first.name: x.float().cpu().numpy()})[0]
        except Exception as error:
            raise DataError(f"{path}: fails on images of {x.shape[2]} pixels (`image_size` gives another size): "
                            f"{' '.join(str(error).split())}") from None
        return _one(torch.from_numpy(found), path, len(x)).to(device)

    return Embedder(forward, sides[0] if sides else 224, identity=f"{os.path.basename(path)} {_digest(path)}", scores=forward)


_FILES = {".pt": _from_torchscript, ".ts": _from_torchscript, ".pt2": _from_exported, ".onnx": _from_onnx}


def load(name: str, side: int, device: torch.device) -> Embedder:
    """Loads the model that a user names. ``side`` 0 takes the model's own image size."""
    if os.path.exists(name):
        extension = os.path.splitext(name)[1]
        made = _FILES[extension](name, device) if extension in _FILES else from_checkpoint(name, device)
    elif name.endswith((*_FILES, ".safetensors")) or name.startswith((".", os.sep)):
        raise ArgumentError(f"model: {name}: no such file")
    else:
        net = models.backbone(name, side or 224, pretrained=True).to(device).eval()
        made = Embedder(net.features, 224, identity=name)
    made.side = side or made.side
    for_all = made.vectors
    made.vectors = torch.inference_mode()(for_all)
    return made
