#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that would need a second look: no two files of src/ and no two leat_ types share a name.

A private header may have the name of the public header that it extends (src/base/error.h and
leat/error.h); it must include it. A file of tools/ has the name of its command.
A private type leat__x beside a public leat_x is refused unless TWINS explains it. The files that the
recipes of CONTRIBUTING.md name must exist.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TWINS = {
    "leat__cache": "the page cache that the loader's option leat_cache chooses",
    "leat__disk": "the cache on a disk; leat_disk is a measured disk",
    "leat__gpu": "an open device; leat_gpu describes one of the machine's",
    "leat__lane": "the scheduler's state of a leat_lane",
    "leat__node": "a task in the scheduler; leat_node is a NUMA node",
    "leat__order": "the positions that the loader's option leat_order chooses",
    "leat__stage": "the scheduler's state of a leat_stage",
    "leat__view": "the state of leat view; leat_view is a view of bytes",
    "leat__worker": "the scheduler's state of a leat_worker",
}
# Two files or types of one name that are still to be renamed. Do not add to it.
FILES: set[str] = set()
DOUBLE: set[str] = set()


def code(path: pathlib.Path) -> str:
    return re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)


def types(text: str) -> set[str]:
    """The leat_ structs, unions and enums that have a body here."""
    found = set(re.findall(r"\b(?:struct|union|enum)\s+(leat_\w+)\s*\{", text))
    for match in re.finditer(r"\btypedef\s+(?:struct|union|enum)\s*\{", text):
        depth, at = 1, match.end()
        while depth > 0 and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        name = re.match(r"\s*(leat_\w+)\s*;", text[at:])
        if name:
            found.add(name[1])
    return found


def check_files(files: list[pathlib.Path], errors: list[str]) -> None:
    seen: dict[str, pathlib.Path] = {}
    for path in files:
        where = path.relative_to(ROOT)
        if path.name in seen and path.name not in FILES:
            errors.append(f"{where}: same name as {seen[path.name]}")
        seen[path.name] = where
        public = ROOT / "include" / "leat" / path.name
        if path.suffix == ".h" and public.exists() and f"#include <leat/{path.name}>" not in path.read_text():
            errors.append(f"{where}: same name as include/leat/{path.name}, which it does not include")


def check_types(files: list[pathlib.Path], errors: list[str]) -> None:
    where = collections.defaultdict(list)
    for path in files:
        for name in types(code(path)):
            where[name].append(str(path.relative_to(ROOT)))
    for name, paths in sorted(where.items()):
        if name in DOUBLE:
            continue
        if len(paths) > 1:
            errors.append(f"{paths[1]}: {name} is also a type of {paths[0]}")
        public = name.replace("leat__", "leat_", 1)
        if name != public and public in where and name not in TWINS:
            errors.append(f"{paths[0]}: {name} differs by one underscore from {public} of {where[public][0]}")
    for name in TWINS:
        if name not in where or name.replace("__", "_", 1) not in where:
            errors.append(f"tests/lint/names.py: {name} in TWINS: there is no such pair")


def check_recipes(errors: list[str]) -> None:
    """Every file that a recipe of CONTRIBUTING.md names exists."""
    folders = "src|tests|tools|python|include|data|docs|scripts|bench|examples"
    for name in re.findall(rf"`((?:{folders})/[\w./-]*)`", (ROOT / "CONTRIBUTING.md").read_text()):
        if "NAME" not in name and not (ROOT / name).exists():
            errors.append(f"CONTRIBUTING.md: {name} does not exist")


def main() -> int:
    errors: list[str] = []
    source = sorted((ROOT / "src").glob("**/*.[ch]"))
    check_files(source, errors)
    others = [p for folder in ("include", "tools", "python/src") for p in sorted((ROOT / folder).glob("**/*.[ch]"))]
    check_types(others + source, errors)
    check_recipes(errors)
    for error in errors:
        print(error, file=sys.stderr)
    print(f"names: {len(source)} files of src/, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
