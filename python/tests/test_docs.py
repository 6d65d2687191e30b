# SPDX-License-Identifier: Apache-2.0
"""The manual is true: every code block runs, and every link and menu entry leads somewhere.

A page's blocks run in order, in an empty folder with small data, and share their names. A block that
cannot run here says why in a comment before it: ``<!-- not run: needs a GPU -->``.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

import leat
from conftest import ROOT, jpeg

DOCS = os.path.join(ROOT, "docs")
BLOCK = re.compile(r"^(?:<!-- not run: (?P<why>[^\n]+?) -->\n)?```(?P<kind>python|sh)\n(?P<code>.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def pages() -> list[str]:
    found = [os.path.join(ROOT, "README.md")]
    for folder, _, files in os.walk(DOCS):
        found += [os.path.join(folder, name) for name in files if name.endswith(".md")]
    return sorted(os.path.relpath(path, ROOT) for path in found)


def text_of(page: str) -> str:
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def runnable() -> list[str]:
    return [page for page in pages() if any(not m["why"] for m in BLOCK.finditer(text_of(page)))]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """photos/ with three classes, the packs photos.leat, train.leat and val.leat, and the command."""
    folder = tmp_path_factory.mktemp("docs")
    rng = np.random.default_rng(1)
    for i in range(60):
        path = folder / "photos" / ("cat", "dog", "owl")[i % 3]
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{i:03d}.jpg").write_bytes(jpeg(rng, int(rng.integers(70, 100)), int(rng.integers(70, 100))))
    for name in ("photos", "train", "val"):
        leat.pack(folder / "photos", folder / f"{name}.leat", sync=False)
    command = folder / "bin" / "leat"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m leat \"$@\"\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture
def place(data, tmp_path):
    return shutil.copytree(data, tmp_path / "page")


def run_shell(code: str, place) -> None:
    environ = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    for line in code.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        done = subprocess.run(["bash", "-c", line], cwd=place, env=environ, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), f"{line}\n{done.stdout}{done.stderr}"  # 1: there is a finding


@pytest.mark.torch
@pytest.mark.parametrize("page", runnable())
def test_blocks_run(page, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    names: dict[str, object] = {"__name__": "__main__"}
    text = text_of(page)
    if any("-o photos.leat" in block["code"] for block in BLOCK.finditer(text) if not block["why"]):  # the page makes it
        (place / "photos.leat").unlink()
    for block in BLOCK.finditer(text):
        if block["why"]:
            continue
        if block["kind"] == "sh":
            run_shell(block["code"], place)
        else:
            line = text.count("\n", 0, block.start("code"))
            exec(compile("\n" * line + block["code"], os.path.join(ROOT, page), "exec"), names)
    printed = capsys.readouterr().out.split()  # pages print their comparisons
    assert "False" not in printed


@pytest.mark.parametrize("page", pages())
def test_links(page):
    for target in LINK.findall(text_of(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        path = os.path.join(os.path.dirname(os.path.join(ROOT, page)), target)
        assert os.path.exists(path), f"{page}: {target} does not exist"


def test_menu_names_every_page():
    with open(os.path.join(ROOT, "mkdocs.yml"), encoding="utf-8") as file:
        menu = set(re.findall(r"([\w/.-]+\.md)$", file.read(), re.M))
    there = {os.path.relpath(os.path.join(ROOT, page), DOCS) for page in pages() if page.startswith("docs")}
    assert {name for name in menu if not name.startswith("reference/")} == there


def test_recipes_name_files_that_exist():
    named = re.findall(r"`([\w./-]+/[\w./-]+)`", text_of("CONTRIBUTING.md"))
    assert len(named) > 60
    missing = [name for name in named if "NAME" not in name and not os.path.exists(os.path.join(ROOT, name.rstrip("/")))]
    assert missing == []
