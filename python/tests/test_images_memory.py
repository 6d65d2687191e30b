# SPDX-License-Identifier: Apache-2.0
"""The memory that a refusal names is enough, for folders of mixed formats, tar shards and packs, on any number of threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import leat

Image = pytest.importorskip("PIL.Image")

WIDE, HIGH = 3400, 2500  # so large that the tasks in flight matter
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SAVE = {"bmp": lambda image, path: image.save(f"{path}.bmp"),
        "tiff": lambda image, path: image.save(f"{path}.tif"),
        "png": lambda image, path: image.save(f"{path}.png", compress_level=1),
        "baseline": lambda image, path: image.save(f"{path}.jpg", quality=80),
        "progressive": lambda image, path: image.save(f"{path}.jpg", quality=80, progressive=True),
        "grey": lambda image, path: image.convert("L").save(f"{path}.jpg"),
        "cmyk": lambda image, path: image.convert("CMYK").save(f"{path}.jpg")}
FOLDERS = {"bmp-progressive": ("bmp", "progressive", "bmp", "progressive", "bmp"),
           "tiff-bmp": ("tiff", "bmp", "tiff", "bmp"),
           "many": tuple(SAVE)}
COMMANDS = {"check": ("check", "-o", "out.leat"),
            "dedup": ("dedup", "images", "-o", "out.leat"),
            "pack": ("pack", "-o", "out.leat"),
            "pack-check": ("pack", "-o", "out.leat", "--check", "columns.leat")}


def mix(folder: Path, kinds: tuple[str, ...]) -> None:
    """Writes a huge and two tiny images of each kind, and a tar shard of all of them."""
    (folder / "class").mkdir(parents=True)
    rng = np.random.default_rng(len(kinds))
    for i, kind in enumerate(kinds):
        small = Image.fromarray(rng.integers(0, 255, (25, 34, 3), np.uint8))
        SAVE[kind](small.resize((WIDE, HIGH), Image.Resampling.BILINEAR), folder / "class" / f"{i}-huge-{kind}")
        for k in range(2):
            SAVE[kind](small, folder / "class" / f"{i}-{k}-{kind}")
    with tarfile.open(folder.with_suffix(".tar"), "w") as tar:
        for file in sorted((folder / "class").iterdir()):
            tar.add(file, file.name)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory")
    for name, kinds in FOLDERS.items():
        mix(path / name, kinds)
    mix(path / "tiny", ())
    Image.new("RGB", (20, 20)).save(path / "tiny" / "class" / "0.png")
    leat.pack(path / "many", path / "many.leat", images="keep", sync=False)
    leat.pack(path / "bmp-progressive", path / "bmp-progressive.leat", images="keep", sync=False)
    return path


def run(cwd: Path, *words: object) -> tuple[int, str, int]:
    """Runs the command; returns its exit code, its messages and its peak memory in bytes."""
    with subprocess.Popen([sys.executable, "-m", "leat", *map(str, words), "--force", "-q"], cwd=cwd, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, said, usage.ru_maxrss << 10


@pytest.mark.parametrize("threads", (1, 2, 7))
@pytest.mark.parametrize("source,commands", (("bmp-progressive", tuple(COMMANDS)), ("tiff-bmp", ("check", "pack")),
                                             ("many", ("check", "pack-check")), ("tiff-bmp.tar", ("check", "pack")),
                                             ("many.tar", ("dedup",)), ("many.leat", ("check", "dedup"))))
def test_the_first_refusal_names_enough(data, tmp_path, source, commands, threads):
    for name in commands:
        command, *options = COMMANDS[name]
        if options[0] == "images":
            command, options = "dedup images", options[1:]
        words = (*command.split(), *options, "-t", threads)
        _, _, base = run(tmp_path, *words, data / "tiny")
        for given in ("1M", "70M"):
            code, said, _ = run(tmp_path, *words, data / source, "--memory", given)
            if code != 3 and given == "70M":
                continue  # enough for this one
            found = re.search(r"need (\d[\d.]*) ([KMG]?i?B) of memory, more than the", said)
            assert code == 3 and found, (name, given, code, said)
            code, said, peak = run(tmp_path, *words, data / source, "--memory", f"{found[1]}{found[2]}")
            assert code in (0, 1), (name, given, found[0], said)
            assert peak - base < float(found[1]) * UNITS[found[2]] + (8 << 20), (name, given, found[0], peak, base)


@pytest.mark.parametrize("threads", (1, 2, 7))
def test_the_first_refusal_of_embed_counts_the_largest_image(data, tmp_path, threads):
    for source in ("many.leat", "bmp-progressive.leat"):
        words = ("embed", data / source, "-o", "vectors.leat", "--batch", 4, "-t", threads)
        code, said, _ = run(tmp_path, *words, "--memory", "1M")
        found = re.search(r"samples and the largest image need at least (\d[\d.]*) ([KMG]?i?B),", said)
        assert code == 3 and found, said
        code, said, _ = run(tmp_path, *words, "--memory", f"{found[1]}{found[2]}")
        assert code == 0, (found[0], said)
