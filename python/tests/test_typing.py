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
