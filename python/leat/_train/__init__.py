# SPDX-License-Identifier: Apache-2.0
"""Training, embedding and tagging on packs: ``leat.train``, ``leat.embed`` and ``leat.tag``.

Models are PyTorch's; everything that touches data is leat's loader. Nothing here is imported before it
is used: ``import leat`` needs no PyTorch.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from .. import _check
from .._errors import ArgumentError, ExistsError, StorageError, hidden, reason
from . import options as _options


def _need_torch(what: str = "leat.train, leat.embed and leat.tag need PyTorch") -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise ImportError(f"{what}: pip install torch", name="torch") from None


def _remove_made(folder: str, made: list[str], names: set[str], before: set[str]) -> None:
    """Removes the folder of a refused run, if it has only the files `names` and empty folders."""
    with suppress(OSError):
        new = {name: os.path.join(folder, name) for name in set(os.listdir(folder)) - before}
        if before <= {".lock"} and all(name in names or os.path.getsize(path) == 0 for name, path in new.items()):
            for path in new.values():
                os.unlink(path)
    with suppress(OSError):
        for path in made:
            os.rmdir(path)


@contextmanager
def run_folder(path: str, notes: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Makes the folder of a run if it is missing, and yields the names in it. If the run fails before it wrote more
    than the lock and `notes`, removes what it made."""
    made: list[str] = []
    before: set[str] = set()
    at = os.path.abspath(_check.local(path))
    while not os.path.lexists(at):
        made.append(at)
        at = os.path.dirname(at)
    try:
        try:
            os.makedirs(path, exist_ok=True)
            before = set(os.listdir(path))
        except (FileExistsError, NotADirectoryError):
            raise ArgumentError(f"{path}: is a file, not a folder") from None
        except OSError as error:
            raise StorageError(f"{path}: {reason(error)}") from None
        yield sorted(before - {".lock"})
    except BaseException:
        _remove_made(path, made, {".lock", *notes}, before)
        raise


def _check_run(folder: str, there: list[str]) -> None:
    """Refuses a folder with other files: a run replaces only its own."""
    from . import checkpoint

    if not set(there) - {"config.json.new"} or checkpoint.newest(os.path.join(folder, "checkpoints")) is not None:
        return
    known = _read_config(folder)
    if known is None or not {"method", "model", "epochs", "output"} <= known.keys():
        raise ExistsError(f"{folder}: is not empty and has no run of leat train; give another folder")


def _hold(folder: str, ranks: Any = None) -> Any:
    """Keeps other runs out of the folder until the returned file is closed: all ranks call it."""
    file, taken = None, False
    if ranks is None or ranks.first:
        try:
            file = open(os.path.join(folder, ".lock"), "a", encoding="utf-8")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            taken = True
        except OSError as error:
            if file is None:
                raise StorageError(f"{folder}: {error.strerror}") from None
            # a file system without locks
    if taken if ranks is None else ranks.any(taken):
        if file is not None:
            file.close()
        raise ExistsError(f"{folder}: another run is writing there")
    return file


def _read_config(folder: str) -> dict[str, Any] | None:
    """Reads the options of the run in a folder."""
    try:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _stored(given: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the options of the run that is resumed."""
    output = given.get("output")
    return None if not given.get("resume") or output is None else _read_config(_check.path("output", output))


def train(pack: str | os.PathLike, **given: Any) -> dict[str, Any]:
    """Trains a model on a pack; what ``leat train`` does.

    >>> leat.train("train.leat", val="val.leat", output="run", model="resnet18", epochs=16)["top1"]

    Returns a dict, which is also in result.json of the output folder: epochs, steps, top1, top5, knn, probe (where they apply),
    samples (of ``val``), loss, seconds, images_per_s, data_share, checkpoint, verdict, loader_bytes, batch_size (after any
    halving), plan (with ``plan=True``), stopped (0). Ranks other than the first get {}. Under torchrun, SLURM or MPI each
    process is a rank; alone, with several GPUs, it starts one process per GPU.

    SIGINT and SIGTERM write a checkpoint after the current update. Then KeyboardInterrupt or ``SystemExit(143)`` is raised on
    every rank. ``resume=True`` continues the run; result.json has the results so far, and the signal's number in "stopped".

    Parameters
    """
    result, stopped = run_train(pack, given)
    if stopped:
        _end(128 + stopped, stop_line(result, "resume=True") if result else "", given.get("quiet", False))
    return result


def stop_line(result: dict[str, Any], resume: str) -> str:
    """Returns what a run says that was stopped by a signal."""
    return f"stopped at update {result['steps']}; checkpoint: {result['checkpoint']}; {resume} continues"


def _end(code: int, line: str = "", quiet: bool = True) -> NoReturn:
    """Ends the caller with an exit code; Ctrl-C is a KeyboardInterrupt with the line, as everywhere in Python."""
    if code == 128 + signal.SIGINT:
        raise KeyboardInterrupt(*[line] * bool(line))
    if line and not quiet:
        print(line, file=sys.stderr, flush=True)
    raise SystemExit(code)


def run_train(pack: str | os.PathLike, given: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Returns the result, which is {} on ranks other than the first, and the signal that stopped the run or 0."""
    pack = _check.path("pack", pack)
    _need_torch()
    given = {name: value for name, value in given.items() if value is not None}
    base = _stored(given)
    o = _options.resolve("train", given, base)
    if not o.output:
        raise ArgumentError("output: is missing: the folder for checkpoints, metrics and the report")
    with run_folder(o.output) as there:
        _check_run(o.output, there)
        return _train(pack, o, given)


def _train(pack: str, o: Any, given: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Runs one rank, or starts the processes of all ranks."""
    from . import distributed, loop

    kind = distributed.accelerator(o.accelerator)
    count = distributed.to_launch(o.devices, o.nodes, kind)
    if count:
        return _launched(count, pack, o, given)
    ranks = distributed.join(kind)
    old: dict[int, Any] = {}
    held = None
    try:
        held = _hold(o.output, ranks)
        o.config_values = {k: hidden(v) if isinstance(v, str) else v for k, v in vars(o).items() if k not in ("given", "config", "resume", "force")}
        trainer = loop.Trainer(pack, o, ranks)
        old = loop.watch_signals(trainer)
        predicted = _plan(pack, o, trainer) if o.plan and ranks.first else None
        result = trainer.run_with(predicted)
    finally:
        distributed.restore_signals(old)
        ranks.close()
        if held is not None:
            held.close()
    return (result if ranks.first else {}), result["stopped"]


def _plan(pack: str, o: Any, trainer: Any) -> dict[str, Any] | None:
    from . import plan

    return plan.make(pack, o, trainer)


def _launched(count: int, pack: str, o: Any, given: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Starts the ranks and returns their result, and the signal that stopped them or 0."""
    from . import distributed

    words = {**{k: os.fspath(v) if isinstance(v, os.PathLike) else v for k, v in given.items()}, "args": [pack],
             "launched": True}
    held = _hold(o.output)  # refuse a folder in use before removing the old result; then release the lock for the first rank
    held.close()
    result = os.path.join(o.output, "result.json")
    if os.path.exists(result):
        os.unlink(result)
    code = distributed.launch(count, ["-m", "leat._train", "train", json.dumps(words)])
    stopped = code - 128 if code - 128 in (signal.SIGINT, signal.SIGTERM) else 0
    if code != 0 and not stopped or not os.path.exists(result):
        _end(code or 4)
    with open(result, encoding="utf-8") as file:
        return json.load(file), stopped


train.__doc__ = f"{(train.__doc__ or '').rstrip()}\n{_options.document('train')}\n"
train.__signature__ = _options.signature("train", "pack")  # type: ignore[attr-defined]


def embed(pack: str | os.PathLike, **given: Any) -> dict[str, Any]:
    """Turns the images of a pack into vectors; what ``leat embed`` does.

    >>> leat.embed("photos.leat", output="vectors.leat", model="run")["samples"]
    >>> leat.open("vectors.leat")[0]["vector"]

    The result is a pack with the same keys in the same order. ``model="tiny"`` needs no PyTorch. Returns a
    dict: samples, dim, model, seconds, images_per_s, verdict, limit.

    Parameters
        progress: called after each batch with (done, total, 0, 0)
    """
    from . import embedding

    return _over_pack("embed", pack, given, embedding.run)


embed.__doc__ = f"{(embed.__doc__ or '').rstrip()}\n{_options.document('embed')}\n"
embed.__signature__ = _options.signature("embed", "pack")  # type: ignore[attr-defined]


def tag(pack: str | os.PathLike, **given: Any) -> dict[str, Any]:
    """Predicts classes or boxes of the images of a pack; what ``leat tag`` does.

    >>> leat.tag("photos.leat", output="tags.leat", model="run")["counts"]
    >>> leat.select("photos.leat", "unsure.leat", where="tag_score < 0.5", columns="tags.leat")

    The result is a pack with the same keys in the same order: tag (the best class), tag_score, tag_margin, tag_entropy,
    tags and tag_scores (the best ones); or, by a TorchScript detector, tag, tag_score, box_count, boxes, box_tags and
    box_scores. Returns a dict: samples, counts (images by tag), not_finite, boxes of a detector, model, seconds, images_per_s,
    verdict, limit.

    Parameters
        progress: called after each batch with (done, total, 0, 0)
    """
    def run(path: str, o: Any, **rest: Any) -> dict[str, Any]:
        from . import embedding, tagging

        if not o.model:
            raise ArgumentError("model: is missing: a run of leat train, a TorchScript, exported or ONNX file")
        o.dtype, o.npy = "float32", False  # of the parts
        return embedding.run(path, o, tagging.prepare, **rest)

    return _over_pack("tag", pack, given, run)


tag.__doc__ = f"{(tag.__doc__ or '').rstrip()}\n{_options.document('tag')}\n"
tag.__signature__ = _options.signature("tag", "pack")  # type: ignore[attr-defined]


def _over_pack(command: str, pack: str | os.PathLike, given: dict[str, Any], run: Any) -> dict[str, Any]:
    """Runs a model over a pack, here or as one process per GPU."""
    pack = _check.path("pack", pack)
    progress = _check.called("progress", given.pop("progress", None))
    checked = given.pop("checked", None)  # columns of leat check: only images that are ok are used
    given = {name: os.fspath(v) if isinstance(v, os.PathLike) else v for name, v in given.items() if v is not None}
    o = _options.resolve(command, given)
    if not o.output:
        raise ArgumentError("output: is missing: the pack to write")
    count = 0
    if o.model != "tiny":
        _need_torch(f"model: {o.model!r} needs PyTorch" + ("; only 'tiny' runs without it" if command == "embed" else ""))
        from . import distributed

        count = distributed.to_launch(o.devices, 0, distributed.accelerator(o.accelerator))
    if count:
        code = distributed.launch(count, ["-m", "leat._train", command,
                                          json.dumps({**given, "args": [pack], **({"checked": checked} if checked else {})})])
        if code != 0:
            _end(code)
        return {}
    o.checked = checked
    return run(pack, o, progress=progress)


def check_model(command: str, name: str) -> None:
    """Refuses a model of ``embed`` or ``tag`` that does not exist, before data is read."""
    if name == "tiny" and command == "embed" or os.path.exists(name):
        return
    if command == "tag" or name.endswith((".pt", ".ts", ".pt2", ".onnx", ".safetensors")) or name.startswith((".", os.sep)):
        raise ArgumentError(f"model: {name}: no such file or run of leat train")
    _need_torch(f"model: {name!r} needs PyTorch")
    from . import models

    models.check_name(name)


def predict(pack: str | os.PathLike, output: str | os.PathLike, model: str | os.PathLike, **given: Any) -> dict[str, Any]:
    """Computes the scores of the classes for each image of a pack, and the best class: ``embed`` with ``logits=True``.

    >>> leat.predict("new.leat", "scores.leat", "run")
    >>> leat.open("scores.leat").column("label")
    """
    return embed(pack, output=output, model=model, logits=True, **given)


def export_model(run: str | os.PathLike, output: str | os.PathLike, *, force: bool = False) -> dict[str, Any]:
    """Writes the model of a run for other programs; what ``leat export --checkpoint`` does.

    The name decides: ``.pt`` TorchScript, ``.pt2`` exported program, ``.onnx``. The input is a batch of RGB images,
    divided by 255 and normalised by the returned mean and std. The output is logits, or vectors of a model
    without classes.
    """
    run, output, force = _check.path("run", run), _check.path("output", output), _check.flag("force", force)
    _need_torch()
    from . import export

    return export.write(run, output, force)
