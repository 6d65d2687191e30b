# SPDX-License-Identifier: Apache-2.0
"""Which steps `leat curate` runs and with which options: from a YAML file and arguments, checked before anything runs."""

from __future__ import annotations

import difflib
import inspect
import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import _check, _images, _pack, _select
from ._errors import ArgumentError, Error, NotFoundError, StorageError, shown
from ._train import check_model
from ._train import options as _options

Options = dict[str, Any]


class Step(NamedTuple):
    """A step of a run. Its options are those of its command, except those that curate sets itself."""

    name: str
    command: str
    on: bool  # without a config
    own: frozenset[str]
    call: Callable[..., Any] | None = None  # None: the options are in the table of the command


_RUN = frozenset(("progress", "force", "sync", "resume", "output", "source", "csv"))
_MODEL = _RUN | {"quiet", "config", "plan", "launched"}
_DUMPS = ("list", "pack", "folder", "webdataset", "parquet")


def _dump(*, to: str = "list", output: str | None = None, shard_bytes: int | str = 0) -> None:
    """The options of the last step, as its signature. `leat pack --select` and `leat export --select` do the work."""
    _check.one_of("to", to, dict.fromkeys(_DUMPS, 0))
    _check.size("shard_bytes", shard_bytes)
    if output is not None:
        _check.utf8_path("output", output)
    given = [name for name, value in (("output", output is not None), ("shard_bytes", shard_bytes not in (0, "0"))) if value]
    if to == "list" and given:
        raise ArgumentError(f"{given[0]}: has no effect with to: list; the list is selected.txt")


STEPS = (
    Step("pack", "leat pack", True, _RUN | {"report", "keys", "select", "check"}, _pack.pack),
    Step("check", "leat check", True,
         _RUN | {"labels", "embeddings", "predictions", "column", "neighbours", "strict"}, _images.check),
    Step("train", "leat train", False, _MODEL | {"val"}),
    Step("embed", "leat embed", True, _MODEL | {"logits", "npy"}),
    Step("tag", "leat tag", False, _MODEL),
    Step("dedup", "leat dedup images", True, _RUN | {"across"}, _images.dedup_images),
    Step("semantic", "leat dedup semantic", False, _RUN | {"embeddings"}, _images.dedup_semantic),
    Step("select", "leat select", True, _RUN | {"pack", "embeddings"}, _select.select),
    Step("dump", "leat export", True, frozenset(), _dump),
)
NAMES = tuple(step.name for step in STEPS)
_ALWAYS = ("pack", "select", "dump")
_BY_VECTORS = ("diversity", "typicality", "similarity")


class Default(list[Any]):
    """The strategies when a config names none. The step select adds a balance of the labels, if the pack has labels."""


def _keys(step: Step) -> list[str]:
    if step.call is None:
        return [name for name in _options.table(step.command.split()[1]) if name not in step.own]
    return [name for name in inspect.signature(step.call).parameters if name not in step.own]


def _unknown(what: str, name: str, known: Any) -> ArgumentError:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
    return ArgumentError(f"{what}there is no {name!r}{hint}")


def _numbers(given: Any, where: str) -> Any:
    """Returns "label=-1,size=0" as a dict; a dict stays as it is."""
    if not isinstance(given, str):
        return given
    made: dict[str, int] = {}
    for one in given.split(","):
        name, _, number = one.partition("=")
        try:
            made[name] = int(number)
        except ValueError:
            raise ArgumentError(f"{where}{shown(one)} is not FIELD=NUMBER") from None
    return made


def _options_of(step: Step, given: Any, where: str) -> Options | None:
    """Returns the options of a step, or None when it is off."""
    if given is False:
        if step.name in _ALWAYS:
            raise ArgumentError(f"{where}{step.name}: this step cannot be switched off")
        return None
    if given is None or given is True:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{where}{step.name}: {shown(given)} is not a list of options, true or false")
    known = _keys(step)
    made: Options = {}
    seen: set[str] = set()
    for key, value in given.items():
        name = key.replace("-", "_") if isinstance(key, str) else str(key)
        if step.name == "semantic" and name == "clusters":
            raise ArgumentError(f"{where}{step.name}: {name!r} is named 'centres'")
        if step.name == "pack" and name == "default":  # the option of the command is --default
            name, value = "defaults", _numbers(value, f"{where}{step.name}: {name}: ")
        if name not in known:
            raise _unknown(f"{where}{step.name}: ", name, known)
        if name in seen:
            raise ArgumentError(f"{where}{step.name}: '{name}' appears twice")
        seen.add(name)
        if value is not None:
            made[name] = os.fspath(value) if isinstance(value, os.PathLike) else value
    return made


def read(config: Any, given: Mapping[str, Options], common: Options) -> dict[str, Options | None]:
    """Returns the options of each step: those of the config (a path or a dict), overridden by `given`; None where a step is off."""
    where = ""
    if config is None:
        config = {}
    elif isinstance(config, (str, os.PathLike)):
        path = _check.utf8_path("config", config)
        where, config = f"{path}: ", _options.read_config(path)
    elif not isinstance(config, Mapping):
        raise ArgumentError(f"config: {shown(config)} is neither a path nor a dict")
    shared = {name: config[name] for name in ("threads", "memory") if config.get(name) is not None}
    shared.update(common)
    for name in config:
        if name not in NAMES and name not in ("threads", "memory"):
            raise _unknown(where, str(name), (*NAMES, "threads", "memory"))
    steps: dict[str, Options | None] = {}
    for step in STEPS:
        named = step.name in config
        made = _options_of(step, config[step.name], where) if named else {} if step.on else None
        if step.name in given and made is not None:
            made.update(given[step.name])
            made = {name: value for name, value in made.items() if value is not None}
        if made is not None:
            made = {**{name: value for name, value in shared.items() if name in _keys(step)}, **made}
        steps[step.name] = made
    _default(steps)
    _rehearse(steps, where)
    return steps


def _default(steps: dict[str, Options | None]) -> None:
    """Returns the defaults that a step takes from the steps before it."""
    select, train, embed = steps["select"], steps["train"], steps["embed"]
    assert select is not None and steps["pack"] is not None
    steps["pack"].setdefault("on_error", "skip")
    if train is not None:
        train.setdefault("method", "simclr")
        train.setdefault("model", "resnet18")
    if embed is not None and train is None:
        embed.setdefault("model", "tiny")
    if (select.get("count") or select.get("share")) and "strategies" not in select:
        select["strategies"] = Default(["diversity"] if embed is not None else ["random"])


def _rehearse(steps: Mapping[str, Options | None], where: str) -> None:
    """Checks the options of every step before the first one runs, by calling it on data that does not exist."""
    if steps["tag"] is not None and not steps["tag"].get("model"):
        raise ArgumentError(f"{where}tag: model is missing: a run of leat train, a TorchScript, exported or ONNX file")
    if steps["semantic"] is not None and steps["embed"] is None:
        raise ArgumentError(f"{where}semantic: needs embed, which is switched off")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # after Ctrl-C, a step may still be writing
        for step in STEPS:
            options = steps[step.name]
            if options is None:
                continue
            try:
                _try_step(step, options, folder, steps["embed"] is not None)
            except (NotFoundError, StorageError):
                pass  # the error is about data that does not exist
            except Error as error:
                raise type(error)(f"{where}{step.name}: {error}") from None


def needs_vectors(options: Options) -> bool:
    """Returns whether a strategy of select takes the vectors of the step embed."""
    strategies = options.get("strategies") or []
    listed = [strategies] if isinstance(strategies, (str, Mapping)) else strategies
    plain = [{"strategy": one} if isinstance(one, str) else one for one in listed]
    return any(isinstance(one, Mapping) and one.get("strategy") in _BY_VECTORS and not one.get("embeddings") for one in plain)


def _try_step(step: Step, options: Options, folder: str, embedded: bool) -> None:
    nothing, output = os.path.join(folder, "nothing.leat"), os.path.join(folder, "output.leat")
    if step.call is None:
        command = step.command.split()[1]
        made = _options.resolve(command, options)
        if command != "train" and "model" in options:
            check_model(command, made.model)
    elif step.name == "dump":
        step.call(**options)
    elif step.name == "select":
        more = {"embeddings": nothing} if embedded and needs_vectors(options) else {}
        every = {} if options.get("strategies") or options.get("where") else {"strategies": "random"}
        step.call(nothing, output, **{**every, **options, **more})
    else:
        more = {"csv": os.path.join(folder, "pairs.csv")} if step.name == "dedup" else {}
        step.call(nothing, output, **options, **more)
