# SPDX-License-Identifier: Apache-2.0
"""Packing, merging, splitting and exporting: the commands of these names, from Python."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from . import _check, _leat
from ._errors import AdviceWarning, ArgumentError, ExistsError, shown, told

Path = str | os.PathLike
Progress = Callable[[int, int, int, int], object]

_IMAGES = {"auto": 0, "keep": 1, "tiled": 2, "raw": 3, "mix": 4}
_TILES = {"small": 0, "fast": 1}
_FRAMES = {"first": 0, "all": 1}
_POLICIES = {"fail": 0, "skip": 1}
_IF_EXISTS = {"fail": 0, "skip": 1, "update": 2}
_DUPLICATES = {"error": 1, "first": 2, "last": 3, "rename": 4}


def pack(source: Path | Sequence[Path], output: Path, *, images: str = "auto", tiles: str = "small",
         mix_raw: float = 0.5, max_side: int = 0, quality: int = 0, frames: str = "first", trust: bool = False,
         shuffle: int | None = None, keys: Path | Sequence[str] | None = None, select: Path | None = None,
         shard_bytes: int | str = 0, page_bytes: int | str = 0, threads: int = 0,
         memory: int | str = 0, on_error: str = "fail", strict: bool = False,
         report: Path | None = None, check: Path | None = None, resume: bool = False, force: bool = False, sync: bool = True,
         where: str | None = None, members: Sequence[str] | None = None, infer: int = 0,
         defaults: Mapping[str, int] | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """Packs folders of images, tar shards, TFRecord files, manifests, packs and the formats of docs/formats.md (FFCV,
    MDS, LitData, Parquet, Arrow, LMDB, COCO, VOC); what the command does.

    >>> leat.pack("photos", "photos.leat", images="tiled")
    {'samples': 1000, 'skipped': 0, 'bytes_in': …, 'bytes_out': …, 'seconds': …}

    Parameters
        source: one folder or manifest, or several tar shards, TFRecord files or packs
        output: the pack
        images: "tiled" (JPEGs re-coded without loss for fast decoding), "keep", "raw", "mix"
            (a share of `mix_raw` as pixels), or "auto": the best this build has
        tiles: "small" (the bytes of the JPEGs) or "fast" (a tenth more, faster to decode)
        max_side, quality: make larger images smaller; encode all images again
        frames: of an animated GIF or WebP "first", or "all": every frame is a sample ("a.gif#0000", "a.gif#0001" …),
            without loss, counted as "frames"
        trust: do not decode every image to check that it is valid; tiled: do not compare the pixels of
            images whose files are restored byte for byte
        shuffle: seed to shuffle the samples with
        keys: of packs, only these, in this order: a file with one per line, or a list
        select: of packs, only the samples of this selection (``leat.select``, or the rows that a dedup keeps)
        shard_bytes, page_bytes, memory: sizes in bytes or text ("10G"); shards are 1 MiB or more, pages 512 KiB if not given
        on_error: "fail", or "skip" to leave out and count samples that cannot be packed; an outage of remote
            storage still ends the run
        strict: folders: take every file for a sample, hidden ones too; else hidden files and folders and files
            whose names do not end as images do (.jpg, .png …) are skipped and counted as "ignored", as are
            files in a folder of tables that are hidden or not part of the dataset. Images beside
            class folders have the label -1 and are counted as "unlabelled"
        report: file for what was left out, one JSON object per line
        check: also check the images, as ``leat.check`` does with the pack, and write its columns here; what it found is
            "check" in the result
        resume: resume an interrupted run; add ``force`` when it is to replace a pack
        force: replace a pack of that name; without ``resume``, also discard an unfinished one
        where: only samples that meet this condition on key and numbers: "label < 10 and score in 0.2..0.8";
            `leat help pack` says how conditions are written
        members: of tar shards: kinds of members to take (``["jpg", "cls", "txt"]``), others are skipped. None = all
            kinds that the first `infer` samples have (0 = 64). Samples may lack some: they are counted as "missing",
            their values are absent. Of Parquet, Arrow, MDS, LitData, FFCV, LMDB, COCO and VOC: columns to take, by the
            names in the source
        defaults: of tar shards: numbers of samples that lack the member: ``{"label": -1}``
        progress: called now and then with (done, total, bytes, skipped); total 0 is unknown
    """
    options: dict[str, Any] = {
        "images": _check.one_of("images", images, _IMAGES),
        "fast_tiles": _check.one_of("tiles", tiles, _TILES) == 1,
        "skip_errors": _check.one_of("on_error", on_error, _POLICIES) == 1,
        "mix_raw": _check.real("mix_raw", mix_raw, 0, 1),
        "max_side": _check.whole("max_side", max_side, 0, _check.U32),
        "quality": _check.whole("quality", quality, 0, 100),
        "frames": _check.one_of("frames", frames, _FRAMES),
        "shuffle": shuffle is not None,
        "shuffle_seed": 0 if shuffle is None else _check.whole("shuffle", shuffle),
        "shard_bytes": _check.size("shard_bytes", shard_bytes),
        "page_bytes": _check.size("page_bytes", page_bytes),
        "threads": _check.whole("threads", threads, 0, 4096),
        "memory": _check.size("memory", memory),
        "trust": _check.flag("trust", trust), "strict": _check.flag("strict", strict),
        "resume": _check.flag("resume", resume),
        "where": None if where is None else _check.text("where", where),
        "select": None if select is None else _check.utf8_path("select", select),
        "replace": _check.flag("force", force), "sync": _check.flag("sync", sync),
        **_members(members, infer, defaults),
    }
    without_effect = [name for name, given in (
        ("tiles", tiles == "fast" and images not in ("auto", "tiled")), ("mix_raw", mix_raw != 0.5 and images != "mix"),
        ("quality", quality != 0 and images == "raw"), ("trust", options["trust"] and images == "raw")) if given]
    if without_effect:
        raise ArgumentError(f'{without_effect[0]}: has no effect with images="{images}"')
    sources, target = _check.paths("source", source), os.fsencode(_check.path("output", output))
    noted = None if report is None else _check.utf8_path("report", report)
    _leat.set_reader(_open_foreign, _write_table)
    with _key_file(keys) as key_file:
        done = _run(progress, _leat.ingest, sources, target, keys=key_file, report=noted,
                    check=None if check is None else _check.utf8_path("check", check), **options,
                    **(check.more if isinstance(check, Checked) else {}))
    if check is not None:
        done["check"] = json.loads(done["check"])
    if done["in_folders"]:
        warnings.warn("the members are in folders, and labels are not taken from them: unpack the tar and pack the folder",
                      AdviceWarning, stacklevel=2)
    if done["unlabelled"]:
        n = done["unlabelled"]
        warnings.warn(f"{n} image{'s' if n > 1 else ''} of {shown(source)} {'are' if n > 1 else 'is'} in no class folder: "
                      "the label is -1", AdviceWarning, stacklevel=2)
    if done["blank_labels"]:
        n = done["blank_labels"]
        warnings.warn(f"{shown(source)}: {n} label{'s begin or end' if n > 1 else ' begins or ends'} with a blank, the first in line "
                      f"{done['blank_label_line']}: 'cat' and ' cat' are two classes", AdviceWarning, stacklevel=2)
    return done


class Checked(os.PathLike[str]):
    """The argument `check` of ``leat.pack`` with a CSV file and limits, as ``leat.curate`` passes it."""

    def __init__(self, path: str, csv: str, limits: str | None) -> None:
        self.path, self.more = path, {"check_csv": csv, "check_limits": limits}

    def __fspath__(self) -> str:
        return self.path


def _members(members: Sequence[str] | None, infer: int, defaults: Mapping[str, int] | None) -> dict[str, Any]:
    """Returns the options of tar shards for C."""
    if defaults is not None and not isinstance(defaults, Mapping):
        raise ArgumentError('defaults: a dict of fields and numbers is expected, such as {"label": -1}')
    names = None if members is None else [_check.text("members", name) for name in _check.several("members", members)]
    if names is not None and infer:
        raise ArgumentError("infer: has no effect with members")
    if names is not None and (not names or any("," in name for name in names)):
        raise ArgumentError("members: a list of endings or columns is expected, such as ['jpg', 'cls']")
    numbers = [f"{_check.text('defaults', name)}={_check.whole(f'defaults: {name}', n, -2**63, 2**63 - 1)}"
               for name, n in (defaults or {}).items()]
    return {"members": None if names is None else ",".join(names), "infer": _check.whole("infer", infer, 0, _check.U32),
            "defaults": ",".join(numbers) or None}


def append(source: Path | Sequence[Path], output: Path, *, if_exists: str = "fail", images: str = "auto",
           where: str | None = None, keys: Path | Sequence[str] | None = None, trust: bool = False,
           threads: int = 0, memory: int | str = 0, on_error: str = "fail", strict: bool = False,
           report: Path | None = None, sync: bool = True, progress: Progress | None = None) -> dict[str, Any]:
    """Adds samples to a pack as a new generation; what `leat append` does.

    >>> leat.append("new-photos", "photos.leat", if_exists="update")

    Parameters
        source: as of ``leat.pack``, with the fields of the pack
        output: the pack
        if_exists: samples whose key the pack has are an error ("fail"), skipped ("skip"), or replace the
            pack's ("update")
        images: how images are stored; "auto" is as the pack was packed
        others: as of ``leat.pack``
    """
    options: dict[str, Any] = {
        "append": 1 + _check.one_of("if_exists", if_exists, _IF_EXISTS),
        "images": _check.one_of("images", images, _IMAGES),
        "skip_errors": _check.one_of("on_error", on_error, _POLICIES) == 1,
        "where": None if where is None else _check.text("where", where),
        "threads": _check.whole("threads", threads, 0, 4096), "memory": _check.size("memory", memory),
        "trust": _check.flag("trust", trust), "strict": _check.flag("strict", strict),
        "sync": _check.flag("sync", sync),
    }
    several = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    with _key_file(keys) as key_file:
        return _run(progress, _leat.ingest, [os.fsencode(path) for path in several], os.fsencode(output),
                    keys=key_file, report=None if report is None else os.fspath(report), **options)


def merge(packs: Sequence[Path], output: Path, *, duplicates: Literal["error", "first", "last", "rename"] = "error",
          where: str | None = None, shard_bytes: int | str = 0, threads: int = 0, on_error: str = "fail",
          report: Path | None = None, resume: bool = False, force: bool = False, sync: bool = True,
          progress: Progress | None = None) -> dict[str, Any]:
    """Merges packs into one without encoding images again; what `leat merge` does.

    >>> leat.merge(["old.leat", "new.leat"], "all.leat", duplicates="last")

    Samples are copied as they are stored, in the order of the packs. Fields are matched by name and must have the
    same types. Class names of the label are joined, and labels renumbered.

    Parameters
        packs: two or more; a single one is copied
        output: the merged pack
        duplicates: samples with equal keys are an error, or the "first" or "last" one is kept, or later ones
            are renamed ("a.jpg" becomes "a-2.jpg")
        where: only samples that meet this condition, before duplicates are looked for
        others: as of ``leat.pack``

    The result counts them: "existing" (duplicates), "recoded" (images whose tiles had other tables than the first
    pack's and were coded again, without loss), "filtered", "skipped".
    """
    options: dict[str, Any] = {
        "merge": _check.one_of("duplicates", duplicates, _DUPLICATES),
        "where": None if where is None else _check.text("where", where),
        "shard_bytes": _check.size("shard_bytes", shard_bytes), "threads": _check.whole("threads", threads, 0, 4096),
        "skip_errors": _check.one_of("on_error", on_error, _POLICIES) == 1,
        "resume": _check.flag("resume", resume), "replace": _check.flag("force", force),
        "sync": _check.flag("sync", sync),
    }
    target = os.fsencode(_check.path("output", output))
    return _run(progress, _leat.ingest, _check.paths("packs", packs), target,
                report=None if report is None else _check.utf8_path("report", report), **options)


def split(path: Path, parts: Mapping[str, float], output: Path | None = None, *, stratify: str | None = None,
          seed: int = 0, force: bool = False, sync: bool = True,
          progress: Progress | None = None) -> dict[str, dict[str, Any]]:
    """Splits a pack by the hash of each key; what `leat split` does.

    >>> leat.split("photos.leat", {"train": 0.9, "val": 0.1})
    {'train': {'path': 'photos-train.leat', 'samples': 901}, 'val': …}

    Parameters
        path: of the pack
        parts: name to share of each part; shares that add up to less than 1 leave samples out
        output: folder for the parts, made where needed; None writes them beside the pack
        stratify: int field: exact shares within each of its values
        seed: another seed gives other parts
        force: replace packs that are there
        progress: called now and then with (done, total, 0, 0) of each part
    """
    source = _check.path("path", path)
    if not isinstance(parts, Mapping) or not parts:
        raise ArgumentError('parts: a dict of names and shares is expected, such as {"train": 0.9, "val": 0.1}')
    names = {_check.text("parts", name): _check.real(f"parts: {name}", share, -1e300, 1e300) for name, share in parts.items()}
    bad = next((name for name in names if "/" in name or not name.strip(".")), None)
    if bad is not None:
        raise ArgumentError(f"parts: {bad!r} is not a name of a part")
    folder, base = os.path.dirname(source), _check.file_name(source)
    if output is not None:
        folder = _check.path("output", output)
        os.makedirs(_check.local(folder), exist_ok=True)
    paths = {name: os.path.join(folder, f"{base.removesuffix('.leat')}-{name}.leat") for name in names}
    counts = _run(progress, _leat.split, os.fsencode(source),
                  [(os.fsencode(paths[name]), share) for name, share in names.items()],
                  stratify=None if stratify is None else _check.text("stratify", stratify),
                  seed=_check.whole("seed", seed), replace=_check.flag("force", force), sync=_check.flag("sync", sync))
    return {name: {"path": paths[name], "samples": n} for name, n in zip(names, counts)}


def export(path: Path, folder: Path, *, to: str = "folder", shard_bytes: int | str = 0,
           keys: Path | Sequence[str] | None = None, select: Path | None = None, force: bool = False,
           progress: Progress | None = None) -> dict[str, int]:
    """Writes a pack below `folder`: its original files under their keys, or for other loaders.

    Parameters
        to: "folder" (the original files), "webdataset" (tar shards with all fields) or "parquet" (tables as Hugging
            Face datasets have them; needs pyarrow)
        shard_bytes: a tar shard or a table ends at this size ("500M"); 0 = 1 GiB
        keys: only these: a file with one per line, or a list
        select: only the samples of this selection (``leat.select``, or the rows that a dedup keeps)
        force: overwrite files that were there before; of shards and tables, also remove those whose numbers follow
            the last one written
        progress: called now and then with (done, total, bytes, failed)

    Returns counts: ``samples``, ``files`` (tar shards and tables, too), ``bytes``, ``changed``, ``removed``, ``members`` of tar
    shards, ``stayed``: with `force`, files numbered after the last shard, not as leat wrote them or after a gap, and
    ``unnamed``: fields whose class names are not in the tar shards.
    """
    form = _check.one_of("to", to, {"folder": 0, "webdataset": 1, "parquet": 2})
    _leat.set_reader(_open_foreign, _write_table)
    pack_path, target = os.fsencode(_check.path("path", path)), os.fsencode(_check.path("folder", folder))
    with _key_file(keys) as key_file:
        done = _run(progress, _leat.export, pack_path, target, keys=key_file,
                    select=None if select is None else _check.utf8_path("select", select),
                    replace=_check.flag("force", force), to=form,
                    shard_bytes=_check.size("shard_bytes", shard_bytes))
    if n := done["unnamed"]:
        warnings.warn(f"tar shards have no class names: {n} field{'s have' if n > 1 else ' has'} only the numbers of the classes",
                      AdviceWarning, stacklevel=2)
    return done


def _open_foreign(paths: list[str], members: str | None) -> object:
    from . import _formats
    return _formats.open_paths(paths, members)


def _write_table(*args: Any) -> object:
    from . import _formats_arrow
    return _formats_arrow.write(*args)


@contextmanager
def _key_file(keys: Path | Sequence[str] | None) -> Iterator[str | None]:
    if keys is None or isinstance(keys, (str, os.PathLike)):
        yield None if keys is None else _check.utf8_path("keys", keys)
        return
    listed = [key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else _check.key("keys", key)
              for key in _check.several("keys", keys, (str, bytes))]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.writelines(f"{_check.listed(key)}\n" for key in listed)
        file.flush()
        yield file.name


def _run(progress: Progress | None, call: Callable[..., Any], first: Any, second: Any, **options: Any) -> Any:
    """Runs `call` in a thread, so that Ctrl-C and `progress` work here meanwhile."""
    _check.called("progress", progress)
    control = np.zeros(5, np.uint64)  # cancel, done, total, bytes, skipped
    outcome: dict[str, Any] = {}
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            outcome["result"] = call(first, second, control, **options)
        except BaseException as error:
            outcome["error"] = error
        finally:
            ended.set()

    # Not Thread.join(): before Python 3.13, a join interrupted by Ctrl-C marks the thread as ended.
    try:
        threading.Thread(target=work, name="leat-pack").start()
        running = True
        while running:
            running = not ended.wait(0.05)
            if progress is not None:
                progress(*(int(n) for n in control[1:]))
    except BaseException:
        control[0] = 1
        if begun.wait(1):  # Ctrl-C may come before the thread starts
            ended.wait()
        raise
    if "error" in outcome:
        error = outcome["error"]
        raise told(error, "force=True replaces it") if isinstance(error, ExistsError) else error
    return outcome["result"]
