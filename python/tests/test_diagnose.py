# SPDX-License-Identifier: Apache-2.0
"""leat.diagnose and loader.doctor().

A verdict is a function of numbers. Most tests therefore run with a simulated clock: sleeping, computing and
waiting for a CPU move it, and the load of the machine cannot. The live runs at the end assert only lower bounds of
what was slept or computed, and that the verdict is the one for the facts that were measured.
"""
import math
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import leat
from leat import _diagnose, _workers

STEPS = 25
MACHINE = {"cpus": 4.0, "quota": 0.0, "cpus_host": 4.0, "memory_free": 16e9}


class Clock:
    """Time that passes only when a test says so; stands in for the module `time`."""

    def __init__(self):
        self.now = self.cpu = self.line = self.others = 0.0

    def monotonic(self):
        return self.now

    perf_counter = monotonic

    def sleep(self, seconds):
        self.now += seconds

    def burn(self, seconds, line=0.0):
        """Runs, after waiting for a CPU."""
        self.now += seconds + line
        self.cpu += seconds
        self.line += line

    def work(self):
        return self.cpu + self.line

    def look(self):
        return _diagnose._Look(self.now, self.cpu, self.cpu + self.others * self.now, self.line, 0, 0.0, None)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for name, value in (("time", clock), ("_work_s", clock.work), ("_look", clock.look), ("_machine", lambda: MACHINE)):
        monkeypatch.setattr(_diagnose, name, value)
    monkeypatch.setattr(_workers, "time", clock)
    monkeypatch.setattr(_workers, "_Stacks", Looks)
    monkeypatch.setattr(_workers, "compare_workers", lambda *args: None)
    return clock


class Looks:
    """Stack samples: as many of each kind as the test wants."""

    counts = {"decode": 0, "augment": 0, "python": 0}
    on = False

    def start(self):
        pass

    stop = start


def batches(spend, count=200):
    for _ in range(count):
        spend()
        yield np.zeros((8, 3)), np.zeros(8)


def said(d):
    return d.limit, d.cause, d.grade


# ---- loops without worker processes -------------------------------------------------------------


def test_judge_names_the_limit_and_takes_over_the_keys():
    d = leat.judge({"steps": 200, "batch": 256, "data_ms": 50, "batch_ms": 50, "samples_per_s": 2560,
                    "io_cold": 20000, "io_warm": 80000, "cached": 0, "cpu_all": 2600, "cpu_one": 165,
                    "delivery": 90000, "decode_ready": 0.95, "blocked": 0, "decode_share": 0.93,
                    "threads": 16, "cpus": 16, "cpu_used": 15.7})
    assert d.limit == "cpu" and d.grade == "critical" and d["lost"] == 0.5
    assert d.remedies[0]["gain"] > 1
    assert str(d).startswith(d.verdict)
    with pytest.raises(AttributeError):
        d.nothing
    with pytest.raises(leat.Error):
        leat.judge({"throttled": 7})


def test_an_hour_per_sample_is_a_rate():
    d = leat.judge({"steps": 30, "batch": 1, "data_ms": 1, "batch_ms": 3600000})
    assert "it takes 0.00028 samples/s" in d.verdict


def test_a_loop_that_reads_from_a_disk(clock, monkeypatch):
    monkeypatch.setattr(_diagnose, "_look", lambda: _diagnose._Look(
        clock.now, clock.cpu, clock.cpu, clock.line, 0, 50e6 * clock.now, None))
    d = leat.diagnose(batches(lambda: clock.sleep(0.02)), lambda batch: clock.burn(0.002), steps=STEPS)
    assert said(d) == ("io", "bandwidth", "critical") and d.confidence > 0.85
    assert d.verdict.startswith("I/O-bound: storage gives ") and "400 samples/s" in d.verdict


def test_a_loop_that_waits(clock):
    d = leat.diagnose(batches(lambda: clock.sleep(0.02)), lambda batch: clock.burn(0.002), steps=STEPS)
    assert said(d) == ("io", "waits", "critical") and 0.5 < d.confidence <= 0.75
    assert d.verdict == "I/O-bound: the dataset waits and reads nothing from a disk, which gives 400 samples/s; the trainer waits 91 % of each step"
    assert any("cannot be seen from outside" in line for line in d.findings) and "storage" not in str(d)
    best = d.remedies[0]  # four wait at the same time
    assert best["action"].startswith("make batches in 4 worker processes") and best["gain"] == pytest.approx(4.4, rel=0.02)
    assert d.facts["steps"] == STEPS and d.facts["batch"] == 8 and d.lost == pytest.approx(10 / 11)
    assert d.facts["data_ms"] == pytest.approx(20) and d.facts["batch_ms"] == pytest.approx(2)
    assert d.replay == {"step_ms": pytest.approx(2), "gain": pytest.approx(11)}


def test_a_loop_that_prepares_too_long(clock):
    d = leat.diagnose(batches(lambda: clock.burn(0.02)), lambda batch: clock.sleep(0.002), steps=STEPS)
    assert said(d) == ("cpu", "few_threads", "critical") and d.confidence > 0.85
    assert d.verdict == "CPU-bound: 1 thread works for 4 usable CPUs; the trainer waits 91 % of each step"
    assert d.replay["gain"] == pytest.approx(11)
    assert d.remedies[0]["action"].startswith("make batches in 4 worker processes (a DataLoader with num_workers=4)")
    assert "threads=" not in str(d) and d.apply["set"] == ""  # a generator has no such option


def test_standing_in_line_is_not_storage(clock):
    clock.others = 3.5
    d = leat.diagnose(batches(lambda: clock.burn(0.02, line=0.02)), lambda batch: clock.sleep(0.002), steps=STEPS)
    assert said(d) == ("cpu", "other_processes", "critical") and d.confidence > 0.85
    assert "other processes use 3.5 of the 4.0 usable CPUs" in d.verdict
    assert d.facts["read_share"] == pytest.approx(0, abs=1e-9) and d.facts["run_delay"] == pytest.approx(0.5)


def test_a_loop_that_trains(clock):
    d = leat.diagnose(batches(lambda: clock.burn(0.0001)), lambda batch: clock.sleep(0.01), steps=STEPS)
    assert said(d) == ("trainer", "trainer", "fine") and d.confidence > 0.9
    assert d.lost == pytest.approx(0.01, abs=0.001) and d.replay["gain"] == pytest.approx(1.01)


def stalling(clock, at, seconds=3.0):
    """Fast batches; those with these numbers come late."""
    steps = iter(range(1000))
    return batches(lambda: clock.sleep(seconds if next(steps) in at else 0.0001), 400)


def test_one_stall_does_not_decide(clock):
    d = leat.diagnose(stalling(clock, {40}), lambda batch: clock.sleep(0.1), steps=100, seconds=60)
    assert said(d) == ("trainer", "trainer", "fine") and d.confidence > 0.9 and d.lost < 0.01
    assert d.facts["stalls"] == 1 and d.facts["stall_s"] == pytest.approx(3) and d.facts["stall_at_s"] == pytest.approx(4, abs=0.1)
    assert any("one step waited 3.0 s, 4.0 s after the first: a single stall, 23 % of the time" in line for line in d.findings)
    assert d.replay["gain"] == pytest.approx(1, abs=0.01)


def test_a_stall_that_is_most_of_the_time_leaves_doubt(clock):
    d = leat.diagnose(stalling(clock, {40}), lambda batch: clock.sleep(0.001), steps=100, seconds=60)
    assert d.confidence < 0.5 and "(not sure)" in d.verdict and d.facts["stall_share"] > 0.9
    assert d.facts["data_ms"] == pytest.approx(0.1) and d.replay["gain"] < 1.2
    assert all(r["gain"] < 1.2 for r in d.remedies)


@pytest.mark.parametrize("collate", [lambda b: b, lambda b: {"name": "x", "b": b}, lambda b: object(), None])
def test_the_samples_of_a_dataloader_are_counted(clock, collate):
    torch = pytest.importorskip("torch")
    samples = [{"a": [1.0] * 30} for _ in range(80)] if collate else [torch.zeros(3, 4) for _ in range(80)]
    loader = torch.utils.data.DataLoader(samples, batch_size=8, collate_fn=collate)
    d = leat.diagnose(loader, lambda batch: clock.sleep(0.01), steps=9, replay=0)
    assert d.facts["batch"] == 8


def test_one_thread_loads_and_trains_in_turn(clock):
    """Storage that is four times as fast saves 15 of the 30 ms of a step."""
    d = leat.diagnose(batches(lambda: clock.sleep(0.02)), lambda batch: clock.sleep(0.01), steps=STEPS, replay=0)
    gains = {r["action"]: r["gain"] for r in d.remedies}
    assert next(gain for action, gain in gains.items() if "four times" in action) == pytest.approx(2, rel=0.02), gains


def test_the_gain_is_of_waiting_alone(clock):
    """The step is faster in the replay: another process has ended."""
    calls = iter(range(1000))
    d = leat.diagnose(batches(lambda: clock.sleep(0.01)), lambda batch: clock.sleep(0.01 if next(calls) <= STEPS else 0.005), steps=STEPS)
    assert d.replay == {"step_ms": pytest.approx(5), "gain": pytest.approx(2, rel=0.05)}
    assert "Alone, the step took 5.0 ms, in the loop 10.0" in str(d)


def test_workers_that_have_ended_used_cpus():
    before = _diagnose._look().cpu_s
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], check=True)
    assert _diagnose._look().cpu_s - before > 0.4


def test_waits_that_come_again_are_no_stalls(clock):
    d = leat.diagnose(stalling(clock, {20, 50, 80}), lambda batch: clock.sleep(0.1), steps=100, seconds=60)
    assert d.facts["stalls"] is None and d.lost == pytest.approx(9 / 19, abs=0.01)
    loader = [np.zeros((8, 3))] * 50

    class Epochs:
        def __iter__(self):
            clock.sleep(0.0)
            for i, batch in enumerate(loader):
                clock.sleep(0.0001 if i else 3.0)
                yield batch

    d = leat.diagnose(Epochs(), lambda batch: clock.sleep(0.1), steps=60, seconds=60)  # the first step of an epoch
    assert d.facts["stalls"] is None and d.lost > 0.3


def test_half_waiting_half_preparing_is_not_sure(clock):
    def both():
        clock.sleep(0.01)
        clock.burn(0.01)

    d = leat.diagnose(batches(both), lambda batch: clock.sleep(0.002), steps=STEPS)
    assert d.limit in ("io", "cpu") and d.confidence < 0.6
    assert d.facts["io_cold"] == pytest.approx(800) and d.facts["cpu_all"] == pytest.approx(800)


def test_no_step_is_incomplete_and_few_steps_are_a_warning(clock):
    d = leat.diagnose(batches(lambda: clock.sleep(0.005)), steps=STEPS)
    assert not d.complete and "step time" in d.missing[0] and d.replay is None
    assert d.verdict.startswith("INCOMPLETE: I/O-bound") and d.confidence < 0.7
    d = leat.diagnose(batches(lambda: clock.sleep(0.02)), lambda batch: clock.sleep(0.002), steps=5)
    assert said(d) == ("io", "waits", "warning") and d.confidence <= 0.5
    assert "few steps, a first impression" in d.verdict


def test_an_iterable_that_ends_early(clock):
    d = leat.diagnose(iter([np.zeros((4, 2))] * 3), lambda batch: None, steps=STEPS)
    assert d.facts["steps"] == 2
    with pytest.raises(leat.ArgumentError, match="^iterable: gave no batches$"):
        leat.diagnose([], lambda batch: None, steps=STEPS)
    with pytest.raises(leat.ArgumentError, match="^iterable: gave one batch"):
        leat.diagnose(iter([np.zeros((4, 2))]), lambda batch: None, steps=STEPS)


def test_time_is_a_limit_too(clock):
    d = leat.diagnose(batches(lambda: clock.sleep(1.0)), lambda batch: None, steps=STEPS, seconds=10)
    assert d.facts["steps"] == 9  # and the first, which is left out


@pytest.mark.parametrize(("each", "taken"), [(20.0, 1), (2.0, 2)])
def test_slow_batches_end_it_in_time(clock, each, taken):
    made = []

    def slow():
        made.append(clock.sleep(each))
    d = leat.diagnose(batches(slow), lambda batch: None, steps=STEPS, seconds=3)
    assert len(made) == taken and d.facts["steps"] == 1 and d.facts["data_ms"] == pytest.approx(1e3 * each)
    assert d.limit == "io" and d.confidence <= 0.5 and "few steps" in d.verdict


# ---- loaders with worker processes: what was seen of them, as numbers ----------------------------

WAITING = {True: [10, 0, 990], False: [1, 0, 99]}  # looks at workers: running, on a disk, asleep
RUNNING = {True: [980, 0, 20], False: [98, 0, 2]}


def recorded(data_ms, step_ms, looks, *, workers, cpus_used, others=0.0, line=0.0, steps=200):
    wall = steps * (data_ms + step_ms) / 1e3
    return _diagnose._Recording(
        data_s=[data_ms / 1e3] * steps, batch_s=[step_ms / 1e3] * steps, samples=8 * steps, looks=looks,
        processes=workers, num_workers=workers, machine=dict(MACHINE), begin=_diagnose._Look(0, 0, 0, 0, 0, 0, None),
        end=_diagnose._Look(wall, cpus_used * wall, (cpus_used + others) * wall, line * wall, 0, 0, None))


def closer(*, fetch=0.0, decode=0.0, augment=0.0, python=0.0, collate=0.0, transfer=0.0, idle=0.0):
    """Facts about the time, in seconds, in which a worker makes a batch of 8."""
    cpu = decode + augment + python
    counts = {"decode": int(1e5 * decode), "augment": int(1e5 * augment), "python": int(1e5 * python)}
    return _workers._shares(fetch + cpu, cpu, collate, transfer, counts, 8, idle)


def verdict(seen, more):
    facts = _diagnose._facts(seen) | more
    return _diagnose._verdict(seen, facts, None)


@pytest.mark.parametrize("what, cause, words", [
    ("decode", "decode", "decode takes 95 % of worker time"),
    ("augment", "augment", "augmentation takes 95 % of the time per sample"),
    ("python", "python_code", "Python code of the dataset takes 95 % of worker time"),
    ("collate", "collate", "collate_fn takes 95 % of worker time"),
    ("transfer", "transfer", "sending batches from workers to the trainer takes 95 % of worker time"),
])
def test_what_workers_do_is_named(what, cause, words):
    seconds = {"fetch": 0.001, "python": 0.001} | {what: 0.038}
    more = closer(**seconds)
    assert more[f"worker_{what}"] == pytest.approx(0.038 / sum(seconds.values()))
    d = verdict(recorded(16, 2, RUNNING, workers=4, cpus_used=3.9), more)
    assert said(d) == ("cpu", cause, "critical") and d.confidence > 0.9
    assert words in d.verdict or words.replace("95", "97") in d.verdict, d.verdict
    assert ("decode" in d.verdict) == (what == "decode")
    own = {"collate": ["collate_fn in half the time"], "python": ["the Python code of the dataset in half the time"]}
    assert {r["action"] for r in d.remedies} == {"a machine with 8 CPUs instead of 4", *own.get(what, [])}


def test_workers_that_wait_in_collate_do_not_wait_for_storage():
    seen = recorded(25, 5, WAITING, workers=2, cpus_used=0.05)
    d = _diagnose._verdict(seen, _diagnose._facts(seen, 0.99) | closer(fetch=0.0005, collate=0.05, idle=0.049), None)
    assert said(d) == ("cpu", "collate", "critical") and d.confidence > 0.75
    assert "collate_fn takes 99 % of worker time, most of it waiting" in d.verdict
    assert not any("storage" in r["action"] or "machine with" in r["action"] for r in d.remedies)
    more = closer(fetch=0.0005, collate=0.05, idle=0.049) | tried(4, 600, 1.9, 1.8)
    best = _diagnose._verdict(seen, _diagnose._facts(seen, 0.99) | more, None).remedies[0]
    assert "num_workers=4 instead of 2" in best["action"] and best["next"] == "cpu"  # it still waits in collate_fn
    seen = recorded(25, 5, WAITING, workers=2, cpus_used=0.05, others=3.1, line=0.2)
    d = _diagnose._verdict(seen, _diagnose._facts(seen, 0.99) | closer(collate=0.05, idle=0.049), None)
    assert said(d) == ("cpu", "collate", "critical")  # others do not make it wait
    half = _diagnose._facts(seen, 0.5)
    assert half["decode_share"] + half["read_share"] == pytest.approx(_diagnose._facts(seen)["read_share"], abs=0.02)


def test_too_few_workers_are_named_with_a_price():
    d = verdict(recorded(16, 2, RUNNING, workers=2, cpus_used=1.9), closer(python=0.03))
    assert said(d) == ("cpu", "few_threads", "critical")
    assert d.verdict.startswith("CPU-bound: num_workers=2 for 4 usable CPUs")
    first = d.remedies[0]
    assert (first["action"], first["basis"]) == ("num_workers=4: as many as there are usable CPUs", "model")
    assert first["gain"] == pytest.approx(2, abs=0.01)


def test_other_processes_are_named_before_collate():
    d = verdict(recorded(50, 2, RUNNING, workers=2, cpus_used=0.9, others=3.1, line=0.9), closer(collate=0.05))
    assert said(d) == ("cpu", "other_processes", "critical")
    assert d.remedies[0]["action"] == "free CPUs for this process: others use 3.1 of 4.0"
    assert "collate_fn takes 100 % of worker time" in d.findings


@pytest.mark.parametrize(("what", "cause", "words"), [("collate", "collate", "collate_fn takes 100 %"),
                                                      ("python", "python_code", "Python code of the dataset takes 100 %"),
                                                      ("decode", "decode", "decode takes 100 %"),
                                                      ("augment", "augment", "augmentation takes 100 %")])
def test_own_code_is_named_before_other_processes_that_cost_less(what, cause, words):
    """Others have CPUs, and threads wait 30 % of the time they could run: the code is most of it."""
    seen = recorded(50, 2, RUNNING, workers=4, cpus_used=2.0, others=1.9, line=0.86)
    d = verdict(seen, closer(**{what: 0.05}))
    assert d.facts["run_delay"] == pytest.approx(0.3, abs=0.01)
    assert said(d) == ("cpu", cause, "critical") and words in d.verdict
    d = verdict(recorded(50, 2, RUNNING, workers=4, cpus_used=1.0, others=2.9, line=2.0), closer(**{what: 0.05}))
    assert said(d) == ("cpu", "other_processes", "critical") and any(words in line for line in d.findings)


def busy_trainer(others, line, waiting=RUNNING[True]):
    """A trainer that computes for 100 of 114 ms, and a worker that has little to do."""
    seen = recorded(14, 100, {True: waiting, False: [100, 0, 6900]}, workers=1, cpus_used=0.5, others=others, line=line)
    seen.machine["cpus"] = seen.machine["cpus_host"] = 2.0
    return verdict(seen, closer(python=0.0004, collate=0.0002, transfer=0.0004))


@pytest.mark.parametrize(("others", "line"), [(1.68, 1.42), (1.2, 0.6), (0.6, 0.3), (0.2, 0.05), (0.0, 0.0)])
@pytest.mark.parametrize("waiting", [RUNNING[True], WAITING[True], [500, 0, 500]])
def test_delivery_that_was_not_measured_does_not_limit(others, line, waiting):
    """It was "Delivery-bound", with a confidence of 0.95, at a rate that was the loop's own."""
    d = busy_trainer(others, line, waiting)
    assert d.rates["delivery"] is not None or "delivery reach" not in str(d)
    assert d.limit == "trainer" or d.cause == "other_processes" or d.confidence < 0.5, (said(d), d.confidence)


def test_a_quota_is_named():
    seen = recorded(30, 2, RUNNING, workers=2, cpus_used=1.0)
    seen.machine |= {"cpus": 1.0, "quota": 1.0}
    seen.begin.periods, seen.end.periods = (100, 0), (200, 60)
    d = verdict(seen, closer(python=0.03))
    assert said(d) == ("cpu", "quota", "critical") and d.facts["throttled"] == pytest.approx(0.6)
    assert "raise the CPU quota from 1.00 to 2.00 CPUs" in d.remedies[0]["action"]


def tried(workers, rate, gain, least):
    return {"more_workers": float(workers), "more_workers_rate": float(rate), "more_workers_gain": gain,
            "more_workers_least": least}


@pytest.mark.parametrize("data_ms, step_ms", [(0.3, 2), (1, 5), (2, 10), (5, 5), (20, 2)])
@pytest.mark.parametrize("gain, least", [(0.98, 0.9), (1.0, 0.97), (1.09, 1.05), (1.25, 0.95), (1.6, 1.0)])
def test_workers_that_gained_nothing_sure_are_not_advised(data_ms, step_ms, gain, least):
    """Ready tensors beside a step that spins: 1.1 to 1.25 was "measured" without the step, and 0.96 to 1.01 was real."""
    facts = {"steps": 100, "batch": 64, "data_ms": data_ms, "batch_ms": step_ms, "workers": 0, "threads": 1, "cpus": 2,
             "samples_per_s": 64e3 / (data_ms + step_ms), "decode_ready": 1.0, "decode_share": data_ms / (data_ms + step_ms),
             "read_share": 0.0, "cpu_all": 64e3 / data_ms, "cpu_one": 64e3 / data_ms, "cpu_used": 1.0, "blocked": 0.0,
             "worker_python": 0.3, "worker_collate": 0.7}
    d = leat.judge(facts | tried(2, 1e6, gain, least))
    assert not any("num_workers" in r["action"] for r in d.remedies), d.remedies
    assert any(f"num_workers=2 instead of 0 was tried in turn: {gain:.2f} times the rate" in f for f in d.findings)
    most = 1 + data_ms / step_ms
    d = leat.judge(facts | tried(2, 1e6, 1.15, 1.05))
    best = [r for r in d.remedies if "num_workers" in r["action"]]
    assert len(best) == 1 and best[0]["basis"] == "measured" and best[0]["gain"] == pytest.approx(min(1.15, most))


def test_workers_are_compared_in_turn_and_with_the_step(monkeypatch):
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(list(range(64)), batch_size=2)
    rates, order = {0: [100.0, 110.0, 90.0], 2: [150.0, 99.0, 120.0]}, []

    def trial(loader, workers, seconds, train):
        order.append(workers)
        return rates[workers][order.count(workers) - 1]

    monkeypatch.setattr(_workers, "_trial", trial)
    found = _workers.compare_workers(loader, 2, 0.3, print, _diagnose._Limit(60), 0.5)
    assert order == [0, 2, 2, 0, 0, 2]
    assert found == tried(2, 120, pytest.approx(4 / 3), pytest.approx(0.9))
    order.clear()
    limit, left = _diagnose._Limit(60), iter([9.0] * 3 + [0.1] * 3)
    monkeypatch.setattr(limit, "left", lambda: next(left))
    assert _workers.compare_workers(loader, 2, 0.3, print, limit, 0.5) is None  # one pair shows no noise
    assert limit.skipped == 1
    monkeypatch.undo()
    for workers in (0, 1):  # an epoch of 32 batches is repeated until the time is over
        steps = []
        assert _workers._trial(loader, workers, 0.3, lambda batch: steps.append(len(batch)) or time.sleep(0.002)) > 0
        assert len(steps) >= 5 and set(steps) == {2}


def test_samples_that_are_not_batched_are_tried_with_more_workers():
    """Neither a trial nor a finding came of batch_size=None."""
    torch = pytest.importorskip("torch")

    class Waiting(torch.utils.data.Dataset):
        def __len__(self):
            return 400

        def __getitem__(self, i):
            time.sleep(0.002)
            return torch.tensor(i)

    loader = torch.utils.data.DataLoader(Waiting(), batch_size=None, num_workers=1)
    found = _workers.compare_workers(loader, 4, 0.3, lambda sample: None, _diagnose._Limit(60), 0.5)
    assert found is not None and 0 < found["more_workers_rate"] < 2500, found
    facts = _workers.split(loader, 0.2, 0.002, _diagnose._Limit(60))
    assert facts["fetch_ms"] > 1.5 and facts["make_ms"] < 100, facts


def test_items_of_several_rows_are_counted_as_in_the_loop():
    """Storage was counted in items and the loop in rows, so that storage seemed to be the limit."""
    torch = pytest.importorskip("torch")

    class Waiting(torch.utils.data.Dataset):
        def __len__(self):
            return 400

        def __getitem__(self, i):
            time.sleep(0.008)
            return torch.zeros(32, 2)

    loader = torch.utils.data.DataLoader(Waiting(), batch_size=None, num_workers=1)
    facts = _workers.split(loader, 0.2, 0.01, _diagnose._Limit(60))
    assert 0.25 <= facts["fetch_ms"] < 2 and facts["make_ms"] > 7.5, facts  # of a row; of an item
    rate = _workers._trial(loader, 1, 0.3, lambda rows: None)
    assert rate is not None and 400 < rate <= 4400, rate  # rows per second; items: at most 125


def test_more_workers_are_the_remedy_for_latency():
    seen, fetch = recorded(78, 2, WAITING, workers=2, cpus_used=0.05), closer(fetch=0.16, python=0.001)
    assert fetch["fetch_ms"] == pytest.approx(20) and _diagnose._workers_to_try(_diagnose._facts(seen) | fetch) == 8
    d = verdict(seen, fetch | tried(8, 390, 3.9, 3.6))
    assert said(d) == ("io", "latency", "critical") and d.confidence > 0.8
    assert "a sample waits 20.0 ms for its data" in d.verdict
    best = d.remedies[0]
    assert best["action"] == "num_workers=8 instead of 2: tried in turn, with the step"
    assert best["basis"] == "measured" and best["gain"] == pytest.approx(3.9)
    assert not any("0 MB/s" in r["action"] or "? MB/s" in r["action"] for r in d.remedies)
    d = verdict(seen, fetch | tried(8, 101, 1.01, 0.97))  # tried: it is not latency
    assert said(d) == ("io", "waits", "critical") and not any("num_workers" in r["action"] for r in d.remedies)


def test_batches_taken_apart_by_the_trainer_are_not_storage():
    """Workers sleep while the trainer unpickles what they sent: they do not wait for data."""
    asleep = {True: [120, 0, 880], False: [10, 0, 90]}
    seen = recorded(15, 1, asleep, workers=2, cpus_used=1.3)
    more = closer(fetch=0.001, transfer=0.008, collate=0.001) | tried(4, 505, 1.01, 0.97)
    assert said(verdict(seen, more))[0] != "cpu"
    seen.next_work_s = 0.8 * sum(seen.data_s)
    d = verdict(seen, more)
    assert said(d) == ("cpu", "transfer", "critical")
    assert d.facts["cpu_all"] == pytest.approx(seen.samples / seen.next_work_s)


def test_how_many_workers_are_tried():
    for now, cpus, fetch, more in ((0, 4, 0.0, 4), (2, 4, 0.0, 4), (4, 4, 0.0, 0), (4, 4, 0.9, 16), (40, 4, 0.9, 64),
                                   (0, 1, 0.9, 4), (64, 4, 0.9, 0)):
        facts = {"workers": float(now), "cpus": float(cpus), "worker_fetch": fetch}
        assert _diagnose._workers_to_try(facts) == more, facts


# ---- samples made again in this process, and stacks ------------------------------------------------


def dataloader(clock, item, collate=list, size=64, **more):
    class Data:
        def __len__(self):
            return size

        def __getitem__(self, i):
            item()
            return i

    return SimpleNamespace(dataset=Data(), collate_fn=collate, batch_size=8, **({"num_workers": 2} | more))


def test_samples_are_split_into_waiting_and_work(clock):
    def item():
        clock.sleep(0.003)
        clock.burn(0.001)

    def collate(rows):
        clock.burn(0.008)
        return rows

    got = _workers.split(dataloader(clock, item, collate), 1.0, 0.04, _diagnose._Limit(30))
    assert got["worker_fetch"] == pytest.approx(24 / 40) and got["worker_collate"] == pytest.approx(8 / 40)
    assert got["fetch_ms"] == pytest.approx(3) and got["worker_transfer"] == 0
    assert got["collate_wait"] == pytest.approx(0, abs=1e-9)
    assert "worker_python" not in got  # too few stack samples to say


def test_stack_samples_split_the_work(clock, monkeypatch):
    monkeypatch.setattr(Looks, "counts", {"decode": 60, "augment": 30, "python": 10})
    got = _workers.split(dataloader(clock, lambda: clock.burn(0.004)), 1.0, 0.04, _diagnose._Limit(30))
    assert got["worker_fetch"] == pytest.approx(0, abs=1e-9)
    assert [got[f"worker_{kind}"] for kind in ("decode", "augment", "python")] == pytest.approx([0.6, 0.3, 0.1])


def test_samples_that_cannot_be_made_here_say_nothing(clock):
    def broken():
        raise RuntimeError("only in a worker")

    limit = _diagnose._Limit(30)
    assert _workers.split(dataloader(clock, broken), 1.0, 0.04, limit) is None
    assert _workers.split(SimpleNamespace(dataset=iter(()), collate_fn=list), 1.0, 0.04, limit) is None


@pytest.mark.parametrize("file, line, kind", [
    ("/site/PIL/JpegImagePlugin.py", "x = f()", "decode"), ("/site/torchvision/io/image.py", "x = f()", "decode"),
    ("/site/torchvision/transforms/functional.py", "x = f()", "augment"), ("/site/PIL/Image.py", "x = f()", "augment"),
    ("/home/me/data.py", "x = f()", "python"), ("/home/me/decode.py", "x = f()", "python"),
])
def test_a_stack_says_what_runs(file, line, kind):
    seen = []
    code = compile(line, file, "exec")
    exec(code, {"f": lambda: seen.append(_workers._kind(sys._getframe(1)))})
    assert seen == [kind]


def test_a_loader_without_workers_is_told_in_its_own_words(clock):
    item = lambda: clock.burn(0.003)  # noqa: E731
    loader = dataloader(clock, item, num_workers=0)

    class Iterating(SimpleNamespace):
        def __iter__(self):
            return batches(lambda: [item() for _ in range(8)])

    d = leat.diagnose(Iterating(**vars(loader)), lambda batch: clock.sleep(0.002), steps=STEPS)
    assert said(d) == ("cpu", "few_threads", "critical") and d.facts["workers"] == 0
    assert "num_workers=0: the trainer's own process makes the batches" in d.verdict
    assert not any("threads" in r["action"] for r in d.remedies)


def test_a_collate_that_waits_is_collate_without_workers(clock):
    def collate(rows):
        clock.sleep(0.05)
        return rows
    loader = dataloader(clock, lambda: clock.burn(0.0001), collate, num_workers=0)

    class Iterating(SimpleNamespace):
        def __iter__(self):
            while True:
                yield np.array(self.collate_fn([self.dataset[i] for i in range(8)]))

    d = leat.diagnose(Iterating(**vars(loader)), lambda batch: clock.sleep(0.005), steps=STEPS)
    assert said(d) == ("cpu", "collate", "critical") and d.confidence > 0.75
    assert d.facts["read_share"] == pytest.approx(0, abs=1e-6) and d.facts["worker_collate"] > 0.95


class Slow(SimpleNamespace):
    """A DataLoader without workers whose start, len(), samples and collate_fn take these seconds."""

    num_workers, persistent_workers = 0, False

    def __init__(self, clock, batch_size, start=0.0, length=0.0, item=0.0, collate=0.0):
        class Data:
            def __len__(self):
                clock.sleep(length)
                return 1000

            def __getitem__(self, i):
                clock.sleep(item)
                return i

        super().__init__(dataset=Data(), batch_size=batch_size, collate_fn=lambda rows: clock.sleep(collate) or np.array(rows),
                         clock=clock, start=start)

    def __iter__(self):
        self.clock.sleep(self.start)
        for first in range(0, len(self.dataset), self.batch_size):
            yield self.collate_fn([self.dataset[first + i] for i in range(self.batch_size)])


@pytest.mark.parametrize("slow, batch_s", [
    ({"item": 1.0}, 1), ({"item": 1.0, "batch_size": 4}, 4), ({"item": 3.0}, 3), ({"item": 8.0}, 8),
    ({"item": 1.0, "batch_size": 16}, 16), ({"collate": 4.0, "batch_size": 8}, 4), ({"collate": 9.0}, 9),
    ({"length": 4.0, "item": 0.1}, 4), ({"start": 5.0, "item": 0.5}, 5), ({"start": 9.0}, 9), ({"item": 0.01}, 0)])
@pytest.mark.parametrize("step_s", [0.0, 0.5, 4.0])
def test_slow_parts_do_not_exceed_the_time(clock, slow, batch_s, step_s):
    """With seconds=3 and samples of 1 to 8 s it took 12 to 62 s."""
    d = leat.diagnose(Slow(clock, **({"batch_size": 1} | slow)), lambda batch: clock.sleep(step_s), seconds=3)
    assert clock.now <= max(2 * 3 + 5, batch_s + step_s) + 0.2, d
    assert d.facts["steps"] >= 1
    if batch_s >= 8 and step_s == 0:
        assert d.facts["skipped"] >= 1 and any("the time ran out before" in f for f in d.findings)


def test_reads_are_no_faster_than_the_workers():
    """A sentence named 1.3k samples/s where two workers that wait 4.1 ms per sample can give 488."""
    facts = {"io_cold": 1300.0, "fetch_ms": 4.1, "workers": 2.0, "samples_per_s": 300.0}
    _diagnose._bound_reads(facts)
    assert facts["io_cold"] == pytest.approx(2e3 / 4.1)
    facts |= {"samples_per_s": 600.0}  # more than that was delivered
    _diagnose._bound_reads(facts)
    assert facts["io_cold"] <= 600
    for facts in ({"io_cold": 1300.0}, {"io_cold": None, "fetch_ms": 4.1}, {"io_cold": 1300.0, "fetch_ms": 0.0}):
        before = dict(facts)
        _diagnose._bound_reads(facts)
        assert facts == before


class Epochs(SimpleNamespace):
    """A DataLoader whose workers take `start` seconds to start in each epoch of `count` batches."""

    def __iter__(self):
        self.clock.sleep(self.start)
        for _ in range(self.count):
            yield np.zeros((8, 3))


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("more", "words"), [
    ({}, "persistent_workers=True: workers do not start again in each epoch; up to this gain, a guess"), ({"persistent_workers": True}, "num_workers=0, or longer epochs")])
def test_workers_that_start_in_each_epoch_are_not_storage(clock, count, more, words):
    """It was "I/O-bound", with a confidence of 1, although nothing was read."""
    loader = Epochs(clock=clock, start=0.08, count=count, **vars(dataloader(clock, lambda: None, **more)))
    d = leat.diagnose(loader, lambda batch: clock.sleep(0.005), steps=STEPS)
    assert said(d) == ("delivery", "short_epochs", "critical"), d
    assert d.facts["epoch_steps"] == count and d.facts["start_ms"] == pytest.approx(80)
    assert d.facts["workers"] == d.facts["threads"] == 2
    assert len(d.remedies) == 1 and d.remedies[0]["action"].startswith(words) and d.remedies[0]["gain"] > 2


def test_first_batches_that_take_long_to_make_are_no_starts(clock):
    loader = dataloader(clock, lambda: clock.sleep(0.01))  # 80 ms per batch
    d = leat.diagnose(Epochs(clock=clock, start=0.09, count=2, **vars(loader)), lambda batch: clock.sleep(0.005),
                      steps=STEPS)
    assert d.facts["start_ms"] is None and d.cause != "short_epochs"
    assert d.facts["epoch_steps"] == 2 and (d.limit not in ("io", "delivery") or d.confidence < 0.6)  # starts may be part of it


def test_workers_that_were_not_seen_to_read_leave_doubt():
    seen = recorded(20, 5, WAITING, workers=2, cpus_used=0.1)
    sure, doubt = verdict(seen, closer(fetch=0.02)), verdict(seen, closer(python=0.02))
    assert sure.limit == "io" and sure.confidence > 0.7
    assert doubt.limit != "io" or doubt.confidence <= 0.45


def test_kept_batches_leave_the_loader_its_budget(clock):
    batch = (np.zeros(20, np.uint8), {"label": np.zeros(10, np.uint8)})
    for room, kept in ((math.inf, 4), (100, 3), (20, 0)):
        sampler = SimpleNamespace(looks={True: [0] * 3, False: [0] * 3})
        loop = _diagnose._Loop([batch] * 9, lambda batch: None, None, sampler, _diagnose._Limit(10))
        loop.room = room
        loop.run(5, 10, 4)
        assert len(loop.kept) == kept


# ---- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, call", [
    ("iterable", lambda: leat.diagnose("photos.leat", print)), ("iterable", lambda: leat.diagnose(b"photos.leat")),
    ("iterable", lambda: leat.diagnose(None)), ("iterable", lambda: leat.diagnose(5)),
    ("step", lambda: leat.diagnose([], 3)), ("sync", lambda: leat.diagnose([], print, sync=3)),
    ("sync", lambda: leat.diagnose([], sync=print)), ("steps", lambda: leat.diagnose([], steps=0)),
    ("steps", lambda: leat.diagnose([], steps=1.5)), ("replay", lambda: leat.diagnose([], replay=-1)),
    ("seconds", lambda: leat.diagnose([], seconds=-1)), ("facts", lambda: leat.judge(None)),
    ("facts", lambda: leat.judge([1])), ("facts", lambda: leat.judge({"steps": object()})),
])
def test_wrong_arguments_are_named(name, call):
    with pytest.raises(leat.ArgumentError, match=f"^{name}: "):
        call()


# ---- live runs: what load cannot change --------------------------------------------------------------


def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def consistent(d):
    """The verdict is the one for the facts, which are numbers of this run."""
    again = leat.judge(d.facts)
    return (again.verdict, again.limit, again.cause, again.confidence) == (d.verdict, d.limit, d.cause, d.confidence)


def test_a_live_loop_measures_what_was_slept_and_computed():
    d = leat.diagnose(batches(lambda: time.sleep(0.01)), lambda batch: time.sleep(0.002), steps=STEPS, seconds=600)
    assert d.facts["steps"] == STEPS and d.facts["data_ms"] >= 10 and d.facts["batch_ms"] >= 2
    assert d.facts["io_cold"] <= 8 / 0.0099 and consistent(d)  # at least the sleep was waiting
    assert d.replay["step_ms"] >= 2
    d = leat.diagnose(batches(lambda: burn(0.01)), lambda batch: time.sleep(0.002), steps=STEPS, seconds=600)
    assert d.facts["cpu_all"] <= 8 / 0.0099 and consistent(d)  # at least the burning was work
    assert 0 <= d.facts["others"] and 0 <= d.facts["run_delay"] <= 1


def test_a_list_of_batches_is_no_loader_to_improve():
    """Reading the clocks was taken for the loader: it "waited" 99 % of the steps, and two workers promised 2x."""
    d = leat.diagnose([np.zeros((32, 3))] * 200, lambda batch: None)
    assert (d.limit, d.grade, d.complete) == ("trainer", "fine", True), d
    assert all(r["basis"] == "guide" for r in d.remedies) and d.apply["set"] == ""


def test_a_live_dataloader_with_workers():
    torch = pytest.importorskip("torch")

    class Waiting(torch.utils.data.Dataset):
        def __len__(self):
            return 400

        def __getitem__(self, i):
            time.sleep(0.005)
            return torch.zeros(3)

    loader = torch.utils.data.DataLoader(Waiting(), batch_size=8, num_workers=2)
    d = leat.diagnose(loader, lambda batch: time.sleep(0.001), steps=8, seconds=3)
    assert 2 <= d.facts["steps"] <= 8 and d.facts["batch"] == 8 and consistent(d)
    if d.facts["workers"] is not None:  # they were sampled often enough
        assert d.facts["workers"] == 2 and d.facts["fetch_ms"] >= 4.9


def test_children_of_before_are_not_workers():
    import subprocess

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        d = leat.diagnose(batches(lambda: time.sleep(0.01)), lambda batch: None, steps=5, seconds=600)
        other.communicate(b"\n")
    assert d.facts["threads"] == 1 and d.facts["io_cold"] <= 8 / 0.0099


def test_loader_doctor(pack):
    with leat.Loader(pack, batch_size=4, image="RandomResizedCrop(16)", doctor=True, threads=2) as loader:
        for _ in range(8):
            for _batch in loader:
                time.sleep(0.002)
        d = loader.doctor()
        assert d.facts["steps"] > 10 and d.verdict and consistent(d)
        assert d.decisions_made >= len(d.decisions)
        assert all(row["reason"] and row["from"] != row["to"] for row in d.decisions)
        assert "<polyline" in loader.report() or "<svg" not in loader.report()
        assert "leat" in loader.report(title="leat & me")


def test_a_loader_that_gave_no_batch_has_no_limit(pack):
    with leat.Loader(pack, batch_size=4, image="RandomResizedCrop(16)", threads=2) as loader:
        d = loader.doctor()
        assert d.verdict.startswith("INCOMPLETE: nothing was measured yet") and d.limit == "none" and not d.complete
        assert str(d) == d.verdict + "\n"
        for _batch in loader:
            pass
        assert "nothing was measured" not in loader.doctor().verdict


def test_a_slow_transform_is_timed_by_itself(pack):
    loader = leat.Loader(pack, 4, image="RandomResizedCrop(16)", transform=lambda b: burn(0.005) or b, doctor=True)
    for _ in loader:
        time.sleep(0.002)
    d = loader.doctor()
    assert d.facts["prepare_ms"] >= 4.9 and loader.stats()["prepare_ms"] >= 4.9 and consistent(d)


def test_a_slow_transform_is_not_the_trainer():
    facts = {"steps": 200, "batch": 8, "data_ms": 2, "batch_ms": 24, "prepare_ms": 119, "samples_per_s": 55,
             "cpus": 4, "cpu_used": 1.0, "decode_ready": 0.1, "decode_share": 0.1, "blocked": 0.0, "threads": 4,
             "io_cold": 5000, "cpu_all": 900, "delivery": 9000}
    d = leat.judge(facts)
    assert said(d) == ("python", "transform", "critical") and d.confidence == 0.95
    assert "transform= takes 119.0 ms of each step" in d.verdict
    assert "transform=" in d.remedies[0]["action"]
    assert leat.judge(facts | {"data_ms": 200}).limit != "python"  # waiting takes longer


def test_a_slow_transform_of_a_loader_is_not_storage(pack):
    def late(batch):
        time.sleep(0.03)
        return batch
    with leat.Loader(pack, 4, image="RandomResizedCrop(16)", transform=late) as loader:
        for _ in range(2):  # a loader that was used before
            d = leat.diagnose(loader, lambda batch: time.sleep(0.005), steps=25, seconds=600, replay=0)
            assert d.limit == "python" and d.cause == "transform" and d.confidence >= 0.5
            assert 29 < d.facts["prepare_ms"] < 60 and d.facts["io_cold"] is None and 15 <= d.facts["steps"] <= 26


def test_batches_that_are_no_collections_are_samples(clock):
    d = leat.diagnose(range(3), lambda batch: clock.sleep(0.01), steps=30, seconds=600, replay=0)
    assert d.limit == "trainer" and d.facts["batch"] == 1


def test_a_report_replaces_an_earlier_report_only(pack, tmp_path):
    page, other = tmp_path / "r.html", tmp_path / "thesis.html"
    other.write_text("<!doctype html>\nmine")
    with open(pack, "rb") as file:
        before = file.read()
    with leat.Loader(pack, 4, threads=1, image=None) as loader:
        for _ in range(2):
            assert loader.report(page) == page.read_text(encoding="utf-8") or page.stat().st_size > 0
        for refused in (pack, other, tmp_path):
            with pytest.raises(leat.ArgumentError, match="path: "):
                loader.report(refused)
    with open(pack, "rb") as file:
        assert file.read() == before
    assert other.read_text() == "<!doctype html>\nmine"


def test_a_quarantine_file_is_checked_when_the_loader_opens(pack, tmp_path):
    (tmp_path / "mine.txt").write_text("words")
    (tmp_path / "bad.jsonl").write_text('{"pack":"x"}\n')
    for refused in (pack, tmp_path / "mine.txt", tmp_path):
        with pytest.raises(leat.ArgumentError, match="quarantine: "):
            leat.Loader(pack, 4, quarantine=refused)
    with pytest.raises(leat.NotFoundError, match="quarantine: .*no such folder"):
        leat.Loader(pack, 4, quarantine=tmp_path / "nowhere" / "q")
    leat.Loader(pack, 4, quarantine=tmp_path / "bad.jsonl", on_error="skip").close()
