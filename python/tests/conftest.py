# SPDX-License-Identifier: Apache-2.0
"""Small packs that the tests share, and what is skipped without torch or JAX."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import leat

ORDERS = [name for name, _ in leat._leat.orders()]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def wanted(name: str, default: str) -> bool:
    return os.environ.get(name, default) == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for mark, name, default in (("torch", "TORCH", "1"), ("jax", "JAX", "0")):
        if wanted(name, default):
            continue
        for item in items:
            if mark in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"{name}={os.environ.get(name, default)}"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "torch: needs torch; TORCH=0 skips it")
    config.addinivalue_line("markers", "jax: needs JAX; JAX=1 runs it")
    if not wanted("TORCH", "1"):  # "auto" must then mean NumPy even where torch is installed
        sys.modules["torch"] = None  # type: ignore[assignment]


def need_torchvision() -> None:
    """Skips where torchvision is missing, or was built for another torch and fails when it is imported."""
    pytest.importorskip("torch")
    try:
        import torchvision  # noqa: F401
    except Exception as e:  # noqa: BLE001: operators that do not exist are a RuntimeError
        pytest.skip(f"torchvision: {e}", allow_module_level=True)


def jpeg(rng: np.random.Generator, width: int, height: int, quality: int = 85) -> bytes:
    """A smooth random picture: like a photo for a codec."""
    small = rng.integers(0, 256, (5, 5, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(small).resize((width, height), Image.BICUBIC).save(out, "JPEG", quality=quality)
    return out.getvalue()


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.fixture(scope="session")
def images() -> list[bytes]:
    rng = np.random.default_rng(7)
    return [jpeg(rng, int(rng.integers(40, 90)), int(rng.integers(40, 90))) for _ in range(101)]


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory, images: list[bytes]) -> str:
    """101 samples: image, label (i % 10), score (i / 2), caption, boxes (ragged), vector."""
    path = str(tmp_path_factory.mktemp("pack") / "small.leat")
    schema = {"image": "image", "label": int, "score": float, "caption": str,
              "boxes": ("float32", (None, 4)), "vector": ("float16", (3,))}
    with leat.Writer(path, schema, page_bytes="64K", sync=False, classes={
            "label": [f"class {i}" for i in range(10)]}, provenance={"made_by": "tests"}) as w:
        for i, data in enumerate(images):
            boxes = np.arange(4 * (i % 3), dtype=np.float32).reshape(-1, 4)
            w.append({"image": data, "label": i % 10, "score": i / 2, "caption": f"caption {i} é",
                      "boxes": boxes, "vector": np.full(3, i, np.float16)}, key=f"dir/{i:04d}.jpg")
    return path


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory, images: list[bytes]) -> str:
    """101 samples of image and label only."""
    path = str(tmp_path_factory.mktemp("pack") / "plain.leat")
    with leat.Writer(path, {"image": "image", "label": int}, page_bytes="64K", sync=False) as w:
        for i, data in enumerate(images):
            w.append([data, i % 10])
    return path


def damage(pack: str, target: str, sample: int) -> None:
    """Flips a byte in the middle of a sample's image."""
    data = leat.open(pack)[sample]["image"].stored
    shutil.copy(pack, target)
    with open(target, "r+b") as f:
        at = f.read().index(data) + len(data) // 2
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 0x55]))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """For leat.curate: 40 pictures in three folders, the last five of them recoded copies of the first five, and one that is cut."""
    folder = tmp_path_factory.mktemp("curate") / "photos"
    for i in range(40):
        place = folder / ("cat", "dog", "owl")[i % 3]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{i:03d}.jpg").write_bytes(jpeg(np.random.default_rng(i % 35), 64, 48, 85 if i < 35 else 60))
    (folder / "cat" / "cut.jpg").write_bytes((folder / "cat" / "000.jpg").read_bytes()[:-300])
    return folder


@pytest.fixture(scope="module")
def whole(photos, tmp_path_factory):
    """A run of leat.curate that was not interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return folder, leat.curate(photos, folder, share=0.2)


def curate_command(*words, code):
    """Runs leat curate with these words."""
    done = subprocess.run([sys.executable, "-m", "leat", "curate", *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def damaged(pack, tmp_path) -> str:
    path = str(tmp_path / "damaged.leat")
    damage(pack, path, 42)
    return path
