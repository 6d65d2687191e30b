#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of the command line: a command, and what it must print and exit with.

A case file is a transcript. Commands run one after another with bash, in one fresh folder for
the whole file; each block is

    $ leat info nowhere.leat        a command; `> ` at the start of a line continues it
    a line of stdout                exactly this line
    some * glob (glob)              a line that matches, with *, ? and [..]
    ...                             any number of lines
    ! a line of stderr              the same rules, after `! `
    = 4                             the exit code; 0 when there is no such line

Lines that start with `#` outside a block and empty lines between blocks are comments. A line
`# needs: man` skips the file (exit 77) where that program is not there.

    run.py --leat BUILD/tools/leat FILE.t...     runs them
    run.py --update --leat ... FILE.t...         writes what was printed into the failed blocks
"""
import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77
TIMEOUT_S = 60


@dataclass
class Block:
    line: int  # of the file, from 1
    command: list = field(default_factory=list)
    out: list = field(default_factory=list)
    err: list = field(default_factory=list)
    code: int = 0
    end: int = 0  # first line after the block


def parse(text):
    """Blocks and the programs that the file needs."""
    blocks, needs, block, in_command = [], [], None, False
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.startswith("$ "):
            block = Block(number, [line[2:]])
            blocks.append(block)
            in_command = True
        elif block is None:
            if line.startswith("# needs:"):
                needs += line.split(":", 1)[1].split()
            elif line and not line.startswith("#"):
                raise SystemExit(f"line {number}: text outside a block: {line!r}")
            continue
        elif in_command and line.startswith("> "):
            block.command.append(line[2:])
        elif line == "":
            block = None
            continue
        elif line.startswith("! ") or line == "!":
            block.err.append(line[2:])
            in_command = False
        elif line.startswith("= "):
            block.code = int(line[2:])
            in_command = False
        else:
            block.out.append(line)
            in_command = False
        block.end = number
    return blocks, needs


def line_matches(want, got):
    if want.endswith(" (glob)"):
        return fnmatch.fnmatchcase(got, want[: -len(" (glob)")])
    return want == got


def matches(want, got):
    """True when the lines fit the pattern; `...` stands for any number of lines."""
    reach = {0}  # how many lines of `got` may be used up
    for pattern in want:
        if pattern == "...":
            reach = set(range(min(reach), len(got) + 1)) if reach else reach
        else:
            reach = {i + 1 for i in reach if i < len(got) and line_matches(pattern, got[i])}
    return len(got) in reach


def to_lines(data):
    """Lines as a case shows them; an empty line is written as `(empty)`."""
    text = data.decode("utf-8", "backslashreplace")
    if text == "":
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += " (no newline)"
    return [line if line else "(empty)" for line in lines]


def environment(leat, work):
    keep = ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS",
            "LEAT_CPU_MASK", "LEAT_FIXTURE", "LEAT_TEST_DATA", "PYTHONPATH")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env.update(
        PATH=os.pathsep.join([os.path.dirname(leat), os.path.join(HERE, "bin"),
                              os.environ.get("PATH", "/usr/bin:/bin")]),
        HOME=work, TMPDIR=work, TERM="dumb", COLUMNS="80", LC_ALL="C.UTF-8", TESTS=HERE)
    return env


def run_block(block, env, work):
    done = subprocess.run(["bash", "-c", "\n".join(block.command)], cwd=work, env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
    return to_lines(done.stdout), to_lines(done.stderr), done.returncode


def report(path, block, got):
    out, err, code = got
    print(f"{path}:{block.line}: $ " + "\n> ".join(block.command))
    for name, want, have in (("stdout", block.out, out), ("stderr", block.err, err)):
        if not matches(want, have):
            print(f"  {name} expected:", *(f"    |{x}" for x in want), sep="\n")
            print(f"  {name} printed:", *(f"    |{x}" for x in have), sep="\n")
    if code != block.code:
        print(f"  exit expected: {block.code}, was: {code}")


def run_file(path, leat, update):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    blocks, needs = parse(text)
    if not blocks:
        print(f"{path}: no command in it")
        return 1
    missing = [program for program in needs if not shutil.which(program)]
    if missing:
        print(f"{path}: skipped, there is no {' '.join(missing)}")
        return SKIP
    failed = []
    with tempfile.TemporaryDirectory(prefix="leat-cli-") as work:
        env = environment(leat, work)
        for block in blocks:
            got = run_block(block, env, work)
            if not (matches(block.out, got[0]) and matches(block.err, got[1])
                    and got[2] == block.code):
                failed.append((block, got))
                report(path, block, got)
    if failed and update:
        lines = text.split("\n")
        for block, (out, err, code) in reversed(failed):
            first = block.line - 1 + len(block.command)
            lines[first:block.end] = out + ["! " + x for x in err] + \
                ([f"= {code}"] if code else [])
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
    print(f"{path}: {len(blocks)} commands, {len(failed)} failed")
    return 1 if failed else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--leat", required=True, help="the command under test")
    ap.add_argument("--update", action="store_true", help="accept what is printed now")
    ap.add_argument("files", nargs="+")
    args = ap.parse_args()
    codes = [run_file(path, os.path.abspath(args.leat), args.update) for path in args.files]
    if all(code == SKIP for code in codes):
        return SKIP
    return 1 if 1 in codes else 0


if __name__ == "__main__":
    sys.exit(main())
