# SPDX-License-Identifier: Apache-2.0
"""The memory that a refusal names is enough, for folders of mixed formats, tar shards and packs, on any number of threads."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import leat

Image = pytest.importorskip("PIL.Image")
features = pytest.importorskip("PIL.features")

DATA = Path(__file__).parents[2] / "tests" / "data"

WIDE, HIGH = 3400, 2500  # so large that the tasks in flight matter
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SAVE = {"bmp": lambda image, path: image.save(f"{path}.bmp"),
        "tiff": lambda image, path: image.save(f"{path}.tif"),
        "png": lambda image, path: image.save(f"{path}.png", compress_level=1),
        "baseline": lambda image, path: image.save(f"{path}.jpg", quality=80),
        "progressive": lambda image, path: image.save(f"{path}.jpg", quality=80, progressive=True),
        "grey": lambda image, path: image.convert("L").save(f"{path}.jpg"),
        "cmyk": lambda image, path: image.convert("CMYK").save(f"{path}.jpg"),
        "gif": lambda image, path: image.quantize(64).save(f"{path}.gif"),
        "webp": lambda image, path: image.save(f"{path}.webp", lossless=True, method=0)}
FOLDERS = {"bmp-progressive": ("bmp", "progressive", "bmp", "progressive", "bmp"),
           "tiff-bmp": ("tiff", "bmp", "tiff", "bmp"),
           "many": tuple(kind for kind in SAVE if kind not in ("gif", "webp"))}
COMMANDS = {"check": ("check", "-o", "out.leat"),
            "dedup": ("dedup", "images", "-o", "out.leat"),
            "pack": ("pack", "-o", "out.leat"),
            "pack-check": ("pack", "-o", "out.leat", "--check", "columns.leat")}


CALLS = {"check": lambda source, **how: leat.check(source, "columns.leat", force=True, sync=False, **how),
         "pack": lambda source, **how: leat.pack(source, "out.leat", force=True, sync=False, **how),
         "pack-check": lambda source, **how: leat.pack(source, "out.leat", check="columns.leat", force=True, sync=False, **how)}


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


# In a small separate process: the peak memory of a process counts that of its parent when it was started.
MEASURE = """import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, *sys.argv[1:]])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss << 10)
sys.exit(os.waitstatus_to_exitcode(status))"""


def run(cwd: Path, *words: object) -> tuple[int, str, int]:
    """Runs the command; returns its exit code, its messages and its peak memory in bytes."""
    done = subprocess.run([sys.executable, "-c", MEASURE, "-m", "leat", *map(str, words), "--force", "-q"], cwd=cwd, text=True,
                          capture_output=True)
    return done.returncode, done.stderr, int(done.stdout.split()[-1])


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
            found = re.search(r"images? do(?:es)? not fit the .* given .*: (\d[\d.]*) ([KMG]?i?B) is enough", said)
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


def kinds_of(folder: Path, size: tuple[int, int]) -> dict[str, Path]:
    """Writes an image of each kind; returns the files."""
    noise = Image.fromarray(np.random.default_rng(9).integers(0, 255, (25, 34, 3), np.uint8))
    image = noise.resize(size, Image.Resampling.BICUBIC)
    for kind, save in SAVE.items():
        save(image, folder / f"image-{kind}")
    return {kind: next(folder.glob(f"image-{kind}.*")) for kind in SAVE}


def pair(folder: Path, *files: Path) -> tuple[Path, Path]:
    """Makes a folder and a tar shard of these images, named by their kinds."""
    source = folder / ",".join(file.stem for file in files)
    (source / "class").mkdir(parents=True)
    with tarfile.open(source.with_suffix(".tar"), "w", dereference=True) as tar:
        for i, file in enumerate(files):
            os.link(file, source / "class" / f"{i}{file.suffix}")
            tar.add(file, f"{i}{file.suffix}")
    return source, source.with_suffix(".tar")


def passes(call: str, source: Path, threads: int) -> None:
    """Runs with a budget that is too small, and with the memory that the refusal names."""
    with pytest.raises(leat.BudgetError) as caught:
        CALLS[call](source, threads=threads, memory="1M")
    found = re.search(r"images? do(?:es)? not fit the .* given .*: (\d[\d.]*) ([KMG]?i?B) is enough", str(caught.value))
    assert found, (call, source.name, threads, caught.value)
    try:
        CALLS[call](source, threads=threads, memory=f"{found[1]}{found[2]}")
    except leat.BudgetError as error:
        pytest.fail(f"{call} {source.name}, {threads} threads, {found[0]}: {error}")


@pytest.mark.parametrize("call", CALLS)
def test_the_named_memory_is_enough_for_every_pair_of_formats(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    files = kinds_of(tmp_path, (900, 700))
    for first, then in itertools.product(SAVE, repeat=2):
        for source, threads in itertools.product(pair(tmp_path, files[first], files[then]), (1, 2)):
            passes(call, source, threads)


def test_samples_that_are_read_with_the_list_count(tmp_path, monkeypatch):
    """The list stage of a tar held a large image while another was processed, which the named memory had no room for."""
    monkeypatch.chdir(tmp_path)
    files = kinds_of(tmp_path, (WIDE, HIGH))
    for kinds, calls in (("gif,png", ("check",)), ("gif,bmp", ("check",)), ("progressive,png", tuple(CALLS)), ("progressive,bmp", ("check",)),
                         ("bmp,tiff", tuple(CALLS)), ("png,gif", ("check",)), ("baseline,bmp", ("pack-check",))):
        _, shard = pair(tmp_path, *(files[kind] for kind in kinds.split(",")))
        for call in calls:
            passes(call, shard, 1)
        shard.unlink()


def test_the_peak_counts_images_that_are_processed_alone(tmp_path, monkeypatch):
    """Without `memory`, a large image was not counted; with it, 6 bytes per pixel whatever the sampling."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").mkdir()
    Image.new("RGB", (8000, 6000)).save("one/large.jpg", progressive=True)  # 4:2:0: 3 bytes per pixel
    coefs = 8000 * 6000 * 3
    for call in CALLS:
        given = {} if call == "check" else {"images": "keep"}
        for how in ({}, {"memory": "250M"}):
            peak = CALLS[call]("one", threads=1, **given, **how)["budget_peak_bytes"]
            assert coefs <= peak < 1.1 * coefs, (call, how)


def test_a_refusal_that_cannot_name_enough_says_what_to_do(tmp_path, monkeypatch):
    """Of many samples only the first are read for it: here the large image comes after them."""
    monkeypatch.chdir(tmp_path)
    tiny, huge = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (8, 8)).save(tiny, "bmp")
    Image.new("RGB", (WIDE, HIGH)).save(huge, "bmp")
    with tarfile.open("late.tar", "w") as tar:
        for i in range(4096 * 16 + 1):
            data = huge if i == 4096 * 16 else tiny
            member = tarfile.TarInfo(f"{i}.bmp")
            member.size = data.seek(0, os.SEEK_END)
            data.seek(0)
            tar.addfile(member, data)
    with pytest.raises(leat.BudgetError, match="without memory, images too large for the default are processed alone$"):
        leat.check("late.tar", "columns.leat", threads=1, memory="12M", sync=False)
    assert leat.check("late.tar", "columns.leat", threads=1, sync=False)["samples"] == 4096 * 16 + 1


def test_a_check_while_packing_decodes_after_the_packer_has_freed_its_memory(tmp_path):
    """A GIF was held twice as decoded: 115 MiB were named, and 160 MiB used."""
    noise = Image.fromarray(np.random.default_rng(9).integers(0, 255, (25, 34, 3), np.uint8))
    for name, size in (("tiny", (20, 20)), ("large", (5200, 4000))):
        (tmp_path / name).mkdir()
        SAVE["gif"](noise.resize(size), tmp_path / name / "image")
    words = ("pack", "-o", "out.leat", "--check", "columns.leat", "-t", 1)
    _, _, base = run(tmp_path, *words, tmp_path / "tiny")
    code, said, peak = run(tmp_path, *words, tmp_path / "large", "--memory", "120M")
    assert code in (0, 1) and peak - base < 128 << 20, (code, said, peak - base)


# Checks an image of each folder with the memory that a refusal names; prints it and by how much the peak memory grew. The child sets
# the peak back between images. It decodes a small file of each format first, so that code of libraries does not count.
GROWTH = """import json, re, resource, sys
import leat
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
def status(key):
    return int(re.search(key + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
def check(folder, **how):
    return leat.check(folder, "columns.leat", threads=1, force=True, sync=False, **how)
def named(folder):
    try:
        check(folder, memory="1M")
    except leat.BudgetError as error:
        found = re.search(r": (\\d[\\d.]*) ([KMG]?i?B) is enough", str(error))
        return float(found[1]) * UNITS[found[2]]
check(sys.argv[1])
for folder in sys.argv[2:]:
    need = named(folder)
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    check(folder, memory=int(need))
    print(json.dumps([folder, int(need), status("VmHWM") - before]))"""
TASKS = 5 << 20  # of what is named, reserved for tasks before and after decoding


def adam7(path: Path, size: tuple[int, int], channels: int) -> None:
    """Writes a black interlaced PNG of 8 bits, which Pillow cannot."""
    width, height = size

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    total = sum((height - y + down - 1) // down * (1 + channels * ((width - x + across - 1) // across)) for x, y, across, down in passes)
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 1)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(30 << 20)))
                     + chunk(b"IDAT", zlib.compress(bytes(total))) + chunk(b"IEND", b""))


def bmp_runs(path: Path, width: int, height: int) -> None:
    """Writes a run-length coded bitmap of one colour."""
    row = b"\xff\5" * (width // 255) + bytes([width % 255, 5]) + b"\0\0"
    rows = row * height + b"\0\1"
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, len(rows), 0, 0, 256, 0)
    path.write_bytes(b"BM" + struct.pack("<IHHI", 1078 + len(rows), 0, 0, 1078) + header + bytes(1024) + rows)


def files_of_all_formats(folder: Path) -> list[str]:
    """Writes large images, each in its own folder, with the options that change how much memory a decoder needs."""
    noise = np.random.default_rng(9)
    image = Image.fromarray(noise.integers(0, 255, (25, 34, 3), np.uint8)).resize((2000, 1500), Image.Resampling.BILINEAR)
    alpha = image.copy()
    alpha.putalpha(Image.fromarray(noise.integers(0, 255, (20, 30), np.uint8)).resize((2000, 1500), Image.Resampling.BICUBIC))
    grey, flat, palette = image.convert("L"), Image.new("RGB", image.size, (9, 99, 199)), image.quantize(64)
    save = {
        "lossy.webp": lambda path: image.save(path, quality=40, method=0),
        "lossless.webp": lambda path: image.save(path, lossless=True, method=0),
        "lossless-alpha.webp": lambda path: alpha.save(path, lossless=True, method=0, exact=True),
        "lossy-alpha.webp": lambda path: alpha.save(path, quality=40, method=4),
        "moving.webp": lambda path: flat.save(path, lossless=True, save_all=True, append_images=[image]),
        "grey.png": lambda path: adam7(path, (4000, 3000), 1),
        "rgb.png": lambda path: adam7(path, image.size, 3),
        "rgba.png": lambda path: adam7(path, image.size, 4),
        "narrow.png": lambda path: Image.new("RGB", (75, 120000)).save(path),
        "colours.gif": lambda path: palette.save(path),
        "clear.gif": lambda path: palette.save(path, transparency=3),
        "runs.bmp": lambda path: bmp_runs(path, 2000, 1500),
        "rgb.bmp": lambda path: image.save(path),
        "palette.bmp": lambda path: palette.save(path),
        "one-strip.tiff": lambda path: alpha.save(path, compression="tiff_lzw", tiffinfo={278: 1500}),
        "strips.tiff": lambda path: image.save(path, compression="tiff_lzw"),
        "plain.tiff": lambda path: image.save(path, compression="raw"),
        "jpeg.tiff": lambda path: image.save(path, compression="jpeg", tiffinfo={278: 1500}),
        "fax.tiff": lambda path: image.convert("1").save(path, compression="group4", tiffinfo={278: 1500}),
        "baseline.jpg": lambda path: image.save(path),
        "progressive.jpg": lambda path: image.save(path, progressive=True, subsampling=0),
        "grey.jpg": lambda path: grey.save(path, progressive=True),
        "cmyk.jpg": lambda path: image.convert("CMYK").save(path, progressive=True),
    }
    if features.check("avif"):
        save["rgba.avif"] = lambda path: alpha.save(path, speed=10, subsampling="4:4:4")
        save["rgb.avif"] = lambda path: image.save(path, speed=10)
    for file in sorted((DATA / "large").iterdir()):  # Pillow writes no such files
        save[file.name] = lambda path, file=file: shutil.copy(file, path)
    for name, write in save.items():
        (folder / name).mkdir()
        write(folder / name / name)
    return list(save)


def test_every_decoder_keeps_the_memory_that_is_named(tmp_path):
    """libwebp's lossless image, interlaced PNGs, strips of a TIFF and small versions of narrow images were not counted."""
    warm = tmp_path / "warm"
    warm.mkdir()
    for kind in ("avif", "jxl", "heif"):
        for file in (DATA.parent / "fuzz" / "corpus" / kind).glob("rgb*"):
            shutil.copy(file, warm)
    for kind, save in SAVE.items():
        save(Image.new("RGB", (20, 20), (1, 2, 3)), warm / kind)
    kinds = files_of_all_formats(tmp_path)
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 17)}  # so that freed memory goes back to the system
    done = subprocess.run([sys.executable, "-c", GROWTH, "warm", *kinds], cwd=tmp_path, env=env, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(kinds)
    over = [f"{kind}: {need >> 20} MiB named, {used >> 20} MiB used" for kind, need, used in lines if used > need - TASKS]
    assert not over, over


PLANNED = {"png": ("png",), "webp": ("webp",), "progressive": ("progressive",), "tiled": ("baseline",),
           "mixed": ("png", "webp", "progressive", "baseline", "bmp", "grey")}
LOADERS = (("-b", 1, "-t", 1), ("-b", 4, "-t", 2, "--prefetch", 2), ("-b", 16, "-t", 5, "--order", "quasi_random"),
           ("-b", 6, "-t", 2, "--crop", "none", "--dtype", "f32"), ("-b", 4, "-t", 2, "--ops", "GaussianBlur(3); Resize(64); CenterCrop(64)"))


def leat_command(cwd: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "leat", *map(str, words)], cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_and_the_loader_agree_about_memory(tmp_path, name):
    """The plan left out the memory to decode images: the loader then refused the budget of its own configuration."""
    rng = np.random.default_rng(7)
    (tmp_path / "class").mkdir()
    for i in range(12):
        noise = Image.fromarray(rng.integers(0, 255, (25, 34, 3), np.uint8))
        size = (900 + 150 * i, 700 + 90 * i) if name == "mixed" else (1500, 1200)
        kinds = PLANNED[name]
        SAVE[kinds[i % len(kinds)]](noise.resize(size, Image.Resampling.NEAREST), tmp_path / "class" / str(i))
    leat.pack(tmp_path, tmp_path / "a.leat", images="tiled" if name == "tiled" else "keep", sync=False)
    for how in LOADERS:
        plan = ("plan", "-d", "a.leat", "--gpus", 0, "--no-measure", *how)
        config = leat_command(tmp_path, *plan, "--yaml").stdout
        fix = json.loads(leat_command(tmp_path, *plan, "--memory", 1, "--json").stdout)["fix"]
        least = int(re.search(r"--memory (\d+)", fix)[1])

        def load(memory: int, config: str = config) -> subprocess.CompletedProcess[str]:
            (tmp_path / "load.yaml").write_text(re.sub(r"(?m)^memory: \d+$", f"memory: {memory}", config))
            return leat_command(tmp_path, "load", "a.leat", "--config", "load.yaml", "-q")

        for memory in (int(re.search(r"(?m)^memory: (\d+)$", config)[1]), least):
            done = load(memory)
            assert done.returncode == 0, (how, memory, least, done.stderr)
        assert load(least // 2).returncode == 3, (how, least)
        assert leat_command(tmp_path, *plan, "--memory", least // 2).returncode == 3, (how, least)
