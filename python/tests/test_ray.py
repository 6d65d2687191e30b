# SPDX-License-Identifier: Apache-2.0
"""Runs on a cluster have the output of runs on one machine, whatever is lost meanwhile.

The first tests have a cluster in this process that loses actors and nodes; the last ones need Ray."""

import gzip
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

import leat
from leat import _ray, _ray_main

NOISE = {"run", "sum", "seconds", "cpu_seconds", "budget_peak_bytes", "limit", "read_share", "work_share", "write_share", "memory_share"}


def write(path, n, seed):
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        k = draw.randrange(60) if draw.random() < 0.3 else i + seed * 100000
        rows.append(json.dumps({"id": f"{seed}-{i}", "n": i % 7, "text": " ".join(f"a{k}x{j}" for j in range(8 + k % 9))})
                    if i % 501 != 7 else "broken")
    data = ("\n".join(rows) + "\n").encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write(folder / "a.jsonl", 7000, 1)
    write(folder / "b.jsonl.gz", 900, 2)
    write(folder / "c.jsonl", 5000, 3)
    return folder


def content(folder):
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.name != "report.json"}
    report = json.loads((folder / "report.json").read_text())
    return files, {key: value for key, value in report.items() if key not in NOISE}


# ---- a cluster in this process ----


class Fake:
    """As much of Ray as leat uses. A call is lost before or after it is done, with the given probability."""

    class exceptions:
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            pass

    def __init__(self, loss=0.0, nodes=3, seed=0):
        self.draw = random.Random(seed)
        self.loss, self.lost, self.calls = loss, 0, 0
        self.names = [f"node{i:020}" for i in range(nodes)]
        self.gone = set()

    def is_initialized(self):
        return True

    def nodes(self):
        return [{"Alive": name not in self.gone, "NodeID": name, "Resources": {"CPU": 2.0, "memory": 2.0 * 2**30}}
                for name in self.names]

    def remote(self, kind):
        return types.SimpleNamespace(options=lambda scheduling_strategy, **_: types.SimpleNamespace(
            remote=lambda: Actor(self, kind(), scheduling_strategy)))

    def wait(self, refs, num_returns, timeout):
        assert len(refs) >= num_returns  # as Ray demands
        return [self.draw.choice(refs)], []

    def get(self, ref):
        actor, method, args = ref.call
        self.calls += 1
        if actor.dead or actor.node in self.gone:
            raise self.exceptions.RayError("the node is gone")
        luck = self.draw.random()
        if luck < self.loss:
            self.lost += 1
            if luck < self.loss / 10 and len(self.gone) < len(self.names) - 1:
                self.gone.add(actor.node)
                self.names.append(f"node{len(self.names):020}")  # another one comes
            if luck < self.loss / 2:
                getattr(actor.engine, method)(*args)  # it was done, but the answer is lost
            raise self.exceptions.RayError("traceback\nthe actor died")
        return getattr(actor.engine, method)(*args)

    def kill(self, actor):
        actor.dead = True


class Actor:
    def __init__(self, ray, engine, node):
        self.ray, self.engine, self.node, self.dead = ray, engine, node, False

    def __getattr__(self, name):
        return types.SimpleNamespace(remote=lambda *args: Ref((self, name, args)))


class Ref:
    def __init__(self, call):
        self.call = call


@pytest.fixture
def fake(monkeypatch):
    def install(**options):
        ray = Fake(**options)
        strategies = types.ModuleType("ray.util.scheduling_strategies")
        strategies.NodeAffinitySchedulingStrategy = lambda name, soft: name
        for name, module in (("ray", ray), ("ray.util", types.ModuleType("ray.util")), ("ray.util.scheduling_strategies", strategies)):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(_ray.Engine, "hello", lambda self, folder, threads: (leat.__version__, ""))
        return ray
    return install


FILTERS = [dict(rules={"words.min": 10}), dict(rules={"words.min": 10}, compress="zstd", shard_bytes=20000),
           dict(profile="gopher@paper", columns="id,absent,+words", shard_bytes=70000), dict(score_only=True)]
DEDUPS = [dict(kind="fuzzy"), dict(kind="exact", compress="gzip", shard_bytes=30000),
          dict(kind="fuzzy", keep="longest", clusters="components", words=3, index=True)]


@pytest.mark.parametrize("options", FILTERS, ids=range(len(FILTERS)))
def test_filter_has_the_same_bytes(options, corpus, tmp_path, fake):
    ray = fake(loss=0.2, seed=len(str(options)))
    expected = leat.filter_text(corpus, tmp_path / "one", memory="256M", **options)
    told = []
    got = leat.filter_text(corpus, tmp_path / "many", memory="256M", on="ray", task_bytes=40000, progress=lambda *at: told.append(at[:2]), **options)
    assert content(tmp_path / "many") == content(tmp_path / "one")
    assert {k: v for k, v in got.items() if k not in NOISE} == {k: v for k, v in expected.items() if k not in NOISE}
    assert ray.calls > 8 and told[-1][0] == told[-1][1] > 0


@pytest.mark.parametrize("options", DEDUPS, ids=range(len(DEDUPS)))
def test_dedup_has_the_same_bytes(options, corpus, tmp_path, fake):
    fake(loss=0.2, seed=len(str(options)))
    leat.dedup_text(corpus, tmp_path / "one", memory="256M", **options)
    leat.dedup_text(corpus, tmp_path / "many", memory="256M", on="ray", task_bytes=40000, **options)
    assert content(tmp_path / "many") == content(tmp_path / "one")


def test_dedup_against_an_index(corpus, tmp_path, fake):
    fake(loss=0.1)
    leat.dedup_text(corpus / "a.jsonl", tmp_path / "old", memory="256M", index=True)
    for name, where in (("one", {}), ("many", dict(on="ray", task_bytes=50000))):
        leat.dedup_text([corpus / "b.jsonl.gz", corpus / "c.jsonl"], tmp_path / name, memory="256M", against=tmp_path / "old",
                        report=tmp_path / f"{name}.json", **where)
    assert content(tmp_path / "many") == content(tmp_path / "one")
    assert (tmp_path / "many.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    assert content(tmp_path / "many")[1]["removed_against"] > 100


def test_relative_paths_and_a_single_part(corpus, tmp_path, fake, monkeypatch):
    fake()
    monkeypatch.chdir(corpus)
    for name, where in (("one", {}), ("many", dict(on="ray"))):
        leat.filter_text("c.jsonl", os.path.relpath(tmp_path / name), rules={"words.min": 12}, memory="256M", **where)
    assert content(tmp_path / "many") == content(tmp_path / "one")


@pytest.mark.parametrize("at", [_ray.SKETCH, _ray.GATHER, _ray.GROUP, _ray.RESOLVE, _ray.WRITE, _ray.JOIN, _ray.END])
def test_an_interrupted_run_is_resumed(at, corpus, tmp_path, fake, monkeypatch):
    fake()
    options = dict(kind="fuzzy", memory="256M")
    leat.dedup_text(corpus, tmp_path / "one", **options)
    plain = _ray.Job.part
    calls = []

    def stop(self, step, *args, **kwargs):
        calls.append(step)
        if calls.count(at) == 2 or (at in (_ray.RESOLVE, _ray.END) and at in calls):
            raise KeyboardInterrupt
        return plain(self, step, *args, **kwargs)

    monkeypatch.setattr(_ray.Job, "part", stop)
    with pytest.raises(KeyboardInterrupt):
        leat.dedup_text(corpus, tmp_path / "many", on="ray", task_bytes=40000, **options)
    monkeypatch.setattr(_ray.Job, "part", plain)
    with pytest.raises(leat.ExistsError, match="use resume"):
        leat.dedup_text(corpus, tmp_path / "many", on="ray", **options)
    with pytest.raises(leat.StateError, match="other inputs or options"):
        leat.dedup_text(corpus, tmp_path / "many", on="ray", resume=True, kind="fuzzy", threshold=0.9, memory="256M")
    leat.dedup_text(corpus, tmp_path / "many", on="ray", resume=True, kind="fuzzy", memory="300M")
    assert content(tmp_path / "many") == content(tmp_path / "one")
    assert not (tmp_path / "many" / ".leat-work").exists()


@pytest.mark.parametrize("kind", ["filter", "fuzzy"])
def test_lines_are_counted_when_one_needs_its_number(kind, tmp_path, fake, monkeypatch):
    fake(loss=0.1)
    counts = []
    plain = _ray.Engine.lines
    monkeypatch.setattr(_ray.Engine, "lines", lambda self, *args: (counts.append(args), plain(self, *args))[1])
    rows = [json.dumps({"id": i, "text": f"one two three four five six {i:05}"}) for i in range(20000)]
    for n, change in enumerate((None, (15000, "broken"), (12000, '{"text":"seven eight nine ten"}'))):
        if change:
            rows[change[0]] = change[1]
        path = tmp_path / f"in{n}.jsonl"
        path.write_text("\n".join(rows))
        for name, where in ((f"one{n}", {}), (f"many{n}", dict(on="ray", task_bytes=100000))):
            if kind == "filter":
                leat.filter_text(path, tmp_path / name, columns="id,text", memory="256M", **where)
            else:
                leat.dedup_text(path, tmp_path / name, kind=kind, memory="256M", **where)
        assert content(tmp_path / f"many{n}") == content(tmp_path / f"one{n}")
        assert bool(counts) == bool(change)
    with pytest.raises(leat.DataError, match="in2.jsonl: line 15001, offset"):
        if kind == "filter":
            leat.filter_text(path, tmp_path / "bad", columns="id,text", memory="256M", on="ray", task_bytes=100000, on_error="fail")
        else:
            leat.dedup_text(path, tmp_path / "bad", kind=kind, memory="256M", on="ray", task_bytes=100000, on_error="fail")


def test_a_run_is_resumed_with_the_same_files(corpus, tmp_path, fake, monkeypatch):
    """Parts write to places in the output files: these do not change."""
    fake()
    plain = _ray.Job.join
    monkeypatch.setattr(_ray.Job, "join", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    options = dict(kind="fuzzy", memory="256M", on="ray", task_bytes=40000)
    with pytest.raises(KeyboardInterrupt):
        leat.dedup_text(corpus, tmp_path / "many", shard_bytes=70000, **options)
    monkeypatch.setattr(_ray.Job, "join", plain)
    for other in (dict(shard_bytes=80000), dict(shard_bytes=70000, compress="gzip")):
        with pytest.raises(leat.StateError, match="other inputs or options"):
            leat.dedup_text(corpus, tmp_path / "many", resume=True, **other, **options)
    work = tmp_path / "many" / ".leat-work"
    (work / "out.kept-00001.jsonl").rename(tmp_path / "many" / "kept-00001.jsonl")  # as when killed while files get their names
    leat.dedup_text(corpus, tmp_path / "many", resume=True, shard_bytes=70000, **options)
    leat.dedup_text(corpus, tmp_path / "one", kind="fuzzy", memory="256M", shard_bytes=70000)
    assert content(tmp_path / "many") == content(tmp_path / "one")


def test_a_damaged_marker_is_refused(corpus, tmp_path, fake, monkeypatch):
    """Changes a digit in each state and marker of an interrupted run: it is refused, or not read any more."""
    fake()
    plain = _ray.Job.join
    monkeypatch.setattr(_ray.Job, "join", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    options = dict(kind="fuzzy", memory="256M", on="ray", task_bytes=200000)
    with pytest.raises(KeyboardInterrupt):
        leat.dedup_text(corpus, tmp_path / "saved", **options)
    monkeypatch.setattr(_ray.Job, "join", plain)
    leat.dedup_text(corpus, tmp_path / "one", kind="fuzzy", memory="256M")
    refused = set()
    for name in sorted(os.listdir(tmp_path / "saved" / ".leat-work")):
        if not name.endswith(".json"):
            continue
        many = tmp_path / f"many-{name}"
        shutil.copytree(tmp_path / "saved", many)
        marker = many / ".leat-work" / name
        text = marker.read_text()
        at = [i for i, c in enumerate(text) if c.isdigit()][3]
        marker.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1:])
        try:
            leat.dedup_text(corpus, many, resume=True, **options)
        except leat.DataError as error:
            assert re.search(rf"{name}: is damaged \(use -*force to start over\)", str(error))
            refused.add(name.partition("-")[0])
        else:
            assert content(many) == content(tmp_path / "one")
    assert refused >= {"plan.json", "state.json", "places.json", "sketch", "part", "load"}


@pytest.mark.parametrize("kind", ["filter", "fuzzy", "exact"])
def test_an_input_that_changes_is_named(kind, corpus, tmp_path, fake, monkeypatch):
    """Between the loss of an actor and the next attempt of its task."""
    fake()
    path = tmp_path / "in.jsonl"
    rows = [json.dumps({"id": i, "text": f"one two three four five six {i:05}"}) + "\n" for i in range(20000)]
    changed = rows[::-1]
    if kind == "exact":  # pairs, of which the longer line is kept after the change: more bytes than the first pass counted
        def pair(i, *pads):
            return [json.dumps({"id": i, "text": f"one two {i:05}", "pad": "x" * pad}) + "\n" for pad in pads]

        rows, changed = ([line for i in range(10000) for line in pair(i, *pads)] for pads in ((0, 40), (40, 0)))
    path.write_text("".join(rows))
    plain, calls = Fake.get, []

    def get(self, ref):
        if ref.call[1] == "run" and ref.call[2][0] == "step" and ref.call[2][5][0] == _ray.WRITE:
            calls.append(ref)
            if len(calls) == 3:
                path.write_text("".join(changed))
                raise self.exceptions.RayError("the actor died")
        return plain(self, ref)

    monkeypatch.setattr(Fake, "get", get)
    run = leat.filter_text if kind == "filter" else leat.dedup_text
    options = dict(rules={"words.min": 3}) if kind == "filter" else dict(kind=kind)
    with pytest.raises(leat.DataError, match="in.jsonl: changed since the run began"):
        run(path, tmp_path / "many", memory="256M", on="ray", task_bytes=200000, **options)
    assert len(calls) > 3 and not list((tmp_path / "many").glob("kept-*"))


def test_an_input_that_changed_before_resuming_is_named(tmp_path, fake, monkeypatch):
    fake()
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", 900, 1)
    options = dict(kind="exact", memory="256M", on="ray", task_bytes=40000)
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    plain = _ray.Job.join
    monkeypatch.setattr(_ray.Job, "join", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        leat.dedup_text(inputs, tmp_path / "many", **options)
    monkeypatch.setattr(_ray.Job, "join", plain)
    with pytest.raises(leat.StateError, match="other inputs or options"):
        leat.dedup_text(inputs[::-1], tmp_path / "many", resume=True, **options)
    write(tmp_path / "b.jsonl", 901, 1)
    with pytest.raises(leat.DataError, match="b.jsonl: changed since the run began"):
        leat.dedup_text(inputs, tmp_path / "many", resume=True, **options)


def test_failures_are_named(corpus, tmp_path, fake):
    ray = fake()
    with pytest.raises(leat.DataError, match="line 8, offset"):
        leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on="ray", on_error="fail")
    ray.loss = 1.0
    with pytest.raises(leat.StorageError, match="the actor died"):
        leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on="ray")
    with pytest.raises(leat.NotFoundError):
        leat.filter_text(corpus / "absent", tmp_path / "y", rules={"words.min": 1}, on="ray")


@pytest.mark.parametrize("kind", ["filter", "fuzzy"])
def test_a_run_ends_when_no_node_is_left(kind, corpus, tmp_path, fake, monkeypatch):
    ray = fake()
    monkeypatch.setattr(_ray, "_ALONE", 0.5)
    plain = Fake.get

    def get(self, ref):
        if self.calls == 12:
            self.gone.update(self.names)
        return plain(self, ref)

    def run(**more):
        if kind == "filter":
            return leat.filter_text(corpus, tmp_path / "many", rules={"words.min": 10}, memory="256M", on="ray", task_bytes=40000, **more)
        return leat.dedup_text(corpus, tmp_path / "many", memory="256M", on="ray", task_bytes=40000, **more)

    monkeypatch.setattr(Fake, "get", get)
    with pytest.raises(leat.StorageError, match="^no node of the Ray cluster is left, and none came within"):
        run()
    with pytest.raises(leat.StorageError, match="^on: no node of the Ray cluster has a CPU"):
        run(force=True)
    ray.gone.clear()
    assert run(**({"force": True} if kind == "filter" else {"resume": True}))["kept"] > 1000


def test_a_run_ends_when_no_actor_starts(corpus, tmp_path, fake, monkeypatch):
    fake()
    monkeypatch.setattr(_ray, "_IDLE", 0.3)
    monkeypatch.setattr(Fake, "wait", lambda self, refs, num_returns, timeout: (time.sleep(0.1), ([], refs))[1])
    with pytest.raises(leat.StorageError, match="^no actor of leat started within .* 3 nodes may be in use"):
        leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on="ray")


def test_a_lost_connection_is_named(corpus, tmp_path, fake, monkeypatch):
    fake()

    def lost(*_):
        raise ConnectionError("the channel is closed")

    monkeypatch.setattr(Fake, "get", lost)
    monkeypatch.setattr(Fake, "kill", lost)
    for run in (leat.filter_text, leat.dedup_text):
        with pytest.raises(leat.StorageError, match="^on: the connection to Ray was lost: the channel is closed"):
            run(corpus, tmp_path / run.__name__, on="ray", **({"rules": {"words.min": 1}} if run is leat.filter_text else {}))


def test_versions_must_agree(corpus, tmp_path, fake, monkeypatch):
    fake()
    monkeypatch.setattr(_ray.Engine, "hello", lambda self, folder, threads: ("0.0", ""))
    with pytest.raises(leat.StateError, match="has leat 0.0"):
        leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on="ray")
    monkeypatch.setattr(_ray.Engine, "hello", lambda self, folder, threads: (leat.__version__, "/here: absent"))
    with pytest.raises(leat.StorageError, match="node node0+: /here: absent"):
        leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on="ray")


def test_wrong_arguments(corpus, tmp_path, monkeypatch):
    for on in ("slurm", "ray://", 7, b"ray"):
        with pytest.raises(leat.ArgumentError, match="^on: "):
            leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on=on)
    for options in (dict(look=3), dict(explain="7"), dict(report=tmp_path / "p.html"), dict(seed=3)):
        with pytest.raises(leat.ArgumentError, match=f"^{next(iter(options))}: does not work"):
            leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on="ray", **options)
    for options in (dict(plan=True), dict(checkpoint="1M"), dict(bands_per_iteration=2)):
        with pytest.raises(leat.ArgumentError, match=f"^{next(iter(options))}: does not work"):
            leat.dedup_text(corpus, tmp_path / "x", on="ray", **options)
    for options in (dict(kind="substring"), dict(kind="exact", level="line")):
        with pytest.raises(leat.ArgumentError, match="lines, paragraphs and substrings"):
            leat.dedup_text(corpus, tmp_path / "x", on="ray", **options)
    with pytest.raises(leat.ArgumentError, match="task_bytes: has no effect"):
        leat.dedup_text(corpus, tmp_path / "x", task_bytes="1M")
    with pytest.raises(leat.ArgumentError, match="output: is needed"):
        leat.filter_text(corpus, None, rules={"words.min": 1}, on="ray")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(leat.UnsupportedError, match=r"pip install 'leat\[ray\]'"):
        leat.filter_text(corpus, tmp_path / "x", rules={"words.min": 1}, on="ray")


@pytest.mark.parametrize("command, values, message", [
    ("dedup", dict(args=["fuzzy", "c.jsonl"], plan=True), "--plan: does not work with --on ray"),
    ("dedup", dict(args=["exact", "c.jsonl"], plan=True), "--plan: does not work with --on ray"),
    ("filter", dict(args=["c.jsonl"], explain="d17", set="words.min=1"), "--explain: does not work with --on ray"),
    ("filter", dict(args=["c.jsonl"], set="words.min=1"), "output: is needed with --on ray"),
    ("filter", dict(args=["c.jsonl"], set="words.min"), '"words.min" is not a change of a rule (words.min=20)'),
    ("filter", dict(args=["c.jsonl"], set="words.min=no"), '"words.min=no": the threshold is not a number or "off"'),
])
def test_the_command_without_an_output(command, values, message, capsys):
    assert _ray_main.main(command, json.dumps({**values, "on": "ray"})) == 2
    assert capsys.readouterr().err == f"leat {command}: {message}\n"


REFUSED = {"dedup": {"profile", "set", "plan", "checkpoint", "bands_per_iteration"}, "filter": {"report", "look", "explain", "seed", "list"}}
VALUES = {"set": "words.min=2", "keep_field": "n", "compatible": "datatrove", "clusters": "components", "keep": "longest", "compress": "gzip",
          "on_error": "fail", "report": "r.html", "lang": "de", "max_document": 4096}
OTHERS = {"csv", "orientations", "windows", "across", "list_probable", "keep_share", "centres", "field", "device", "level"}  # C or `kind` refuses them


@pytest.mark.parametrize("command", ["dedup", "filter"])
def test_the_command_passes_or_refuses_every_option(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    listed = json.loads(subprocess.run([sys.executable, "-m", "leat", "help", "--json"], capture_output=True, text=True, check=True).stdout)["commands"]
    [options] = [one["options"] for one in listed if one["name"] == command]
    refused = set()
    for option in options:
        name, kind = option["name"].replace("-", "_"), option["kind"]
        if name in OTHERS | {"help", "on", "output"}:
            continue
        value = VALUES.get(name, True if kind == "flag" else "x" if kind in ("string", "path", "choice") else 1)
        args = ["fuzzy", "c.jsonl"] if command == "dedup" else ["c.jsonl"]
        assert _ray_main.main(command, json.dumps({"args": args, "on": "ray", "output": "out", name: value})) == 2
        printed = capsys.readouterr().err
        if printed == f"leat {command}: --{option['name']}: does not work with --on ray\n":
            refused.add(name)
        else:
            assert "pip install 'leat[ray]'" in printed, name
    assert refused == REFUSED[command]


# ---- Ray ----


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    for name, value in (("agent_register_timeout_ms", 250000), ("raylet_start_wait_time_s", 250), ("worker_register_timeout_seconds", 200),
                        ("health_check_failure_threshold", 20)):
        os.environ.setdefault(f"RAY_{name}", str(value))
    import ray
    from ray.cluster_utils import Cluster
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(3):
        nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def actors(cluster):
    """Processes of engines, whose parents are the nodes of this cluster."""
    parents = {info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes.get("raylet", [])}
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as command, open(f"/proc/{pid}/stat") as stat:
                if command.read().startswith("ray::Engine") and int(stat.read().rsplit(")", 1)[1].split()[1]) in parents:
                    found.append(int(pid))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("kind", ["filter", "fuzzy", "exact"])
def test_actors_and_nodes_are_killed(kind, cluster, corpus, tmp_path):
    def run(name, **where):
        if kind == "filter":
            return leat.filter_text(corpus, tmp_path / name, rules={"words.min": 10}, memory="256M", **where)
        return leat.dedup_text(corpus, tmp_path / name, kind=kind, memory="256M", **where)

    run("one")
    stop = threading.Event()
    killed = []

    def kill():
        draw = random.Random(kind)
        while not stop.wait(draw.uniform(1, 6)):
            victims = actors(cluster)
            if victims and len(killed) < 6:
                killed.append(draw.choice(victims))
                os.kill(killed[-1], signal.SIGKILL)
            if len(killed) == 3 and kind == "fuzzy":
                killed.append(0)
                cluster.remove_node(sorted(cluster.worker_nodes, key=str)[0], allow_graceful=False)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        run("many", on="ray", task_bytes=15000)
    finally:
        stop.set()
        thread.join()
    assert content(tmp_path / "many") == content(tmp_path / "one")
    assert not (tmp_path / "many" / ".leat-work").exists()
