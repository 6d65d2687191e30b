# SPDX-License-Identifier: Apache-2.0
"""A pack that small models learn in seconds: the class of a picture is its main colour."""

from __future__ import annotations

import io
import os
import sys
import tempfile

import numpy as np

import leat

COLOURS = ((220, 40, 40), (40, 200, 60), (50, 70, 220), (230, 210, 50))


def make(path: str, samples: int = 240, seed: int = 0) -> str:
    """Writes `samples` pictures of 72x72 in four classes."""
    rng = np.random.default_rng(seed)
    with leat.Writer(path, {"image": "image", "label": int}, replace=True, sync=False,
                     classes={"label": ["red", "green", "blue", "yellow"]}) as writer:
        for i in range(samples):
            label = i % len(COLOURS)
            noise = rng.integers(-40, 41, (72, 72, 3))
            picture = np.clip(np.array(COLOURS[label]) + noise, 0, 255).astype(np.uint8)
            writer.append({"image": encode(picture), "label": label}, key=f"{i:05d}.png")
    return path


def encode(picture: np.ndarray) -> bytes | np.ndarray:
    """As PNG where Pillow is installed; else as pixels, which leat stores too."""
    try:
        from PIL import Image
    except ImportError:
        return picture
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "PNG")
    return out.getvalue()


def path_or_tiny() -> str:
    """The pack named on the command line, or a tiny one (the same one for all ranks)."""
    if len(sys.argv) > 1:
        return sys.argv[1]
    folder = tempfile.mkdtemp(prefix="leat-example-")
    return make(os.path.join(folder, "tiny.leat"))
