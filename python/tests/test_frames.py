# SPDX-License-Identifier: Apache-2.0
"""Animations: the first frame, or all frames as samples, against Pillow's ImageSequence."""

import io
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image, ImageSequence, features

import leat

SIZE = (40, 30)


def pictures(count: int, alpha: bool, seed: int = 0) -> list[Image.Image]:
    """A background with squares that move, of which GIF and WebP store the parts that change."""
    rng = np.random.default_rng(seed)
    ground, made = rng.integers(0, 256, (SIZE[1], SIZE[0], 4), np.uint8), []
    for i in range(count):
        image = ground.copy()
        image[3 + i:13 + i, 2 * i:12 + 2 * i] = rng.integers(0, 256, 4)
        image[..., 3] = rng.choice([0, 90, 255], image.shape[:2]) if alpha else 255
        made.append(Image.fromarray(image).convert("RGBA" if alpha else "RGB"))
    return made


def animation(kind: str, frames: list[Image.Image], **options: object) -> bytes:
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], **options)
    return out.getvalue()


def palette_frames(alpha: bool) -> list[Image.Image]:
    made = []
    for i, frame in enumerate(pictures(6, False)):
        small = frame.quantize(16 + i)
        if alpha:
            small.paste(3, (i, 5, 20, 15 + i))
            small.info["transparency"] = 3
        made.append(small)
    return made


def files() -> dict[str, bytes]:
    made = {}
    for alpha in (False, True):
        for disposal in (0, 1, 2, 3, [1, 2, 3, 2, 1, 0]):
            name = f"{'clear' if alpha else 'plain'}{disposal}".translate({ord(c): None for c in "[], "})
            made[f"{name}.gif"] = animation("GIF", palette_frames(alpha), disposal=disposal, optimize=False,
                                            **({"transparency": 3} if alpha else {}))
    if features.check("webp"):
        for alpha in (False, True):
            for name, options in (("lossless", {"lossless": True}), ("small", {"lossless": True, "minimize_size": True}),
                                  ("keys", {"lossless": True, "kmin": 2, "kmax": 3}), ("mixed", {"allow_mixed": True, "quality": 60})):
                made[f"{name}{int(alpha)}.webp"] = animation("WEBP", pictures(6, alpha), **options)
    made["still.png"] = animation("PNG", pictures(1, False))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("frames") / "in"
    root.mkdir()
    for name, data in files().items():
        (root / name).write_bytes(data)
    return root


def frames_of(path) -> list[np.ndarray]:
    """RGBA of every frame; what is transparent has no colour."""
    made = []
    for frame in ImageSequence.Iterator(Image.open(path)):
        made.append(seen(np.asarray(frame.convert("RGBA"))))
    return made


def seen(pixels: np.ndarray) -> np.ndarray:
    if pixels.shape[2] == 3:
        pixels = np.concatenate([pixels, np.full((*pixels.shape[:2], 1), 255, np.uint8)], 2)
    return np.where(pixels[..., 3:] == 0, 0, pixels)


@pytest.mark.parametrize("images", ["keep", "tiled", "raw", "mix"])
def test_all_frames_are_pillows(folder, tmp_path, images):
    stats = leat.pack(folder, tmp_path / "a.leat", images=images, frames="all")
    ds = leat.open(tmp_path / "a.leat")
    want = {path.name: frames_of(path) for path in sorted(folder.iterdir())}
    assert stats["frames"] == sum(len(frames) for frames in want.values()) - 1 and stats["animated"] == 0
    assert len(ds) == stats["samples"] == stats["frames"] + 1
    assert ds.keys.count("still.png") == 1
    for name, frames in want.items():
        for i, frame in enumerate(frames):
            key = name if name == "still.png" else f"{name}#{i:04d}"
            image = ds[ds.find(key)]["image"]
            assert np.array_equal(seen(image.decode()), frame), key
            assert image.codec in (("png",) if images in ("keep", "tiled") else ("raw",) if images == "raw" else ("raw", "png"))


def test_the_order_is_that_of_the_animation(folder, tmp_path):
    leat.pack(folder, tmp_path / "a.leat", frames="all")
    keys = [key for key in leat.open(tmp_path / "a.leat").keys if key.startswith("plain1.gif")]
    assert keys == [f"plain1.gif#{i:04d}" for i in range(len(keys))] and len(keys) == 6


def test_threads_change_nothing(folder, tmp_path):
    made = []
    for threads in (1, 3):
        leat.pack(folder, tmp_path / f"{threads}.leat", frames="all", threads=threads, page_bytes=65536)
        made.append((tmp_path / f"{threads}.leat").read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("name", ["clear2a.png", "keys1a.png", "plain0a.png", "z.png"])
def test_resume_inside_an_animation(folder, tmp_path, name):
    """Pages end between frames of a file: the rest of them follows, and none twice."""
    whole = tmp_path / "in"
    shutil.copytree(folder, whole)
    (whole / name).write_bytes(b"not an image")
    options = {"frames": "all", "threads": 1, "page_bytes": 65536, "images": "raw"}
    with pytest.raises(leat.Error, match=name):
        leat.pack(whole, tmp_path / "r.leat", **options)
    shutil.copy(folder / "still.png", whole / name)
    stats = leat.pack(whole, tmp_path / "r.leat", resume=True, **options)
    assert stats["resumed"] > 0
    leat.pack(whole, tmp_path / "w.leat", **options)
    ours, want = leat.open(tmp_path / "r.leat"), leat.open(tmp_path / "w.leat")
    assert list(ours.keys) == list(want.keys) and len(set(ours.keys)) == len(ours)
    assert all(np.array_equal(a["image"].decode(), b["image"].decode()) for a, b in zip(ours, want))


def test_first_frames(folder, tmp_path):
    stats = leat.pack(folder, tmp_path / "a.leat")
    count = len(list(folder.iterdir()))
    assert stats["samples"] == count and stats["animated"] == count - 1 and stats["frames"] == 0
    with pytest.raises(leat.ArgumentError, match="frames: 'some' is not one of first, all"):
        leat.pack(folder, tmp_path / "b.leat", frames="some")


def test_frames_are_made_smaller_and_jpegs(folder, tmp_path):
    leat.pack(folder, tmp_path / "a.leat", frames="all", quality=90, max_side=20)
    image = leat.open(tmp_path / "a.leat")[leat.open(tmp_path / "a.leat").find("plain1.gif#0003")]["image"]
    assert (image.width, image.height) == (20, 15) and image.codec in ("jpeg", "tiled") and not image.exact


def test_export_gives_png_files(folder, tmp_path):
    leat.pack(folder, tmp_path / "a.leat", frames="all", images="keep")
    leat.export(tmp_path / "a.leat", tmp_path / "out")
    frame = np.asarray(Image.open(tmp_path / "out" / "plain1.gif#0002.png").convert("RGBA"))
    assert np.array_equal(frame, frames_of(folder / "plain1.gif")[2])
    assert (tmp_path / "out" / "still.png").read_bytes() == (folder / "still.png").read_bytes()


def test_damage_and_limits_are_one_line(folder, tmp_path):
    one = tmp_path / "in"
    one.mkdir()
    whole = (folder / "plain1.gif").read_bytes()
    (one / "a.gif").write_bytes(whole[:len(whole) * 2 // 3])
    done = command("pack", one, "-o", tmp_path / "a.leat", "--frames", "all")
    assert done.returncode == 4 and "a.gif" in done.stderr and len(done.stderr.strip().splitlines()) <= 2
    (one / "a.gif").write_bytes(whole)
    done = command("pack", one, "-o", tmp_path / "a.leat", "--frames", "all", "--max-out-bytes", 5000)
    assert done.returncode == 3 and "6 frames of 40 x 30 x 3 are over the limit of 4.89 KiB" in done.stderr
    done = command("pack", one, "-o", tmp_path / "a.leat", "--frames", "all", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["frames"] == 6


def pillow_counts(data: bytes) -> int:
    """Frames that Pillow reads; 0 when it refuses the file."""
    try:
        return sum(frame.load() is not None for frame in ImageSequence.Iterator(Image.open(io.BytesIO(data))))
    except (OSError, IndexError, SyntaxError, ValueError):
        return 0


def cut_files(folder) -> dict[str, bytes]:
    made = {}
    for name in ("plain1.gif", "clear2.gif", "lossless1.webp", "small0.webp"):
        if not (folder / name).exists():
            continue
        whole = (folder / name).read_bytes()
        for i in range(1, 24):
            made[f"{i:02d}-{name}"] = whole[:len(whole) * i // 24]
        if name.endswith("webp"):
            first, size = whole.index(b"ANMF"), 40
            made[f"none-{name}"] = b"RIFF" + (first - 8).to_bytes(4, "little") + whole[8:first]
            made[f"bad-{name}"] = whole[:first + 4] + size.to_bytes(4, "little") + whole[first + 8:]
    return made


def test_a_cut_animation_is_not_a_shorter_one(folder, tmp_path):
    """All frames that Pillow reads, or none: the file is listed as bad."""
    one = tmp_path / "in"
    one.mkdir()
    for name, data in cut_files(folder).items():
        (one / name).write_bytes(data)
    (one / "good.gif").write_bytes((folder / "plain1.gif").read_bytes())
    stats = leat.pack(one, tmp_path / "a.leat", frames="all", on_error="skip")
    keys, whole = list(leat.open(tmp_path / "a.leat").keys), 0
    for name, data in cut_files(folder).items():
        count = sum(key.split("#")[0] == name for key in keys)
        assert count in (0, pillow_counts(data)), name
        whole += count > 0
    assert stats["skipped"] == len(cut_files(folder)) - whole and whole < 5
    assert sum(key.startswith("good.gif") for key in keys) == 6


def test_labels_and_conditions_are_the_files(tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / "in" / label).mkdir(parents=True)
        (tmp_path / "in" / label / "a.gif").write_bytes(files()["plain1.gif"])
    leat.pack(tmp_path / "in", tmp_path / "a.leat", frames="all", where="label == 1")
    ds = leat.open(tmp_path / "a.leat")
    assert list(ds.keys) == [f"dog/a.gif#{i:04d}" for i in range(6)] and set(ds.column("label")) == {1}


def command(*args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "leat", *map(str, args)], capture_output=True, text=True, timeout=120)
