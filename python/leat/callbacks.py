# SPDX-License-Identifier: Apache-2.0
"""The loader's meters for loggers: JSON lines, TensorBoard, Weights & Biases, Lightning.

>>> loader = leat.Loader("train.leat", callbacks=[
...     leat.callbacks.TensorBoard(SummaryWriter("runs/1")), leat.callbacks.JsonLines("data.jsonl")])

Every ``every`` steps each callback gets a dict of measurements since its last call:

    data/samples_per_s      samples handed out per second
    data/data_time_ms       mean time of a step spent waiting in next()
    data/batch_time_ms      mean time of a step spent between next() calls: the training
    data/transform_time_ms  mean time of a step spent in transform=
    data/wait_share         share of the time spent waiting, without that in which the device still computes
    data/read_bytes_per_s   bytes read from storage per second
    data/memory_bytes       bytes that the loader holds now; data/memory_share: as a share of its budget
    data/bad_samples        damaged samples so far
    data/busy_order, _read, _decode, _collate     mean workers busy with each stage
    data/verdict            the bottleneck of the run, in a sentence (updated every few seconds)

This module imports no logger: a logger is any object with the method named here.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from . import _check, _json
from ._errors import ArgumentError, StorageError, reason, shown

if TYPE_CHECKING:
    from . import _leat

Scalars = dict[str, float | str]

_STAGES = ("order", "read", "decode", "collate")
_VERDICT_S = 5.0  # a verdict reads a dozen files of /proc: too slow for every step


def _with(name: str, value: Any, method: str) -> Any:
    if not callable(getattr(value, method, None)):
        raise ArgumentError(f"{name}: {shown(value)} has no method {method}")
    return value


class Callback:
    """An object that a loader calls every ``every`` steps. ``step`` returns the step number to log, if that is not the
    count of batches since the loader was made."""

    def __init__(self, *, every: int = 50, step: Callable[[], int] | None = None, prefix: str = "data/") -> None:
        self.every = _check.whole("every", every, 1)
        self.step, self.prefix = _check.called("step", step), _check.text("prefix", prefix)

    def log(self, scalars: Scalars, step: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Called when the loader is closed."""


class JsonLines(Callback):
    """Appends a line of JSON to a file at each call: ``{"step": 50, "time": …, "data/samples_per_s": …}``.

    A file with anything but such lines is refused.
    """

    def __init__(self, path: str | os.PathLike, **options: Any) -> None:
        super().__init__(**options)
        given = _check.output("path", path, rb'\{"step": [^,{]{1,40}, "time": ', "a file of JsonLines")
        try:
            self.file = open(given, "a", encoding="utf-8", buffering=1)
        except OSError as error:
            raise StorageError(f"{given}: {reason(error)}") from None

    def log(self, scalars: Scalars, step: int) -> None:
        self.file.write(_json.text({"step": step, "time": time.time(), **scalars}) + "\n")

    def close(self) -> None:
        self.file.close()


class _SummaryWriter(Protocol):
    def add_scalar(self, tag: str, scalar_value: Any, global_step: Any = None) -> Any: ...


class TensorBoard(Callback):
    """Logs to any object with ``add_scalar(tag, value, step)``. If it has ``add_text``, the verdict is logged as text
    when it changes. The caller keeps and closes the writer."""

    def __init__(self, writer: _SummaryWriter, **options: Any) -> None:
        super().__init__(**options)
        self.writer, self._said = _with("writer", writer, "add_scalar"), ""

    def log(self, scalars: Scalars, step: int) -> None:
        for tag, value in scalars.items():
            if not isinstance(value, str):
                self.writer.add_scalar(tag, value, step)
            elif value != self._said and hasattr(self.writer, "add_text"):
                self.writer.add_text(tag, value, step)
                self._said = value

    def close(self) -> None:
        if hasattr(self.writer, "flush"):
            self.writer.flush()


class WandB(Callback):
    """Logs to any object with ``log(dict, step=)``: the result of ``wandb.init()``, or the module itself.

    W&B drops values of a step below the last one it saw: give ``step=`` where the loop logs too.
    """

    def __init__(self, run: Any, **options: Any) -> None:
        super().__init__(**options)
        self.run = _with("run", run, "log")

    def log(self, scalars: Scalars, step: int) -> None:
        self.run.log(dict(scalars), step=step)


class Lightning(Callback):
    """Logs numbers to any object with ``log_metrics(dict, step)``, such as Lightning's loggers."""

    def __init__(self, logger: Any, **options: Any) -> None:
        super().__init__(**options)
        self.logger = _with("logger", logger, "log_metrics")

    def log(self, scalars: Scalars, step: int) -> None:
        self.logger.log_metrics({k: v for k, v in scalars.items() if not isinstance(v, str)}, step)


# ---- between the loader and its callbacks --------------------------------------------------------


def _figures(before: Mapping[str, Any], now: Mapping[str, Any], seconds: float) -> Scalars:
    """Converts increases of a loader's counters to rates, means and shares."""
    def grown(name: str) -> float:
        return now[name] - before[name]

    def mean_ms(name: str) -> float:
        steps = grown("steps")
        return (now[name] * now["steps"] - before[name] * before["steps"]) / steps if steps > 0 else now[name]

    limit = now["budget_limit_bytes"]
    device = grown("batches") * now.get("device_step_ms", 0.0) / 1e3 / seconds  # share in which the device computes steps
    out: Scalars = {
        "samples_per_s": grown("samples") / seconds,
        "data_time_ms": mean_ms("data_ms"),
        "batch_time_ms": mean_ms("batch_ms"),
        "transform_time_ms": mean_ms("prepare_ms"),
        "wait_share": min(1.0, grown("wait_seconds") / seconds, max(0.0, 1 - device)),
        "read_bytes_per_s": grown("read_bytes") / seconds,
        "memory_bytes": float(now["budget_used_bytes"]),
        "memory_share": now["budget_used_bytes"] / limit if limit else 0.0,
        "bad_samples": float(now["bad_samples"]),
    }
    for i, stage in enumerate(_STAGES):
        out[f"busy_{stage}"] = (now["busy_seconds"][i] - before["busy_seconds"][i]) / seconds
    return out


def scalars(loader: _leat.Loader) -> Scalars:
    """Returns these values since the loader was made, and the current verdict."""
    now = loader.stats(True)
    nothing = {key: [0.0] * len(_STAGES) if key == "busy_seconds" else 0 for key in now}
    return {**_figures(nothing, now, max(now["seconds"], 1e-9)), "verdict": json.loads(loader.doctor(2))["verdict"]}


class _Turn:
    """One callback, and the meters at its last call."""

    def __init__(self, callback: Callback, stats: Mapping[str, Any]) -> None:
        self.callback, self.stats, self.at, self.steps = callback, stats, time.perf_counter(), 0


class Monitor:
    """Counts steps of a loader, and calls the callbacks that are due. Used only by the trainer's thread."""

    def __init__(self, loader: _leat.Loader, callbacks: Callback | Sequence[Callback]) -> None:
        loader.watch()
        self._loader = loader
        self.steps = 0  # the loader counts them
        self._verdict, self._verdict_at = "", 0.0
        given = [callbacks] if isinstance(callbacks, Callback) else list(callbacks)
        stats = loader.stats(True)
        self._turns = [_Turn(callback, stats) for callback in given]
        self._due = 0

    def look(self) -> None:
        """Calls the callbacks that are due; called before each batch, when all earlier steps are done."""
        if self.steps >= self._due:
            self._call([t for t in self._turns if self.steps - t.steps >= t.callback.every])

    def close(self) -> None:
        """Reports the steps that were not reported yet, and the end."""
        self._call([t for t in self._turns if self.steps > t.steps])
        for turn in self._turns:
            turn.callback.close()

    def _call(self, turns: list[_Turn]) -> None:
        self._due = min((t.callback.every + (self.steps if t in turns else t.steps) for t in self._turns), default=0)
        if not turns:
            return
        now, at = self._loader.stats(True), time.perf_counter()
        if at >= self._verdict_at:
            self._verdict = json.loads(self._loader.doctor(2))["verdict"]
            self._verdict_at = at + _VERDICT_S
        for turn in turns:
            callback = turn.callback
            figures = _figures(turn.stats, now, max(at - turn.at, 1e-9))
            figures["verdict"] = self._verdict
            step = self.steps if callback.step is None else callback.step()
            turn.stats, turn.at, turn.steps = now, at, self.steps
            callback.log({callback.prefix + key: value for key, value in figures.items()}, step)
