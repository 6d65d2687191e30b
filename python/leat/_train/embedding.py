# SPDX-License-Identifier: Apache-2.0
"""``leat.embed``: a vector for each image of a pack.

The pack is cut into parts of whole batches. A part is computed by one rank, always in the same batches,
and appears under its name when it is whole. So the rows depend neither on the number of ranks nor on
where a run was interrupted.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _leat, _rank, ops
from .._dataset import Dataset
from .._errors import ArgumentError, ExistsError, StateError, StorageError
from .._loader import Loader
from .._writer import Writer

_PART = 32  # batches of a part
_LAUNCHES = ("TORCHELASTIC_RUN_ID", "SLURM_STEP_ID", "SLURM_JOB_ID", "MASTER_PORT")  # differ between launches
_TINY_SIDE = 32
_DTYPES = {"16-mixed": "float16", "bf16-mixed": "bfloat16"}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Compute = Callable[[Any], Any]


class _Work:
    """The model as a function of a batch, and how its images are made."""

    def __init__(self, compute: Compute, fetch: Callable[[Any], np.ndarray], pipeline: list[Any], device: str,
                 as_: str, identity: str, class_names: list[str], channels_last: bool) -> None:
        self.compute, self.fetch, self.pipeline, self.device, self.as_ = compute, fetch, pipeline, device, as_
        self.identity, self.class_names, self.channels_last = identity, class_names, channels_last


def _tiny_rows(image: np.ndarray) -> np.ndarray:
    if image.dtype != np.uint8 or image.shape[-1] != 3:
        raise ArgumentError(f"model: tiny takes 8-bit images of 1, 3 or 4 channels, not {image.dtype} with "
                            f"{image.shape[-1]}: give another model")
    return np.frombuffer(_leat.tiny(image), np.float32).reshape(len(image), -1)


def _tiny() -> _Work:
    pipeline = [ops.Resize((_TINY_SIDE, _TINY_SIDE), like="fast")]
    return _Work(_tiny_rows, np.asarray, pipeline, "cpu", "numpy", "tiny 1", [], True)


def _by_model(o: SimpleNamespace) -> _Work:
    """A model of PyTorch or onnxruntime."""
    try:
        import torch
    except ImportError:
        raise ArgumentError(f"model: {o.model} needs PyTorch: pip install torch; or use --model tiny") from None
    from . import distributed, embedder, models

    kind = distributed.accelerator(o.accelerator)
    device = torch.device("cpu")
    if kind == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0") or 0) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    made = embedder.load(o.model, o.image_size, device)
    if o.logits and made.logits is None:
        raise ArgumentError(f"logits: {o.model} has no classifier: give a run of leat train --method supervised")
    forward = torch.inference_mode()(made.logits) if o.logits else made.vectors
    cast = torch.autocast(kind, {"16-mixed": torch.float16}.get(o.precision, torch.bfloat16),
                          enabled=o.precision != "32")
    before = made.side if made.side <= models.SMALL else round(made.side * 256 / 224)
    pipeline = [ops.Resize(before), ops.CenterCrop(made.side), ops.Normalize(MEAN, STD),
                ops.ToDtype(_DTYPES.get(o.precision, "float32"))]

    def compute(image: Any) -> Any:
        with cast:
            return forward(image).float()

    return _Work(compute, lambda made: made.cpu().numpy(), pipeline, str(device), "torch", made.identity, made.class_names, False)


def _identity(o: SimpleNamespace, work: _Work, pack: Dataset) -> dict[str, Any]:
    """What the parts of an interrupted run must share."""
    return {"pack": pack.fingerprint, "model": work.identity, "batch_size": o.batch_size, "dtype": o.dtype,
            "precision": o.precision, "logits": o.logits, "ops": ops.text(work.pipeline)}


class _Parts:
    """The folder PACK.parts: one file per part, written under another name and renamed."""

    def __init__(self, o: SimpleNamespace, identity: dict[str, Any], rows: int, first: bool) -> None:
        self.folder = o.output + ".parts"
        self.rows, self.step = rows, o.batch_size * _PART
        self.dtype = np.dtype(o.dtype)
        note = os.path.join(self.folder, "run.json")
        if os.path.isdir(self.folder) and first:
            if not o.resume:
                if not o.force:
                    raise ExistsError(f"{self.folder}: an interrupted run is there (use --resume to continue it, "
                                      "--force to start again)")
                shutil.rmtree(self.folder)
            elif _read_note(note) not in (None, identity):
                raise ArgumentError(f"{self.folder}: the interrupted run had another model, pack or settings (use "
                                    "--force without --resume to start again)")
        try:
            os.makedirs(self.folder, exist_ok=True)
            if first:
                _replace(note, json.dumps(identity).encode())
        except OSError as error:
            raise StorageError(f"{self.folder}: {error.strerror}") from None

    def count(self) -> int:
        return -(-self.rows // self.step)

    def path(self, part: int) -> str:
        return os.path.join(self.folder, f"{part:08d}.npy")

    def missing(self) -> list[int]:
        return [part for part in range(self.count()) if not os.path.exists(self.path(part))]

    def bounds(self, part: int) -> tuple[int, int]:
        return part * self.step, min((part + 1) * self.step, self.rows)

    def write(self, part: int, rows: np.ndarray) -> None:
        temporary = self.path(part) + f".{os.getpid()}"
        try:
            with open(temporary, "wb") as file:
                np.save(file, rows.astype(self.dtype, copy=False))
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, self.path(part))
        except OSError as error:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise StorageError(f"{self.path(part)}: {error.strerror}; --resume continues") from None

    def read(self) -> Iterator[np.ndarray]:
        for part in range(self.count()):
            yield np.load(self.path(part), mmap_mode="r")


def _read_note(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _replace(path: str, data: bytes) -> None:
    with open(path + ".new", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def _results(batches: Loader, work: _Work) -> Iterator[np.ndarray]:
    """Results of all batches, in order. A device has the next batch to work on while a result is fetched."""
    running: Any = None
    for batch in batches:
        queued = work.compute(batch["image"])
        del batch
        if running is not None:
            yield work.fetch(running)
        running = queued
    if running is not None:
        yield work.fetch(running)


def _compute(pack: str, o: SimpleNamespace, work: _Work, parts: _Parts, mine: list[int]) -> tuple[int, str]:
    """Computes parts of this rank; how many images, and the doctor's verdict."""
    if not mine:
        return 0, ""
    with Dataset(pack) as opened:
        field = next((f.name for f in opened.fields if f.type == "image"), None)
    rows = np.concatenate([np.arange(*parts.bounds(part)) for part in mine])
    done, at, verdict = 0, 0, ""
    kept: list[np.ndarray] = []
    shown = time.monotonic()
    writing: Future[None] | None = None  # a part is written while the next one is computed
    with ThreadPoolExecutor(1) as writer, Loader(
            pack, o.batch_size, {"image": (field, work.pipeline)}, order="sequential", drop_last=False,
            indices=rows, threads=o.threads, memory=o.memory, fields=[], as_=work.as_, device=work.device,
            decode=o.decode, rank=0, world_size=1, channels_last=work.channels_last) as loader:
        loader.doctor()
        for made in _results(loader, work):
            kept.append(made)
            done += len(made)
            first, end = parts.bounds(mine[at])
            if sum(map(len, kept)) == end - first:
                if writing is not None:
                    writing.result()
                writing = writer.submit(parts.write, mine[at], np.concatenate(kept))
                kept, at = [], at + 1
            if not o.quiet and time.monotonic() - shown > 2:
                shown = time.monotonic()
                print(f"{done}/{len(rows)} images", file=sys.stderr, flush=True)
        verdict = loader.doctor().verdict
        if writing is not None:
            writing.result()
    if at != len(mine):
        raise StateError(f"{pack}: {len(rows)} images were expected, {done} came")
    return done, verdict


def _assemble(pack: str, o: SimpleNamespace, parts: _Parts, work: _Work) -> int:
    """Writes the pack of all rows; the length of a row."""
    first = np.load(parts.path(0), mmap_mode="r")
    dim = first.shape[1]
    name = "logits" if o.logits else "vector"
    fields: dict[str, Any] = {name: (o.dtype, (dim,))}
    if o.logits:
        fields["label"] = int
    classes = {"label": work.class_names} if o.logits and len(work.class_names) == dim else None
    with Dataset(pack) as source, Writer(o.output, fields, replace=o.force, classes=classes, provenance={
            "embedded": os.path.basename(pack), "fingerprint": f"{source.fingerprint:x}", "model": work.identity}) as out:
        at = 0
        for rows in parts.read():
            if rows.shape[1] != dim:
                raise StateError(f"{parts.folder}: parts of different length; start again with --force")
            for key, row in zip(source.keys[at:at + len(rows)], rows):
                out.append({name: row, "label": int(row.argmax())} if o.logits else {name: row}, key=key)
            at += len(rows)
    if o.npy:
        _write_npy(o.output, parts, dim)
    shutil.rmtree(parts.folder)
    return dim


def _npy_path(output: str) -> str:
    return os.path.splitext(output)[0] + ".npy"


def _check_free(path: str, o: SimpleNamespace, magic: bytes, kind: str) -> None:
    """Before hours of work: nothing is at the path, or, with --force, a file of the same kind."""
    if not os.path.exists(path):
        return
    if not o.force:
        raise ExistsError(f"{path}: already exists (use --force to replace it)")
    try:
        with open(path, "rb") as file:
            head = file.read(len(magic))
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from None
    if head not in (b"", magic):
        raise ArgumentError(f"{path}: is not a {kind}, and only a {kind} may be replaced; give another name")


def _write_npy(output: str, parts: _Parts, dim: int) -> None:
    path = _npy_path(output)
    whole = np.lib.format.open_memmap(path + ".new", "w+", parts.dtype, (parts.rows, dim))
    at = 0
    for rows in parts.read():
        whole[at:at + len(rows)] = rows
        at += len(rows)
    whole.flush()
    os.rename(path + ".new", path)


def _wait_for(parts: _Parts) -> None:
    """Ranks need no network: each waits until the others' parts are there."""
    while parts.missing():
        time.sleep(0.05)


def run(pack: str, o: SimpleNamespace) -> dict[str, Any]:
    """Embeds as one rank of those that the launcher started."""
    rank, world, _ = _rank.detect(None, None)
    begin = time.perf_counter()
    if os.path.exists(o.output) and os.path.exists(pack) and os.path.samefile(o.output, pack):
        raise ArgumentError(f"{o.output}: is the pack that is read; write the vectors to another one")
    _check_free(o.output, o, b"\x89LEAT\r\n\x1a", "pack")
    if o.npy:
        _check_free(_npy_path(o.output), o, b"\x93NUMPY", "NumPy file")
    if o.model == "tiny" and o.logits:
        raise ArgumentError("logits: tiny has no classifier: give a run of leat train --method supervised")
    work = _tiny() if o.model == "tiny" else _by_model(o)
    with Dataset(pack) as opened:
        if not len(opened):
            raise ArgumentError(f"{pack}: has no samples")
        if not any(f.type == "image" for f in opened.fields):
            raise ArgumentError(f"{pack}: has no image field")
        identity = _identity(o, work, opened)
        rows = len(opened)
    token = {"launch": next((os.environ[n] for n in _LAUNCHES if os.environ.get(n)), "")}
    note = os.path.join(o.output + ".parts", "launch.json")
    while rank > 0 and _read_note(note) != token:
        time.sleep(0.05)  # the first rank makes the folder
    parts = _Parts(o, identity, rows, rank == 0)
    gone = set(parts.missing())
    if rank == 0:
        _replace(note, json.dumps(token).encode())
    mine = [part for part in range(parts.count()) if part % world == rank and part in gone]
    try:
        done, verdict = _compute(pack, o, work, parts, mine)
    except BaseException:
        if world == 1 and len(parts.missing()) == parts.count():
            shutil.rmtree(parts.folder)  # nothing to resume
        raise
    if rank > 0:
        return {}
    _wait_for(parts)
    dim = _assemble(pack, o, parts, work)
    seconds = time.perf_counter() - begin
    return {"samples": rows, "dim": dim, "model": work.identity, "seconds": seconds, "output": o.output,
            "images_per_s": done / seconds * world, "verdict": verdict, "resumed": rows - done if world == 1 else None}
