# SPDX-License-Identifier: Apache-2.0
"""Filters and deduplication of text on a Ray cluster: what `--on ray` does.

The steps of a run are those of C (src/curate/part_files.h); this module only sends them. Each node has one actor, which
runs one task at a time on that node's CPUs. A task gets paths, positions and options, and writes its results to the
work folder, which all nodes share. Its files appear under their names when they are complete, and a task that is done
is not repeated. So a task whose actor or node is lost is sent again, and the output stays the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from . import __version__, _leat
from ._errors import ArgumentError, DataError, Error, StateError, StorageError, UnsupportedError, shown
from ._pack import Progress, _run

BEGIN, SKETCH, GATHER, GROUP, RESOLVE, WRITE, JOIN, END = range(8)
_TRIES = 20  # times that a task is sent when its actors are lost
_STARTS = 5  # attempts to start an actor on a node where it never answers
_ALONE = 60.0  # seconds without a node that end a run
_IDLE = 600.0  # seconds without a working actor that end a run
_PARTS_MAX = 20000
_SMALL, _LARGE = 64 << 20, 1 << 30  # range of bytes of a task, unless given: starting a task takes about 6 ms of CPU time
_PARTITIONS_MAX = 256

Options = dict[str, Any]


def check(on: object) -> str:
    """Returns the address for `ray.init`, "" for its default."""
    if isinstance(on, str) and on == "ray":
        return ""
    if isinstance(on, str) and on.startswith("ray://") and len(on) > len("ray://"):
        return on
    raise ArgumentError(f'on: {shown(on)} is not "ray" or "ray://HOST:PORT"')


def refuse(given: dict[str, Any]) -> None:
    """Refuses options that have no effect, or no meaning, on a cluster."""
    for name, value in given.items():
        if value:
            raise ArgumentError(f"{name}: does not work with on=\"ray\"")


def _last(error: BaseException) -> str:
    """Returns the last line of a message: Ray's messages begin with a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _client() -> bool:
    """Returns whether this process is connected through a Ray client address."""
    from ray.util.client import ray as client
    return bool(client.is_connected())


# ---- one node ----


class Engine:
    """Runs leat on one node. Errors of leat are returned as results: only a lost actor is an exception."""

    threads = 1

    def hello(self, folder: str | None, threads: int) -> tuple[str, str]:
        """Changes to the folder for relative paths. Returns the version of leat, and what failed."""
        self.threads = threads
        try:
            if folder is not None:
                os.chdir(folder)
        except OSError as error:
            return __version__, f"{folder}: {error.strerror} (share this folder, or give absolute paths)"
        return __version__, ""

    def run(self, name: str, *args: Any) -> tuple[Any, Error | None, float]:
        """Runs a task. Returns its result or the error of leat, and CPU seconds."""
        begin = time.process_time()
        try:
            return getattr(self, name)(*args), None, time.process_time() - begin
        except Error as error:
            return None, error, 0.0

    def cuts(self, path: str, most: int, step: int, chunks: bool) -> list[tuple[int, int]]:
        return _leat.text_cuts(os.fsencode(path), most, step, chunks)

    def lines(self, path: str, begin: int, end: int) -> int:
        return _leat.text_lines(os.fsencode(path), begin, end)

    def copy(self, part: tuple[Any, ...], name: str, patch: bool, pieces: list[tuple[str, int, int, int]]) -> None:
        _leat.text_copy(part, name, patch, pieces)

    def step(self, kind: str, inputs: list[str], output: str, options: Options, part: tuple[Any, ...]) -> str:
        """Runs a step. Returns "", or a text when lines must be counted first."""
        call = _leat.filter_text if kind == "filter" else _leat.dedup_text
        answer, _ = _run(None, call, [os.fsencode(path) for path in inputs], output, part=part,
                         **{**options, "threads": self.threads})
        return str(answer)


# ---- the cluster ----


class Cluster:
    """Actors on the nodes of a cluster, and the tasks that they run."""

    def __init__(self, on: str, threads: int, folder: str | None) -> None:
        address = check(on)
        try:
            import ray
        except ImportError:
            raise UnsupportedError(f"on: Ray is not installed for {sys.executable}: pip install 'leat[ray]'") from None
        for name, value in (("agent_register_timeout_ms", 250000), ("raylet_start_wait_time_s", 250),
                            ("worker_register_timeout_seconds", 200)):
            os.environ.setdefault(f"RAY_{name}", str(value))  # a busy machine takes long to start a cluster
        self.ray = ray
        self.own = not ray.is_initialized()
        if address and not self.own and not _client():
            raise ArgumentError(f'on: this process is connected to a Ray cluster already, not through {address} (use on="ray")')
        if self.own:
            try:
                ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
            except Exception as error:  # of many kinds
                raise StorageError(f"on: cannot connect to Ray: {_last(error)}") from None
        self.folder, self.threads = folder, threads
        self.actor = ray.remote(Engine)
        self.engines: dict[str, Any] = {}  # by node
        self.starting: dict[Any, str] = {}  # pending first answers of new actors
        self.failed: dict[str, int] = {}  # starts, by node
        self.cpu_seconds = 0.0
        self.looked = self.alive = self.worked = 0.0
        if not self.nodes():
            self.close()
            raise StorageError("on: no node of the Ray cluster has a CPU (see `ray status`)")
        self.refresh()

    def nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]

    def memory(self) -> int:
        """Returns half of the memory that the smallest node gives to tasks."""
        return int(min(node["Resources"].get("memory", 0) for node in self.nodes()) // 2)

    def refresh(self) -> None:
        """Starts actors on nodes that have none."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
        self.looked = time.monotonic()
        nodes = self.nodes()
        if nodes:
            self.alive = self.looked
        for node in nodes:
            name = node["NodeID"]
            if name in self.engines or name in self.starting.values():
                continue
            cpus = min(self.threads or int(node["Resources"]["CPU"]), int(node["Resources"]["CPU"]))
            engine = self.actor.options(num_cpus=cpus, max_restarts=0, max_concurrency=1,
                                        scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False)).remote()
            self.starting[engine.hello.remote(self.folder, cpus)] = name
            self.engines[name] = engine

    def lost(self, name: str) -> None:
        engine = self.engines.pop(name, None)
        if engine is not None:
            with contextlib.suppress(ConnectionError):
                self.ray.kill(engine)

    def started(self, answer: Any) -> None:
        """Takes the first answer of an actor."""
        name = self.starting.pop(answer)
        try:
            version, wrong = self.ray.get(answer)
        except self.ray.exceptions.RayError as error:
            self.lost(name)
            self.failed[name] = self.failed.get(name, 0) + 1
            if self.failed[name] >= _STARTS:
                raise StorageError(f"node {name[:12]}: leat does not start there: {_last(error)}") from None
            return
        self.failed.pop(name, None)
        if wrong:
            raise StorageError(f"node {name[:12]}: {wrong}")
        if version != __version__:
            raise StateError(f"node {name[:12]}: has leat {version}, this is {__version__}: install the same version")

    def wait(self, running: Sequence[Any]) -> list[Any]:
        """Returns the calls and starts that have ended, after a second at most. Raises when no node is left."""
        now = time.monotonic()
        if running:
            self.worked = now
        if now - max(self.alive, self.worked) > _ALONE:
            raise StorageError(f"no node of the Ray cluster is left, and none came within {_ALONE:.0f} s")
        if now - self.worked > _IDLE:
            raise StorageError(f"no actor of leat started within {_IDLE:.0f} s: the CPUs of the {len(self.starting)} "
                               "nodes may be in use (see `ray status`)")
        waiting = [*running, *self.starting]
        if not waiting:
            time.sleep(1.0)  # all nodes are lost: a new one may join
            return []
        return self.ray.wait(waiting, num_returns=1, timeout=1.0)[0]

    def run(self, tasks: Sequence[Callable[[], tuple[Any, ...]]], done: Callable[[Any], bool] | None = None) -> list[Any]:
        """Runs all tasks and returns their results. A task returns the name of a method and its arguments; it is called for each attempt.
        When `done` is false for a result, no further task begins: the results of the remaining tasks are None."""
        results: list[Any] = [None] * len(tasks)
        tries = [0] * len(tasks)
        todo = deque(range(len(tasks)))
        running: dict[Any, tuple[int, str]] = {}
        self.alive = self.worked = time.monotonic()
        while todo or running:
            busy = {name for _, name in running.values()} | set(self.starting.values())
            for name in [name for name in self.engines if name not in busy]:
                if todo:
                    number = todo.popleft()
                    running[self.engines[name].run.remote(*tasks[number]())] = (number, name)
            for answer in self.wait(list(running)):
                if answer in self.starting:
                    self.started(answer)
                    continue
                number, name = running.pop(answer)
                try:
                    result, error, seconds = self.ray.get(answer)
                except self.ray.exceptions.RayError as why:
                    tries[number] += 1
                    if tries[number] >= _TRIES:
                        raise StorageError(f"a task was lost {_TRIES} times, the last time on node {name[:12]}: "
                                           f"{_last(why)}") from None
                    self.lost(name)
                    todo.appendleft(number)
                    self.looked = 0.0
                    continue
                if error is not None:
                    raise error
                results[number] = result
                self.cpu_seconds += seconds
                if done is not None and not done(result):
                    todo.clear()
            if time.monotonic() - self.looked > 2.0:
                self.refresh()
        return results

    def stop(self) -> None:
        for name in list(self.engines):
            self.lost(name)
        self.starting.clear()

    def close(self) -> None:
        self.stop()
        if self.own:
            self.ray.shutdown()


# ---- runs ----


class Job:
    """A run in parts: its options, its files and the folder that its tasks share."""

    def __init__(self, kind: str, on: str, inputs: list[bytes], output: str, options: Options, task_bytes: int,
                 progress: Progress | None) -> None:
        self.kind, self.inputs, self.output, self.options = kind, inputs, output, dict(options)
        self.task_bytes, self.progress = task_bytes, progress
        self.work = os.path.join(output, ".leat-work")
        self.begun = time.monotonic()
        self.numbers: Options = {}  # common to all tasks: settings, parts, groups, partitions
        self.files: list[str] = []
        self.parts: list[list[int]] = []  # file, offset, end file, end offset, line (0 = not counted)
        self.done = self.total = 0
        self.lock: object = None  # of the output folder
        paths = [os.fsdecode(path) for path in inputs]
        paths += [path for path in (output, options.get("lid"), options.get("against")) if path]
        folder = None if all(os.path.isabs(path) for path in paths) else os.getcwd()
        self.cluster = Cluster(on, options["threads"], folder)
        self.options["memory"] = options["memory"] or self.cluster.memory()

    def part(self, step: int, number: int = 0, units: Sequence[int] = (0, 0), where: Sequence[int] = (0, 0, 0, 0, 1),
             seconds: float = 0.0) -> tuple[Any, ...]:
        """Returns a step as C takes it, with a new token."""
        n = self.numbers
        return (step, self.work, uuid.uuid4().hex, n.get("settings", ""), number, n.get("parts", 0), n.get("groups", 0),
                n.get("partitions", 0), *units, *where, seconds, self.cluster.cpu_seconds)

    def here(self, step: int, inputs: Sequence[str], seconds: float = 0.0) -> Any:
        """Runs a step in this process and returns its answer."""
        call = _leat.filter_text if self.kind == "filter" else _leat.dedup_text
        paths = [os.fsencode(path) for path in inputs] or self.inputs
        answer, _ = _run(None, call, paths, self.output, part=self.part(step, seconds=seconds), **self.options)
        return json.loads(answer)

    def task(self, step: int, number: int = 0, units: Sequence[int] = (0, 0),
             part: Sequence[int] | None = None) -> Callable[[], tuple[Any, ...]]:
        """Returns a step as a task; `part` is a part of the input."""
        inputs, where = self.files[:1], (0, 0, 0, 0, 1)
        if part is not None:
            file, offset, end_file, end_offset, line = part
            inputs = self.files[file:end_file + (end_offset > 0)]
            where = (0, offset, end_file - file, end_offset, line)
        return lambda: ("step", self.kind, inputs, self.output, self.options, self.part(step, number, units, where))

    def cut(self, answer: Options) -> None:
        """Divides the input into parts."""
        sizes = [size for _, size in answer["files"]]
        nodes = max(len(self.cluster.nodes()), 1)
        step = self.task_bytes or min(max(sum(sizes) // (3 * nodes), _SMALL), _LARGE)
        step = max(step, sum(sizes) // _PARTS_MAX, 1)
        large = [i for i, size in enumerate(sizes) if size > step]
        chunks = self.options["compress"] != 0  # compressed chunk by chunk: parts begin where chunks begin
        scans = [lambda i=i: ("cuts", self.files[i], answer["max_line"], max(step // 4, 1), chunks) for i in large]
        found = dict(zip(large, self.cluster.run(scans)))
        before, start, position = 0, (0, 0, 1), 0
        for i, size in enumerate(sizes):
            for offset, line in [(0, 1), *found.get(i, [])]:
                if before + offset - position >= step:
                    self.parts.append([start[0], start[1], i, offset, start[2]])
                    start, position = (i, offset, line), before + offset
            before += size
        self.parts.append([start[0], start[1], len(sizes), 0, start[2]])

    def count(self, files: set[int]) -> None:
        """Numbers the lines where parts of these files begin."""
        parts = [part for part in self.parts if part[0] in files and part[1] > 0]
        begins = [before[1] if before[0] == part[0] else 0 for before, part in zip([[-1, 0], *parts], parts)]
        counts = self.cluster.run([lambda file=part[0], a=begin, b=part[1]: ("lines", self.files[file], a, b)
                                   for begin, part in zip(begins, parts)])
        line = 1
        for begin, part, lines in zip(begins, parts, counts):
            line = (line if begin > 0 else 1) + lines
            part[4] = line

    def pass_over(self, step: int, first: int = 0) -> None:
        """Runs a task for each part of the input. Lines are counted when a bad line, or one without an id, needs its number."""
        def told(answer: str) -> bool:
            if answer:
                return False
            self.done += 1
            if self.progress is not None:
                passes = 1 if self.kind == "filter" else 2
                self.progress(self.total * self.done // (passes * len(self.parts)), self.total, 0, 0)
            return True

        todo = list(range(len(self.parts)))
        while todo:
            answers = self.cluster.run([self.task(step, i + first, part=self.parts[i]) for i in todo], told)
            self.count({self.parts[i][0] for i, answer in zip(todo, answers) if answer})
            todo = [i for i, answer in zip(todo, answers) if answer != ""]

    def join(self) -> Options:
        """Makes the output files from those of the parts."""
        copies = self.here(JOIN, self.files[:1])["copies"]
        self.cluster.run([lambda c=c: ("copy", self.part(JOIN), c["to"], c["patch"],
                                       [(os.path.join(self.work, name), *piece) for name, *piece in c["pieces"]])
                          for c in copies])
        self.cluster.stop()
        return self.here(END, self.files if self.kind == "filter" else self.files[:1], time.monotonic() - self.begun)


def filter_text(on: str, inputs: list[bytes], output: str | None, options: Options, task_bytes: int,
                progress: Progress | None) -> Options:
    """Runs a filter; the options are those of `_leat.filter_text`."""
    refuse({name: options.pop(name) for name in ("report", "look", "explain", "seed")})
    if output is None:
        raise ArgumentError('output: is needed with on="ray"')
    job = Job("filter", on, inputs, output, options, task_bytes, progress)
    try:
        job.lock = _leat.lock_output(output)
        answer = job.here(BEGIN, [])
        job.files = [path for path, _ in answer["files"]]
        job.total = sum(size for _, size in answer["files"])
        job.cut(answer)
        job.numbers["parts"] = len(job.parts)
        if options["profile"] or options["set"]:  # a reason has the number of its line
            job.count({part[0] for part in job.parts if part[4] == 0})
        job.pass_over(WRITE)
        return job.join()
    except ConnectionError as error:
        raise StorageError(f"on: the connection to Ray was lost: {_last(error)}") from None
    finally:
        job.lock = None
        job.cluster.close()


def _sum(plan: Options) -> str:
    return hashlib.sha256(json.dumps(plan).encode()).hexdigest()


def _read_plan(path: str) -> Options:
    """Returns the plan in a file whose checksum is right."""
    with contextlib.suppress(ValueError, LookupError, TypeError), open(path, encoding="utf-8") as file:
        stored = json.load(file)
        plan: Options = stored["plan"]
        if stored["sum"] == _sum(plan):
            return plan
    raise DataError(f"{path}: is damaged (use --force to start over)")


def _plan(job: Job, answer: Options) -> None:
    """Takes the plan of an interrupted run, or makes one."""
    path = os.path.join(job.work, "plan.json")
    form = [job.options["shard_bytes"], job.options["compress"]]  # places in the output depend on these options
    if job.options["resume"] and os.path.exists(path):
        plan = _read_plan(path)
        if plan["files"] == job.files:
            for file, old, new in zip(job.files, plan.get("heads", ()), answer["heads"]):
                if old != new:
                    raise DataError(f"{file}: changed since the run began (use --force to start over)")
        if plan["settings"] != answer["settings"] or plan["form"] != form:
            raise StateError(f"{path}: the interrupted run had other inputs or options (use --force to start over)")
        job.files, job.parts, job.numbers = plan["files"], plan["input"], plan["numbers"]
        job.options["memory"] = plan["memory"]  # the number of edge files depends on the memory
        return
    job.cut(answer)
    nodes = max(len(job.cluster.nodes()), 1)
    partitions = min(max(answer["partitions"], -(-3 * nodes // answer["bands"])), _PARTITIONS_MAX)
    units = answer["bands"] * partitions
    job.numbers = {"settings": answer["settings"], "parts": len(job.parts) + (answer["against"] > 0), "partitions": partitions,
                   "groups": min(units, nodes)}
    plan = {"settings": answer["settings"], "form": form, "memory": job.options["memory"], "files": job.files, "heads": answer["heads"],
            "input": job.parts,
            "numbers": job.numbers}
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump({"plan": plan, "sum": _sum(plan)}, file)
    os.replace(path + ".tmp", path)


def dedup_text(on: str, inputs: list[bytes], output: str, options: Options, task_bytes: int,
               progress: Progress | None) -> Options:
    """Runs a deduplication; the options are those of `_leat.dedup_text`."""
    refuse({"profile": options.pop("profile"), "rules": options.pop("set"), "plan": options.pop("plan_only"), "checkpoint": options.pop("checkpoint"),
            "bands_per_iteration": options.pop("bands_per_iteration")})
    if options.pop("level"):
        raise ArgumentError("kind, level: lines, paragraphs and substrings do not work with on=\"ray\"")
    job = Job("dedup", on, inputs, output, options, task_bytes, progress)
    run = job.cluster.run
    try:
        job.lock = _leat.lock_output(output)
        answer = job.here(BEGIN, [])
        job.files = [path for path, _ in answer["files"]]
        job.total = 2 * sum(size for _, size in answer["files"])
        _plan(job, answer)
        first = 1 if answer["against"] else 0
        if first:
            run([job.task(SKETCH, 0)])
        job.pass_over(SKETCH, first)
        sides = [0, 1, 2] + [3] * (options["keep"] != 0) + [4] * bool(options["index"]) + [7] * (options["compress"] == 0)
        run([job.task(GATHER, side) for side in sides])
        units, groups = answer["bands"] * job.numbers["partitions"], job.numbers["groups"]
        run([job.task(GROUP, g, (units * g // groups, units * (g + 1) // groups)) for g in range(groups)])
        run([job.task(RESOLVE)])
        job.pass_over(WRITE, first)
        return job.join()
    except ConnectionError as error:
        raise StorageError(f"on: the connection to Ray was lost: {_last(error)}") from None
    finally:
        job.lock = None
        job.cluster.close()
