# SPDX-License-Identifier: Apache-2.0
"""leat.train with libraries that may not be installed: torchvision, timm, Weights & Biases; and what it must not import."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

import leat

torch = pytest.importorskip("torch")
if os.environ.get("TORCH") == "0":
    pytest.skip("TORCH=0", allow_module_level=True)

from conftest import need_torchvision  # noqa: E402
from leat._train import models  # noqa: E402
from test_train import TINY, make_pack  # noqa: E402


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return make_pack(tmp_path_factory.mktemp("libraries") / "train.leat", 24, 0)


@pytest.mark.parametrize("name, width", [("torchvision/resnet18", 512), ("mobilenet_v3_small", 1024), ("shufflenet_v2_x0_5", 1024)])
def test_models_of_torchvision(name, width):
    need_torchvision()
    net = models.build(name, 64, 5).eval()
    x = torch.zeros(2, 3, 64, 64)
    assert net.width == width and net.features(x).shape == (2, width) and net(x).shape == (2, 5)


def test_a_torchvision_of_another_torch_is_one_clear_error(monkeypatch):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "torchvision":
                raise RuntimeError("operator torchvision::nms does not exist")

    for name in [m for m in sys.modules if m.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(leat.ArgumentError, match="torchvision cannot be imported .*nms"):
        models.build("torchvision/resnet18", 64, 5)


def test_a_model_of_torchvision_that_does_not_fit():
    need_torchvision()
    with pytest.raises(leat.ArgumentError, match="torchvision's squeezenet1_0 does not end in a linear layer"):
        models.build("torchvision/squeezenet1_0", 64, 5)


@pytest.mark.parametrize("name", ["timm/resnet10t", "mobilenetv3_small_050"])
def test_models_of_timm(name):
    pytest.importorskip("timm")
    net = models.build(name, 64, 5).eval()
    x = torch.zeros(2, 3, 64, 64)
    assert net.features(x).shape == (2, net.width) and net(x).shape == (2, 5)


def test_a_model_of_timm_is_trained_and_embeds(pack, tmp_path):
    pytest.importorskip("timm")
    few = {**TINY, "model": "timm/mobilenetv3_small_050", "lr": 0.01}
    leat.train(pack, output=tmp_path / "run", **few, max_steps=2)
    leat.embed(pack, output=tmp_path / "v.leat", model=str(tmp_path / "run"), quiet=True, threads=1)
    assert len(leat.open(tmp_path / "v.leat")) == 24


class Recorder:
    def __init__(self):
        self.rows, self.ended = [], False

    def log(self, numbers, step):
        self.rows.append((step, numbers))

    def finish(self):
        self.ended = True


def test_weights_and_biases_gets_the_metrics(pack, tmp_path, monkeypatch):
    run, asked = Recorder(), {}
    module = types.ModuleType("wandb")
    module.init = lambda **given: (asked.update(given), run)[1]
    monkeypatch.setitem(sys.modules, "wandb", module)
    leat.train(pack, val=pack, output=tmp_path / "o", **TINY, wandb="colours", log_every=1)
    assert asked["project"] == "colours" and asked["dir"] == str(tmp_path / "o") and asked["config"]["batch_size"] == 8
    assert run.ended and [step for step, row in run.rows if "train/loss" in row] == [1, 2, 3, 4, 5, 6]
    assert all("eval/top1" in row for _, row in run.rows[3:4])


def test_weights_and_biases_offline(pack, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    leat.train(pack, output=tmp_path / "o", **TINY, wandb="colours")
    assert list((tmp_path / "o/wandb").glob("offline-run-*/*.wandb"))


def test_a_run_without_compiling_does_not_import_the_compiler(pack, tmp_path):
    """It takes as long as importing torch."""
    code = ("import sys, train_run, leat; leat.train(sys.argv[1], output=sys.argv[2], model='tiny_resnet', epochs=2, batch_size=8, "
            "quiet=True, tensorboard=False, threads=1); sys.exit(any(m in sys.modules for m in ('torch._dynamo', 'triton')))")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])}
    assert subprocess.run([sys.executable, "-c", code, pack, str(tmp_path / "o")], env=environ, check=False).returncode == 0
