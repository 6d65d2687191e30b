# SPDX-License-Identifier: Apache-2.0
"""leat.diagnose on loaders with a known trouble, PyTorch's among them, and loader.doctor()."""
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import leat

STEPS = 25


def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def names(d, limit):
    """The limit, unless other processes had the CPUs meanwhile or the doctor is not sure."""
    return d.limit == limit or d.cause == "other_processes" or d.confidence < 0.6


class Slow:
    """An iterable whose batches cost CPU time, waiting time, or both."""

    def __init__(self, cpu=0.0, wait=0.0, batches=200):
        self.cpu, self.wait, self.batches = cpu, wait, batches

    def __iter__(self):
        for _ in range(self.batches):
            burn(self.cpu)
            if self.wait:
                time.sleep(self.wait)
            yield np.zeros((8, 3)), np.zeros(8)


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


def test_a_loop_that_waits_for_storage():
    d = leat.diagnose(Slow(wait=0.02), lambda batch: time.sleep(0.002), steps=STEPS)
    assert names(d, "io"), d.verdict
    assert d.lost > 0.3 and d.facts["batch"] == 8
    assert d.replay["gain"] > 1.2  # a loader that costs nothing: 22 ms become 2 on an idle machine


def test_a_loop_that_prepares_too_long():
    d = leat.diagnose(Slow(cpu=0.02), lambda batch: time.sleep(0.002), steps=STEPS)
    assert names(d, "cpu"), d.verdict
    assert d.lost > 0.3


def test_standing_in_line_is_not_storage():
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        d = leat.diagnose(Slow(cpu=0.01), lambda batch: time.sleep(0.001), steps=STEPS)
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert names(d, "cpu"), d.verdict
    assert d["facts"]["read_share"] < 0.5


def test_a_loop_that_trains():
    d = leat.diagnose(Slow(), lambda batch: time.sleep(0.01), steps=STEPS)
    assert names(d, "trainer"), d.verdict
    assert 0.3 < d.replay["gain"] < 3


def test_no_step_is_incomplete_and_few_steps_are_a_warning():
    d = leat.diagnose(Slow(wait=0.005), steps=STEPS)
    assert not d.complete and "step time" in d.missing[0] and d.replay is None
    d = leat.diagnose(Slow(wait=0.02), lambda batch: None, steps=5)
    assert d.grade == "warning"


def test_an_iterable_that_ends_early():
    d = leat.diagnose(iter([np.zeros((4, 2))] * 3), lambda batch: None, steps=STEPS)
    assert d.facts["steps"] == 2
    d = leat.diagnose([], lambda batch: None, steps=STEPS)
    assert d.limit == "none" and not d.complete


def test_torch_dataloader_with_workers():
    torch = pytest.importorskip("torch")

    class Waiting(torch.utils.data.Dataset):
        def __len__(self):
            return 2000

        def __getitem__(self, i):
            time.sleep(0.01)
            return torch.zeros(3)

    class Computing(Waiting):
        def __getitem__(self, i):
            burn(0.004)
            return torch.zeros(3)

    for data, limit in ((Waiting(), "io"), (Computing(), "cpu")):
        loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
        d = leat.diagnose(loader, lambda batch: time.sleep(0.001), steps=STEPS, seconds=20)
        assert names(d, limit), d.verdict
        assert d.facts["threads"] >= 2


def test_loader_doctor(pack):
    with leat.Loader(pack, batch_size=4, image="RandomResizedCrop(16)", doctor=True, threads=2) as loader:
        for _ in range(8):
            for _batch in loader:
                time.sleep(0.002)
        d = loader.doctor()
        assert d.facts["steps"] > 10 and d.verdict
        assert d.decisions_made >= len(d.decisions)
        assert all(row["reason"] and row["from"] != row["to"] for row in d.decisions)
        assert "<polyline" in loader.report() or "<svg" not in loader.report()
        assert "leat" in loader.report(title="leat & me")


def test_a_slow_transform_is_not_the_trainer(pack):
    loader = leat.Loader(pack, 4, image="RandomResizedCrop(16)", transform=lambda b: burn(0.03) or b, doctor=True)
    for _ in range(12):
        for _ in loader:
            time.sleep(0.002)
        if loader.stats()["steps"] >= STEPS:
            break
    d = loader.doctor()
    assert names(d, "python"), d.verdict
    assert d.facts["prepare_ms"] > 10
    assert any("transform=" in r["action"] for r in d.remedies)
    assert loader.stats()["prepare_ms"] > 10


def _dataset(torch, item, size=4000):
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return size

        def __getitem__(self, i):
            return item(i)

    return Data()


def _torch_diagnosis(item, *, workers=2, step_s=0.002, batch=8, **more):
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(_dataset(torch, lambda i: item(torch)), batch_size=batch, num_workers=workers,
                                         **more)
    return leat.diagnose(loader, lambda b: time.sleep(step_s), steps=STEPS, seconds=20)


def test_python_code_of_a_dataset_is_not_decode():
    d = _torch_diagnosis(lambda torch: burn(0.004) or torch.zeros(3))
    assert d.facts["worker_python"] is None or d.facts["worker_python"] > 0.3
    assert "decode" not in d.verdict


def test_a_slow_collate_is_named():
    torch = pytest.importorskip("torch")
    d = _torch_diagnosis(lambda torch: torch.zeros(3),
                         collate_fn=lambda rows: burn(0.05) or torch.stack(rows))
    assert d.facts["worker_collate"] > 0.3
    assert "decode" not in d.verdict


def test_more_workers_are_the_remedy_for_latency():
    d = _torch_diagnosis(lambda torch: time.sleep(0.02) or torch.zeros(3))
    assert names(d, "io"), d.verdict
    assert d.facts["worker_fetch"] > 0.3
    tried = [r for r in d.remedies if "num_workers=8" in r["action"]]
    assert all(r["basis"] == "measured" for r in tried)
    assert tried or d.facts["more_workers_rate"] is None or d.cause == "other_processes", d.verdict
    assert not any("0 MB/s" in r["action"] or "? MB/s" in r["action"] for r in d.remedies)


def test_a_loader_without_workers_is_told_in_its_own_words():
    d = _torch_diagnosis(lambda torch: burn(0.003) or torch.zeros(3), workers=0)
    assert d.facts["workers"] == 0
    assert not any("threads" in r["action"] for r in d.remedies)
