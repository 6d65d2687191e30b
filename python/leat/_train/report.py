# SPDX-License-Identifier: Apache-2.0
"""Progress and results for users: the progress line, metrics.jsonl, TensorBoard, Weights & Biases, report.html."""

from __future__ import annotations

import html
import json
import math
import os
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .. import _json
from .._errors import DataError, StorageError
from .distributed import Ranks

if TYPE_CHECKING:
    from .loop import Trainer

_CURVES = (("loss", "training loss"), ("top1", "top-1 accuracy"), ("knn", "k-NN accuracy"), ("lr", "learning rate"),
           ("images_per_s", "images/s"), ("data_ms", "waiting for data, ms per step"), ("step_ms", "step, ms"),
           ("gpu_bytes", "GPU memory, bytes"), ("memory_bytes", "loader memory, bytes"))


def clock(seconds: float) -> str:
    """mm:ss, or h:mm:ss."""
    if not math.isfinite(seconds):
        return "?"
    whole = int(seconds)
    return (f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}" if whole >= 3600
            else f"{whole // 60:02d}:{whole % 60:02d}")


def progress_line(epoch: int, done: int, total: int, seconds: float, begun: int, loss: float, data_ms: float,
                  step_ms: float) -> str:
    """``Epoch 3: 12 %| 601/5004 [00:45<06:15, 13.4 it/s, loss 3.21, data 0.4 ms, step 74.1 ms]``"""
    rate = (done - begun) / max(seconds, 1e-9)
    left = (total - done) / rate if rate > 0 else math.inf
    return (f"Epoch {epoch}: {100 * done // max(total, 1)} %| {done}/{total} [{clock(seconds)}<{clock(left)}, "
            f"{rate:.1f} it/s, loss {loss:.3g}, data {data_ms:.1f} ms, step {step_ms:.1f} ms]")


class Meter:
    """Times and losses of the run, handed to the loggers each ``log_every`` updates."""

    def __init__(self, o: SimpleNamespace, ranks: Ranks, resumed_at: int, class_names: list[str]) -> None:
        self.o, self.ranks, self.class_names = o, ranks, class_names
        self.waited = 0.0
        self._gaps: list[tuple[Any, Any, float]] = []  # event at the end of a step, event at the next start, the host's wait
        self._ended: Any = None
        self._windows = 0
        self.images = self.total_images = 0
        self.total_seconds = self.total_waited = 0.0
        self.first_loss = math.nan
        self.epoch_loss: float | None = None  # of the last epoch, or of the part of it before a stop
        self.confusion: list[list[int]] | None = None
        self._tty = sys.stderr.isatty() and not o.quiet
        self._shown = False
        self._file = None
        self._loggers: list[Any] = []
        if ranks.first:
            self._open(os.path.join(o.output, "metrics.jsonl"), resumed_at)

    def _open(self, path: str, resumed_at: int) -> None:
        kept = []
        if resumed_at and os.path.exists(path):  # lines after the checkpoint will be written again
            with open(path, encoding="utf-8") as file:
                kept = [line for line in file if _step_of(line) <= resumed_at]
        try:
            self._file = open(path, "w", encoding="utf-8")
            self._file.writelines(kept)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from None
        if self.o.tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter

                self._loggers.append(_TensorBoard(SummaryWriter(self.o.output)))
            except ImportError:
                pass
        if self.o.wandb is not None:
            try:
                import wandb  # type: ignore[import-not-found]
            except ImportError:
                raise StorageError("wandb: is not installed: pip install wandb, or leave out `wandb`") from None
            self._loggers.append(wandb.init(project=self.o.wandb, dir=self.o.output, config=self.o.config_values))

    # ---- while it runs -----------------------------------------------------------------------

    def begin(self, epoch: int, done: int, total: int) -> None:
        """Notes that an epoch begins, or continues after ``done`` updates."""
        self.epoch, self.done, self.begun, self.total = epoch + 1, done, done, total
        self.epoch_begin = self._window_begin = time.perf_counter()
        self.waited = 0.0
        self._gaps, self._ended = [], None
        self._losses: Tensor | None = None
        self._count = self._epoch_count = 0
        self._epoch_loss = 0.0
        self.images = 0

    def got(self, wait: float) -> None:
        """Notes that a batch was delivered after ``wait`` seconds.

        The host of a GPU runs ahead: it may wait while the GPU still computes. Only the idle time of the GPU counts,
          between two events on its stream.
        """
        if self._ended is None:
            self.waited += wait
            return
        began = torch.cuda.Event(enable_timing=True)
        began.record()
        self._gaps.append((self._ended, began, wait))
        self._ended = None

    def stepped(self, on_gpu: bool) -> None:
        """Notes that the work of a step is queued."""
        if on_gpu:
            self._ended = torch.cuda.Event(enable_timing=True)
            self._ended.record()

    def _settle(self) -> None:
        """Adds up the gaps between events; the GPU has passed all events except the last."""
        for ended, began, wait in self._gaps:
            self.waited += min(wait, ended.elapsed_time(began) / 1e3)
        self._gaps = []

    def add(self, loss: Tensor, images: int, trainer: Trainer) -> None:
        self._losses = loss if self._losses is None else self._losses + loss
        self._count += 1
        self.done += 1
        self.images += images
        if self.done % self.o.log_every == 0 or self.done == 1:
            self._log(trainer)

    def _log(self, trainer: Trainer) -> None:
        if not self._count or self._losses is None:
            return
        loss = self._losses.item() / self._count  # waits for the GPU, so that the times include its work
        self._settle()
        now = time.perf_counter()
        seconds = now - self._window_begin
        if not math.isfinite(loss) and trainer.precision != "16-mixed":
            raise DataError(f"the loss is {loss} in update {trainer.update}: lower `lr`, or use `clip` 1; the last "
                            "checkpoint is from before")
        if math.isnan(self.first_loss):
            self.first_loss = loss
        row = {"kind": "train", "epoch": self.epoch, "step": trainer.update, "loss": loss,
               "lr": trainer.optimizer.param_groups[0]["lr"], "data_ms": 1e3 * self.waited / self._count,
               "step_ms": 1e3 * seconds / self._count, "images_per_s": self.images / max(seconds, 1e-9),
               "memory_bytes": trainer.loader.stats()["budget_used_bytes"] if trainer.loader else 0}
        if trainer.device.type == "cuda":
            row["gpu_bytes"] = torch.cuda.max_memory_allocated(trainer.device)
        self._write(row)
        self._show(progress_line(self.epoch, self.done, self.total, now - self.epoch_begin, self.begun, loss,
                                 row["data_ms"], row["step_ms"]))
        if self._windows == 1:  # the first window is one step, which includes tuning and compiling: leave it out
            self.total_seconds, self.total_waited, self.total_images = 0.0, 0.0, 0
        self._windows += 1
        self.total_seconds += seconds
        self.total_waited += self.waited
        self.total_images += self.images
        self._epoch_loss += loss * self._count
        self._epoch_count += self._count
        self._losses, self._count, self.images, self.waited = None, 0, 0, 0.0
        self._window_begin = now

    def _show(self, line: str, last: bool = False) -> None:
        if not self.ranks.first or self.o.quiet:
            return
        if self._tty:
            print(f"\r\033[K{line}", end="\n" if last else "", file=sys.stderr, flush=True)
            self._shown = not last
        else:
            print(line, file=sys.stderr, flush=True)

    def end(self, trainer: Trainer) -> None:
        """Notes that an epoch is over, or that the run stops in it."""
        self._log(trainer)
        self.epoch_loss = self._epoch_loss / max(self._epoch_count, 1)
        if self._shown:
            print(file=sys.stderr, flush=True)
            self._shown = False

    def evaluated(self, trainer: Trainer, found: dict[str, Any]) -> None:
        self.confusion = found.get("confusion", self.confusion)
        row = {k: v for k, v in found.items() if k != "confusion"}
        self._write({"kind": "eval", "epoch": trainer.epoch, "step": trainer.update, "epoch_loss": self.epoch_loss, **row})
        shown = [] if self.epoch_loss is None else [f"loss {self.epoch_loss:.4f}"]
        shown += [f"{name} {100 * row[name]:.2f} %" for name in ("top1", "top5", "knn", "probe") if name in row]
        self._show(f"epoch {trainer.epoch}: {', '.join(shown)} ({time.perf_counter() - trainer.started:.1f} s)", last=True)

    def _write(self, row: dict[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(_json.text(row) + "\n")
            self._file.flush()
        except OSError as error:
            print(f"leat train: warning: metrics.jsonl: {error.strerror}", file=sys.stderr)
            self._file = None
        numbers = {f"{row['kind']}/{k}": v for k, v in row.items() if isinstance(v, (int, float)) and k != "step"}
        for logger in self._loggers:
            logger.log(numbers, step=row["step"])

    # ---- at the end --------------------------------------------------------------------------

    def totals(self) -> dict[str, Any]:
        return {"loss": self.epoch_loss, "images_per_s": self.total_images / max(self.total_seconds, 1e-9),
                "data_share": self.total_waited / max(self.total_seconds, 1e-9)}

    def close(self, result: dict[str, Any]) -> None:
        if not self.ranks.first:
            return
        if self.epoch_loss is not None and self.epoch_loss > 10 * self.first_loss > 0:
            print(f"leat train: warning: the loss rose from {self.first_loss:.4g} to {self.epoch_loss:.4g}: use a lower learning "
                  "rate (lr), or clip gradients at 1", file=sys.stderr)
        if self._file is not None:
            self._file.close()
            self._file = None
        path = os.path.join(self.o.output, "report.html")
        page = render(os.path.join(self.o.output, "metrics.jsonl"), result, self.confusion, self.class_names)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        except OSError as error:
            print(f"leat train: warning: {path}: {error.strerror}", file=sys.stderr)
        for logger in self._loggers:
            close = getattr(logger, "close", None) or getattr(logger, "finish", None)
            if close is not None:
                close()


class _TensorBoard:
    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def log(self, numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


def _step_of(line: str) -> float:
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return math.inf


# ---- the page ------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return f"{value:.4g}"


def curve(points: list[tuple[float, float]], title: str, width: int = 420, height: int = 200) -> str:
    """Renders one curve as inline SVG."""
    points = [p for p in points if math.isfinite(p[1])]
    if not points:
        return ""
    step = max(len(points) // 800, 1)  # a page of a long run stays small
    kept = points[::step] + ([points[-1]] if (len(points) - 1) % step else [])
    (left, right), (low, high) = ((min(v), max(v)) for v in zip(*kept))
    spread_x, spread_y = right - left or 1, high - low or 1
    at = lambda x, y: f"{50 + (x - left) / spread_x * (width - 60):.1f},{height - 25 - (y - low) / spread_y * (height - 55):.1f}"  # noqa: E731
    line = " ".join(at(x, y) for x, y in kept)
    return (f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
            f'<text x="50" y="16" class="t">{html.escape(title)}</text>'
            f'<path d="M50 30V{height - 25}H{width - 10}" class="a"/><polyline points="{line}" class="c"/>'
            f'<text x="46" y="38" class="n">{_number(high)}</text><text x="46" y="{height - 25}" class="n">{_number(low)}</text>'
            f'<text x="{width - 10}" y="{height - 8}" class="n">{_number(right)}</text>'
            f'<text x="50" y="{height - 8}" class="m">{_number(left)}</text></svg>')


def _matrix(confusion: list[list[int]], names: list[str]) -> str:
    """Renders the table of classes, and the confusion matrix of up to 100 classes."""
    count = len(confusion)
    names = names if len(names) == count else [str(i) for i in range(count)]
    rows = []
    for i, row in enumerate(confusion):
        total, said = sum(row), sum(other[i] for other in confusion)
        worst = max((n, k) for k, n in enumerate(row) if k != i) if count > 1 else (0, 0)
        rows.append((row[i] / total if total else 0.0, names[i], total, row[i] / said if said else 0.0,
                     f"{names[worst[1]]} ({worst[0]})" if worst[0] else ""))
    body = "".join(f"<tr><td>{html.escape(name)}</td><td>{total}</td><td>{100 * recall:.1f}</td><td>{100 * precision:.1f}"
                   f"</td><td>{html.escape(often)}</td></tr>" for recall, name, total, precision, often in sorted(rows))
    page = ("<h2>Classes, worst first</h2><table><tr><th>class<th>samples<th>recall %<th>precision %<th>most often "
            f"taken for</tr>{body}</table>")
    if count > 100:
        return page
    cells = []
    for i, row in enumerate(confusion):
        total = max(sum(row), 1)
        shades = "".join(f'<td style="background:rgba(20,90,180,{n / total:.2f})" title="{html.escape(names[i])} as '
                         f'{html.escape(names[k])}">{n or ""}</td>' for k, n in enumerate(row))
        cells.append(f"<tr><th>{html.escape(names[i])}</th>{shades}</tr>")
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    return page + f"<h2>Confusion</h2><p>rows: true class</p><table class='m'><tr><th></th>{head}</tr>{''.join(cells)}</table>"


def render(metrics: str, result: dict[str, Any], confusion: list[list[int]] | None, names: list[str]) -> str:
    """Renders report.html: curves, facts and classes; it opens without a server."""
    rows: list[dict[str, Any]] = []
    if os.path.exists(metrics):
        with open(metrics, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if _step_of(line) != math.inf]
    curves = "".join(curve([(r["step"], r[key]) for r in rows if r.get(key) is not None], title) for key, title in _CURVES)
    facts = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(_number(v) if isinstance(v, float) else str(v))}</td></tr>"
                    for k, v in result.items() if v is not None)
    classes = _matrix(confusion, names) if confusion else ""
    return ("<!doctype html><meta charset=utf-8><title>leat train</title><style>body{font:14px sans-serif;margin:2em}"
            "svg{margin:0 1em 1em 0}.t{font:bold 13px sans-serif}.n{font:10px sans-serif;text-anchor:end}"
            ".m{font:10px sans-serif}.a{stroke:#999;fill:none}.c{stroke:#1559b4;fill:none;stroke-width:1.5}"
            "table{border-collapse:collapse;margin-bottom:1em}td,th{border:1px solid #ddd;padding:2px 6px;text-align:left}"
            f"</style><h1>leat train</h1>{curves}<h2>Result</h2><table>{facts}</table>{classes}")
