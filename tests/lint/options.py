#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Options in messages of the library: users of the command read --pad-mask, those of C and Python pad_mask.

Messages have such names in backquotes (src/base/error.h). This checks that every name in backquotes is an option of a
command, and that no message has a flag, or an option with an underscore outside backquotes.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = re.compile(r'\bCLI_(?:FLAG|INT|FLOAT|BYTES|BYTES10|SECONDS|CHOICE|STRING|PATH|FLOATS|PARAM)\(\s*"([a-z0-9-]+)"')
MESSAGE = re.compile(r"\bleat__(?:fail|fail_errno|error_context)\(")
# Messages that name an option of another command or tell both forms.
FLAGS = ("leat embed --logits", "leat dedup writes one with --index", "--anonymous or", "(--ca-file or", "give --vram and --step-ms",
         "tar --sort=name")


def options() -> set[str]:
    """The options of all tables, as C and Python name them."""
    found = set()
    for path in sorted((ROOT / "tools").glob("*.[ch]")):
        found |= set(TABLE.findall(path.read_text()))
    return {name.replace("-", "_") for name in found}


def call(text: str, at: int) -> str:
    """The arguments of the call whose parenthesis opens before `at`."""
    depth, end = 1, at
    while depth and end < len(text):
        literal = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, end)
        if literal:
            end = literal.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[at:end - 1]


def check(path: pathlib.Path, known: set[str], errors: list[str]) -> int:
    text = path.read_text()
    marked = 0
    for match in MESSAGE.finditer(text):
        where = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        message = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', call(text, match.end())))
        for name in re.findall(r"`([^`]*)`", message):
            marked += 1
            if name not in known and name != "%s":
                errors.append(f"{where}: `{name}`: no command has this option")
        message = re.sub(r"`[^`]*`", "", message)
        for name in re.findall(r"(?<![\w.])[a-z]+(?:_[a-z]+)+\b", message):
            if name in known:
                errors.append(f"{where}: {name} is an option: write `{name}`")
        for allowed in FLAGS:
            message = message.replace(allowed, "")
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", message):
            errors.append(f"{where}: {flag}: C and Python have no flags, write `{flag[2:].replace('-', '_')}`")
    return marked


def main() -> int:
    errors: list[str] = []
    known = options()
    marked = sum(check(path, known, errors) for path in sorted((ROOT / "src").rglob("*.c")))
    for line in errors:
        print(line)
    if not errors:
        print(f"options: {marked} names in messages, {len(known)} options")
    return 1 if errors or marked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
