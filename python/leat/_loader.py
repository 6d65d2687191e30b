# SPDX-License-Identifier: Apache-2.0
"""The loader: batches of a pack for a training loop."""

from __future__ import annotations

import atexit
import contextlib
import difflib
import gc
import inspect
import json
import os
import re
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Self

import numpy as np

from . import _check, _convert, _leat, _rank, _words, ops
from ._batch import Batch, Ragged, batch_class
from ._dataset import Dataset
from ._errors import AdviceWarning, ArgumentError, BudgetError, SampleIndexError, StateError, StorageError, counted, reason, shown
from ._follow import Role, refuse_roles, roles_text
from ._mix import Datasets, Mix

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from ._diagnose import Diagnosis
    from .callbacks import Callback, Monitor

    #: What a loader yields: a ``leat.Batch`` unless it is annotated, ``leat.Loader[MyBatch]``.
    B_co = TypeVar("B_co", default=Batch, covariant=True)
else:
    from typing import TypeVar

    B_co = TypeVar("B_co", covariant=True)

Pipeline = str | ops.Op | Sequence[str | ops.Op]

_ORDERS = {name: value for value, (name, _) in enumerate(_leat.orders())}
_CACHES = {"os": 0, "process": 1, "device": 2}
_DECODES = {"auto": 0, "cpu": 1, "gpu": 2}
_POLICIES = {"fail": 0, "skip": 1, "replace": 2}
_ORIENTATIONS = {"apply": 0, "ignore": 1}
_REPORT = rb"<!doctype html>\n<!-- report of leat -->"  # how its pages begin
_MIX_LABELS = {"soft": 1, "pairs": 2}
_DROPS = {False: 0, True: 1, None: 2}
_WHENS = {"epoch": 0, "batch": 1}
_BUCKETS = {"aspect": 1, "size": 2}
_COLLATES = {"stack": 0, "pad": 1, "list": 2, "ragged": 3}
_SAME: Any = object()
_DEFAULT = _leat.defaults()  # the same table as in C and the command

# Read-only attributes: the options of the loader. Assigning to them would not change the loader.
_FIXED = frozenset((
    "path", "packs", "batch_size", "image", "order", "seed", "drop_last", "threads", "cache", "on_error", "max_bad",
    "quarantine", "rank", "world_size", "rank_source", "window_pages", "streams", "prefetch", "io_depth",
    "indices", "keys", "weights", "balance", "draws", "fields", "field_names", "as_", "channels_last", "as_dict",
    "label", "classes", "mix_labels", "sample_fn", "digest", "run", "callbacks", "orientation", "device",
    "device_memory", "collate", "pad_multiple", "pad_value", "pad_mask", "bucket", "buckets",
    "samples", "epoch", "dataset", "sampler",
    "batch_sampler", "num_workers", "pin_memory", "persistent_workers"))

_SETTABLE = ("memory", "transform")

_open_loaders: weakref.WeakSet[Loader[Any]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # workers must stop before the interpreter shuts down
    for loader in list(_open_loaders):
        with contextlib.suppress(StateError):  # a daemon thread is using the loader, and ends with the process
            loader.close()


class Loader(Generic[B_co]):
    """Yields batches of a pack, decoded and augmented by C threads, in a reproducible order, within a memory budget.

    >>> loader = leat.Loader("train.leat", batch_size=256, seed=1, image=[
    ...     leat.ops.RandomResizedCrop(224), leat.ops.RandomHorizontalFlip(),
    ...     leat.ops.Normalize(mean, std), leat.ops.ToDtype("float16")])
    >>> for image, label, sample_id in loader: ...

    For a type checker, ``loader: leat.Loader[MyBatch] = leat.Loader(...)`` declares the type of a batch: a subclass of
    ``leat.Batch`` with annotated fields, a TypedDict with ``as_dict=True``, or what ``transform`` returns.

    Each ``for`` runs one epoch. Batches depend on the pack, the options, the seed and the epoch,
    never on threads, memory or timing. Tensors share the batch's memory without a copy. The memory
    returns to the budget when the last of them is dropped.

    Parameters
        path: the pack. A list of paths: all samples of several packs; a ``leat.Mix``: packs in given
            proportions. Packs may be on different disks or in buckets; fields of the same name must have
            the same type
        batch_size: samples per batch of this rank
        image: pipeline of the first image field: a list of ops, or text. Or a dict of output name
            to ``(field, pipeline)``, for several images or several views of one. None: no images
        order: "random", "sequential", or "quasi_random", which shuffles pages, and samples inside a
            window of pages. It mixes nearly as well as "random" but reads whole pages, which is faster for packs
            larger than memory. The loader warns once where that would help. None, the default: "random", or
            "sequential" with ``shuffle=False``
        seed: seed of the order and of every augmentation
        drop_last: True drops the last, smaller global batch. False keeps it: every sample comes exactly once.
            If that batch has fewer samples than there are ranks, some ranks get an empty batch (its mean
            is NaN). None, the default, keeps it unless a rank of a shuffled order would get an empty batch;
            the only batch of an epoch is kept.
            All ranks always get the same number of batches
        orientation: "apply" turns images as their EXIF says, like Pillow's ``exif_transpose``; "ignore"
            delivers them as stored, like torchvision's ``ImageFolder`` (except of TIFF, which Pillow itself turns)
        threads: C workers; 0 = as many CPUs as this process may use
        memory: budget in bytes or text ("2G"); 0 = half of the memory available to this process
        cache: "os" (the system's page cache), "process" (pages inside the budget, direct reads) or "device" (tiles
            stay on the GPU after their first copy, up to device_memory).
            "disk:DIR" keeps pages of a remote pack in that folder, for later epochs, later runs and all
            processes of this machine
        cache_bytes: size limit of the "disk:DIR" folder, in bytes or text; 0 = half of the free space
        on_error: what to do with a bad sample. "fail" raises an error, "skip" drops it, "replace" delivers
            another sample instead, the same one in every run
        max_bad: largest number of bad samples per epoch before it is an error; 0 = no limit
        quarantine: file to list bad samples in, one JSON object per line; not with on_error="fail"
        rank, world_size: this process's share. By default they are detected; ``rank_source`` says how
        window_pages, streams: parameters of "quasi_random"; other values give another order. 0 = 64 streams, and a
            window of 4096 pages or 2 GiB, whichever is less
        prefetch: batches made ahead; 0 = tuned while running
        io_depth: reads in flight; 0 = tuned while running; small values have no effect on remote packs
        indices: only these samples (numbers)
        keys: only these samples (keys)
        select: only the samples of this selection: a pack of ``leat.select``, or of a dedup (what it keeps)
        weights: one per sample (of the subset): draw with replacement
        balance: int field whose values are drawn equally often, with replacement
        draws: samples per epoch with weights or balance; 0 = as many as there are
        fields: which fields of the pack to deliver, besides the images that ``image`` makes; None = all. Images
            that are not wanted are left out with ``image=None``
        label: int field whose labels MixUp and CutMix mix; None = "label"
        classes: number of classes of soft labels; 0 = as many as the field has class names
        mix_labels: how MixUp and CutMix deliver labels: "soft" (the default: float32 of shape
            ``(batch, classes)``), or "pairs" (the label, and the fields ``label_partner`` and
            ``label_lambda``: the loss is ``lambda * loss(label) + (1 - lambda) * loss(partner)``)
        collate: how images form a batch. "stack": one array; the pipeline must give all images one size. The
            others take any size (no crop at all, ``Resize(256)`` by the shorter side, ``Pad``,
            ``RandomRotation(expand=True)``): "pad": one array as high and wide as the highest and the widest
            image of the batch, images in its top left corner, and a field ``NAME_size`` with height and width
            of each; "list": a list of arrays, views of the batch's memory; "ragged": a ``leat.Ragged``, all pixels
            in one array, with offsets and shapes. Masks that follow are collated like their image. Not with
            a device, ``sample_fn``, ``on_error="replace"``, MixUp and CutMix
        pad_multiple: of "pad": height and width are multiples of this
        pad_value: of "pad": value of the padding, in the batch's units (after Normalize); masks use the ``fill``
            of their role
        pad_mask: of "pad": one more field ``NAME_mask``: bool ``(batch, height, width)``, true where the image is
        bucket: "aspect" (width / height) or "size" (width x height): global batches of images of similar shape, which
            need little padding. Every sample comes once per epoch. Samples are shuffled inside a bucket, and so is
            the order of all batches. Samples beyond a bucket's whole batches join those of its neighbours. Shapes
            are those of the first image field. Needs order="random"
        buckets: how many, of equal size (0 = 8); or the list of values at which one ends and the next begins
        independent: allow image fields with different random geometry. By default that is an error, because
            an image and its mask would not match. Equal geometry draws equal values for both fields, also
            with colour ops between
        as_: "torch", "numpy", "jax" or "dlpack"; "auto" is torch where it is installed
        device: None or "cpu": batches are in host memory. "cuda:N": they arrive on that GPU, copied
            there by the loader while the step before runs. "cuda": the GPU of LOCAL_RANK under torchrun,
            else the current one, else the first. Fields of varying length and ``sample_id`` stay on the
            host. A tensor may be dropped while kernels that read it are still queued, on any stream
        device_memory: bytes or text for batches on the device; 0 = a quarter of what is free there
        decode: with a device: "cpu", "gpu" (the device decodes tiled images, crops, resizes, flips and
            normalises them, with the same bits; ops that it does not know are an error), or "auto" (the
            CPUs while they keep up, and the device for the rest)
        channels_last: images are NHWC in memory; torch tensors still have the shape NCHW
        as_dict: yield plain dicts
        transform: called with every batch before it is yielded, in this thread; it returns the batch. When it
            raises, the batch is not lost: the next call of ``next`` transforms it again, and a state starts at it
        sample_fn: your own C code, run for each sample in the workers after the pipelines: a plugin
            (``leat.load_plugin``), a ``numba.cfunc``, a ctypes function or an address
        digest: hash every sample; ``stats()["digest"]`` is the hash of all samples delivered in the epoch, in order, as
            ``leat load --digest`` prints it
        doctor: watch the run from its start and name the bottleneck at the end
        run: file to record the run in, for ``leat top`` and ``leat doctor
            --attach``; rank 1 of several writes to ``FILE.1``, and so on
        follow: fields that follow the geometry of an image: a dict of field name to "follow" or to
            ``leat.ops.Mask``, ``Boxes``, ``Labels`` or ``Keypoints`` with their parameters, or the same as
            text. Masks are image fields (palette PNGs give class numbers), delivered as uint8 ``(batch,
            height, width)``; boxes and points as float32; boxes outside the image are dropped, and their
            labels with them
        **roles: the same by keyword: ``mask="follow", boxes=leat.ops.Boxes("xywh")``. Words of a DataLoader are
            understood (``shuffle`` is the order, ``num_workers`` are the threads) or explained
        callbacks: objects of ``leat.callbacks``, called at intervals with what the loader measures
    """

    # attributes that code written for a DataLoader reads
    batch_sampler = None
    num_workers = 0
    pin_memory = False
    persistent_workers = False

    def __init__(self, path: str | os.PathLike | Sequence[str | os.PathLike] | Mix, batch_size: int = _DEFAULT["batch_size"],
                 image: Pipeline | Mapping[str, tuple[str | None, Pipeline]] | None = _DEFAULT["ops"],
                 *, order: Literal["random", "sequential", "quasi_random"] | None = None,
                 seed: int = 0, drop_last: bool | None = None,
                 orientation: Literal["apply", "ignore"] = "apply", threads: int = 0,
                 memory: int | str = _DEFAULT["memory"], cache: str = _DEFAULT["cache"],
                 on_error: Literal["fail", "skip", "replace"] = "fail",
                 max_bad: int = 0, quarantine: str | os.PathLike | None = None,
                 rank: int | None = None, world_size: int | None = None,
                 window_pages: int = 0, streams: int = 0, prefetch: int = 0, io_depth: int = 0,
                 indices: Sequence[int] | np.ndarray | None = None,
                 keys: Sequence[str | bytes] | None = None, select: str | os.PathLike | None = None,
                 weights: Sequence[float] | np.ndarray | None = None, balance: str | None = None,
                 draws: int = 0, fields: Sequence[str] | None = None,
                 label: str | None = None, classes: int = 0, mix_labels: Literal["soft", "pairs"] | None = None,
                 independent: bool = False, as_: Literal["auto", "torch", "numpy", "jax", "dlpack"] = "auto",
                 channels_last: bool = False, as_dict: bool = False,
                 transform: Callable[[Any], Any] | None = None, sample_fn: Any = None,
                 device: str | None = None, device_memory: int | str = 0, cache_bytes: int | str = 0,
                 decode: Literal["auto", "cpu", "gpu"] = "auto",
                 digest: bool = False, doctor: bool = False, run: str | os.PathLike | None = None,
                 callbacks: Callback | Sequence[Callback] = (),
                 collate: Literal["stack", "pad", "list", "ragged"] = "stack", pad_multiple: int = 1,
                 pad_value: float = 0.0, pad_mask: bool = False,
                 bucket: Literal["aspect", "size"] | None = None, buckets: int | Sequence[float] = 0,
                 follow: Mapping[str, Role] | str | None = None, **roles: Any) -> None:
        refuse_roles({"image": image, "label": label, "classes": classes, "weights": weights, "keys": keys, "indices": indices,
                      "select": select, "balance": balance, "bucket": bucket, "rank": rank, "seed": seed})
        order, threads = _words.understand(roles, order, _DEFAULT["order"], threads)
        self.rank, self.world_size, self.rank_source = _rank.detect(rank, world_size)
        self.as_, self._convert = _convert.converter(as_)
        self._mix = path if isinstance(path, Mix) else Mix(path) if isinstance(path, (list, tuple, Mapping)) else None
        self._packs = (_check.path("path", path),) if self._mix is None else self._mix.packs
        self.packs = tuple(_check.public(p) for p in self._packs)
        self.path = ", ".join(self.packs)
        self.batch_size = _check.whole("batch_size", batch_size, 1, 2**20)
        self.seed = _check.whole("seed", seed)
        self.order = order
        self._threads = _check.whole("threads", threads, 0, 4096)
        self._drop = drop = None if drop_last is None else _check.flag("drop_last", drop_last, "True, False nor None")
        self.channels_last = _check.flag("channels_last", channels_last)
        if isinstance(transform, (list, tuple, ops.Op)):
            raise ArgumentError("transform: ops belong to image=[...]; transform is a function of a whole batch")
        self.transform = _check.called("transform", transform)
        self._as_dict = _check.flag("as_dict", as_dict)
        self._doctor = _check.flag("doctor", doctor)
        record = None if run is None else _check.utf8_path("run", run)
        called = [callbacks] if hasattr(callbacks, "every") else _check.several("callbacks", callbacks, (object,))
        for callback in called:
            if not hasattr(callback, "every"):
                raise ArgumentError(f"callbacks: {shown(callback)} is not one of leat.callbacks")
        self._dataset: Dataset | Datasets | None = None
        if keys is not None:
            if indices is not None:
                raise ArgumentError("give either indices or keys, not both")
            indices = self._find(keys)
        if select is not None:
            if indices is not None:
                raise ArgumentError("give either select or indices or keys, not both")
            from ._select import rows_of

            indices = rows_of(self._packs, select)
        chosen = None if indices is None else _check.indices("indices", indices)
        address, cookie = (0, 0) if sample_fn is None else _resolve(sample_fn)
        self._sample_fn = sample_fn  # the code of the function must outlive the workers
        names, images = _images(image, fields, channels_last, self)
        if image is None and orientation == "ignore":
            raise ArgumentError("orientation has no effect: there are no images")
        following = _roles(follow, roles, self)
        self.device = "cpu" if device is None else _check.text("device", str(device))
        if not re.fullmatch(r"cpu|cuda(:(0|[1-9]\d*))?", self.device):
            raise ArgumentError(f"device: {self.device!r} is not cpu, cuda or cuda:N")
        if self.device != "cpu" and self.as_ == "numpy":
            raise ArgumentError(f"device: NumPy has no arrays on {self.device}; use torch, jax or dlpack")
        self.collate, laid = collate, _check.one_of("collate", collate, _COLLATES)
        if collate == "list" and self.as_ == "dlpack":
            raise ArgumentError('collate: a list of arrays needs as_="torch", "numpy" or "jax"')
        folder = cache[len("disk:"):] if isinstance(cache, str) and cache.startswith("disk:") else None
        disk_bytes = _check.size("cache_bytes", cache_bytes)
        if disk_bytes and folder is None:
            raise ArgumentError('cache_bytes: is for cache="disk:DIR"')
        several = {} if self._mix is None else self._mix.options(self.dataset.fields)
        self._loader = _leat.Loader(
            self._packs[0] if self._mix is None else None, **several, batch_size=self.batch_size, images=images,
            order=_check.one_of("order", order, _ORDERS), seed=self.seed, drop_last=_DROPS[drop],
            threads=self._threads, memory=_check.size("memory", memory),
            cache=_CACHES["os"] if folder is not None else _check.one_of("cache", cache, _CACHES | {"disk:DIR": 0}),
            on_error=_check.one_of("on_error", on_error, _POLICIES),
            max_bad=_check.whole("max_bad", max_bad),
            quarantine=None if quarantine is None else _check.output(
                "quarantine", quarantine, rb'\{"pack":', "a list of bad samples"),
            orientation=_check.one_of("orientation", orientation, _ORIENTATIONS),
            rank=self.rank, world=self.world_size,
            window_pages=_check.whole("window_pages", window_pages, 0, 10**9),
            streams=_check.whole("streams", streams, 0, 65536),
            prefetch=_check.whole("prefetch", prefetch, 0, 1024),
            io_depth=_check.whole("io_depth", io_depth, 0, 1024), indices=chosen,
            weights=None if weights is None else _check.weights(
                "weights", weights, len(self.dataset) if chosen is None else len(chosen)),
            balance=None if balance is None else _check.text("balance", balance), draws=_check.whole("draws", draws), fields=names,
            digest=_check.flag("digest", digest), sample_fn=address, sample_cookie=cookie,
            label=None if label is None else _check.text("label", label),
            classes=_check.whole("classes", classes, 0, _check.U32),
            mix_labels=0 if mix_labels is None else _check.one_of("mix_labels", mix_labels, _MIX_LABELS),
            independent=_check.flag("independent", independent), follow=following, device=self.device,
            device_memory=_check.size("device_memory", device_memory),
            disk_cache=None if folder is None else _check.utf8_path("cache", folder), disk_cache_bytes=disk_bytes,
            decode=_check.one_of("decode", decode, _DECODES), collate=laid,
            pad_multiple=_check.whole("pad_multiple", pad_multiple, 1, 65536),
            pad_value=_check.real("pad_value", pad_value, -1e9, 1e9), pad_mask=_check.flag("pad_mask", pad_mask),
            bucket=0 if bucket is None else _check.one_of("bucket", bucket, _BUCKETS), **_buckets(bucket, buckets))
        self._check_locked = self.device != "cpu"
        self._checks_left = 1000 if cache == "process" else 1  # pages of a cache are locked as it fills
        self._asked_fields = fields
        self._next_size = self.batch_size
        self._base = 0  # global position that the epoch was begun or changed at
        self._fields = self._loader.fields()
        self.field_names: tuple[str, ...] = (*(name for name, *_ in self._fields), "sample_id")
        if "sample_id" in self.field_names[:-1]:
            raise ArgumentError(f"{self.path}: two outputs are named 'sample_id': give the image another name, or leave out the "
                                "field (fields=), whose name is that of the sample numbers")
        self._class = batch_class(self.field_names)
        self._samples, self._batches, _ = self._loader.counts()
        count = json.loads(self._loader.state())["count"]
        self.drop_last = drop is True or self._batches * self.batch_size * self.world_size < count
        self._epoch = 0  # of the next iteration
        self._resume: tuple[str, int] | None = None  # state that the next iteration resumes
        self._running: weakref.ref[_Epoch] | None = None
        self._closed_at: dict[str, Any] | None = None  # the state when it was closed
        self._untransformed: Any = None  # a batch whose transform raised
        self._pid = os.getpid()
        self._current = -1  # epoch under way or last run
        self._record = record is not None
        if record is not None:
            self._loader.record(record + (f".{self.rank}" if self.rank > 0 else ""))
        elif self._doctor:
            self._loader.watch()
        self._monitor: Monitor | None = None
        if called:
            from . import callbacks as _callbacks

            self._monitor = _callbacks.Monitor(self._loader, called)
        _open_loaders.add(self)
        self._made = True
        self._advised = 0
        self._check_advice = decode == "gpu" or cache == "device"  # more advice may follow after the first batches
        self._advise(stacklevel=3)

    def set(self, *, image: Any = _SAME, batch_size: int | None = None, when: str = "epoch") -> None:
        """Changes the pipeline or the batch size of this loader without opening it again.

        >>> for epoch in range(16):
        ...     loader.set(image=[leat.ops.RandomResizedCrop(128 + 6 * epoch), leat.ops.RandomHorizontalFlip()])
        ...     for image, label, sample_id in loader: ...

        ``when="epoch"``: with the next iteration. ``when="batch"``: with the next batch of the iteration that
        runs; a change that waits for the next epoch then takes effect too. Batches made ahead are made again.
        Where the batch size changes, the next batch may be smaller, so that later ones begin where they would in
        a loader made with that size. An impossible change is an error and changes nothing. ``image`` is as in the
        constructor; the fields stay. A state holds the batch size of its epoch but no pipeline: load it into a
        loader with the same batch size and pipeline.
        """
        if image is _SAME and batch_size is None:
            raise ArgumentError("set: give image, batch_size or both")
        images = None
        if image is not _SAME:
            if image is None:
                raise ArgumentError("image: cannot be None: make a new loader for batches without images")
            _, images = _images(image, self._asked_fields, self.channels_last, self)
            if images is None:
                images = [(None, None, ops.text(image))]
        size = 0 if batch_size is None else _check.whole("batch_size", batch_size, 1, 2**20)
        now = _check.one_of("when", when, _WHENS)
        if self._resume is not None:
            raise StateError("set: a state was loaded and not resumed yet: call set before load_state_dict")
        active = self._active() is not None
        at = self.state_dict()["position"] if active else 0
        self._loader.set(images, size, now)
        if size:
            self._next_size = size
        if active and now:
            self._change_at(at)
        elif not active:
            self._refresh()

    def _change_at(self, position: int) -> None:
        """Continues the running epoch with the new settings, from this global position."""
        self._refresh()
        self._base = position
        self._loader.counted(position // (self.batch_size * self.world_size))

    def _refresh(self) -> None:
        """Takes over what set() changed."""
        self.__dict__["batch_size"] = self._next_size
        self._fields = self._loader.fields()
        self._samples, self._batches, _ = self._loader.counts()

    def __setattr__(self, name: str, value: object) -> None:
        made, own = "_made" in self.__dict__, type(self) is Loader and name[:1] != "_"
        if name in ("image", "batch_size") and made:
            raise AttributeError(f"leat.Loader.{name} is read-only: loader.set({name}=...) changes it")
        if name == "epoch" and made:
            raise AttributeError("leat.Loader.epoch is read-only: loader.set_epoch(...) changes it")
        if made and (name in _FIXED or (own and name not in _SETTABLE and hasattr(self, name))):
            raise AttributeError(
                f"leat.Loader.{name} is read-only: make a new leat.Loader with the other value, and hand it "
                "loader.state_dict() or the epoch (set_epoch) to continue")
        if name == "transform":
            value = _check.called("transform", value)
        elif made and own and name not in _SETTABLE:
            near = difflib.get_close_matches(name, [*_SETTABLE, *_FIXED], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"leat.Loader has no attribute {name!r}{hint}")
        super().__setattr__(name, value)

    # ---- attributes of DataLoader -------------------------------------------------------------------

    @property
    def dataset(self) -> Dataset | Datasets:
        """The pack, or all packs joined, for random access."""
        if self._dataset is None:
            self._dataset = Dataset(self._packs[0]) if len(self._packs) == 1 else Datasets(self._packs)
        return self._dataset

    def locate(self, sample_id: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns which pack (a number into ``packs``) each sample is from, and its row there."""
        try:
            ids = np.asarray(sample_id)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise ArgumentError(f"sample_id: {shown(sample_id)} is not a number of a sample, nor an array of them") from None
        if ids.size == 0:
            ids = ids.astype(np.int64)
        if ids.dtype.kind not in "iu":
            raise ArgumentError(f"sample_id: {shown(sample_id)} is not a number of a sample, nor an array of them")
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < len(self.dataset):
            bad = int(ids.min()) if ids.min() < 0 else int(ids.max())
            raise SampleIndexError(f"sample_id: {bad} is not one of the {counted(len(self.dataset), 'sample')} of {self.path}")
        starts = np.array([0] if len(self.packs) == 1 else self.dataset.starts[:-1])
        # if several packs have the same start, all except the last are empty
        part = np.searchsorted(starts, ids, side="right") - 1
        return part, ids - starts[part]

    @property
    def sampler(self) -> Self:
        """The loader itself: frameworks call ``loader.sampler.set_epoch(epoch)``."""
        return self

    @property
    def samples(self) -> int:
        """Samples of this rank per epoch."""
        return self._samples

    @property
    def memory(self) -> int:
        """The budget in bytes. It can be set at any time, also as text ("2G"). While an epoch runs, what is
        over a lower one is freed as batches are taken. Less than the loader can run with is a BudgetError,
        and nothing changes."""
        return self._loader.stats()["budget_limit_bytes"]

    @memory.setter
    def memory(self, value: int | str) -> None:
        self._loader.set_memory(_check.size("memory", value))

    @property
    def threads(self) -> int:
        """Worker threads in use; before the first iteration, how many there will be."""
        return self._loader.stats()["threads"]

    @property
    def epoch(self) -> int:
        """The current epoch, or the epoch of the next iteration."""
        return self._current if self._active() is not None else self._epoch

    def __len__(self) -> int:
        """Batches per epoch, the same on all ranks."""
        return self._batches

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration run this epoch. Otherwise each iteration runs the next one."""
        epoch = _check.whole("epoch", epoch, 0, _check.EPOCH_MAX)
        if self._resume is not None and epoch == self._epoch:
            return  # a framework repeats the epoch it resumes: continue inside it
        self._epoch = epoch
        self._resume = None

    def __iter__(self) -> Iterator[B_co]:
        if self._resume is None:
            self._loader.begin(self._epoch)
            self._base = 0
            self._untransformed = None
            self._refresh()
        self._resume = None
        self._current = self._epoch
        self._epoch += 1
        run = _Epoch(self)
        self._running = weakref.ref(run)
        return run

    def _active(self) -> _Epoch | None:
        run = self._running() if self._running is not None else None
        return run if run is not None and not run.done else None

    # ---- one batch ---------------------------------------------------------------------------

    def _next(self) -> Any:
        """Returns the next batch, transformed. A batch whose transform raised is transformed again."""
        batch = self._take() if self._untransformed is None else self._untransformed
        if batch is None or self.transform is None:
            self._untransformed = None
            return batch
        self._untransformed = batch
        begin = time.perf_counter_ns()
        try:
            made = self.transform(batch)
        finally:
            self._loader.prepared(time.perf_counter_ns() - begin)
        if made is None:  # the most common mistake: the batch was changed in place and not returned
            raise ArgumentError("transform returned None: it must return the batch")
        self._untransformed = None
        return made

    def _take(self) -> Any:
        if self._monitor is not None:
            self._monitor.look()  # called before a batch is taken: a failing callback loses no batch
        try:
            row = self._loader.next(*_consumer(self.device))
        except BudgetError:
            gc.collect()  # batches in reference cycles still hold memory
            row = self._loader.next(*_consumer(self.device))
        if self._check_advice:
            self._advise(stacklevel=5)
        if row is None:
            return None
        if self._check_locked:
            self._warn_unlocked()
        values = [self._value(kind, item) for (_, kind, *_), item in zip(self._fields, row)]
        values.append(self._convert(row[-1]))
        batch: Any = self._class._make(values)
        if self._as_dict:
            batch = batch.asdict()
        if self._monitor is not None:
            self._monitor.steps += 1
        return batch

    def _advise(self, stacklevel: int) -> None:
        """Warns once of each advice of the loader."""
        lines = self._loader.advice()
        for line in lines[self._advised:]:
            warnings.warn(line, AdviceWarning, stacklevel=stacklevel)
        self._advised = len(lines)

    def _warn_unlocked(self) -> None:
        """Warns once when memory could not be page-locked, which makes copies to the device slower."""
        self._checks_left -= 1
        self._check_locked = self._checks_left > 0
        if not self._loader.stats()["page_locked"]:
            self._check_locked = False
            warnings.warn("leat: batches or cached pages could not be page-locked, so copies "
                          f"to {self.device} are slower", RuntimeWarning, stacklevel=5)

    def _value(self, kind: str, item: Any) -> Any:
        if isinstance(item, tuple):  # values, offsets, shapes
            values, offsets, shapes = (None if part is None else self._convert(part) for part in item)
            raw = np.asarray(item[0]), np.asarray(item[1]), None if item[2] is None else np.asarray(item[2])
            if kind not in ("image", "array"):
                return Ragged(kind, values, offsets, shapes, raw)
            made = Ragged("ragged", values, offsets, shapes, raw)
            if self.collate == "ragged":
                return made
            last = kind == "image" and self.channels_last and self.as_ == "torch"
            return [one.permute(2, 0, 1) for one in made] if last else list(made)
        if kind == "image" and self.channels_last and self.as_ == "torch":
            item = item.permute(0, 3, 1, 2)
        return self._convert(item)

    # ---- state -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the loader after the batches handed out so far: a small dict for JSON.

        Any number of ranks may load it, if their global batch has the same size.
        """
        if self._resume is not None:
            return json.loads(self._resume[0])
        if self._closed_at is not None:
            return dict(self._closed_at)
        state = json.loads(self._loader.state())
        if self._current < 0 or self._current + 1 != self._epoch:  # not begun, or set_epoch since
            state["epoch"], state["position"] = self._epoch, 0
            return state
        *_, given = self._loader.counts()
        given -= self._untransformed is not None
        state["position"] = max(self._base, min(given * state["global_batch"], state["count"]))
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state: the next iteration continues where the state was taken.

        A state at the end of an epoch continues with the next epoch. A file of ``leat load --state`` has such a state, too.
        """
        if not isinstance(state, Mapping):
            raise ArgumentError(f"state: a dict of state_dict() is expected, not {type(state).__name__}")
        state = dict(state)
        if "position" not in state and isinstance(state.get("loader"), Mapping):
            state = dict(state["loader"])
        try:
            text = json.dumps(state)
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentError(f"state: not a leat loader state: {error}") from None
        missing = next((n for n in ("position", "count", "epoch", "global_batch") if n not in state), None)
        if missing is not None:
            raise ArgumentError(f"state: not a leat loader state: it has no {missing!r}")
        position, count = (_check.whole(f"state: {name}", state[name]) for name in ("position", "count"))
        epoch = _check.whole("state: epoch", state["epoch"], 0, _check.EPOCH_MAX)
        global_batch = _check.whole("state: global_batch", state["global_batch"], 1)
        resume = text, position // global_batch
        self._loader.restore(*resume)
        self._running = self._untransformed = None
        self._base = position
        self._refresh()
        # A resumed epoch leaves out its last samples if the saved epoch did.
        short = self._drop is None and state.get("left_out") is True
        batches = min(self._batches, count // global_batch) if short else self._batches
        finished = position >= count or position // global_batch >= batches
        left_out = count - max(batches * global_batch, position)
        if self._drop is None and not short and left_out > 0:
            warnings.warn(f"the last {counted(left_out, 'sample')} of epoch {epoch} {'is' if left_out == 1 else 'are'} left out: {self.world_size} ranks cannot "
                          "share them; the epoch began on fewer ranks, which would have kept them. drop_last=False keeps them",
                          AdviceWarning, stacklevel=2)
        self._epoch = epoch + 1 if finished else epoch
        self._resume = None if finished else resume
        self._current = -1

    # ---- facts -------------------------------------------------------------------------------

    def stats(self, *, all: bool = False) -> dict[str, Any]:
        """Returns measurements of the epoch, or of all epochs so far: samples, bytes read, time spent and waited, memory."""
        return self._loader.stats(_check.flag("all", all))

    def scalars(self) -> dict[str, float | str]:
        """Returns the current values for loggers: see ``leat.callbacks``."""
        from .callbacks import scalars

        return scalars(self._loader)

    def doctor(self) -> Diagnosis:
        """Returns the bottleneck of the run, from the loader's own meters since the first call (with ``doctor=True``:
        since the loader was made). ``print`` the result to get the page."""
        from ._diagnose import of_loader

        return of_loader(self._loader.doctor(2), self._loader.stats(True)["batches"])

    def report(self, path: str | os.PathLike | None = None, *, title: str | None = None) -> str:
        """Returns what ``doctor()`` says, with plots, as one HTML page; also written to ``path``, where only an earlier report is replaced.
        ``title``: its heading, else the pack."""
        written = None if path is None else _check.output("path", path, _REPORT, "a report of leat")
        page = self._loader.report(_check.text("title", f"leat: {self.path}" if title is None else title))
        if written is not None:
            try:
                with open(written, "w", encoding="utf-8") as f:
                    f.write(page)
            except OSError as error:
                raise StorageError(f"{written}: {reason(error)}") from None
        return page

    def serve(self, port: int = 0) -> str:
        """Serves a live page on 127.0.0.1 until the loader is closed; returns its address."""
        return f"http://127.0.0.1:{self._loader.serve(_check.whole('port', port, 0, 65535))}/"

    def sample_ids(self, epoch: int, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Returns the samples that this rank gets in an epoch, in order, without loading any.

        While an iteration runs, only its own epoch can be asked for.
        """
        epoch = _check.whole("epoch", epoch, 0, _check.EPOCH_MAX)
        start = _check.whole("start", start)
        stop = self._samples if stop is None else min(_check.whole("stop", stop), self._samples)
        out = np.empty(max(stop - start, 0), np.uint64)
        idle = self._active() is None
        if idle:
            self._loader.stop()
        if len(out):
            self._loader.order(epoch, start, out)
        if idle and self._resume is not None:
            self._loader.restore(*self._resume)
        return out.astype(np.int64)

    def _find(self, keys: Sequence[str | bytes]) -> np.ndarray:
        found = []
        for key in _check.several("keys", keys, (str, bytes)):
            index = self.dataset.find(key)
            if index is None:
                raise ArgumentError(f"keys: {shown(key)} is not in {self.path}")
            found.append(index)
        if not found:
            raise ArgumentError("keys: the list is empty: there would be no samples")
        return np.array(found, np.uint64)

    # ---- life --------------------------------------------------------------------------------

    def close(self) -> None:
        """Stops the workers and frees the memory; batches that are kept stay valid, and so does
        the state."""
        if self._closed_at is None and os.getpid() == self._pid:
            self._closed_at = self.state_dict()
        self._running = self._untransformed = None
        _open_loaders.discard(self)
        try:
            self._end_looking()
        finally:
            self._loader.close()

    def _end_looking(self) -> None:
        if os.getpid() != self._pid:
            return
        if self._monitor is not None:
            monitor, self._monitor = self._monitor, None
            monitor.close()
        if self._doctor:
            self._doctor = False
            print(self.doctor().verdict, file=sys.stderr)
        if self._record:
            self._record = False
            self._loader.record(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        shares = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        return (f"leat.Loader({self.path!r}, batch_size={self.batch_size}, order={self.order!r}, "
                f"{counted(self._samples, 'sample')}, {self._batches} batch{'es' * (self._batches != 1)}{shares})")

    def __reduce__(self):
        raise TypeError("a leat.Loader cannot be pickled or copied: make one in each process")

    def __getitem__(self, index: object) -> NoReturn:  # iter() uses __iter__
        raise TypeError("a leat.Loader is already a loader of batches: iterate over it; leat.open(path, image=...) has samples by number")


class _Epoch(Iterator):
    """One pass over an epoch. Dropping it (a ``break``) stops the workers."""

    def __init__(self, loader: Loader[Any]) -> None:
        self._loader = loader
        self.done = False

    def __next__(self) -> Any:
        if self.done:
            raise StopIteration
        loader = self._loader
        if loader._active() is not self:
            self.done = True
            why = "the loader was closed" if loader._closed_at is not None else \
                "a state was loaded" if loader._running is None else "another iteration began"
            raise StateError(f"this iteration ended when {why}")
        batch = loader._next()
        if batch is None:
            self.done = True
            raise StopIteration
        return batch

    def __len__(self) -> int:
        return len(self._loader)

    def __del__(self) -> None:
        running = getattr(self._loader, "_running", None)
        if not self.done and running is not None and running() is None:
            self.done = True
            try:
                self._loader._loader.stop()
            except StateError:
                pass  # another thread is inside the loader, and will finish its call


def _resolve(sample_fn: Any) -> tuple[int, int]:
    from ._plugin import resolve

    return resolve(sample_fn)


def _consumer(device: str) -> tuple[bool, int | None]:
    """Returns whether this thread captures a CUDA graph with torch, and the stream on which torch uses the batches.
    During a capture, work of all streams must not be marked: that would end the capture."""
    torch = sys.modules.get("torch") if device != "cpu" else None
    if torch is None or not torch.cuda.is_initialized():
        return False, None
    return torch.cuda.is_current_stream_capturing(), torch.cuda.current_stream(device).cuda_stream


def _roles(follow: Any, roles: Mapping[str, Role], loader: Loader[Any]) -> str | None:
    """Returns the fields that follow an image, as text."""
    if follow is None and not roles:
        return None
    return roles_text(follow, roles, "leat.Loader", loader.path, [f.name for f in loader.dataset.fields],
                      [*inspect.signature(Loader).parameters, *_words.UNDERSTOOD])


def _buckets(bucket: str | None, buckets: Any) -> dict[str, Any]:
    """Returns the number of buckets, or their edges, as C takes them."""
    if isinstance(buckets, (Sequence, np.ndarray)) and not isinstance(buckets, (str, bytes)):
        if len(buckets) == 0:
            raise ArgumentError("buckets: the list is empty")
        if bucket is None:
            raise ArgumentError("buckets has no effect: bucket is not given")
        return {"edges": np.array([_check.real("buckets", one, -1e300, 1e300) for one in buckets], np.float64)}
    return {"buckets": _check.whole("buckets", buckets, 0, 65536)}


def _images(image: Any, fields: Sequence[str] | None, channels_last: bool,
            loader: Loader[Any]) -> tuple[list[str] | None, list[tuple[str | None, str | None, str]] | None]:
    """Returns (fields to deliver or None, images to make or None) as C takes them."""
    names = None if fields is None else _check.several("fields", fields)
    if image is not None and not isinstance(image, (str, ops.Op, Mapping, Sequence)):
        raise ArgumentError(f"image: {shown(image)} is neither a pipeline nor a dict of them")
    if image is None:
        if channels_last:
            raise ArgumentError("channels_last has no effect: there are no images")
        if names is None:
            names = [f.name for f in loader.dataset.fields if f.type != "image"]
        return names, None
    if isinstance(image, Mapping):
        images = [(name, field, ops.laid_out(text, channels_last)) for name, field, text in map(ops.view, image.items())]
        if names is not None:
            names += [field for _, field, _ in images if field is not None and field not in names]
        return names, images
    text = ops.text(image)
    if text == _DEFAULT["ops"] and not channels_last:
        return names, None  # the default, which also works for packs without images
    if names is not None:  # the pipeline asks for the image field
        names += [f.name for f in loader.dataset.fields if f.type == "image"][:1]
    return names, [(None, None, ops.laid_out(text, channels_last))]
