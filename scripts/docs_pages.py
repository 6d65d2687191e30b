# SPDX-License-Identifier: Apache-2.0
"""docs_pages.py FOLDER: copies docs/ there and adds the generated reference pages.

reference/command.md   every `leat COMMAND --help`
reference/ops.md       every op with its parameters, and a picture of what it does
reference/python.md    signatures and docstrings of the package
reference/c.md         the public headers
"""

from __future__ import annotations

import glob
import html
import inspect
import os
import re
import shutil
import subprocess
import sys

import markdown
import numpy as np
from markdown.extensions.toc import slugify

import leat

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIDE = 128  # of the picture that ops are shown on
# Parameters for ops whose first parameters have no default, and for those whose defaults do nothing.
SHOWN = {
    "RandomResizedCrop": "RandomResizedCrop(96, scale=(0.2, 0.6))", "Resize": "Resize(64)", "CenterCrop": "CenterCrop(80)",
    "RandomCrop": "RandomCrop(80)", "Pad": "Pad(16, fill=128); Resize((128, 128))", "RandomRotation": "RandomRotation(45)",
    "RandomAffine": "RandomAffine(20, translate=(0.2, 0.2), scale=(0.7, 1.2), shear=10)",
    "ColorJitter": "ColorJitter(0.5, 0.5, 0.5, 0.2)", "RandomPosterize": "RandomPosterize(2, p=1)",
    "RandomSolarize": "RandomSolarize(128, p=1)", "RandomAdjustSharpness": "RandomAdjustSharpness(4, p=1)",
    "GaussianBlur": "GaussianBlur(9, sigma=(3, 3))", "RandomErasing": "RandomErasing(p=1, value=0)",
    "Cutout": "Cutout(40)", "JPEG": "JPEG(5)", "FiveCrop": "FiveCrop(64)", "TenCrop": "TenCrop(64)",
    "RandomZoomOut": "RandomZoomOut(128, (1, 2), p=1); Resize((128, 128))", "ScaleJitter": "ScaleJitter(128, (0.5, 1)); CenterCrop(128)",
    "RandomShortestSize": "RandomShortestSize((50, 70, 90)); CenterCrop(96)", "RandomApply": "RandomApply(RandomInvert(1), p=0.5)",
    "RandomChoice": "RandomChoice(RandomInvert(1); RandomGrayscale(1); RandomHorizontalFlip(1))",
    "RandomOrder": "RandomOrder(RandomSolarize(128, p=1); ColorJitter(0.5))",
}


def command(*arguments: str) -> str:
    environ = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, "-m", "leat", *arguments], capture_output=True, text=True, env=environ, check=True)
    return done.stdout


def command_page() -> str:
    overview = command("--help")
    names = re.findall(r"^  ([a-z]+)  ", overview.split("COMMANDS")[1].split("OPTIONS")[0], re.M)
    parts = ["# The command `leat`\n", "Every page below is what `leat COMMAND --help` prints.\n", fence(overview)]
    for name in names:
        parts += [f"## leat {name}\n", fence(command(name, "--help"))]
    return "\n".join(parts)


def fence(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


# ---- augmentations ---------------------------------------------------------------------------------------

def subject(side: int = SIDE) -> np.ndarray:
    """A drawn picture with edges, gradients and colours: a house in front of hills."""
    y, x = np.mgrid[0:side, 0:side] / side
    image = np.stack([120 + 100 * y, 170 + 40 * y, 250 - 60 * y], -1)
    image[y > 0.62 + 0.08 * np.sin(9 * x)] = (70, 150, 70)
    image[(abs(x - 0.5) < 0.2) & (y > 0.45) & (y < 0.8)] = (200, 90, 60)
    image[(y > 0.25) & (y < 0.45) & (abs(x - 0.5) < (y - 0.2) * 1.1)] = (110, 50, 40)
    image[(abs(x - 0.5) < 0.05) & (y > 0.62) & (y < 0.8)] = (60, 40, 30)
    image[(x - 0.82) ** 2 + (y - 0.18) ** 2 < 0.008] = (255, 230, 90)
    return np.clip(image, 0, 255).astype(np.uint8)


def pictures(folder: str, work: str) -> dict[str, str]:
    """Op to file name of a picture with four draws. Ops without a picture are left out."""
    from PIL import Image

    same, varied = os.path.join(work, "same.leat"), os.path.join(work, "varied.leat")
    for path, turn in ((same, 0), (varied, 1)):  # the second one changes colours from sample to sample, for ops that mix samples
        with leat.Writer(path, {"image": "image", "label": int}, classes={"label": ["a", "b"]}, sync=False) as writer:
            for i in range(4):
                writer.append([np.roll(subject()[:, ::-1 if turn * i % 2 else 1], turn * i, -1), i % 2])
    found = {}
    for name in op_names():
        text = shown(name)
        if text is None:
            continue
        try:
            loader = leat.Loader(varied if "Mix" in name else same, batch_size=4, order="sequential",
                                 image=f"CenterCrop({SIDE}); {text}", as_="numpy")
        except leat.ArgumentError:
            continue  # roles such as Mask are not steps of a pipeline
        batch = next(iter(loader)).image
        loader.close()
        if batch.ndim == 5:
            batch = batch[0]  # all crops of one image
        batch = np.moveaxis(batch, 1, -1)
        if batch.shape[-1] == 1:
            batch = np.repeat(batch, 3, -1)
        if batch.dtype != np.uint8:
            continue
        count, height, width, _ = batch.shape
        tile = np.full((height, count * (width + 8), 3), 255, np.uint8)
        for i, image in enumerate(batch):
            tile[:, i * (width + 8):i * (width + 8) + width] = image
        found[name] = f"{name}.png"
        Image.fromarray(tile).save(os.path.join(folder, found[name]))
    return found


def op_names() -> list[str]:
    return [name for name, value in vars(leat.ops).items() if isinstance(value, type) and issubclass(value, leat.ops.Op)
            and value is not leat.ops.Op and not name.startswith("_")]


def shown(name: str) -> str | None:
    """A pipeline that shows the op, or None where it cannot be shown as a picture."""
    if name in SHOWN:
        return SHOWN[name]
    parameters = list(inspect.signature(getattr(leat.ops, name)).parameters.values())
    if any(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters):
        return None
    return f"{name}(p=1)" if any(p.name == "p" for p in parameters) else f"{name}()"


def ops_page(folder: str, work: str) -> str:
    os.makedirs(os.path.join(folder, "ops"), exist_ok=True)
    drawn = pictures(os.path.join(folder, "ops"), work)
    parts = ["# Augmentations\n", "Every op works in `leat.ops`, in `leat load --ops` and in the C API. The pictures show four draws "
             "of the call above them, those of FiveCrop and TenCrop all crops of one image. `leat help OP` prints the same text.\n"]
    for name in op_names():
        text = command("help", name) if name in COMMAND_OPS else inspect.getdoc(getattr(leat.ops, name)) or ""
        parts.append(f"## {name}\n")
        if name in drawn:
            parts.append(f"`{shown(name)}`\n\n![{name}](ops/{drawn[name]})\n")
        parts.append(fence(text))
    return "\n".join(parts)


# ---- Python and C ----------------------------------------------------------------------------------------

def signature(value: object) -> str:
    """As Python writes it, without quotes around types and addresses of objects; long ones with a parameter per line."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(…)"
    quoted = r"ForwardRef\('([^']*)'\)|(?<=: )'([^']*)'|(?<=: )\"([^\"]*)\"|(?<=-> )'([^']*)'"

    def plain(text: str) -> str:
        return re.sub(r"<[\w. ]+ at 0x\w+>", "…", re.sub(quoted, r"\1\2\3\4", text))

    text = plain(str(found))
    if len(text) <= 90:
        return text
    words = [str(p) for p in found.parameters.values()]
    for i, p in enumerate(found.parameters.values()):
        if p.kind is p.KEYWORD_ONLY:
            words.insert(i, "*")
            break
    end = text[text.rindex(")"):] if " -> " not in text else text[text.rindex(") -> "):]
    return "(\n    " + ",\n    ".join(map(plain, words)) + end


def python_page() -> str:
    parts = ["# Python reference\n"]
    for name in sorted(n for n in leat.__all__ if not n.startswith("_")):
        value = getattr(leat, name)
        if inspect.ismodule(value):
            continue
        parts.append(f"## leat.{name}\n")
        if callable(value):
            parts.append(fence(f"{name}{signature(value)}"))
        parts.append(fence(inspect.getdoc(value) or ""))
        if not inspect.isclass(value) or issubclass(value, Exception):
            continue
        for member, function in inspect.getmembers(value):
            doc = inspect.getdoc(function)
            if member.startswith("_") or not doc or member not in vars(value):
                continue
            call = signature(function) if callable(function) else ""
            parts += [f"### {name}.{member}\n", fence(f"{member}{call}\n\n{doc}")]
    return "\n".join(parts)


def c_page() -> str:
    parts = ["# C reference\n", "Each section is a public header, as installed. `pkg-config leat` gives the flags.\n"]
    for path in sorted(glob.glob(os.path.join(ROOT, "include", "leat", "*.h"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r"^/\* SPDX[^\n]*\n|^// SPDX[^\n]*\n", "", text)
        parts += [f"## leat/{os.path.basename(path)}\n", f"<pre><code>{html.escape(text)}</code></pre>\n"]
    return "\n".join(parts)


# ---- pages of docs/ --------------------------------------------------------------------------------------

def check_page(path: str, text: str) -> None:
    """Fails where a list or a table would be shown as text: each needs an empty line before it, and lists in lists 4 blanks."""
    shown = re.sub(r"<pre>.*?</pre>", "", markdown.markdown(text, extensions=["tables", "fenced_code"]), flags=re.S)
    found = re.search(r"^ *(?:- |\| |\d+\. ).*", shown, re.M)
    if found:
        raise SystemExit(f"docs: {path}: not shown as a list or a table: {found[0].strip()[:80]}")


def with_anchors(text: str) -> str:
    """Gives headings that begin with a digit an anchor that begins with a letter: scripts of the theme need that."""
    code = False
    lines = []
    for line in text.split("\n"):
        code ^= line.startswith("```")
        if not code and re.match(r"#+ \d", line):
            line += f" {{#s{slugify(line.lstrip('# '), '-')}}}"
        lines.append(line)
    return re.sub(r"(\]\([\w/.-]*#)(?=\d)", r"\1s", "\n".join(lines))


def main(target: str) -> None:
    shutil.copytree(os.path.join(ROOT, "docs"), target)
    for path in glob.glob(os.path.join(target, "**", "*.md"), recursive=True):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        check_page(os.path.relpath(path, target), text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_anchors(text))
    folder = os.path.join(target, "reference")
    os.makedirs(folder)
    made = {"command.md": command_page(), "ops.md": ops_page(folder, os.path.dirname(target)), "python.md": python_page(),
            "c.md": c_page()}
    for name, text in made.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    print(f"docs: {len(made)} reference pages")


if __name__ == "__main__":
    COMMAND_OPS = set(re.findall(r"^  ([A-Z]\w+)\(", command("help", "ops"), re.M))
    main(sys.argv[1])
