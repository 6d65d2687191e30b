# SPDX-License-Identifier: Apache-2.0
"""The loader's meters in loggers, and the run file."""
import json
import os
import subprocess
import sys
import time

import pytest

import leat
from leat import callbacks

NUMBERS = {"samples_per_s", "data_time_ms", "batch_time_ms", "transform_time_ms", "wait_share", "read_bytes_per_s",
           "memory_bytes", "memory_share", "bad_samples", "busy_order", "busy_read", "busy_decode", "busy_collate"}
STEP_S = 0.004
BATCHES = 26  # of 101 samples by 4


def train(path, epochs=2, **options):
    """Steps of a known length over a pack."""
    with leat.Loader(path, batch_size=4, image="RandomResizedCrop(16)", threads=1, **options) as loader:
        for _ in range(epochs):
            for _batch in loader:
                time.sleep(STEP_S)


class Kept(callbacks.Callback):
    def __init__(self, **options):
        super().__init__(**options)
        self.rows, self.closed = [], 0

    def log(self, scalars, step):
        self.rows.append((step, scalars))

    def close(self):
        self.closed += 1


def test_every_so_many_steps_and_at_the_end(pack):
    often, seldom = Kept(every=10), Kept(every=40, prefix="x/", step=lambda: 7)
    train(pack, callbacks=[often, seldom])
    assert [step for step, _ in often.rows] == [10, 20, 30, 40, 50, 2 * BATCHES]
    assert [step for step, _ in seldom.rows] == [7, 7]
    assert often.closed == seldom.closed == 1
    assert set(seldom.rows[0][1]) == {f"x/{name}" for name in (*NUMBERS, "verdict")}
    for _, row in often.rows[:-1]:
        assert 1e3 * STEP_S <= row["data/batch_time_ms"] < 1e3 * STEP_S * 10
        assert row["data/data_time_ms"] >= 0 and 0 <= row["data/wait_share"] <= 1
        assert 0 < row["data/samples_per_s"] < 4 / STEP_S
        assert 0 < row["data/memory_share"] < 1 and row["data/memory_bytes"] > 0
        assert row["data/bad_samples"] == 0 and row["data/verdict"]
    # rates of intervals: together they are all samples
    assert any(row["data/busy_decode"] > 0 for _, row in often.rows)


def test_json_lines(pack, tmp_path):
    path = tmp_path / "data.jsonl"
    train(pack, callbacks=callbacks.JsonLines(path, every=20))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["step"] for row in rows] == [20, 40, 2 * BATCHES]
    assert set(rows[0]) == {"step", "time", "data/verdict", *(f"data/{name}" for name in NUMBERS)}
    assert abs(rows[-1]["time"] - time.time()) < 60


class Writer:
    """The part of a SummaryWriter that is used."""

    def __init__(self):
        self.scalars, self.texts = [], []

    def add_scalar(self, tag, value, step):
        self.scalars.append((tag, value, step))

    def add_text(self, tag, text, step):
        self.texts.append((tag, text, step))


def test_tensorboard_interface(pack):
    writer = Writer()
    train(pack, callbacks=[callbacks.TensorBoard(writer, every=26)])
    assert len(writer.scalars) == 2 * len(NUMBERS)
    assert {tag for tag, *_ in writer.scalars} == {f"data/{name}" for name in NUMBERS}
    assert len(writer.texts) == 1 and writer.texts[0][0] == "data/verdict"  # said again only when it changes
    del Writer.add_text
    train(pack, callbacks=[callbacks.TensorBoard(Writer(), every=26)])


def test_tensorboard_files(pack, tmp_path):
    """Real event files, written by torch and read back by TensorBoard."""
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        train(pack, callbacks=[callbacks.TensorBoard(writer, every=26)])
    events = reader.EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == {f"data/{name}" for name in NUMBERS}
    rows = events.Scalars("data/batch_time_ms")
    assert [row.step for row in rows] == [26, 52] and rows[0].value >= 1e3 * STEP_S
    assert "data/verdict/text_summary" in events.Tags()["tensors"]


def test_wandb_interface(pack):
    class Run:
        def __init__(self):
            self.rows = []

        def log(self, data, step=None, commit=None):
            self.rows.append((data, step))

    run = Run()
    train(pack, callbacks=[callbacks.WandB(run, every=26)])
    assert [step for _, step in run.rows] == [26, 52]
    assert set(run.rows[0][0]) == {f"data/{name}" for name in (*NUMBERS, "verdict")}


@pytest.mark.torch
def test_lightning_logger(pack, tmp_path):
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    logger = loggers.CSVLogger(str(tmp_path))
    train(pack, callbacks=[callbacks.Lightning(logger, every=26)])
    logger.save()
    head, *rows = open(os.path.join(logger.log_dir, "metrics.csv")).read().splitlines()
    assert len(rows) == 2 and {f"data/{name}" for name in NUMBERS} <= set(head.split(","))


def test_a_logger_that_fails_loses_no_batch(pack):
    class Failing(callbacks.Callback):
        def log(self, scalars, step):
            raise OSError("full")

        def close(self):
            pass

    loader = leat.Loader(pack, batch_size=4, image="RandomResizedCrop(16)", order="sequential", as_="numpy",
                         callbacks=[Failing(every=3)])
    seen, failed, batches = [], 0, iter(loader)
    while True:
        try:
            seen += next(batches).sample_id.tolist()
        except OSError:
            failed += 1
        except StopIteration:
            break
    assert seen == list(range(101)) and failed == BATCHES // 3
    with pytest.raises(OSError):
        loader.close()
    loader.close()


def test_every_is_checked():
    with pytest.raises(ValueError):
        callbacks.JsonLines("never-made.jsonl", every=0)
    assert not os.path.exists("never-made.jsonl")


def test_scalars(pack):
    with leat.Loader(pack, batch_size=4, image="RandomResizedCrop(16)") as loader:
        for _ in loader:
            pass
        row = loader.scalars()
        assert set(row) == {*NUMBERS, "verdict"} and row["samples_per_s"] > 0


# ---- the run file --------------------------------------------------------------------------------


def top(path, *args):
    return subprocess.run([sys.executable, "-m", "leat", "top", str(path), *args], capture_output=True, text=True,
                          timeout=60)


def test_run_file_while_it_runs_and_after(pack, tmp_path):
    path = tmp_path / "run.jsonl"
    with leat.Loader(pack, batch_size=4, image="RandomResizedCrop(16)", run=path) as loader:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            for _ in loader:
                time.sleep(0.002)
        now = json.loads(top(path, "--once", "--json").stdout)
        assert now["frame"]["samples"] > 0 and now["facts"]["steps"] > 20
        state = [json.loads(line) for line in path.read_text().splitlines() if "verdict" in line][-1]["state"]
        assert state == "running"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[-1]["state"] == "ended" and lines[0]["pid"] == os.getpid()
    shown = top(path)
    assert shown.returncode == 0 and "decode" in shown.stdout and lines[-1]["verdict"][:40] in shown.stdout


def test_run_file_of_ranks_and_of_no_folder(plain, tmp_path):
    path = tmp_path / "run.jsonl"
    for rank in range(2):
        with leat.Loader(plain, batch_size=4, image="RandomResizedCrop(16)", rank=rank, world_size=2, run=path) as loader:
            for _ in loader:
                pass
    assert sorted(os.listdir(tmp_path)) == ["run.jsonl", "run.jsonl.1"]
    with pytest.raises(FileNotFoundError):
        leat.Loader(plain, run=tmp_path / "nowhere" / "run.jsonl")


def test_json_lines_are_appended_to_their_own_file_only(pack, tmp_path):
    path = tmp_path / "data.jsonl"
    for _ in range(2):
        train(pack, callbacks=callbacks.JsonLines(path, every=20))
    assert len(path.read_text().splitlines()) > 4
    (tmp_path / "empty").touch()
    callbacks.JsonLines(tmp_path / "empty").close()
    (tmp_path / "notes.json").write_text('{"mine": 1}\n')
    with open(pack, "rb") as file:
        before = file.read()
    for other in (pack, tmp_path / "notes.json", tmp_path):
        with pytest.raises(leat.ArgumentError, match="path: "):
            callbacks.JsonLines(other)
    with open(pack, "rb") as file:
        assert file.read() == before
    with pytest.raises(leat.NotFoundError, match="no such folder"):
        callbacks.JsonLines(tmp_path / "nowhere" / "data.jsonl")


def test_waits_while_the_device_computes_are_not_lost():
    """100 steps of 9 ms on the device in one second, in which the host waited for 0.9 s: a tenth is lost."""
    names = ("samples", "batches", "steps", "data_ms", "batch_ms", "prepare_ms", "wait_seconds", "read_bytes",
             "budget_limit_bytes", "budget_used_bytes", "bad_samples", "device_step_ms")
    before = {**dict.fromkeys(names, 0), "busy_seconds": [0.0] * 4}
    now = {**before, "batches": 100, "steps": 100, "wait_seconds": 0.9}
    assert callbacks._figures(before, now, 1.0)["wait_share"] == pytest.approx(0.9)
    assert callbacks._figures(before, {**now, "device_step_ms": 9}, 1.0)["wait_share"] == pytest.approx(0.1)
    assert callbacks._figures(before, {**now, "device_step_ms": 11}, 1.0)["wait_share"] == 0
