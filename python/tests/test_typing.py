# SPDX-License-Identifier: Apache-2.0
"""Types that users see: annotations resolve, and mypy accepts user code and refuses mistakes."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import typing

import pytest

import leat

GOOD = '''
import leat
loader = leat.Loader("train.leat", 64, [leat.ops.CenterCrop(224)], order="random", shuffle=True, on_error="skip")
for image, label, sample_id in loader:
    n: int = len(image)
for batch in loader:
    x, y = batch.image, batch["label"]
steps: int = len(loader)
ds = leat.open("train.leat", image=[leat.ops.RandomResizedCrop(224, scale=(0.2, 1.0))], seed=1, as_="numpy")
key: str = ds[0].key
some: list[leat.Sample] = ds[0:3]
with leat.Writer("out.leat", {"image": "image", "label": int}) as w:
    w.append({"image": b"", "label": 3}, key="a")
stats: dict[str, int] = leat.compact("out.leat")
count: int = leat.delete("out.leat", ["a", "b"])
'''
TYPED = '''
from typing import TypedDict, assert_type
import leat

class Images(leat.Batch):
    image: list[float]
    label: int

class Row(TypedDict):
    label: int

loader: leat.Loader[Images] = leat.Loader("train.leat", 64)
for batch in loader:
    assert_type(batch.image, list[float])
    assert_type(batch.label, int)
for row in leat.Loader[Row]("train.leat", as_dict=True):
    assert_type(row["label"], int)
def pair(batch: leat.Batch) -> tuple[int, str]:
    return 1, "a"
pairs: leat.Loader[tuple[int, str]] = leat.Loader("train.leat", transform=pair)
for number, text in pairs:
    assert_type(text, str)
for plain in leat.Loader("train.leat"):
    assert_type(plain, leat.Batch)
def fit(data: leat.Loader) -> int:
    return len(data)
fit(loader)
parts = leat.split("train.leat", {"train": 0.9, "val": 0.1})
leat.merge([part["path"] for part in parts.values()], "all.leat", duplicates="first")
masked = leat.open("train.leat", image=[leat.ops.CenterCrop(8)], mask="follow")
'''
WRONG = ['leat.merge(["a"], "b", duplicates="newest")', 'leat.Loader[Images]("p").batch_size.lower()',
         'next(iter(leat.Loader[Images]("p"))).label.lower()']
BAD = ['leat.Loader("p", order="sequental")', 'leat.Loader("p", on_error=3)', 'leat.open("p", as_="tensorflow")',
       'leat.Loader("p", decode="tpu")', 'leat.ops.CenterCrop()']


def mypy(tmp_path, code: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "user.py"
    path.write_text(code)
    site = os.path.dirname(os.path.dirname(leat.__file__))
    return subprocess.run([sys.executable, "-m", "mypy", "--follow-imports=silent", str(path)], text=True,
                          capture_output=True, env=dict(os.environ, MYPYPATH=site), cwd=tmp_path)


def test_user_code_under_mypy(tmp_path) -> None:
    pytest.importorskip("mypy")
    good = mypy(tmp_path, GOOD)
    assert good.returncode == 0, good.stdout
    typed = mypy(tmp_path, TYPED)
    assert typed.returncode == 0, typed.stdout
    wrong = mypy(tmp_path, TYPED + "\n".join(WRONG))
    lines = TYPED.count("\n")
    assert {int(line.split(":")[1]) for line in wrong.stdout.splitlines() if ": error:" in line} == set(
        range(lines + 1, lines + 1 + len(WRONG))), wrong.stdout
    bad = mypy(tmp_path, "import leat\n" + "\n".join(BAD))
    assert {int(line.split(":")[1]) for line in bad.stdout.splitlines() if ": error:" in line} == set(range(2, 7))


def test_annotations_resolve_and_choices_are_literal() -> None:
    for thing in (leat.Loader.__init__, leat.Dataset.__init__, leat.open, leat.pack, leat.append, leat.Writer.__init__,
                  leat.Image.decode, leat.compact, leat.delete):
        known = {**vars(inspect.getmodule(thing)), **vars(typing)}
        for name in ("Callback", "Mapping", "Sequence"):
            known.setdefault(name, object)
        assert typing.get_type_hints(thing, known)
    parameters = inspect.signature(leat.Loader).parameters
    for name in ("order", "on_error", "orientation", "decode", "as_"):
        assert "Literal[" in str(parameters[name].annotation), name


def test_a_loader_names_its_batches(plain) -> None:
    class Images(leat.Batch):
        image: object

    loader = leat.Loader[Images](plain, 8, [leat.ops.CenterCrop(8)], as_="numpy")
    assert type(loader) is leat.Loader and next(iter(loader)).image.shape == (8, 3, 8, 8)
    loader.close()


def test_progress_bars_know_the_length(plain) -> None:
    tqdm = pytest.importorskip("tqdm").tqdm
    with leat.Loader(plain, 8, [leat.ops.CenterCrop(8)], as_="numpy") as loader:
        for _ in range(2):
            bar = tqdm(loader, file=open(os.devnull, "w"))
            assert bar.total == len(loader) == 13 and sum(1 for _ in bar) == 13 == bar.n
        loader.set(batch_size=16)
        assert tqdm(loader, file=open(os.devnull, "w")).total == 7


def test_advice_is_given_once(plain) -> None:
    code = f"""
import leat
for _ in range(3):
    with leat.Loader({plain!r}, 16, "CenterCrop(8)", as_="numpy", rank=0, world_size=6) as loader:
        for _ in range(2):
            for batch in loader: pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(leat.__file__))))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("left out at the end") == 1, done.stderr
