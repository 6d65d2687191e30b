# SPDX-License-Identifier: Apache-2.0
"""The steps of `leat curate`: each calls the function of its command. Also what each step needs and writes."""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _check, _curate_dump, _images, _pack, _select, _train
from ._curate_config import Default, Options, needs_vectors
from ._dataset import Dataset
from ._errors import AdviceWarning, ArgumentError, DataError, Error, ExistsError, StorageError

Progress = Callable[[int, int, int, int], object]
Outcome = dict[str, Any]

FILES = {"pack": ("pack.leat", "bad.jsonl"), "check": ("check.leat", "check.csv"), "train": ("train",),
         "embed": ("embed.leat", "readable.leat"), "tag": ("tags.leat", "readable.leat"), "dedup": ("duplicates.leat", "duplicates.csv"),
         "semantic": ("similar.leat", "distinct.leat"), "select": ("select.leat",),
         "dump": ("selected.txt", "selected.leat", "selected")}
_BROKEN = ("truncated", "damaged", "not_an_image", "unreadable", "absent")


class Run:
    """The folder of a run, its sources, and the options of the steps that are on."""

    def __init__(self, folder: str, sources: list[str], steps: Mapping[str, Options | None], given: str | None = None) -> None:
        self.folder, self.sources, self.steps = folder, sources, steps
        self.given = given or folder  # the folder as the user named it, for lists
        self.force = False
        self.wrote: dict[str, _curate_dump.Files] = {}  # by output: what earlier dumps of this run wrote outside its folder
        self.checked: dict[str, Any] | None = None  # result of the check that ran while images were packed
        self.in_place = len(sources) == 1 and "://" not in sources[0] and is_pack(sources[0]) and \
            not set(steps["pack"] or {}) - {"on_error", "threads", "memory"}

    def on(self, step: str) -> bool:
        return self.steps[step] is not None

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    @property
    def pack(self) -> str:
        """Path of the pack: the source itself if it is a local pack, else the pack made from it."""
        return self.sources[0] if self.in_place else self.path("pack.leat")

    @property
    def checks_while_packing(self) -> bool:
        """Whether packing also checks the images, so that they are read and decoded once."""
        return self.on("check") and not self.in_place and not set(self.steps["check"] or {}) - {"limits", "threads", "memory"}

    def model(self) -> str:
        """The model that embeds: from the config, else the trained model, else the built-in one."""
        return (self.steps["embed"] or {}).get("model") or (self.path("train") if self.on("train") else "tiny")

    @property
    def verdicts(self) -> str | None:
        """Columns that say which images can be read: from the step check, else from the check that a step with a model
        had to run."""
        path = self.path("check.leat" if self.on("check") else "readable.leat")
        return path if os.path.exists(path) else None

    def columns(self) -> list[str]:
        """Packs of columns that select reads."""
        if not self.on("check") and self.verdicts:
            return [self.verdicts, *self._made()]
        return self._made()

    def _made(self) -> list[str]:
        made = [("check", "check.leat"), ("dedup", "duplicates.leat"), ("semantic", "distinct.leat"), ("tag", "tags.leat")]
        return [self.path(name) for step, name in made if self.on(step)]


def stem(path: str) -> str:
    """Returns the name of a file without its folder and ".leat", which begins the full names of its columns."""
    return os.path.basename(path).removesuffix(".leat")


def is_ours(records: Mapping[str, Any], name: str) -> bool:
    """Returns whether an earlier run, by its records, made this file or was writing it when it was stopped."""
    for step, names in FILES.items():
        record = records.get(step)
        if name in names and isinstance(record, dict) and (
                name in (record.get("made") or {}) or record.get("state") == "running" or record.get("unfinished")):
            return True
    return False


def is_pack(path: str) -> bool:
    try:
        with Dataset(path):
            return True
    except (Error, OSError):
        return False


# ---- fingerprints of inputs ----


def mark(path: str) -> str:
    """Returns the fingerprint of a pack."""
    with Dataset(path) as opened:
        return f"{opened.fingerprint:016x}"


def stamp(path: str) -> str:
    """Returns a hash of the names, sizes and modification times of files. For a remote path it is a hash of its name,
    without user and password."""
    made = hashlib.sha256()
    if "://" in path:
        scheme, mark, rest = path.partition("://")
        place = rest.split("/")[0]
        made.update(os.fsencode(scheme + mark + rest[place.rfind("@") + 1:]))
        return made.hexdigest()[:16]
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            _add(made, os.path.join(folder, name), os.path.relpath(os.path.join(folder, name), path))
    _add(made, path, "")
    return made.hexdigest()[:16]


def fingerprint(path: str) -> str:
    """Returns the fingerprint of a file or folder that a step has made, as in the run file."""
    return mark(path) if path.endswith(".leat") and is_pack(path) else stamp(path)


def _add(made: Any, path: str, name: str) -> None:
    try:
        found = os.stat(path)
    except OSError:
        return
    size = 0 if os.path.isdir(path) else found.st_size
    made.update(f"{name}\0{size}\0{found.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))


def inputs(run: Run, step: str) -> dict[str, str]:
    """Returns fingerprints of the inputs of a step."""
    options = run.steps[step] or {}
    if step == "pack":
        found: dict[str, str] = {}
        for path in run.sources:  # URLs may differ in the query only
            name = _check.public(path)
            found[name] = found.get(name, "") + (mark(path) if run.in_place else stamp(path))
        return found
    made = {"pack": mark(run.pack)}
    if step in ("embed", "tag") and run.on("check") and _unread(run) is not None:
        with Dataset(run.path("check.leat")) as opened:
            made["unreadable"] = hashlib.sha256((opened.column("verdict") != 0).tobytes()).hexdigest()[:16]
    if step == "embed" and run.model() != "tiny" and os.path.exists(run.model()):
        made["model"] = stamp(run.model())
    if step == "tag":
        made.update((name, stamp(options[name])) for name in ("model", "classes") if options.get(name))
    if step == "dedup" and run.on("check"):
        made = {"check": mark(run.path("check.leat"))}
    if step == "semantic":
        made["embed"] = mark(run.path("embed.leat"))
    if step == "select":
        made.update((os.path.basename(path), mark(path)) for path in run.columns())
        made.update((path, stamp(path)) for path in named(options))
        if run.on("embed") and needs_vectors(options):
            made["embed"] = mark(run.path("embed.leat"))
    if step == "dump":
        made["select"] = mark(run.path("select.leat"))
    return made


def named(options: Options) -> list[str]:
    """Returns the packs that the options of select name."""
    listed = options.get("columns") or []
    found = [listed] if isinstance(listed, str) else list(listed)
    found += [options["previous"]] if options.get("previous") else []
    strategies = options.get("strategies") or []
    for one in [strategies] if isinstance(strategies, (str, Mapping)) else strategies:
        if isinstance(one, Mapping):
            found += [one[name] for name in ("query", "embeddings") if isinstance(one.get(name), str)]
    return found


# ---- steps ----


def _run_pack(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    if run.in_place:
        with Dataset(run.pack) as opened:
            return {"rows": len(opened), "note": "the pack is read where it is"}
    check = None
    if run.checks_while_packing:
        check = _pack.Checked(run.path("check.leat"), run.path("check.csv"), _images.limits_text((run.steps["check"] or {}).get("limits")))
    # samples of tar shards that lack a label are packed too: their label is -1
    options = {"defaults": {"*": -1}, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdviceWarning)
        done = _pack.pack(run.sources, run.pack, **options, report=run.path("bad.jsonl"), resume=resume, force=True,
                          check=check, progress=progress)
    run.checked = done.get("check")
    return {"rows": done["samples"], "dropped": _counts(unreadable=done["skipped"], condition=done.get("filtered", 0)),
            "bytes_in": done["bytes_in"], "bytes_out": done["bytes_out"], "budget_share": _budget_share(options, done)}


def _budget_share(options: Options, done: dict[str, Any]) -> float | None:
    """Returns the peak use of the memory budget, as a share."""
    given = _check.size("memory", options.get("memory") or 0)
    return done["budget_peak_bytes"] / given if given and "budget_peak_bytes" in done else None


def _counts(**found: int) -> dict[str, int]:
    return {name.replace("_", " "): count for name, count in found.items() if count}


def _run_check(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    done = run.checked or _images.check(run.pack, run.path("check.leat"), **options, csv=run.path("check.csv"), force=True,
                                        progress=progress)
    broken = {name: done["issues"][name]["count"] for name in _BROKEN if name in done["issues"]}
    return {"rows": done["samples"], "dropped": _counts(**broken), "found": done["found"], "issues": done["issues"],
            "budget_share": _budget_share(options, done),
            **({"note": "checked while packing"} if run.checked else {})}


def _run_train(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    if _unread(run) is not None or run.in_place and not run.on("check"):
        options = {"on_error": "skip", **options}
    try:
        done = _train.train(run.pack, **options, output=run.path("train"), resume=resume, force=not resume, quiet=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # without the message, which is about leat.train
    share = done["data_share"]
    return {"rows": done["steps"], "verdict": f"waiting for data {100 * share:.1f} %", "limit": "" if share > 0.1 else "model",
            **{name: done[name] for name in ("loss", "epochs", "images_per_s", "checkpoint") if name in done}}


def _run_embed(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    def embed(checked: str | None) -> dict[str, Any]:
        return _train.embed(run.pack, **{**options, "model": run.model()}, output=run.path("embed.leat"), resume=resume,
                            force=True, quiet=True, progress=progress, checked=checked)

    if not resume:
        remove(run.path("readable.leat"))
    return _of_model(run, "embed.leat", _over_readable(run, embed))


def _unread(run: Run) -> str | None:
    """Returns the columns with verdicts if some images cannot be read: steps with models leave these images out."""
    path = run.verdicts
    if path is None:
        return None
    with Dataset(path) as opened:
        return path if opened.column("verdict").any() else None


def unreadable(run: Run) -> int:
    """Returns how many images of the pack cannot be read, as far as a step has checked."""
    if run.verdicts is None:
        return 0
    with Dataset(run.verdicts) as opened:
        return int((opened.column("verdict") != 0).sum())


def _over_readable(run: Run, call: Callable[[str | None], dict[str, Any]]) -> dict[str, Any]:
    """Runs a model. When an image cannot be read and there was no check, checks all images and runs it again."""
    try:
        return call(_unread(run))
    except DataError:
        if run.verdicts:
            raise
        _images.check(run.pack, run.path("readable.leat"))
        if _unread(run) is None:
            raise
    return call(_unread(run))


def _of_model(run: Run, name: str, done: dict[str, Any]) -> Outcome:
    """Returns the result of a step with a model. When it started ranks, only the pack they wrote is known."""
    with Dataset(run.path(name)) as opened:
        rows = len(opened)
    return {"rows": rows, **{key: done[key] for key in ("dim", "model", "verdict", "limit", "counts") if key in done}}


def _run_tag(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    def tag(checked: str | None) -> dict[str, Any]:
        return _train.tag(run.pack, **options, output=run.path("tags.leat"), resume=resume, force=True, quiet=True,
                          progress=progress, checked=checked)

    if not resume and not run.on("embed"):
        remove(run.path("readable.leat"))
    return _of_model(run, "tags.leat", _over_readable(run, tag))


def _run_dedup(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    pack = run.pack if run.in_place else os.path.join(run.given, "pack.leat")
    source = _images.Named(run.path("check.leat") if run.on("check") else pack)
    source.pack = _check.public(pack)
    done = _images.dedup_images(source, run.path("duplicates.leat"), **options, csv=run.path("duplicates.csv"),
                                force=True, progress=progress)
    return {"rows": done["samples"], "dropped": _counts(duplicate=done["removed"]), "pairs": done["pairs"],
            "clusters": done["clusters"]}


def _run_semantic(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    done = _images.dedup_semantic(run.path("embed.leat"), run.path("similar.leat"), **options, force=True,
                                  progress=progress)
    # the rows that dedup keeps, as a selection
    _select.select(run.pack, run.path("distinct.leat"), columns=run.path("similar.leat"), where="similar.keep == 1", force=True)
    return {"rows": done["samples"], "dropped": _counts(similar=done["removed"]), "threshold": done["threshold"],
            "too_large": "" if done["in_memory"] else "the vectors did not fit the memory and were read from disk again"}


def step_conditions(run: Run, verdicts: str | None) -> list[str]:
    """Returns the conditions of the steps for a row to be chosen: readable by the columns `verdicts`, and not a duplicate."""
    made = [f"{stem(verdicts)}.verdict == 0"] if verdicts else []
    return made + ["duplicates.keep == 1"] * run.on("dedup") + ["distinct.selected == 1"] * run.on("semantic")


def condition(run: Run, options: Options) -> str | None:
    """Returns the condition for a row to be chosen: the conditions of the steps and of the config."""
    made = step_conditions(run, run.verdicts)
    return " and ".join([*made, *([f"({options['where']})"] if options.get("where") else [])]) or None


def _balance(pack: Dataset) -> list[dict[str, str]]:
    """Returns a balance of the labels by the shares of the input: diversity alone prefers classes that vary much."""
    labelled = any(field.name == "label" and field.type == "int" for field in pack.fields) and len(pack.classes()) > 1
    return [{"strategy": "balance", "column": f"{stem(pack.path)}.label", "distribution": "input"}] if labelled else []


def _run_select(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    with Dataset(run.pack) as opened:
        balance = _balance(opened)
    where, given, takes = condition(run, options), dict(options), run.on("embed") and needs_vectors(options)
    more = given.pop("columns", ())
    given.pop("where", None)
    strategies = given.pop("strategies", ()) or ([] if where else ["random"])
    if isinstance(strategies, Default):
        strategies = [*strategies, *balance]
    done = _select.select(run.pack, run.path("select.leat"), strategies, **given, where=where, force=True,
                          embeddings=run.path("embed.leat") if takes else None, progress=progress,
                          columns=[*run.columns(), *([more] if isinstance(more, (str, os.PathLike)) else more)])
    left = done["samples"] - done["selected"] - done["previous"] - done["excluded"] - done["near"] - done["without_vector"]
    return {"rows": done["selected"] + done["previous"], "asked": done["asked"], "chosen": done["selected"],
            "strategies": strategies, "memory": done["plan_memory"], "last_distance": done["last_distance"],
            "dropped": _counts(left_out_by_conditions=done["excluded"], too_near=done["near"],
                               without_vector=done["without_vector"], not_chosen=max(left, 0))}


def chosen(run: Run) -> np.ndarray:
    """Returns the chosen rows, in the order of the choice."""
    with Dataset(run.path("select.leat")) as opened:
        rows = np.flatnonzero(opened.column("selected"))
        return rows[np.argsort(opened.column("order")[rows], kind="stable")]


def _write_list(run: Run) -> None:
    """Writes selected.txt: the keys, one per line, as --keys reads them."""
    path = run.path("selected.txt")
    with Dataset(run.pack) as opened, open(path + ".new", "wb") as file:
        keys = opened.keys
        for row in chosen(run):
            file.write(_check.listed(keys[int(row)]).encode("utf-8", "surrogateescape") + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def dump_target(run: Run) -> str | None:
    """Returns where samples are written; None when only the list is written."""
    options = run.steps["dump"] or {}
    to = options.get("to", "list")
    if to == "list":
        return None
    return options.get("output") or run.path("selected.leat" if to == "pack" else "selected")


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _clean(run: Run, target: str | None, resume: bool) -> None:
    """Removes what an earlier selection left in the folder of the run."""
    for path in (run.path("selected.leat"), run.path("selected")):
        if path != target or not resume and not path.endswith(".leat"):
            remove(path)


def _outside(run: Run) -> str | None:
    """Returns the output of dump if it is not in the folder of the run."""
    target = dump_target(run)
    return None if target is None or os.path.dirname(target) == run.folder else target


def claim(run: Run, resume: bool) -> dict[str, Any]:
    """Returns what the record of a dump says before it begins. Refuses files that it would replace and that are not from this run."""
    target, to = _outside(run), (run.steps["dump"] or {}).get("to", "list")
    if target is None or "://" in target:
        return {"wrote": {**run.wrote, **({target: {}} if target else {})}}
    with Dataset(run.pack) as opened:
        keys = [opened.keys[int(row)] for row in chosen(run)] if to == "folder" else []
    ours = run.wrote.get(target, {})
    found = None if resume else _curate_dump.taken(target, to, ours, frozenset(keys).__contains__)
    if found is not None:
        raise StorageError(f"dump: output: {found}; dump has not written anything: give another output or remove it")
    return {"wrote": {**run.wrote, target: {**ours, **_curate_dump.claim(to, lambda: keys)}}}


def _run_dump(run: Run, options: Options, resume: bool, progress: Progress) -> Outcome:
    _write_list(run)
    _clean(run, dump_target(run), resume)
    to, target = options.get("to", "list"), dump_target(run)
    outcome: Outcome = {"rows": len(chosen(run))}
    if target is None:
        return outcome
    outside = _outside(run)
    local = outside is not None and "://" not in outside
    before = _curate_dump.listing(target) if local else {}
    again = resume or outside is None or target in run.wrote
    more = {"shard_bytes": options.get("shard_bytes", 0), "select": run.path("select.leat"), "progress": progress}
    try:
        if to == "pack":
            outcome["bytes_out"] = _pack.pack(run.pack, target, resume=resume, force=again, **more)["bytes_out"]
        else:
            _pack.export(run.pack, target, to=to, force=again, **more)
    except ExistsError as error:  # exit code 2 would mean that nothing was done
        raise StorageError(f"dump: {error}") from None
    if local:
        outcome["wrote"] = {**run.wrote, target: _curate_dump.settle(target, run.wrote.get(target, {}), before, run.force)}
    return {**outcome, "output": target}


RUN: dict[str, Callable[[Run, Options, bool, Progress], Outcome]] = {
    "pack": _run_pack, "check": _run_check, "train": _run_train, "embed": _run_embed, "tag": _run_tag,
    "dedup": _run_dedup, "semantic": _run_semantic, "select": _run_select, "dump": _run_dump}
