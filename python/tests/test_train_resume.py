# SPDX-License-Identifier: Apache-2.0
"""Runs that are killed and resumed end with the same bits. LEAT_KILLS=20 kills more often."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")
if os.environ.get("TORCH") == "0":
    pytest.skip("TORCH=0", allow_module_level=True)

import leat  # noqa: E402
import train_run  # noqa: E402
from leat._train import distributed  # noqa: E402
from test_train import TINY, make_pack  # noqa: E402

KILLS = int(os.environ.get("LEAT_KILLS", "2"))
RUN = {**TINY, "epochs": 3, "save_every": 2, "ema": 0.9, "mixup": 0.2, "seed": 3, "eval_every": 2}
ALONE = {name: value for name, value in RUN.items() if name != "eval_every"}  # without a pack to evaluate on


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    return make_pack(folder / "train.leat", 67, 0), make_pack(folder / "val.leat", 13, 1)


@pytest.mark.parametrize("world, number", [(1, signal.SIGKILL), (2, signal.SIGKILL), (1, signal.SIGTERM)])
def test_a_killed_run_ends_with_the_same_bits(packs, tmp_path, world, number):
    pack, val = packs
    settings = {**RUN, "epochs": 3 * world}  # as many updates for each world
    assert train_run.run(pack, world=world, val=val, output=tmp_path / "whole", **settings) == [0] * world
    whole = train_run.final(tmp_path / "whole")
    updates = settings["epochs"] * (8 // world)
    draw = random.Random(world)
    kills = KILLS if number == signal.SIGKILL else 1
    output = tmp_path / "killed"
    for kill_at in sorted(draw.sample(range(1, updates), min(kills, updates - 1))):
        codes = train_run.run(pack, world=world, kill_at=kill_at, number=number, val=val, output=output, **settings, resume=True)
        assert codes == [-9 if number == signal.SIGKILL else 143] * world
    # what is not given is taken from the run that is resumed
    rest = {"quiet": True, "threads": 1}
    assert train_run.run(pack, world=world, output=output, resume=True, **rest) == [0] * world
    assert train_run.same(whole, train_run.final(output))


def test_each_kill_alone_ends_with_the_same_bits(packs, tmp_path):
    pack, _ = packs
    assert train_run.run(pack, output=tmp_path / "whole", **ALONE, optimizer="adamw") == [0]
    whole = train_run.final(tmp_path / "whole")
    # 8, 16: the last update of an epoch; 9: the checkpoint of the epoch's end may not be written yet
    for kill_at in list(dict.fromkeys([8, 9, *random.Random(5).sample(range(1, 24), 20)]))[:max(KILLS, 2)]:
        output = tmp_path / f"kill{kill_at}"
        assert train_run.run(pack, kill_at=kill_at, output=output, **ALONE, optimizer="adamw") == [-9]
        assert train_run.run(pack, output=output, **ALONE, optimizer="adamw", resume=True) == [0]
        assert train_run.same(whole, train_run.final(output)), kill_at


def test_a_signal_after_the_last_update_of_an_epoch(packs, tmp_path):
    pack, _ = packs
    assert train_run.run(pack, output=tmp_path / "whole", **ALONE) == [0]
    output = tmp_path / "stopped"
    assert train_run.run(pack, kill_at=8, number=signal.SIGTERM, output=output, **ALONE) == [143]
    assert train_run.run(pack, output=output, **ALONE, resume=True) == [0]
    assert train_run.same(train_run.final(tmp_path / "whole"), train_run.final(output))


def test_a_stopped_run_has_its_results_so_far(packs, tmp_path):
    """The loss was NaN, which is not JSON, and the rate 0."""
    pack, _ = packs
    output = tmp_path / "run"

    def result():
        def refuse(word):
            raise ValueError(word)

        for line in (output / "metrics.jsonl").read_text().splitlines():
            json.loads(line, parse_constant=refuse)
        return json.loads((output / "result.json").read_text(), parse_constant=refuse)

    for steps in (3, 5):  # in the first epoch, and again after it was resumed there
        assert train_run.run(pack, kill_at=steps, number=signal.SIGTERM, output=output, **ALONE, resume=steps > 3) == [143]
        found = result()
        assert (found["epochs"], found["steps"]) == (0, steps)
        assert found["loss"] > 0 and found["images_per_s"] > 0 and 0 <= found["data_share"] <= 1, found
    assert train_run.run(pack, output=output, **ALONE, resume=True) == [0] and result()["loss"] > 0
    assert train_run.run(pack, output=output, **ALONE, resume=True) == [0] and result()["loss"] is None  # nothing was left to train


def test_ctrl_c_is_a_keyboard_interrupt_on_every_rank(packs, tmp_path):
    """It was swallowed, and the call returned."""
    pack, _ = packs
    for world in (1, 2):
        output = tmp_path / str(world)
        assert train_run.run(pack, world=world, kill_at=3, number=signal.SIGINT, output=output, **ALONE) == [130] * world
        assert json.loads((output / "result.json").read_text())["stopped"] == signal.SIGINT


def test_a_signal_ends_a_program_that_trains(packs, tmp_path):
    pack, _ = packs
    options = {**ALONE, "epochs": 1000, "quiet": False, "output": str(tmp_path / "run")}
    program = f"import train_run\nprint(train_run.train({os.fspath(pack)!r}, **{options!r}))\n"
    child = subprocess.Popen([sys.executable, "-c", program], cwd=os.path.dirname(__file__), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    said = [line for line, _ in zip(child.stderr, range(3))]
    child.send_signal(signal.SIGTERM)
    out, rest = child.communicate(timeout=100)
    assert child.returncode == 143 and out == "", (said, rest)
    assert re.search(r"\nstopped at update \d+; checkpoint: .*; resume=True continues\n$", rest), (said, rest)


def test_training_outside_the_main_thread(packs, tmp_path):
    pack, _ = packs
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(leat.train, pack, output=str(tmp_path / "run"), **{**ALONE, "epochs": 1}).result()
    assert done["epochs"] == 1 and done["stopped"] == 0
    assert set(done) - {"samples", "top1", "top5", "knn", "probe"} <= set(re.findall(r"\w+", leat.train.__doc__ or ""))


def test_two_ranks_see_every_sample_once(packs, tmp_path):
    """The evaluation of two ranks counts each sample once, and equals that of one."""
    pack, val = packs
    found = []
    for world in (1, 2):
        output = tmp_path / str(world)
        assert train_run.run(pack, world=world, val=val, output=output, **{**RUN, "max_steps": 1}) == [0] * world
        found.append(json.loads((output / "result.json").read_text())["samples"])
    assert found == [13, 13]


def test_slurm_starts_ranks_without_settings(packs, tmp_path):
    pack, _ = packs
    few = {**ALONE, "max_steps": 2}
    assert train_run.run(pack, world=2, output=tmp_path / "torchrun", **few) == [0, 0]
    assert train_run.run(pack, world=2, slurm=True, output=tmp_path / "slurm", **few) == [0, 0]
    assert train_run.same(train_run.final(tmp_path / "torchrun"), train_run.final(tmp_path / "slurm"))


@pytest.mark.parametrize("nodes, first", [("gpu01", "gpu01"), ("gpu[01-04]", "gpu01"), ("gpu[01-04,07],big1", "gpu01"),
                                          ("a-b[3,7]", "a-b3"), ("big1,gpu[01-04]", "big1"), ("r[1-2]n[08-09].site", "r1n08.site"), ("node-1,node-2", "node-1")])
def test_the_first_machine_of_slurm(nodes, first):
    environ = {"SLURM_STEP_NODELIST": nodes, "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.9", "SLURM_JOB_ID": "40007", "SLURM_STEP_ID": "2"}
    distributed._slurm_environment(environ)
    assert environ["MASTER_ADDR"] == first and environ["MASTER_PORT"] == "20009"
    given = {"MASTER_ADDR": "here", "MASTER_PORT": "1"}
    distributed._slurm_environment(given)
    assert given == {"MASTER_ADDR": "here", "MASTER_PORT": "1"}
