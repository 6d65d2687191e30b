# SPDX-License-Identifier: Apache-2.0
"""The training loop.

An update takes ``accumulate`` batches of the loader, each in ``split`` parts. The number of the update
decides the learning rate; the state of a run is its weights, the optimizer, the average, the random
states and the loader's place. So a run that is resumed makes the same updates as one that was never interrupted.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from .. import _json
from .._errors import ArgumentError, BudgetError, ExistsError, StorageError, counted
from .._loader import Loader
from . import checkpoint, data, evaluate, methods, models, optim, plan, report
from .distributed import Ranks, handle_signals

_GUARDED = 5  # in this many updates after a start, ranks tell each other when they run out of memory
_PAUSE = 10.0  # seconds between checkpoints at the ends of short epochs
_SAME = ("method", "model", "classes", "side", "dim", "width")  # facts that a checkpoint must have in common with the run


def choose_precision(wanted: str, device: torch.device) -> str:
    if wanted != "auto":
        return wanted
    if device.type != "cuda":
        return "32"
    return "bf16-mixed" if torch.cuda.get_device_capability(device)[0] >= 8 else "16-mixed"


class Trainer:
    """One run on one rank."""

    def __init__(self, pack: str, o: SimpleNamespace, ranks: Ranks) -> None:
        self.o, self.ranks, self.device = o, ranks, ranks.device
        methods.check(o)
        self.started = time.perf_counter()
        self.stop = 0
        self.saved_at = -1e9  # the first epoch's end is saved
        self.facts = data.Facts(pack, o.label)
        self.val = None if o.val is None else data.Facts(o.val, o.label)
        self.side = data.side_of(o, self.facts)
        self.classes = self._count_classes()
        self.precision = choose_precision(o.precision, self.device)
        self._set_backends()
        self._set_preset()
        torch.manual_seed(o.seed)
        self.task = methods.make(o, self.side, self.classes, self.device).to(self.device)
        if self.precision == "bf16-true":
            self.task.to(torch.bfloat16)
        self.channels_last = self._on(o.channels_last, models.convolutional(self.task.net))
        if self.channels_last:
            self.task.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer_name = optim.name_of(o, o.model)
        if "momentum" in o.given and self.optimizer_name != "sgd":
            raise ArgumentError(f"momentum: has no effect with {self.optimizer_name}; it is for sgd")
        self.optimizer, self.base_lr = optim.make(o, self.optimizer_name, [self.task], self.device.type == "cuda")
        self.average = optim.Average(self.task.net, o.ema) if o.ema > 0 else None
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "16-mixed")
        self.epoch = self.update = self.in_epoch = 0
        self.split = 1
        self.best = -1.0
        self.loader: Loader | None = None
        self._ahead: Iterator[Any] | None = None  # the next epoch, begun before this one's last update
        self.loader_state: dict[str, Any] | None = None
        self.history: dict[str, Any] = {}
        self.guarded_until = _GUARDED
        self.folder = os.path.join(o.output, "checkpoints")

    # ---- settings ----------------------------------------------------------------------------

    def _count_classes(self) -> int:
        o = self.o
        if o.method != "supervised" and not self.facts.labelled:
            return 0
        classes = self.facts.classes(o.classes, o.label)
        if self.val is not None and o.method == "supervised":
            theirs = self.val.classes(0, o.label)
            names, others = self.facts.class_names, self.val.class_names
            if theirs > classes or names and others and names != others:
                differs = next((f"; class {i} is {a!r} there and {b!r} here" for i, (a, b) in enumerate(zip(others, names))
                                if a != b), "")
                raise ArgumentError(f"{self.val.path}: has {theirs} classes, {self.facts.path} has {classes}{differs}; they "
                                    "must be the same, in the same order")
        return classes

    def _set_backends(self) -> None:
        exact = self.precision == "32"
        torch.set_float32_matmul_precision("highest" if exact else "high")
        torch.backends.cudnn.allow_tf32 = not exact
        # benchmarking algorithms takes seconds and does not help for small images (measured on an H200)
        torch.backends.cudnn.benchmark = not self.o.deterministic and self.side > models.SMALL
        if self.o.deterministic != torch.are_deterministic_algorithms_enabled():  # setting it imports the compiler
            torch.use_deterministic_algorithms(self.o.deterministic)
        if self.o.deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

    def _set_preset(self) -> None:
        """Changes the batch for the presets conservative and aggressive, as the plan does."""
        o = self.o
        if o.preset == "conservative":
            o.batch_size = max(o.batch_size * 3 // 4, 1)
            o.compile = "off" if o.compile == "auto" else o.compile
        elif o.preset == "aggressive":
            o.batch_size = o.batch_size * 5 // 4

    def _on(self, word: str, useful: bool) -> bool:
        return word == "on" or word == "auto" and useful and self.device.type == "cuda"

    def compiles(self) -> bool:
        """Returns whether to compile. That takes about a minute, so it pays only for much longer runs."""
        o = self.o
        pixels = self.facts.samples * o.epochs * (self.side / 224) ** 2
        useful = o.max_steps == 0 and pixels >= 2e6 and not o.deterministic
        return self._on(o.compile, useful)

    def _autocast(self) -> Any:
        if self.precision in ("16-mixed", "bf16-mixed"):
            dtype = torch.float16 if self.precision == "16-mixed" else torch.bfloat16
            return torch.autocast(self.device.type, dtype)
        return nullcontext()

    # ---- state -------------------------------------------------------------------------------

    def _facts(self) -> dict[str, Any]:
        return {"method": self.o.method, "model": self.o.model, "classes": self.classes, "side": self.side,
                "dim": self.o.dim, "width": self.task.net.width, "class_names": self.facts.class_names,
                "mean": list(data.MEAN), "std": list(data.STD)}

    def _random_state(self) -> dict[str, str]:
        states = {"cpu": torch.get_rng_state()}
        if self.device.type == "cuda":
            states["cuda"] = torch.cuda.get_rng_state(self.device)
        return {name: base64.b64encode(state.numpy().tobytes()).decode() for name, state in states.items()}

    def _set_random_state(self, states: list[dict[str, str]]) -> None:
        mine = states[self.ranks.rank % len(states)]
        for name, text in mine.items():
            state = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
            if name == "cpu":
                torch.set_rng_state(state)
            elif self.device.type == "cuda":
                torch.cuda.set_rng_state(state, self.device)

    def save(self, keeper: checkpoint.Keeper, *, best: bool = False, kept: bool = False, wait: bool = False) -> None:
        """Hands a copy of the state to the writer. All ranks call it, because each has a random state."""
        self.saved_at = time.monotonic()
        random = self.ranks.gather(self._random_state())
        if not self.ranks.first:
            return
        inside = self.loader is not None and 0 < self.in_epoch < self.per_epoch
        optimizer = self.optimizer.state_dict()["state"]
        train = {f"task.{name}": t for name, t in self.task.state_dict().items()}
        numbers: dict[str, Any] = {}
        for i, row in optimizer.items():
            for name, value in row.items():
                if isinstance(value, Tensor):
                    train[f"optimizer.{i}.{name}"] = value
                elif value is not None:
                    numbers[f"{i}.{name}"] = value
        if self.average is not None:
            train.update({f"average.{name}": t for name, t in self.average.tensors.items()})
        use = self.average.tensors if self.average is not None else self.task.net.state_dict()
        state = {"epoch": self.epoch, "update": self.update, "in_epoch": self.in_epoch, "split": self.split,
                 "best": self.best, "random": random, "world": self.ranks.world,
                 "loader": self.loader.state_dict() if inside else None,  # type: ignore[union-attr]
                 "scaler": self.scaler.state_dict(), "optimizer": self.optimizer_name,
                 "optimizer_numbers": numbers, "facts": self._facts(), "pack": self.facts.fingerprint}
        copied = {name: t.detach().to("cpu", copy=True) for name, t in train.items()}
        weights = {name: t.detach().to("cpu", copy=True) for name, t in use.items()}
        keeper.save(f"step-{self.update:08d}{'' if self.in_epoch else '-end'}", weights, copied, state, best=best, kept=kept, wait=wait)

    def restore(self, path: str) -> None:
        """Resumes from a checkpoint."""
        state = checkpoint.read_state(path)
        self._same_model(path, state)
        if state["pack"] != self.facts.fingerprint:
            raise ArgumentError(f"{path}: was trained on another pack than {self.facts.path}; use `init` to begin with its weights")
        if state["optimizer"] != self.optimizer_name:
            raise ArgumentError(f"{path}: was trained with {state['optimizer']}, not {self.optimizer_name}")
        tensors = checkpoint.read_tensors(os.path.join(path, "train.safetensors"))
        part = lambda prefix: {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}  # noqa: E731
        checkpoint.load_weights(self.task, part("task."), path)
        self._restore_optimizer(part("optimizer."), state["optimizer_numbers"])
        if self.average is not None:
            kept = part("average.")
            if set(kept) != set(self.average.tensors):
                raise ArgumentError(f"{path}: has no moving average of the weights; leave out `ema`")
            self.average.tensors = {name: t.to(self.device) for name, t in kept.items()}
        self.scaler.load_state_dict(state["scaler"])
        self._set_random_state(state["random"])
        self.epoch, self.update, self.in_epoch = state["epoch"], state["update"], state["in_epoch"]
        self.split, self.best, self.loader_state = state["split"], state["best"], state["loader"]
        self.guarded_until = self.update + _GUARDED

    def _same_model(self, path: str, state: dict[str, Any]) -> None:
        mine = self._facts()
        for name in _SAME:
            if state["facts"].get(name) != mine[name]:
                raise ArgumentError(f"{path}: is of another model: {name} is {state['facts'].get(name)!r}, not {mine[name]!r}")

    def _restore_optimizer(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        whole = self.optimizer.state_dict()
        rows: dict[int, dict[str, Any]] = {}
        for key, value in (*tensors.items(), *numbers.items()):
            index, _, name = key.partition(".")
            rows.setdefault(int(index), {})[name] = value
        whole["state"] = rows
        self.optimizer.load_state_dict(whole)

    def start_from(self, path: str) -> None:
        """Starts from the weights of another run; a head of another size is not loaded."""
        folder = checkpoint.find(path)
        tensors = checkpoint.read_tensors(os.path.join(folder, "model.safetensors"))
        mine = self.task.net.state_dict()
        body = {n: t for n, t in tensors.items() if not n.startswith("head.")}
        for name, t in body.items():
            if name not in mine or mine[name].shape != t.shape:
                raise ArgumentError(f"{folder}: is of another model: '{name}' does not fit {self.o.model}")
        missing = sorted(n for n in mine if not n.startswith("head.") and n not in body)
        if missing:
            raise ArgumentError(f"{folder}: is of another model: it has no '{missing[0]}'")
        head = {n: t for n, t in tensors.items() if n.startswith("head.") and n in mine and mine[n].shape == t.shape}
        self.task.net.load_state_dict({**mine, **body, **head})
        if any(n.startswith("head.") and n not in head for n in mine):
            self.say(f"{folder}: its classifier does not fit: the new one begins at random")
        if self.average is not None:
            self.average = optim.Average(self.task.net, self.o.ema)

    # ---- one update --------------------------------------------------------------------------

    def _parts(self, batch: Any) -> Iterator[tuple[list[Tensor], Tensor | None, float]]:
        views = methods.batch_views(batch, self.task.views)
        label = batch[self.o.label] if self.facts.labelled else None
        count = len(views[0])
        step = -(-count // self.split)
        for first in range(0, count, step):
            last = min(first + step, count)
            yield ([v[first:last] for v in views], None if label is None else label[first:last],
                   (last - first) / count)

    def _backward(self, batches: list[Any]) -> Tensor:
        """Computes the gradients of the mean loss over the batches; returns the loss."""
        total = torch.zeros((), device=self.device)
        for batch in batches:
            for views, label, share in self._parts(batch):
                with self._autocast():
                    loss = self.task.loss(views, label) * (share / len(batches))
                self.scaler.scale(loss).backward()
                total += loss.detach()
        return total

    def _gradients(self, batches: list[Any]) -> Tensor:
        """Computes the gradients; splits the batch into smaller parts when GPU memory runs out."""
        while True:
            self.optimizer.zero_grad(set_to_none=True)
            short: BaseException | None = None
            loss = torch.zeros((), device=self.device)
            try:
                loss = self._backward(batches)
            except torch.OutOfMemoryError as error:
                short = error
            except (RuntimeError, ValueError) as error:
                raise self._too_small(error) from None
            asked = self.ranks.world == 1 or self.update < self.guarded_until
            if short is None and not (asked and self.ranks.world > 1 and self.ranks.any(False)):
                return loss
            if short is not None and asked and self.ranks.world > 1:
                self.ranks.any(True)
            self._make_room(short, asked)

    def _too_small(self, error: Exception) -> Exception:
        """Returns an error that says what to change when a model needs more pixels or samples."""
        text = str(error)
        if "Expected more than 1 value per channel" in text:
            return ArgumentError(f"batch_size: the norms of {self.o.model} need more than one value per channel: "
                                 "use larger batches or images")
        if "Output size is too small" in text or "Kernel size can't be greater" in text:
            return ArgumentError(f"image_size: images of {self._loader_side} pixels are too small for {self.o.model}")
        return error

    def _make_room(self, short: BaseException | None, asked: bool) -> None:
        whole = self.o.batch_size
        now = -(-whole // self.split)
        if not asked:
            raise BudgetError(f"GPU memory ran out in update {self.update}; start again with `resume` and a smaller batch") from short
        if self.o.strict:
            raise BudgetError(f"GPU memory: a batch of {now} does not fit (`strict`); without it the batch would be halved")
        if now <= 1:
            raise BudgetError("GPU memory: not even one sample per step fits; use smaller images, a smaller model or "
                              "`checkpointing`")
        del short
        self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        self.split *= 2
        self.guarded_until = self.update + _GUARDED
        self.say(f"GPU memory: a batch of {now} does not fit; continuing with {-(-whole // self.split)} and gradients "
                 f"accumulated over {counted(self.split * self.o.accumulate, 'step')} (same update)")

    def _step(self, batches: list[Any]) -> Tensor:
        loss = self._gradients(batches)
        trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        if self.ranks.world > 1:
            for p in trained:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
            running = [b for b in self.task.buffers() if b.is_floating_point()]
            self.ranks.average([p.grad for p in trained if p.grad is not None] + running)
        if self.o.clip > 0:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(trained, self.o.clip)
        lr = self.peak * self.schedule.share(self.update)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.update += 1
        self.in_epoch += 1
        self.task.after_update(self.update, self.total)
        if self.average is not None:
            self.average.update(self.task.net, self.update)
        return loss

    # ---- the run -----------------------------------------------------------------------------

    def say(self, line: str) -> None:
        if self.ranks.first and not self.o.quiet:
            print(line, file=sys.stderr, flush=True)

    def _make_loader(self, epoch: int) -> Loader:
        side = data.side_at(self.o, self.side, epoch)
        if self.loader is not None and self._loader_side == side:
            return self.loader
        if self.loader is not None:
            self._close_loader()
            self.say(f"images of {side} pixels from epoch {epoch + 1} on")
        self._loader_side = side
        self.guarded_until = self.update + _GUARDED
        device = "cpu" if self.device.type == "cpu" else str(self.device)
        self.loader = data.train_loader(self.o, self.facts, side, self.precision, device, self.channels_last,
                                        self.classes, self.ranks.world, os.path.join(self.o.output, "run.jsonl"))
        return self.loader

    def prepare(self) -> None:
        """Sets up everything that needs the loader: schedule, learning rate, compiling."""
        o = self.o
        loader = self._make_loader(self.epoch)
        self.per_epoch = -(-len(loader) // o.accumulate)
        if self.per_epoch == 0:
            raise ArgumentError(f"{self.facts.path}: has {counted(self.facts.samples, 'sample')}: too few for {counted(self.ranks.world, 'rank')}")
        self.total = min(self.per_epoch * o.epochs, o.max_steps or 2**62)
        self.schedule = optim.schedule(o, self.per_epoch, self.total)
        # samples of an update: an epoch of a small pack can have fewer than the requested batches
        whole = min(o.batch_size * self.ranks.world * min(o.accumulate, len(loader)), self.facts.samples)
        self.peak = self.base_lr * (whole / 256 if o.scale_lr else 1.0)
        compiled = self.compiles()
        if compiled:
            self.task.use(torch.compile(self.task.net))
        self._describe(whole, compiled)

    def _describe(self, whole: int, compiled: bool) -> None:
        o = self.o
        count = sum(p.numel() for p in self.task.net.parameters())
        where = f"{self.ranks.world} x {self.device.type}" + (f" ({self.ranks.source})" if self.ranks.world > 1 else "")
        self.say(f"{o.method}: {o.model}, {count / 1e6:.1f} M parameters, {self.classes or 'no'} classes, images of "
                 f"{self.side} pixels; {where}, {self.precision}{', compiled' if compiled else ''}"
                 f"{', channels last' if self.channels_last else ''}")
        scaled = f"{self.base_lr:g} x {whole}/256" if o.scale_lr else "not scaled"
        asked = f"{o.batch_size} x {o.accumulate} accumulated x {counted(self.ranks.world, 'rank')}"
        if whole < o.batch_size * o.accumulate * self.ranks.world:
            asked = f"an epoch has only {counted(whole, 'sample')}, {asked} were asked for"
        self.say(f"{self.optimizer_name}: learning rate {self.peak:g} ({scaled}: {asked}), {o.schedule}, warm-up {self.schedule.warmup} of {counted(self.total, 'update')}")

    def _batches(self) -> Iterator[list[Any]]:
        """Yields groups of ``accumulate`` batches; the last of an epoch may be smaller."""
        assert self.loader is not None
        group: list[Any] = []
        left = len(self.loader) - self.in_epoch * self.o.accumulate
        feed, self._ahead = self._ahead or iter(self.loader), None
        begin = time.perf_counter()
        for batch in feed:
            self.meter.got(time.perf_counter() - begin)
            group.append(batch)
            left -= 1
            if left == 0:
                self._begin_ahead()
            if len(group) == self.o.accumulate:
                yield group
                group = []
            if self._ahead is not None:
                break
            begin = time.perf_counter()
        if group:
            yield group

    def _begin_ahead(self) -> None:
        """Starts the next epoch of the loader during the update of the last batch.

        Otherwise each epoch waits for its first batch (40 ms for 256 photos on 16 CPUs).
        """
        assert self.loader is not None
        epoch = self.epoch + 1
        if epoch < self.o.epochs and self.update + 1 < self.total and data.side_at(self.o, self.side, epoch) == self._loader_side:
            self.loader.set_epoch(epoch)
            self._ahead = iter(self.loader)

    def _stopping(self) -> bool:
        if self.ranks.world == 1:
            return self.stop != 0
        if self.device.type == "cuda" and self.update % 8:  # asking waits for the GPU
            return False
        return self.ranks.any(self.stop != 0)

    def train_epoch(self, keeper: checkpoint.Keeper) -> bool:
        """Trains one epoch, or the rest of one; returns False when the run was asked to stop."""
        o = self.o
        loader = self._make_loader(self.epoch)
        if self.in_epoch >= self.per_epoch:  # stopped after the last update, before the evaluation
            self._end_epoch()
            return True
        if self.loader_state is not None:
            loader.load_state_dict(self.loader_state)
            self.loader_state = None
        elif self._ahead is None:
            loader.set_epoch(self.epoch)
        self.task.train()
        self.meter.begin(self.epoch, self.in_epoch, self.per_epoch)
        for group in self._batches():
            loss = self._step(group)
            self.meter.stepped(self.device.type == "cuda")
            self.meter.add(loss, sum(len(b["view0"]) for b in group) * self.ranks.world, self)
            del group
            if self._stopping():
                self.meter.end(self)
                self.save(keeper, wait=True)
                return False
            if o.save_every and self.update % o.save_every == 0 and not self._epoch_over():
                self.save(keeper)
                self._warn(keeper)
            if self.update >= self.total:
                break
        self.meter.end(self)
        self._end_epoch()
        return True

    def _epoch_over(self) -> bool:
        """Returns whether the current epoch, or the run, has had its last update."""
        return self.in_epoch >= self.per_epoch or self.update >= self.total

    def _end_epoch(self) -> None:
        self.epoch += 1
        self.in_epoch = 0
        self.loader_state = None

    def _warn(self, keeper: checkpoint.Keeper) -> None:
        if keeper.failure is not None:
            print(f"leat train: warning: {keeper.failure}", file=sys.stderr, flush=True)
            keeper.failure = None

    def _due(self) -> bool:
        every = self.o.eval_every
        return self.update >= self.total or self.epoch >= self.o.epochs or bool(every and self.epoch % every == 0)

    def evaluate(self) -> dict[str, Any]:
        """Measures accuracy on --val, with the average of the weights where there is one."""
        if self.val is None:
            return {}
        o, net = self.o, self.task.net
        device = "cpu" if self.device.type == "cpu" else str(self.device)
        net.eval()
        if self.average is not None:
            self.average.swap(net)
        try:
            with self._autocast(), data.eval_loader(o, self.val, o.batch_size, self.side, self.precision, device,
                                                    self.channels_last) as loader:
                if o.method == "supervised":
                    found = evaluate.classify(net, loader, o.label, self.classes, self.ranks, flip=o.tta,
                                              shift=o.tta and self.side <= models.SMALL)
                else:
                    found = {}
            last = self.update >= self.total or self.epoch >= o.epochs
            k = o.knn or (20 if o.method != "supervised" else 0)
            if self.facts.labelled and self.val.labelled and (k or o.probe and last):
                found.update(self._neighbours(k, o.probe if last else 0, device))
        finally:
            if self.average is not None:
                self.average.swap(net)
            net.train()
        return found

    def _neighbours(self, k: int, probe_epochs: int, device: str) -> dict[str, Any]:
        assert self.val is not None
        o, made = self.o, []
        for facts in (self.facts, self.val):
            with self._autocast(), data.eval_loader(o, facts, o.batch_size, self.side, self.precision, device,
                                                    self.channels_last) as loader:
                made += evaluate.features(self.task.net.features, loader, o.label, self.ranks)
        found: dict[str, Any] = {}
        if k:
            found["knn"] = evaluate.knn(*made, self.classes, k)
        if probe_epochs:
            found["probe"] = evaluate.probe(*made, self.classes, probe_epochs, o.seed)
        return found

    def run(self, resumed: bool) -> dict[str, Any]:
        """Trains to the end, or until a signal; returns the result."""
        o = self.o
        keeper = checkpoint.Keeper(self.folder, self._best_name()) if self.ranks.first else _no_keeper()
        self.prepare()
        self.meter = report.Meter(o, self.ranks, self.update if resumed else 0, self.facts.class_names)
        finished = True
        if resumed and (self.epoch >= o.epochs or (self.update >= self.total and self.in_epoch == 0)):
            limit = f"epochs ({o.epochs}" if self.epoch >= o.epochs else f"max_steps ({o.max_steps}"
            self.say(f"{o.output}: the run is finished, nothing is left to train: a larger number of {limit} so far) trains longer")
        while self.epoch < o.epochs and (self.update < self.total or self.in_epoch > 0):
            finished = self.train_epoch(keeper)
            if not finished:
                break
            self._after_epoch(keeper)
        keeper.wait()
        return self._finish(keeper, finished)

    def run_with(self, predicted: dict[str, Any] | None) -> dict[str, Any]:
        """Trains, and records options and result beside the checkpoints."""
        o = self.o
        resumed = self._begin()  # a run that is refused changes nothing
        self.ranks.barrier()
        if self.ranks.first and o.force and not o.resume:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.ranks.barrier()
        if self.ranks.first:
            self._note("config.json", o.config_values)
        result = self.run(resumed)
        if predicted is not None:
            result["plan"] = plan.compare(predicted, result, self)
        if self.ranks.first:
            self._note("result.json", result)
        return result

    def _note(self, name: str, values: dict[str, Any]) -> None:
        path = os.path.join(self.o.output, name)
        try:
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(_json.text(values, indent=1))
            os.replace(path + ".new", path)
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}") from None

    def _after_epoch(self, keeper: checkpoint.Keeper) -> None:
        o, found = self.o, {}
        if self._due():
            found = self.evaluate()
            self.meter.evaluated(self, found)
            self.history.update({k: v for k, v in found.items() if k != "confusion"})
        score = found.get("top1", found.get("knn", -1.0))
        best = score > self.best
        self.best = max(self.best, score)
        kept = bool(o.keep_every and self.epoch % o.keep_every == 0)
        over = self.epoch >= o.epochs or self.update >= self.total
        soon = self.ranks.any(time.monotonic() - self.saved_at < _PAUSE)  # ranks save together
        if best or kept or over or not soon:
            self.save(keeper, best=best, kept=kept)
        if not over:  # a failure to write the last checkpoint is an error
            self._warn(keeper)

    def _best_name(self) -> str | None:
        link = os.path.join(self.folder, "best")
        return os.readlink(link) if os.path.islink(link) else None

    def _begin(self) -> bool:
        """Resumes, starts from other weights, or starts from scratch; returns whether it resumed."""
        o = self.o
        if o.resume and o.force:
            raise ArgumentError("resume: continues a run, and `force` starts again: use one of them")
        there = checkpoint.newest(self.folder)
        if there is not None and not o.resume:
            if not o.force:
                raise ExistsError(f"{o.output}: has checkpoints already (use `resume` to continue, `force` to start again)")
        elif there is not None:
            self.restore(there)
            self.say(f"resumed at update {self.update}, epoch {self.epoch + 1}: {there}")
            return True
        elif o.resume:
            self.say(f"{o.output}: has no checkpoint yet: starting from the beginning")
        if o.init is not None:
            self.start_from(o.init)
        return False

    def _finish(self, keeper: checkpoint.Keeper, finished: bool) -> dict[str, Any]:
        self._warn_final(keeper)
        assert self.loader is not None
        verdict = self.loader.doctor().verdict if self.ranks.first else ""
        result = {"epochs": self.epoch, "steps": self.update, **self.history, **self.meter.totals(),
                  "seconds": time.perf_counter() - self.started, "checkpoint": keeper.last, "verdict": verdict,
                  "loader_bytes": self.loader.stats()["budget_peak_bytes"],
                  "batch_size": o_batch(self), "stopped": self.stop or (0 if finished else signal.SIGTERM)}
        self.meter.close(result)
        self._close_loader()
        return result

    def _warn_final(self, keeper: checkpoint.Keeper) -> None:
        if keeper.failure is not None:
            self._close_loader()
            raise keeper.failure

    def _close_loader(self) -> None:
        """Closes the loader. A failure to write its run file, such as a full disk, must not end the training."""
        try:
            self.loader.close()  # type: ignore[union-attr]
        except StorageError as error:
            print(f"leat train: warning: {error}", file=sys.stderr, flush=True)


def o_batch(trainer: Trainer) -> int:
    """Samples per forward pass, after any halving."""
    return -(-trainer.o.batch_size // trainer.split)


class _no_keeper(checkpoint.Keeper):
    """Ranks other than the first write nothing."""

    def __init__(self) -> None:
        self.failure = None
        self.last = None
        self._thread = None

    def save(self, *args: Any, **options: Any) -> None:
        return


def watch_signals(trainer: Trainer) -> dict[int, Any]:
    """The first SIGINT or SIGTERM asks for a checkpoint; the second ends the process."""
    def handle(number: int, frame: Any) -> None:
        if trainer.stop:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        trainer.stop = number
        trainer.say("\nstopping after this step, with a checkpoint; once more to stop at once")

    return handle_signals(handle)
