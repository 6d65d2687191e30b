#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Private functions of src/ that nothing but tests uses, and those that could be static.

A function that a header of src/ declares is used when its name stands anywhere in src/, tools/ or
python/src/ beside its declaration and its definition. One that only its own file uses must be tested on its
own, or be static. Functions that are made for tests are in FOR_TESTS, with what they are for. Public functions
(LEAT_API) are the library's interface and not checked here.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOR_TESTS = {
    "leat__aio_backend": "which backend a test got",
    "leat__aio_depth_set": "the depth of requests, changed while they run",
    "leat__aio_in_flight": "waits until a request is in flight",
    "leat__aio_turn": "serves requests in a chosen order (replay)",
    "leat__arch_at": "every family of the table",
    "leat__count_help": "every count of the table",
    "leat__count_name": "every count of the table",
    "leat__cpu_mask": "kernels of a weaker CPU, in tests and benchmarks",
    "leat__disk_used": "what the disk cache holds",
    "leat__fault_arm_kill": "faults",
    "leat__fault_available": "faults",
    "leat__fault_count": "faults",
    "leat__fault_disarm": "faults",
    "leat__gpu_count": "the fake driver's devices",
    "leat__gpu_kernels_origin": "where kernels came from",
    "leat__io_inject": "injected I/O errors",
    "leat__io_inject_clear": "injected I/O errors",
    "leat__io_inject_hits": "injected I/O errors",
    "leat__io_inject_parse": "injected I/O errors",
    "leat__jpeg_coef_read_libjpeg": "the reference for the own Huffman decoder",
    "leat__kept_bytes": "what the cache of tiny samples holds",
    "leat__mem_blocks": "leaks",
    "leat__mem_limit_set": "a hard limit, for tests and fuzzing",
    "leat__mem_peak": "peaks, for tests and benchmarks",
    "leat__mem_peak_reset": "peaks, for tests and benchmarks",
    "leat__meters_enable": "the cost of meters (bench/meters_cost)",
    "leat__readahead_read": "what was advised so far",
    "leat__replay_advance": "deterministic replay of the scheduler",
    "leat__replay_moves": "deterministic replay of the scheduler",
    "leat__replay_open": "deterministic replay of the scheduler",
    "leat__replay_outside_set": "deterministic replay of the scheduler",
    "leat__sysroot_set": "/sys and /proc of a made-up machine",
    "leat__tile_kept_name": "why a file was not tiled, in tests and benchmarks",
    "leat__tile_kept_text": "why a file was not tiled, in tests and benchmarks",
    "leat__view_thumb_pixels": "the pixels of a thumbnail",
}


def code(path: pathlib.Path) -> str:
    """The file without comments and strings."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', " ", path.read_text(), flags=re.S)


def declared(text: str) -> set[str]:
    """Functions with a prototype or a body in a header, outside of macros and of other bodies."""
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    flat, depth = [], 0
    for part in re.split(r"([{}])", text):
        if part == "{":
            depth += 1
        elif part == "}":
            depth -= 1
            flat.append(";")
        elif depth == 0:
            flat.append(part)
    found = set()
    for statement in "".join(flat).split(";"):
        match = re.search(r"\b(leat__\w+)\s*\(", statement)
        if match and "typedef" not in statement and "LEAT_API" not in statement and "=" not in statement:
            found.add(match[1])
    return found


def main() -> int:
    uses: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    header: dict[str, pathlib.Path] = {}
    for folder in ("src", "tools", "python/src"):
        for path in sorted((ROOT / folder).glob("**/*.[ch]")):
            text = code(path)
            for name, count in collections.Counter(re.findall(r"\bleat__\w+", text)).items():
                uses[name][path] += count
            if folder == "src" and path.suffix == ".h":
                for name in declared(text):
                    header[name] = path
    tested = set()
    for folder in ("tests", "bench"):
        for path in (ROOT / folder).glob("**/*.[ch]"):
            tested |= set(re.findall(r"\bleat__\w+", path.read_text()))
    errors = []
    for name, path in sorted(header.items()):
        where = uses[name].copy()
        where[path] -= 1
        bodies = [p for p in where if p.suffix == ".c" and re.search(
            r"^[\w*][^;={}]*\b" + name + r"\s*\([^;{}]*\)\s*\{", code(p), re.M)]
        for body in bodies:
            where[body] -= 1
        used = [p for p, count in where.items() if count > 0]
        shown = f"{path.relative_to(ROOT)}: {name}"
        if not used and name not in FOR_TESTS:
            errors.append(f"{shown} is used by {'tests only' if name in tested else 'nothing'}: delete it")
        elif used and name in FOR_TESTS:
            errors.append(f"tests/lint/dead.py: {name} is used: take it out of FOR_TESTS")
        elif used and used == bodies and len(bodies) == 1 and name not in tested:
            errors.append(f"{shown} is used in {bodies[0].name} only: make it static")
    errors += [f"tests/lint/dead.py: {n} in FOR_TESTS does not exist" for n in FOR_TESTS if n not in header]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"dead: {len(header)} private functions, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
