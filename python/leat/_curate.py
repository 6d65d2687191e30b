# SPDX-License-Identifier: Apache-2.0
"""`leat.curate`: a run over images, step by step, resumable. RUN/run.json lists the steps that ran, with their options
and inputs."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from . import _check, _curate_config, _curate_early, _curate_measure, _curate_plan, _curate_report, _curate_steps, _json, _leat
from ._curate_config import NAMES, Options
from ._curate_steps import Run
from ._errors import ArgumentError, BudgetError, DataError, Error, ExistsError, FormatError, NotFoundError, StorageError, counted, hidden, reason, shown
from ._pack import Path
from ._train import _hold, run_folder

_VERSION = 1


def _recorded(folder: str) -> dict[str, Any]:
    """Reads the run file, of any version; {} when it does not exist or is not a run file."""
    try:
        with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("steps"), dict) else {}


def _load(folder: str) -> dict[str, Any]:
    """Reads the run file; {} when it does not exist or is not a run file of this version."""
    found = _recorded(folder)
    return found if found.get("version") == _VERSION else {}


def _stored(value: Any) -> Any:
    """Returns a value for the run file: URLs without user, password and query."""
    if isinstance(value, dict):
        return {_stored(name): _stored(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_stored(one) for one in value]
    return hidden(value) if isinstance(value, str) else value


def _save(folder: str, state: dict[str, Any]) -> None:
    path = os.path.join(folder, "run.json")
    try:
        with open(path + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(_json.text(_stored(state), indent=1))
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)
    except OSError as error:
        raise StorageError(f"{path}: {reason(error)}") from None


def _check_run(path: str, there: list[str], force: bool) -> None:
    """Refuses a folder with other files in it. A run that was killed when it began may have left run.json.new."""
    name = os.path.join(path, "run.json")
    there = [one for one in there if one != "run.json.new"]
    if there and "run.json" not in there:
        raise ExistsError(f"{path}: is not empty and has no run of leat curate; give another folder")
    if there and not _recorded(path):
        raise ExistsError(f"{name}: is damaged, so leat cannot tell which files are from leat curate; remove the folder or give another one")
    if there and not _load(path) and not force:
        raise ExistsError(f"{name}: is of another version of leat; `force` starts the run from scratch")


def _state(folder: str, sources: list[str], plan: dict[str, Any], force: bool) -> dict[str, Any]:
    """Returns the state of an earlier run in the folder; with `force`, removes the files that it made, but not its own source."""
    steps = _recorded(folder).get("steps", {})
    if force:
        read = {os.path.realpath(path) for path in sources if "://" not in path}
        ours = {name for names in _curate_steps.FILES.values() for name in names if _curate_steps.is_ours(steps, name)}
        for name in (name for name in ours if os.path.realpath(os.path.join(folder, name)) not in read):
            for file in (name, f"{name}.parts", f"{name}.state"):
                _curate_steps.remove(os.path.join(folder, file))
        dumped = {"state": "off", "wrote": (steps.get("dump") or {}).get("wrote") or {}}  # replaced when dump writes there again
        own = {"pack": _off(steps.get("pack"))} if os.path.realpath(os.path.join(folder, "pack.leat")) in read else {}
        steps = {**own, "dump": dumped}
    return {"version": _VERSION, "source": [_check.public(path) for path in sources], "plan": plan, "steps": steps}


def _off(record: Any) -> dict[str, Any]:
    """Makes the record of a step that is off or writes no file. It still lists the files of an earlier run."""
    old = record if isinstance(record, dict) else {}
    made = {"made": old["made"]} if old.get("made") else {}
    unfinished = {"unfinished": True} if old.get("state") == "running" or old.get("unfinished") else {}
    wrote = {"wrote": old["wrote"]} if old.get("wrote") else {}
    return {"state": "off", **made, **unfinished, **wrote}


def _key(run: Run, step: str, found: dict[str, str]) -> str:
    """Returns what a step depends on: its options and inputs, without threads and memory, which do not change results."""
    options = {name: value for name, value in (run.steps[step] or {}).items() if name not in ("threads", "memory")}
    if step == "embed":
        options["model"] = run.model()
    text = json.dumps([step, _leat.version, options, found], sort_keys=True, default=os.fspath)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _made(run: Run, step: str) -> dict[str, str]:
    """Returns fingerprints of the files that a step has written."""
    made = {}
    for name in _curate_steps.FILES[step]:
        path = run.path(name)
        if os.path.lexists(path) and not (step == "pack" and run.in_place):
            made[name] = _curate_steps.fingerprint(path)
    target = _curate_steps.dump_target(run) if step == "dump" else None
    if target is not None and "://" not in target and os.path.dirname(target) != run.folder:
        made[target] = _curate_steps.stamp(target)
    return made


class _Line:
    """One line of progress on a terminal; a line per step elsewhere; nothing when quiet."""

    def __init__(self, quiet: bool, total: int) -> None:
        self.quiet, self.total, self.number, self.shown = quiet, total, 0, 0.0
        self.live = not quiet and sys.stderr is not None and sys.stderr.isatty()

    def begin(self, step: str) -> None:
        self.number += 1
        self.step, self.started = step, time.monotonic()
        if self.live:
            self._show("")

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K[{self.number}/{self.total}] {self.step} {text}")
        sys.stderr.flush()

    def at(self, done: int, total: int, size: int, found: int) -> None:
        if self.live and time.monotonic() - self.shown > 0.2:
            self.shown = time.monotonic()
            of = f" of {total}, {100 * done / total:.0f} %" if total else ""
            self._show(f"{done}{of}, {self.shown - self.started:.0f} s")

    def end(self, text: str) -> None:
        if not self.quiet:
            clear = "\r\x1b[K" if self.live else ""
            print(f"{clear}[{self.number}/{self.total}] {self.step}: {text}", file=sys.stderr, flush=True)


def _is_done(run: Run, step: str, record: Any, key: str) -> bool:
    return isinstance(record, dict) and record.get("state") == "done" and record.get("key") == key and \
        (step == "pack" and run.in_place or record.get("made") == _made(run, step))


def _hinted(run: Run, step: str, error: Error) -> Error:
    """Returns the error; if it is about a file of an earlier step, adds how to make that file again."""
    if "no sample is selected" in str(error):
        return type(error)(f"{step}: {error}; change where or strategies of this step")
    for earlier in NAMES[:NAMES.index(step)]:
        made = [name for name in _curate_steps.FILES[earlier] if run.on(earlier) and run.path(name) in str(error)]
        if made and isinstance(error, (DataError, FormatError, StorageError, NotFoundError)):
            return type(error)(f"{error}; --from {earlier} makes {made[0]} again")
    return BudgetError(f"{step}: {error}") if isinstance(error, BudgetError) else error


def _do(run: Run, step: str, state: dict[str, Any], line: _Line, again: bool) -> None:
    """Runs a step, or reuses its earlier result. Its record is in `state` afterwards."""
    line.begin(step)
    try:
        found = _curate_steps.inputs(run, step)
    except Error as error:
        raise _hinted(run, step, error) from None
    key, old = _key(run, step, found), state["steps"].get(step)
    if not again and _is_done(run, step, old, key):
        state["steps"][step]["reused"] = True
        line.end(f"{counted(old['rows'], 'row')}, as before")
        return
    resume = isinstance(old, dict) and old.get("state") == "running" and old.get("key") == key
    options = run.steps[step] or {}
    earlier = _off(old) if step == "pack" and run.in_place else {}  # an earlier run may have written pack.leat
    record: dict[str, Any] = {**earlier, "state": "running", "key": key, "inputs": found, "options": options}
    if step == "dump":
        record.update(_curate_steps.claim(run, resume))
    state["steps"][step] = record
    if step == "pack" and run.checks_while_packing:
        state["steps"]["check"] = {"state": "running"}
    _save(run.folder, state)
    meter = _curate_measure.Meter()
    try:
        outcome = _curate_steps.RUN[step](run, options, resume, line.at)
    except Error as error:
        raise _hinted(run, step, error) from None
    seen = meter.stop()
    cpus = min(options.get("threads") or _curate_measure.usable_cpus(), _curate_measure.usable_cpus())
    judged = _curate_measure.limit(step, seen, outcome, cpus, _curate_plan.gpus() > 0)
    record.update({"dropped": {}, **outcome, **seen, **judged, "state": "done", "made": {**earlier.get("made", {}), **_made(run, step)}})
    _save(run.folder, state)
    line.end(f"{counted(record['rows'], 'row')} in {seen['seconds']:.1f} s, limit: {judged['limit']}")


def _result(run: Run, state: dict[str, Any], seconds: float) -> dict[str, Any]:
    steps = []
    for name in NAMES:
        record = state["steps"].get(name, {})
        if record.get("state") != "done":
            continue
        steps.append({"step": name, **{key: record[key] for key in (
            "rows", "dropped", "seconds", "cpu_seconds", "bytes_read", "limit", "why", "advice")},
            "reused": bool(record.get("reused"))})
    records = state["steps"]
    broken = _curate_steps.unreadable(run)
    return {"output": run.folder, "samples": records["pack"]["rows"], "selected": records["select"]["rows"],
            "asked": _asked(records["select"]), "unreadable": records["pack"]["dropped"].get("unreadable", 0) + broken, "steps": steps,
            "note": _note(run), "list": run.path("selected.txt"), "dump": _curate_steps.dump_target(run), "report": run.path("report.html"),
            "seconds": seconds}


def _note(run: Run) -> str:
    """Returns why rows are not chosen by diversity, the default with count and share; "" otherwise."""
    by_default = isinstance((run.steps["select"] or {}).get("strategies"), _curate_config.Default)
    return "images were chosen at random: diversity needs vectors, and the step embed is off" if by_default and not run.on("embed") else ""


def _asked(record: dict[str, Any]) -> int:
    """Returns how many images were asked for (count or share) if fewer could be chosen, else 0."""
    asked = record.get("asked") or 0
    return asked if asked > record.get("chosen", asked) else 0


def _given(count: int | None, share: float | None, model: Any) -> dict[str, Options]:
    """Returns the arguments that are options of a step."""
    select: Options = {}
    if count is not None:
        select = {"count": _check.whole("count", count, 1), "share": None}
    if share is not None:
        if select:
            raise ArgumentError("share: give either `count` or `share`, not both")
        select = {"share": _check.above("share", share, 1), "count": None}
    given = {"select": select}
    if model is not None:
        given["embed"] = {"model": _check.path("model", model)}
    return given


def _steps_from(start: str | None, run: Run) -> frozenset[str]:
    if start is None:
        return frozenset()
    if not isinstance(start, str) or start not in NAMES or not run.on(start):
        raise ArgumentError(f"from: {shown(start)} is not a step of this run (its steps: {', '.join(n for n in NAMES if run.on(n))})")
    return frozenset(NAMES[NAMES.index(start):])


def curate(source: Path | Sequence[Path], output: Path, *, config: Any = None, count: int | None = None, share: float | None = None,
           model: Path | None = None, threads: int = 0, memory: int | str = 0, from_: str | None = None,
           force: bool = False, plan: bool = False, quiet: bool = True) -> dict[str, Any]:
    """Packs, checks, embeds, deduplicates and selects images; what `leat curate` does.

    >>> leat.curate("photos", "run", share=0.1)
    {'samples': 50000, 'selected': 5000, 'unreadable': 3, 'steps': [{'step': 'pack', ...}, ...], ...}

    Each step writes columns into the folder `output`: pack.leat, check.leat, embed.leat, duplicates.leat, select.leat,
    selected.txt, and report.html, a page to look at. A second call continues with the first step that is not finished
    or whose options or inputs have changed.

    Parameters
        source: a folder, tar shards, a pack or a path in a bucket, as for ``leat.pack``. A local pack is not copied
        output: the folder of the run
        config: path of a YAML file, or a dict: a key per step (pack, check, train, embed, tag, dedup, semantic,
            select, dump) with the options of its function; false switches a step off. train, tag and semantic are off
            without one
        count, share: how many samples to select, or which share; those of the config otherwise
        model: the model that embeds; by default the one that the step train trained, else "tiny"
        threads, memory: for all steps; 0 = the default of each step
        from_: run this step and those after it again
        force: start from scratch: what an earlier run wrote into `output` is deleted
        plan: only return the plan: hours, memory and bytes of each step
        quiet: do not show progress on stderr
    """
    begin = time.monotonic()
    common = {name: value for name, value in (("threads", _check.whole("threads", threads, 0, 4096)),
                                              ("memory", _check.size("memory", memory))) if value}
    steps = _curate_config.read(config, _given(count, share, model), common)
    sources = [os.fsdecode(path) for path in _check.paths("source", source)]
    gone = next((path for path in sources if "://" not in path and not os.path.lexists(path)), None)
    if gone is not None:
        raise NotFoundError(f"{gone}: no such file or folder")
    given = _check.local(_check.utf8_path("output", output))
    folder = os.path.abspath(given)
    run = Run(folder, sources, steps, given)
    redo = _steps_from(from_, run)
    _curate_early.check_folder(run)
    force = _check.flag("force", force)
    earlier = {} if force else _load(folder).get("steps", {})
    if from_ is not None and not earlier and not force and os.path.lexists(os.path.join(folder, "run.json")):
        _check_run(given, ["run.json"], force)
    if from_ is not None and not earlier:
        raise ArgumentError("from: has no effect with `force`, which runs all steps" if force else
                            f"from: has no effect: {given} has no earlier run, so all steps run")
    _curate_early.check_dump(run, _recorded(folder).get("steps", {}).get("dump") or {})
    where = f"{config}: " if isinstance(config, (str, os.PathLike)) else ""
    _curate_early.check_files(run, where)
    _curate_early.check_select(run, where)
    planned = _curate_plan.make(run)
    if _check.flag("plan", plan):
        return planned
    if planned["short"]:
        raise BudgetError(planned["short"])
    line = _Line(_check.flag("quiet", quiet), sum(run.on(name) for name in NAMES))
    with run_folder(folder, ("run.json", "run.json.new")) as there:
        _check_run(folder, there, force)
        _curate_early.check_ours(run, _recorded(folder).get("steps", {}))
        return _all_steps(run, planned, force, line, redo, begin)


def _all_steps(run: Run, planned: dict[str, Any], force: bool, line: _Line, redo: frozenset[str], begin: float) -> dict[str, Any]:
    """Runs the steps in a folder that no other run uses."""
    folder = run.folder
    held = _hold(folder)
    try:
        state = _state(folder, run.sources, planned, force)
        run.force, run.wrote = force, (state["steps"].get("dump") or {}).get("wrote") or {}
        for name in NAMES:
            if run.on(name):
                _do(run, name, state, line, name in redo)
            else:
                state["steps"][name] = _off(state["steps"].get(name))
        result = _result(run, state, time.monotonic() - begin)
        _curate_report.write(run, state, result)
        _save(folder, state)
    finally:
        if held is not None:
            held.close()
    return result
