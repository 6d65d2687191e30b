# SPDX-License-Identifier: Apache-2.0
"""The manual is true: every code block runs, and every link and menu entry leads somewhere.

A page's blocks run in order, in an empty folder with small data, and share their names. A block that
cannot run here says why in a comment before it: ``<!-- not run: needs a GPU -->``. A YAML block is written
to the file that its comment names: ``<!-- file: rules.yaml -->``. Every block names its language, so that
none is skipped by mistake.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import leat
from conftest import ROOT, jpeg

DOCS = os.path.join(ROOT, "docs")
BLOCK = re.compile(r"^(?P<indent> *)(?:<!-- (?:not run: (?P<why>[^\n]+?)|file: (?P<file>[\w.-]+)) -->\n *)?```(?P<kind>python|sh|yaml)\n"
                   r"(?P<code>.*?)^ *```$", re.M | re.S)
FENCE = re.compile(r"^ *```(\S*) *$", re.M)
SHOWN = {"text", "json", "c"}  # output, drawings, excerpts of files
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
    words = ["the", "of", "and", "that", "have", "with"]  # which the rules for English text ask for
    words += [a + b for a in ("river", "stone", "garden", "market", "letter", "window") for b in ("", "s", "side", "like", "less", "ward")]
    for name in ("crawl", "april", "may"):
        (folder / name).mkdir()
        texts = ["\n".join(" ".join(rng.choice(words, 14)) + "." for _ in range(8)) for _ in range(20)]
        lines = [json.dumps({"id": f"{name}-{i}", "text": text}) for i, text in enumerate(texts)]
        (folder / name / "part.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
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


@pytest.mark.parametrize("page", ["docs/howto/grow.md", "docs/howto/resume.md", "docs/howto/from-webdataset.md"])
@pytest.mark.parametrize("images", [3, 5])
def test_blocks_run_on_few_images_without_classes(page, images, place, monkeypatch, capsys):
    (place / "few").mkdir()
    for i, path in enumerate(sorted((place / "photos").rglob("*.jpg"))[:images]):
        path.rename(place / "few" / f"{i}.jpg")
    shutil.rmtree(place / "photos")
    (place / "few").rename(place / "photos")
    for name in ("photos", "train"):
        leat.pack(place / "photos", place / f"{name}.leat", sync=False, force=True)
    run_page(page, place, monkeypatch, capsys)


@pytest.mark.parametrize("page", ["docs/howto/imagefolder.md"])
def test_blocks_run_on_few_images_of_other_classes(page, place, monkeypatch, capsys):
    for i, path in enumerate(sorted((place / "photos").rglob("*.jpg"))):
        target = place / "few" / "xy"[i % 2]
        target.mkdir(parents=True, exist_ok=True)
        if i < 20:
            path.rename(target / f"picture{i}.jpg")
    shutil.rmtree(place / "photos")
    (place / "few").rename(place / "photos")
    for name in ("photos", "train", "val"):
        leat.pack(place / "photos", place / f"{name}.leat", sync=False, force=True)
    run_page(page, place, monkeypatch, capsys)


@pytest.mark.torch
@pytest.mark.parametrize("page", runnable())
def test_blocks_run(page, place, monkeypatch, capsys):
    run_page(page, place, monkeypatch, capsys)


def run_page(page, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    names: dict[str, object] = {"__name__": "__main__"}
    text = text_of(page)
    if page in ("README.md", "docs/getting-started.md"):  # readers begin with these: they make it
        (place / "photos.leat").unlink()
    for block in BLOCK.finditer(text):
        if block["why"]:
            continue
        code = textwrap.dedent(block["code"])
        if block["kind"] == "yaml":
            (place / block["file"]).write_text(code)
        elif block["kind"] == "sh":
            run_shell(code, place)
        else:
            line = text.count("\n", 0, block.start("code"))
            exec(compile("\n" * line + code, os.path.join(ROOT, page), "exec"), names)
    printed = capsys.readouterr().out.split()  # pages print their comparisons
    assert "False" not in printed


@pytest.mark.parametrize("page", pages())
def test_no_block_is_passed_over(page):
    text = text_of(page)
    blocks = {block.start("kind"): block for block in BLOCK.finditer(text)}
    for fence in list(FENCE.finditer(text))[::2]:
        at = f"{page}:{text.count(chr(10), 0, fence.start()) + 1}"
        if fence[1] in SHOWN:
            body = text[fence.end():text.index("```", fence.end())]
            assert not re.search(r"^(leat|python|pip|make) ", body, re.M), f"{at}: a command in a block that is not run"
            continue
        assert fence.start(1) in blocks, f"{at}: a block of the kind {fence[1]!r} is not run: name a language"
        block = blocks[fence.start(1)]
        assert block["kind"] != "yaml" or block["file"] or block["why"], f"{at}: name the file of this YAML block"


def test_options_of_blocks_that_are_not_run_exist():
    done = subprocess.run([sys.executable, "-m", "leat", "help", "--json"], capture_output=True, text=True, check=True)
    table = {command["name"]: {option["name"] for option in command["options"]} for command in json.loads(done.stdout)["commands"]}
    seen = 0
    for page in pages():
        for block in BLOCK.finditer(text_of(page)):
            for line in textwrap.dedent(block["code"]).replace("\\\n", " ").splitlines() if block["why"] and block["kind"] == "sh" else ():
                words = shlex.split(line, comments=True)
                if words[:1] != ["leat"]:
                    continue
                seen += 1
                assert words[1] in table, f"{page}: {line}"
                given = {word[2:].split("=")[0] for word in words if word.startswith("--")}
                assert given <= table[words[1]], f"{page}: {line}: {given - table[words[1]]}"
    assert seen > 10


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
