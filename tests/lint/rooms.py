#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a room of src/ includes a header of a room above it (design: one direction).

The order is the order of the subdir() lines in src/meson.build, so there is one list.
doctor and plan are neighbours: each may see the other.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEIGHBOURS = {"doctor", "plan"}


def main() -> int:
    rooms = re.findall(r"^subdir\('(\w+)'\)", (ROOT / "src/meson.build").read_text(), re.M)
    rank = {room: i for i, room in enumerate(rooms)}
    errors = []
    for room in rooms:
        sources = sorted((ROOT / "src" / room).glob("**/*.[ch]"))
        if sources and not (ROOT / "src" / room / "README.md").exists():
            errors.append(f"src/{room}: has no README.md")
        for path in sources:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = re.match(r'\s*#\s*include\s+"(\w+)/', line)
                if not match or match[1] not in rank:
                    continue
                other = match[1]
                if rank[other] > rank[room] and not {other, room} <= NEIGHBOURS:
                    where = f"{path.relative_to(ROOT)}:{number}"
                    errors.append(f"{where}: {room} includes {other}, which is above it")
    for error in errors:
        print(error, file=sys.stderr)
    print(f"rooms: {len(rooms)} in order, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
