# SPDX-License-Identifier: Apache-2.0
"""``leat.embed`` and the base of ``leat.tag``: the output of a model for each image of a pack, as columns.

The pack is cut into parts of whole batches. A part is computed by one rank, always in the same batches,
and appears under its name when it is complete. So the rows depend neither on the number of ranks nor on
where a run was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from .. import _check, _leat, _rank, ops
from .._dataset import Dataset
from .._errors import ArgumentError, DataError, ExistsError, StateError, StorageError, counted, reason
from .._loader import Loader
from .._pack import Progress
from .._writer import Writer

_PART = 32  # batches per part
_LAUNCHES = ("TORCHELASTIC_RUN_ID", "SLURM_STEP_ID", "SLURM_JOB_ID", "MASTER_PORT")  # differ between launches
_TINY_SIDE = 32
_MAGIC = b"\x89LEAT\r\n\x1a"
_DTYPES = {"16-mixed": "float16", "bf16-mixed": "bfloat16"}
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Compute = Callable[[Any], Any]


class Columns(Protocol):
    """The values that are written for each row."""

    kind: str  # runs of different kinds do not share parts
    names: list[str]  # of the classes

    def fields(self, dim: int) -> dict[str, Any]: ...
    def classes(self, dim: int) -> dict[str, list[str]] | None: ...
    def sample(self, row: np.ndarray) -> dict[str, Any]: ...
    def missing(self, dim: int) -> dict[str, Any]: ...  # values for an image that is left out
    def facts(self, dim: int) -> dict[str, Any]: ...
    def recall(self, made: Dataset, wanted: np.ndarray) -> dict[str, Any]: ...  # the facts of a complete pack


class Vectors:
    """Writes a vector per row, or logits and the best class."""

    def __init__(self, o: SimpleNamespace, class_names: list[str]) -> None:
        self.kind = "logits" if o.logits else "vector"
        self.dtype, self.names = o.dtype, class_names

    def fields(self, dim: int) -> dict[str, Any]:
        made: dict[str, Any] = {self.kind: (self.dtype, (dim,))}
        return {**made, "label": int} if self.kind == "logits" else made

    def classes(self, dim: int) -> dict[str, list[str]] | None:
        return {"label": self.names} if self.kind == "logits" and len(self.names) == dim else None

    def sample(self, row: np.ndarray) -> dict[str, Any]:
        if self.kind == "vector":
            return {"vector": row}
        return {"logits": row, "label": int(row.argmax()) if np.isfinite(row).all() else -1}

    def missing(self, dim: int) -> dict[str, Any]:
        return {self.kind: np.zeros(dim, self.dtype), **({"label": -1} if self.kind == "logits" else {})}

    def facts(self, dim: int) -> dict[str, Any]:
        return {"dim": dim}

    def recall(self, made: Dataset, wanted: np.ndarray) -> dict[str, Any]:
        return {"dim": next(f.shape[0] for f in made.fields if f.name == self.kind and f.shape)}


class Work:
    """The model as a function of a batch, how its images are made, and what is written."""

    def __init__(self, compute: Compute, fetch: Callable[[Any], np.ndarray], pipeline: list[Any], device: str,
                 as_: str, identity: str, columns: Columns, channels_last: bool = False, collate: Any = "stack") -> None:
        self.compute, self.fetch, self.pipeline, self.device, self.as_ = compute, fetch, pipeline, device, as_
        self.identity, self.columns, self.channels_last, self.collate = identity, columns, channels_last, collate


def _tiny_rows(image: np.ndarray) -> np.ndarray:
    if image.dtype != np.uint8 or image.shape[-1] != 3:
        raise ArgumentError(f"model: tiny takes 8-bit images of 1, 3 or 4 channels, not {image.dtype} with "
                            f"{image.shape[-1]}: give another model")
    return np.frombuffer(_leat.tiny(image), np.float32).reshape(len(image), -1)


def _tiny(o: SimpleNamespace) -> Work:
    if o.logits:
        raise ArgumentError("logits: tiny has no classifier: give a run of leat train --method supervised")
    unused = sorted(o.given & {"image_size", "precision"})
    if unused:
        raise ArgumentError(f"{unused[0]}: has no effect with tiny, whose size and precision are fixed")
    if o.accelerator == "cuda" or o.devices > 1:
        raise ArgumentError(f"{'accelerator' if o.accelerator == 'cuda' else 'devices'}: has no effect with tiny, which runs on the "
                            "CPUs of one process; start several ranks with torchrun or srun")
    pipeline = [ops.Resize((_TINY_SIDE, _TINY_SIDE), like="fast")]
    return Work(_tiny_rows, np.asarray, pipeline, "cpu", "numpy", "tiny 1", Vectors(o, []), True)


def load_model(o: SimpleNamespace) -> tuple[Any, Any]:
    """A model of PyTorch or onnxruntime, and the device it is on."""
    try:
        import torch
    except ImportError:
        raise ArgumentError(f"model: {o.model} needs PyTorch: pip install torch; or use `model` tiny") from None
    from . import distributed, embedder

    device = torch.device("cpu")
    if distributed.accelerator(o.accelerator) == "cuda":
        device = torch.device("cuda", _rank.local() % torch.cuda.device_count())
        torch.cuda.set_device(device)
    return embedder.load(o.model, o.image_size, device), device


def model_work(o: SimpleNamespace, made: Any, device: Any, forward: Compute, columns: Columns) -> Work:
    """Returns the work for a model that takes batches of images of one size."""
    import torch

    from . import models

    cast = torch.autocast(device.type, {"16-mixed": torch.float16}.get(o.precision, torch.bfloat16),
                          enabled=o.precision != "32")
    before = made.side if made.side <= models.SMALL else round(made.side * 256 / 224)
    pipeline = [ops.Resize(before), ops.CenterCrop(made.side), ops.Normalize(MEAN, STD),
                ops.ToDtype(_DTYPES.get(o.precision, "float32"))]

    def compute(image: Any) -> Any:
        with cast:
            return forward(image).float()

    return Work(torch.inference_mode()(compute), lambda found: found.cpu().numpy(), pipeline, str(device), "torch",
                made.identity, columns)


def _prepare(o: SimpleNamespace) -> Work:
    if o.model == "tiny":
        return _tiny(o)
    made, device = load_model(o)
    if made.boxes is not None:
        raise ArgumentError(f"model: {o.model} gives boxes, not vectors: leat tag takes it")
    if o.logits and made.logits is None:
        raise ArgumentError(f"logits: {o.model} has no classifier: give a run of leat train --method supervised; what an "
                            "exported file gives, logits or vectors, comes without `logits`")
    return model_work(o, made, device, made.logits if o.logits else made.vectors, Vectors(o, made.class_names))


def _wanted(path: str | None, rows: int) -> np.ndarray:
    """Returns which images are computed: all, or those that leat check found to be ok."""
    if path is None:
        return np.ones(rows, bool)
    with Dataset(path) as columns:
        wanted = columns.column("verdict") == 0
    if len(wanted) != rows:
        raise ArgumentError(f"{path}: has {counted(len(wanted), 'row')}, the pack has {rows}")
    if not wanted.any():
        raise DataError(f"{path}: no image can be read")
    return wanted


def _identity(o: SimpleNamespace, work: Work, pack: Dataset, wanted: np.ndarray) -> dict[str, Any]:
    """Returns what all parts of a run must have in common."""
    left = {} if wanted.all() else {"left_out": hashlib.sha256(wanted.tobytes()).hexdigest()[:16]}
    return {**left, "pack": pack.fingerprint, "model": work.identity, "batch_size": o.batch_size, "dtype": o.dtype,
            "precision": o.precision, "columns": work.columns.kind, "ops": ops.text(work.pipeline)}


def _stamp(o: SimpleNamespace, identity: dict[str, Any], names: list[str]) -> str:
    """Returns a hash of all that the pack of a run depends on; its provenance has it as ``run``."""
    chosen = {name: getattr(o, name, None) for name in ("npy", "top", "activation", "logits")}
    return hashlib.sha256(json.dumps([identity, chosen, names]).encode()).hexdigest()[:16]


class _Parts:
    """The folder PACK.parts: one file per part, written under another name and renamed."""

    def __init__(self, o: SimpleNamespace, identity: dict[str, Any], wanted: np.ndarray, first: bool) -> None:
        self.folder = o.output + ".parts"
        self.wanted = wanted  # images that are not left out
        self.rows, self.step = len(wanted), o.batch_size * _PART
        self.dtype = np.dtype(o.dtype)
        note = os.path.join(self.folder, "run.json")
        if os.path.isdir(self.folder) and first:
            _check_parts(self.folder, note)
            if not o.resume:
                if not o.force:
                    raise ExistsError(f"{self.folder}: has an interrupted run (use `resume` to continue it, "
                                      "`force` to start again)")
                shutil.rmtree(self.folder)
            elif _read_note(note) not in (None, identity):
                raise ArgumentError(f"{self.folder}: the interrupted run had another model, pack or settings (use "
                                    "`force` without `resume` to start again)")
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self.folder}: {error.strerror or error}") from None
        try:
            if first:
                _replace(note, json.dumps(identity).encode())
        except StorageError:
            if not os.listdir(self.folder):
                os.rmdir(self.folder)  # nothing to resume
            raise

    def count(self) -> int:
        return -(-self.rows // self.step)

    def path(self, part: int) -> str:
        return os.path.join(self.folder, f"{part:08d}.npy")

    def missing(self) -> list[int]:
        return [part for part in range(self.count()) if not os.path.exists(self.path(part))]

    def bounds(self, part: int) -> tuple[int, int]:
        return part * self.step, min((part + 1) * self.step, self.rows)

    def images(self, part: int) -> np.ndarray:
        """Returns the rows of a part. A row that is left out is replaced by the nearest readable row before it, so that
        the batches do not change."""
        last = np.maximum.accumulate(np.where(self.wanted, np.arange(self.rows), self.wanted.argmax()))
        return last[slice(*self.bounds(part))]

    def write(self, part: int, rows: np.ndarray) -> None:
        temporary = self.path(part) + f".{os.getpid()}"
        try:
            with open(temporary, "wb") as file:
                rows = np.ascontiguousarray(rows, self.dtype)
                np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(rows))
                file.write(rows.data)  # np.save does not report the cause when the disk is full
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, self.path(part))
        except OSError as error:
            if os.path.exists(temporary):
                os.unlink(temporary)
            more = "; `resume` continues" if len(self.missing()) < self.count() else ""
            raise StorageError(f"{self.path(part)}: {reason(error)}{more}") from None

    def read(self) -> Iterator[np.ndarray]:
        for part in range(self.count()):
            yield np.load(self.path(part), mmap_mode="r")


def _check_parts(folder: str, note: str) -> None:
    """Refuses a folder that is not from an earlier run: it would be removed. A run killed at its start has no note yet."""
    try:
        begun = set(os.listdir(folder)) <= {"run.json.new"}
    except OSError as error:
        raise StorageError(f"{folder}: {reason(error)}") from None
    found = _read_note(note)
    if not begun and not (isinstance(found, dict) and found.keys() >= {"pack", "model", "batch_size", "dtype", "columns", "ops"}):
        raise ArgumentError(f"{folder}: is not from a run of leat embed, which needs this name; move it away or give another output")


def _read_note(path: str) -> dict[str, Any] | None:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _replace(path: str, data: bytes) -> None:
    try:
        with open(path + ".new", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)
    except OSError as error:
        if os.path.exists(path + ".new"):
            os.unlink(path + ".new")
        raise StorageError(f"{path}: {reason(error)}") from None


def _batches(loader: Loader) -> Iterator[Any]:
    """Yields the batches. The error for an image that cannot be read also says what to do."""
    try:
        yield from loader
    except DataError as error:
        error.args = (f"{error}; leat check finds all such images and leat pack --select leaves them out; leat curate does both",)
        error.marked = ""
        raise


def _results(batches: Iterator[Any], work: Work) -> Iterator[np.ndarray]:
    """Yields the results of all batches, in order. The device works on the next batch while a result is fetched."""
    running: Any = None
    for batch in batches:
        queued = work.compute(batch["image"])
        del batch
        if running is not None:
            yield work.fetch(running)
        running = queued
    if running is not None:
        yield work.fetch(running)


def _compute(pack: str, o: SimpleNamespace, work: Work, parts: _Parts, mine: list[int],
             progress: Progress | None) -> tuple[int, dict[str, str]]:
    """Computes the parts of this rank; returns the number of images and the doctor's diagnosis."""
    if not mine:
        return 0, {"verdict": "", "limit": ""}
    with Dataset(pack) as opened:
        field = next((f.name for f in opened.fields if f.type == "image"), None)
    rows = np.concatenate([parts.images(part) for part in mine])
    done, at = 0, 0
    kept: list[np.ndarray] = []
    shown = time.monotonic()
    writing: Future[None] | None = None  # the future that writes a part while the next one is computed
    with ThreadPoolExecutor(1) as writer, Loader(
            pack, o.batch_size, {"image": (field, work.pipeline)}, order="sequential", drop_last=False,
            indices=rows, threads=o.threads, memory=o.memory, fields=[], as_=work.as_, device=work.device,
            decode=o.decode, rank=0, world_size=1, channels_last=work.channels_last, collate=work.collate) as loader:
        loader.doctor()
        for made in _results(_batches(loader), work):
            kept.append(made)
            done += len(made)
            first, end = parts.bounds(mine[at])
            if sum(map(len, kept)) == end - first:
                if writing is not None:
                    writing.result()
                writing = writer.submit(parts.write, mine[at], np.concatenate(kept))
                kept, at = [], at + 1
            if progress is not None:
                progress(done, len(rows), 0, 0)
            elif not o.quiet and time.monotonic() - shown > 2:
                shown = time.monotonic()
                print(f"{done}/{len(rows)} images", file=sys.stderr, flush=True)
        said = loader.doctor()
        if writing is not None:
            writing.result()
    if at != len(mine):
        raise StateError(f"{pack}: {counted(len(rows), 'image')} expected, {done} came")
    return done, {"verdict": said.verdict, "limit": said.limit}


def _assemble(pack: str, o: SimpleNamespace, parts: _Parts, work: Work, stamp: str) -> int:
    """Writes the pack of all rows; returns the length of a row. ``resume`` discards a pack that was not finished: the
    parts have all its rows."""
    dim = np.load(parts.path(0), mmap_mode="r").shape[1]
    columns = work.columns
    if o.npy:
        _write_npy(_npy_path(o.output), parts, dim)  # before the pack: if this fails, `resume` continues
    with Dataset(pack) as source, Writer(
            o.output, columns.fields(dim), replace=o.force or o.resume, classes=columns.classes(dim), provenance={
                "embedded": _check.file_name(pack), "fingerprint": f"{source.fingerprint:x}", "model": work.identity, "run": stamp}) as out:
        at = 0
        for rows in parts.read():
            if rows.shape[1] != dim:
                raise StateError(f"{parts.folder}: parts of different length; start again with `force`")
            for key, row, wanted in zip(source.keys[at:at + len(rows)], rows, parts.wanted[at:at + len(rows)]):
                out.append(columns.sample(row) if wanted else columns.missing(dim), key=key)
            at += len(rows)
    if o.npy:
        os.rename(_npy_path(o.output) + ".new", _npy_path(o.output))
    elif o.force:
        _remove_npy(_npy_path(o.output))
    shutil.rmtree(parts.folder)
    return dim


def _npy_path(output: str) -> str:
    return os.path.splitext(output)[0] + ".npy"


def _remove_npy(path: str) -> None:
    """Removes the vectors of a replaced pack: they would be read as those of the new one."""
    try:
        with open(path, "rb") as file:
            stale = file.read(6) == b"\x93NUMPY"
        if stale:
            os.unlink(path)
    except OSError:
        pass


def _is_there(o: SimpleNamespace) -> bool:
    """Checks the names of the output. Returns whether a resumed run finds a pack there."""
    if o.resume and not o.force and os.path.isfile(o.output):
        _check_free(o.output, SimpleNamespace(force=True), _MAGIC, "pack")
        return True
    _check_free(o.output, o, _MAGIC, "pack")
    if o.npy:
        _check_free(_npy_path(o.output), o, b"\x93NUMPY", "NumPy file")
    return False


def _complete(o: SimpleNamespace, work: Work, stamp: str, wanted: np.ndarray) -> dict[str, Any]:
    """Returns the facts of the pack that a run with the same options and input wrote; refuses another pack. Empty for
    a run that was stopped before it removed its parts: it has to write the pack again."""
    parts = os.path.isdir(o.output + ".parts")
    with Dataset(o.output) as made:
        source = made.provenance.get("source")
        same = isinstance(source, dict) and source.get("run") == stamp
        if not same or o.npy and not parts and not os.path.isfile(_npy_path(o.output)):
            raise ExistsError(f"{o.output}: already exists (use `force` to replace it)")
        return {} if parts else work.columns.recall(made, wanted)


def _check_free(path: str, o: SimpleNamespace, magic: bytes, kind: str) -> None:
    """Checks, before hours of work, that the path is free or, with --force, has a file of the same kind."""
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise ArgumentError(f"{path}: {'is a folder, not a file' if os.path.isdir(path) else 'not a regular file'}")
    try:
        with open(path, "rb") as file:
            head = file.read(len(magic))
    except OSError as error:
        raise StorageError(f"{path}: {reason(error)}") from None
    if head not in (b"", magic):
        raise ArgumentError(f"{path}: is not a {kind}, and only a {kind} may be replaced; give another name")
    if not o.force:
        raise ExistsError(f"{path}: already exists (use `force` to replace it)")


def _write_npy(path: str, parts: _Parts, dim: int) -> None:
    """Writes PATH.new, without a mapping, in which a full disk would end the process (SIGBUS)."""
    head = {"descr": np.lib.format.dtype_to_descr(parts.dtype), "fortran_order": False, "shape": (parts.rows, dim)}
    try:
        with open(path + ".new", "wb") as file:
            np.lib.format.write_array_header_1_0(file, head)
            at = 0
            for rows in parts.read():
                chosen = rows * parts.wanted[at:at + len(rows), None]
                file.write(np.ascontiguousarray(chosen, parts.dtype).data)
                at += len(rows)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if os.path.exists(path + ".new"):
            os.unlink(path + ".new")
        raise StorageError(f"{path}: {reason(error)}; `resume` continues") from None


def _wait_for(parts: _Parts) -> None:
    """Waits until the parts of the other ranks exist, so that ranks need no network."""
    while parts.missing():
        time.sleep(0.05)


def run(pack: str, o: SimpleNamespace, prepare: Callable[[SimpleNamespace], Work] = _prepare,
        progress: Progress | None = None) -> dict[str, Any]:
    """Computes the columns as one rank of those that the launcher started."""
    rank, world, _ = _rank.detect(None, None)
    begin = time.perf_counter()
    if os.path.exists(o.output) and os.path.exists(pack) and os.path.samefile(o.output, pack):
        raise ArgumentError(f"{o.output}: is the pack that is read; give another output")
    there = _is_there(o)
    work = prepare(o)
    with Dataset(pack) as opened:
        if not len(opened):
            raise DataError(f"{pack}: has no samples")
        if not any(f.type == "image" for f in opened.fields):
            raise ArgumentError(f"{pack}: has no image field")
        rows = len(opened)
        wanted = _wanted(o.checked, rows)
        identity = _identity(o, work, opened, wanted)
    stamp = _stamp(o, identity, work.columns.names)
    if there and (facts := _complete(o, work, stamp, wanted)):
        return {} if rank > 0 else {
            "samples": rows, **facts, "model": work.identity, "seconds": time.perf_counter() - begin, "output": o.output,
            "images_per_s": 0.0, "verdict": "", "limit": "", "resumed": rows, "already_complete": True}
    token = {"launch": next((os.environ[n] for n in _LAUNCHES if os.environ.get(n)), "")}
    note = os.path.join(o.output + ".parts", "launch.json")
    while rank > 0 and _read_note(note) != token:
        time.sleep(0.05)  # the first rank makes the folder
    parts = _Parts(o, identity, wanted, rank == 0)
    gone = set(parts.missing())
    mine = [part for part in range(parts.count()) if part % world == rank and part in gone]
    try:
        if rank == 0:
            _replace(note, json.dumps(token).encode())
        done, said = _compute(pack, o, work, parts, mine, progress)
    except BaseException:
        if world == 1 and len(parts.missing()) == parts.count():
            shutil.rmtree(parts.folder)  # nothing to resume
        raise
    if rank > 0:
        return {}
    _wait_for(parts)
    dim = _assemble(pack, o, parts, work, stamp)
    seconds = time.perf_counter() - begin
    return {"samples": rows, **work.columns.facts(dim), "model": work.identity, "seconds": seconds, "output": o.output,
            "images_per_s": done / seconds * world, **said, "resumed": rows - done if world == 1 else None,
            "already_complete": False}
