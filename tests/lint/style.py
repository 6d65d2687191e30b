#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The few style rules a machine can check: tabs, trailing blanks, final newline, SPDX line,
calls with a leat wrapper, unique file names, tests that mirror src/, and no pictures, packs or wheels
where a run may have left them."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH = 110  # the aim is ~90; past this a line is a mistake
TEXT = (".c", ".h", ".py", ".sh", ".md", ".build", ".yaml", ".txt")
BANNED = [
    (r"(?:malloc|calloc|realloc|free|strdup|strndup)\s*\(", "use base/mem.h"),
    (r"(?:sprintf|strcpy|strcat|gets|atoi|atol|atof|strtok|rand|srand)\s*\(", "use a checked call"),
    (r"(?:printf|puts|putchar|exit|abort)\s*\(", "the library neither prints nor exits"),
    (r"pthread_(?:create|mutex_|cond_)", "use base/thread.h"),
]
LEFT_OVER = (".png", ".jpg", ".jpeg", ".leat", ".tar", ".whl")  # what runs write; kept only under tests/ and docs/
# The wrappers themselves.
MAY = {"src/base/mem.c", "src/base/thread.c", "src/base/thread.h"}


def tracked() -> list[str]:
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [p for p in out.stdout.splitlines() if (ROOT / p).is_file()]


def strip_comments(text: str) -> str:
    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return re.sub(r'"(\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', blank, text, flags=re.S)


def check_text(path: str, errors: list[str]) -> None:
    data = (ROOT / path).read_bytes()
    if b"\0" in data or not data:
        return
    text = data.decode("utf-8", "replace")
    if not text.endswith("\n"):
        errors.append(f"{path}: no newline at the end")
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip() and not path.endswith(".md"):
            errors.append(f"{path}:{number}: trailing blank")
        if path.endswith((".c", ".h")):
            if "\t" in line:
                errors.append(f"{path}:{number}: tab")
            if len(line) > WIDTH and "/golden_" not in path:
                errors.append(f"{path}:{number}: {len(line)} columns")


def check_source(path: str, errors: list[str]) -> None:
    text = (ROOT / path).read_text()
    if "SPDX-License-Identifier: Apache-2.0" not in text[:200]:
        errors.append(f"{path}: no SPDX line")
    if not path.startswith("src/") or path in MAY:
        return
    for number, line in enumerate(strip_comments(text).splitlines(), 1):
        for pattern, hint in BANNED:
            match = re.search(r"(?<![\w.>])" + pattern, line)
            if match:
                errors.append(f"{path}:{number}: {match[0]}…: {hint}")


def check_tree(files: list[str], errors: list[str]) -> None:
    tests = {pathlib.Path(p).name for p in files if p.startswith("tests/")}
    names: dict[str, str] = {}
    for path in files:
        if not (path.startswith("src/") and path.endswith(".c")):
            continue
        name, stem = pathlib.Path(path).name, pathlib.Path(path).stem
        if name in names:
            errors.append(f"{path}: same name as {names[name]}")
        names[name] = path
        variant = re.search(r"_(avx2|avx512|neon)", stem) or stem.endswith("_tmpl")
        if not variant and not any(stem in test for test in tests):
            errors.append(f"{path}: no test of its name under tests/")


def main() -> int:
    errors: list[str] = []
    files = tracked()
    for path in files:
        if path.lower().endswith(LEFT_OVER) and not path.startswith(("tests/", "docs/")):
            errors.append(f"{path}: does a run write this? Pictures, packs and wheels belong under tests/ or docs/")
        if "/corpus/" in path or "/golden/" in path:
            continue
        if path.endswith(TEXT):
            check_text(path, errors)
        if path.endswith((".c", ".h")):
            check_source(path, errors)
    check_tree(files, errors)
    for error in errors:
        print(error, file=sys.stderr)
    print(f"style: {len(files)} files, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
