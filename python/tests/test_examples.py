# SPDX-License-Identifier: Apache-2.0
"""The examples run, the loss falls, and every sample is counted once."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import leat
from conftest import ROOT

EXAMPLES = os.path.join(ROOT, "examples")
SAMPLES = 233  # no multiple of any batch


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    spec = importlib.util.spec_from_file_location("tiny_data", os.path.join(EXAMPLES, "tiny_data.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make(str(tmp_path_factory.mktemp("tiny") / "tiny.leat"), SAMPLES)


def run(*command: str, code: int = 0) -> str:
    environ = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default"}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300,
                          env=environ, cwd=EXAMPLES)
    assert done.returncode == code, done.stderr
    if code != 0:
        return done.stdout + done.stderr
    assert "leat" not in "\n".join(line for line in done.stderr.splitlines() if "arn" in line)
    assert "dataloader" not in done.stderr.lower(), done.stderr
    return done.stdout


def torchrun(script: str, ranks: int, *args: str, code: int = 0) -> str:
    return run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
               os.path.join(EXAMPLES, script), *args, code=code)


def losses(out: str) -> list[float]:
    return [float(x) for x in re.findall(r"loss ([\d.]+)", out)]


@pytest.mark.torch
def test_torch(tiny):
    found = losses(run("torch_train.py", tiny))
    assert len(found) == 5 and found[-1] < found[0] / 2


@pytest.fixture(scope="module")
def many_classes(tmp_path_factory) -> str:
    """A pack with 40 classes, and no names for them."""
    path = str(tmp_path_factory.mktemp("many") / "many.leat")
    with leat.Writer(path, {"image": "image", "label": int}, sync=False) as writer:
        for i in range(80):
            writer.append({"image": np.full((40, 40, 3), i, np.uint8), "label": i % 40}, key=str(i))
    return path


@pytest.mark.torch
@pytest.mark.parametrize("name", ["torch_train", "lightning_train", "trainer_train"])
def test_any_number_of_classes(many_classes, name):
    pytest.importorskip({"lightning_train": "lightning", "trainer_train": "transformers"}.get(name, "torch"))
    run(f"{name}.py", many_classes)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["torch_ddp", "accelerate_train"])
def test_any_number_of_classes_on_ranks(many_classes, name):
    pytest.importorskip({"accelerate_train": "accelerate"}.get(name, "torch"))
    torchrun(f"{name}.py", 2, many_classes)


@pytest.mark.jax
def test_any_number_of_classes_in_jax(many_classes):
    assert losses(run("jax_train.py", many_classes))[0] < 5  # log(40) is 3.7


@pytest.mark.torch
def test_torch_ddp(tiny):
    out = torchrun("torch_ddp.py", 2, tiny)
    found = losses(out)
    assert found[-1] < found[0] and out.count("ranks 2 (torch.distributed)") == 3
    # every sample once: how many, and the sum of their numbers
    assert out.count(f"seen {SAMPLES} ids {SAMPLES * (SAMPLES - 1) // 2} ") == 3


@pytest.mark.torch
def test_torch_ddp_says_that_there_is_no_batch(tmp_path):
    with leat.Writer(tmp_path / "few.leat", {"image": "image", "label": int}, sync=False) as writer:
        for i in range(10):
            writer.append({"image": np.full((40, 40, 3), i, np.uint8), "label": i % 2}, key=str(i))
    out = torchrun("torch_ddp.py", 2, str(tmp_path / "few.leat"), code=1)
    assert "no batch: drop_last needs at least 32 samples" in out and out.count("no batch: ") == 1


@pytest.mark.torch
def test_lightning(tiny):
    out = run("lightning_train.py", tiny, "2")
    assert out.count(f"trained {SAMPLES} validated {SAMPLES}") == 2


@pytest.mark.torch
def test_accelerate(tiny):
    out = torchrun("accelerate_train.py", 2, tiny)
    found = losses(out)
    assert found[-1] < found[0] and out.count("ranks 2") == 3
    assert out.count(f"seen {SAMPLES // 32 * 32}") == 3


@pytest.mark.torch
def test_trainer(tiny):
    pytest.importorskip("transformers")
    out = run("trainer_train.py", tiny)
    assert f"steps {3 * -(-SAMPLES // 16)}" in out and losses(out)[-1] < 1.5


def test_loggers(tiny, tmp_path):
    tmp_path = tmp_path / "new" / "folder"  # the example makes it
    out = run("loggers.py", tiny, str(tmp_path))
    steps = 2 * -(-SAMPLES // 8)
    assert sum(line.startswith("step ") for line in out.splitlines()) == -(-steps // 20)
    lines = [json.loads(line) for line in (tmp_path / "data.jsonl").read_text().splitlines()]
    assert [row["step"] for row in lines] == [*range(10, steps + 1, 10)]
    assert json.loads((tmp_path / "run.jsonl").read_text().splitlines()[-1])["state"] == "ended"


@pytest.mark.jax
def test_jax(tiny):
    found = losses(run("jax_train.py", tiny))
    assert len(found) == 5 and found[-1] < found[0]


def test_detection_ops():
    out = run("detection_ops.py")
    shares = {name: int(share) for name, share in re.findall(r"(\w+): images .* (\d+) % of the marked", out)}
    assert set(shares) == {"RandomIoUCrop", "ElasticTransform", "Mosaic"}
    assert shares["Mosaic"] >= 99 and shares["ElasticTransform"] >= 80 and shares["RandomIoUCrop"] >= 80
    assert "TenCrop: images (16, 10, 3, 64, 64)" in out
